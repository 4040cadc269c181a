/** What an agent is opened with and what it offers, and what follows from these options alone. */
import type { ModelChoice, Run, Session, SessionEvent, TidemarkOptions } from 'tidemark'
import type { AskUser } from '../tools/agent-environment.ts'
import type { PermissionMode } from './permissions.ts'
import type { AgentPrompt } from './prompt-commands.ts'
import type { AgentSettings } from './settings.ts'

export interface AgentOptions {
  /** The working directory. */
  readonly folder: string
  /** The Tidemark home, for the session and its files. */
  readonly home: string
  readonly sessionId: string
  readonly model: ModelChoice
  readonly settings: AgentSettings
  /** Permission rules of the command line, besides those of the settings. */
  readonly allowed?: readonly string[]
  readonly mode?: PermissionMode
  /** Names of the tools that the model gets. Default: all. AskUser is left out if there is no `askUser`. */
  readonly toolNames?: readonly string[]
  readonly appendedPrompt?: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Asks the user a question of the model. Without it, nobody can answer. */
  readonly askUser?: AskUser
  /** Asks the user for a permission. Without it, what no rule allows is refused. */
  readonly askPermission?: AskPermission
  readonly onEvent?: (event: SessionEvent) => void
  /** Called once for each memory file, skill or slash command that exists and could not or may not be read. */
  readonly onUnread?: (
    kind: 'memory file' | 'skill or command',
    file: { readonly path: string; readonly why: string },
  ) => void
  /** Called with a sentence for the user, such as that an MCP server could not be started. */
  readonly onNotice?: (message: string) => void
  /** Further options of the engine, for tests and the tour. */
  readonly engine?: Partial<TidemarkOptions>
}

export type AskPermission = (request: {
  readonly tool: string
  readonly input: object
  readonly reason: string
  /** A rule that would allow calls like this one. */
  readonly suggestion: string | null
}) => Promise<{ readonly isAllowed: boolean; readonly reason?: string }>

/** A tool call that was refused because no rule allowed it. */
export interface PermissionDenial {
  readonly tool: string
  readonly input: object
  readonly reason: string
  readonly suggestion: string | null
}

export interface Agent {
  readonly session: Session
  readonly denials: readonly PermissionDenial[]
  readonly toolNames: readonly string[]
  /** Returns true while plan mode is on. */
  isPlanning(): boolean
  /**
   * Replaces a slash command by the text of its file, for `run`; any other prompt is returned as it is. `notices`: sentences
   * for the user.
   */
  expandPrompt(
    prompt: AgentPrompt,
    signal?: AbortSignal,
  ): Promise<{ readonly prompt: AgentPrompt; readonly notices: readonly string[] }>
  /** Runs a prompt; null continues an interrupted turn. Without `maxCalls`, it takes as many calls as the work needs. */
  run(prompt: string | readonly object[] | null, options?: { signal?: AbortSignal; maxCalls?: number }): Run
  /** Ends all commands and closes the session. */
  close(): Promise<void>
}

/** A tool that nobody can answer is not offered. */
export function isOffered({ toolNames, askUser }: AgentOptions, name: string): boolean {
  return (toolNames?.includes(name) ?? true) && (name !== 'AskUser' || askUser !== undefined)
}

/** Returns the environment of commands, hooks and MCP servers. They get no key of the model, unless the user's settings give one. */
export function createCommandEnvironment({ env, settings }: AgentOptions): AgentOptions['env'] {
  const { ANTHROPIC_API_KEY: _key, ANTHROPIC_AUTH_TOKEN: _token, ...others } = env
  return { ...others, ...settings.env }
}

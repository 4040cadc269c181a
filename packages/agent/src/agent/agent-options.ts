/** What an agent is opened with and what it offers, and what follows from these options alone. */

import type { ModelChoice, Run, Session, SessionEvent, TidemarkOptions, Tools } from 'tidemark'
import type { FoundPromptFile } from 'tidemark/project'
import type { McpServers } from '../mcp/mcp-servers.ts'
import type { OpenedSandbox } from '../sandbox/sandbox.ts'
import type { AskUser } from '../tools/agent-environment.ts'
import { type AgentDefinition, isToolOfAgent } from './agent-definitions.ts'
import type { Limits, Spending } from './agent-limits.ts'
import type { LoadedInstructions } from './memory-sources.ts'
import type { PermissionContext, PermissionMode } from './permissions.ts'
import type { AgentPrompt } from './prompt-commands.ts'
import type { AgentSettings } from './settings.ts'
import type { SubagentEvent, SubagentRecord, SubagentRecords } from './subagent-records.ts'

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
  /** True if the user can switch the permission mode while the session is open. Default: false. */
  readonly canSwitchMode?: boolean
  /** Asks the user for a permission. Without it, what no rule allows is refused. */
  readonly askPermission?: AskPermission
  readonly onEvent?: (event: SessionEvent) => void
  /** Called once for each memory file, skill or slash command that exists and could not or may not be read. */
  readonly onUnread?: (
    kind: 'memory file' | 'skill or command' | 'definition of an agent',
    file: { readonly path: string; readonly why: string },
  ) => void
  /** Called with each memory file that was read. */
  readonly onMemoryLoaded?: (file: LoadedInstructions) => void
  /** Called with a sentence for the user, such as that an MCP server could not be started. */
  readonly onNotice?: (message: string) => void
  /** Milliseconds that the first request waits for MCP servers. Default: 3 seconds. */
  readonly firstServerWait?: number
  /** Called when a subagent begins, does something, or ends. */
  readonly onSubagent?: (event: SubagentEvent) => void
  /**
   * True if a turn ends only when the subagents in the background have ended and the model has seen their results.
   * Default: true. False where the user can give the next prompt while they work.
   */
  readonly waitsForSubagents?: boolean
  /** What the session and its subagents may use in all. Default: no limit. */
  readonly limits?: Limits
  /** What one run of a subagent may use. Default: those of the settings, else 500 turns. */
  readonly subagentLimits?: Limits
  /** What a subagent has from the agent that starts it. Not given for the main conversation. */
  readonly inherited?: InheritedOptions
  /** Further options of the engine, for tests and the tour. */
  readonly engine?: Partial<TidemarkOptions>
}

/** What a subagent has from the agent that starts it. */
export interface InheritedOptions {
  readonly definition: AgentDefinition
  /** 1 for a subagent of the main conversation. */
  readonly depth: number
  readonly isPlanning: boolean
  readonly context: PermissionContext
  readonly denials: PermissionDenial[]
  /** Returns true if the starting agent may have a tool. */
  readonly isOffered: (tool: string) => boolean
  readonly servers: InheritedServers
  readonly team: SubagentTeam
}

/** The MCP servers of the main conversation, with their tools as they are when the subagent starts. */
export interface InheritedServers {
  readonly tools: Tools
  readonly instructions: string | null
  readonly isReadOnly: (tool: string) => boolean
  /** Returns a tool of a server that was still starting. */
  readonly findTool: McpServers['findTool']
}

/** What all subagents of a session share. */
export interface SubagentTeam {
  readonly records: SubagentRecords
  /** Those that are working, by id. */
  readonly working: Map<string, WorkingSubagent>
  readonly runHooks: Session['runHooks']
  /** Returns what the main conversation itself has used. */
  readonly readMainSpending: () => Spending
}

export interface WorkingSubagent {
  /** Stops it. `interrupted`: because the program ends. */
  stop(status: 'stopped' | 'interrupted'): void
  /** Resolves when it has ended and its record is stored. Never rejects. */
  readonly ended: Promise<SubagentRecord>
}

export type AskPermission = (request: {
  /** The name of the subagent that wants to call the tool; not given for the main conversation. */
  readonly agent?: string
  readonly tool: string
  readonly input: object
  /** The folder in which a command would run, if it is not the working directory. */
  readonly folder?: string
  readonly reason: string
  /** Rules that together would allow calls like this one. */
  readonly suggestions: readonly string[]
  /** Aborted if the answer is no longer needed, because the agent was stopped. */
  readonly signal: AbortSignal | undefined
}) => Promise<{ readonly isAllowed: boolean; readonly reason?: string }>

/** A tool call that was refused because no rule allowed it. */
export interface PermissionDenial {
  readonly tool: string
  readonly input: object
  readonly reason: string
  readonly suggestions: readonly string[]
}

interface PromptToRun {
  readonly prompt: AgentPrompt
  /** The texts that the user typed, if the prompt is no command. */
  readonly typed?: readonly string[]
  /** Sentences for the user. */
  readonly notices: readonly string[]
  /** The name that the prompt begins with, if it looks like a command and none has it. */
  readonly unknownCommand?: string
  /** The files that were added, as in `src/a.ts, 61 lines`. */
  readonly attached?: readonly string[]
}

export interface Agent {
  readonly session: Session
  readonly denials: readonly PermissionDenial[]
  readonly toolNames: readonly string[]
  /** Returns true while plan mode is on. */
  isPlanning(): boolean
  /** Returns the permission mode as it is now. */
  readMode(): PermissionMode
  /** The sandbox of commands; why there is none if the settings want one; null if they do not. */
  readonly sandbox: OpenedSandbox | null
  /** Goes on in another permission mode, from the next tool call on. A subagent keeps its own. */
  switchMode(mode: PermissionMode): Promise<void>
  /**
   * Replaces a slash command by the text of its file, for `run`, and adds the files that the prompt names. Any other prompt
   * is returned as it is.
   */
  expandPrompt(prompt: AgentPrompt, signal?: AbortSignal): Promise<PromptToRun>
  /** Lists the skills and the slash commands that are files, as they are now. */
  listPromptFiles(): Promise<readonly FoundPromptFile[]>
  /** Lists the definitions of subagents as they are now; none if this agent may start none. */
  listDefinitions(): Promise<readonly AgentDefinition[]>
  /** Names of the tools that MCP servers offer now. */
  listServerTools(): readonly string[]
  /** Runs a prompt; null continues an interrupted turn. Without `maxCalls`, it takes as many calls as the work needs. */
  run(
    prompt: string | readonly object[] | null,
    options?: { signal?: AbortSignal; maxCalls?: number; limits?: Limits; typed?: readonly string[] },
  ): Run
  /** Runs a shell command of the user in the working directory. Ends it when `signal` is aborted. */
  runShell(
    command: string,
    signal?: AbortSignal,
  ): Promise<{ readonly output: string; readonly isFailed: boolean }>
  /** Returns all subagents of the session, also those of earlier runs, the oldest first. */
  subagents(): readonly SubagentRecord[]
  /** Ends all commands and subagents, and closes the session. */
  close(): Promise<void>
}

/** A tool that nobody can answer is not offered. A subagent has no tool that the agent that starts it has not. */
export function isOffered({ toolNames, askUser, inherited }: AgentOptions, name: string): boolean {
  if (name === 'AskUser' && askUser === undefined) return false
  if (inherited === undefined) return toolNames?.includes(name) ?? true
  return inherited.isOffered(name) && isToolOfAgent(inherited.definition, name)
}

/** Returns the environment of commands, hooks and MCP servers. They get no key of the model, unless the user's settings give one. */
export function createCommandEnvironment({ env, settings }: AgentOptions): AgentOptions['env'] {
  // With CDPATH, `cd sub` leads to another folder than the rules for commands take it for.
  const {
    ANTHROPIC_API_KEY: _key,
    ANTHROPIC_AUTH_TOKEN: _token,
    OPENAI_API_KEY: _openai,
    CDPATH: _folders,
    ...others
  } = env
  return { ...others, ...settings.env }
}

/** The interface of an agent, the options with which one is opened, and what a subagent inherits. */

import type { ModelChoice, Run, Session, SessionEvent, TidemarkOptions, Tools } from 'tidemark'
import type { FoundPromptFile } from 'tidemark/project'
import type { McpServers } from '../mcp/mcp-servers.ts'
import type { OpenSandboxResult } from '../sandbox/sandbox.ts'
import type { AskUser } from '../tools/tool-environment.ts'
import { type AgentDefinition, canAgentUseTool } from './agent-definitions.ts'
import type { LimitUsage, UsageLimits } from './agent-limits.ts'
import type { LoadedMemoryFile } from './memory-sources.ts'
import type { PermissionContext, PermissionMode } from './permissions.ts'
import type { AgentPrompt } from './prompt-commands.ts'
import type { AgentSettings } from './settings.ts'
import type { SubagentEvent, SubagentRecord, SubagentStore } from './subagent-records.ts'

export interface AgentOptions {
  /** The working directory. */
  readonly folder: string
  /** The Tidemark home, for the session and its files. */
  readonly home: string
  readonly sessionId: string
  readonly model: ModelChoice
  readonly settings: AgentSettings
  /** Permission rules from the command line, in addition to those of the settings. */
  readonly allowed?: readonly string[]
  /** Default: that of the settings. */
  readonly mode?: PermissionMode
  /** Names of the tools that the model gets. Default: all. AskUser is left out if there is no `askUser`. */
  readonly toolNames?: readonly string[]
  /** Instructions of the user, added at the end of the system prompt. */
  readonly appendedPrompt?: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Asks the user a question for the model. If omitted, the model cannot ask the user. */
  readonly askUser?: AskUser
  /** True if the user can switch the permission mode while the session is open. Default: false. */
  readonly canSwitchMode?: boolean
  /** Asks the user for a permission. If omitted, calls that no rule allows are refused. */
  readonly askPermission?: AskPermission
  readonly onEvent?: (event: SessionEvent) => void
  /** Called once for each memory file, skill or slash command that exists but could not or must not be read. */
  readonly onUnread?: (
    kind: 'memory file' | 'skill or command' | 'definition of an agent',
    file: { readonly path: string; readonly why: string },
  ) => void
  /** Called with each memory file that was read. */
  readonly onMemoryLoaded?: (file: LoadedMemoryFile) => void
  /** Called with a sentence for the user, such as that an MCP server could not be started. */
  readonly onNotice?: (message: string) => void
  /** Milliseconds that the first request waits for MCP servers. Default: 3 seconds. */
  readonly firstServerWait?: number
  /** Called when a subagent begins, does something, or ends. */
  readonly onSubagent?: (event: SubagentEvent) => void
  /**
   * True if a turn ends only after all background subagents have ended and the model has seen their results. Default: true. False if the
   * user can send prompts while subagents work.
   */
  readonly waitsForSubagents?: boolean
  /** What the session and its subagents may use in all. Default: no limit. */
  readonly limits?: UsageLimits
  /** Limits of one run of a subagent. Default: those of the settings, else 500 turns. */
  readonly subagentLimits?: UsageLimits
  /** What a subagent inherits from the agent that starts it. Absent for the main conversation. */
  readonly inherited?: SubagentInheritance
  /** Further options of the engine, for tests and the tour. */
  readonly engine?: Partial<TidemarkOptions>
}

/** What a subagent inherits from the agent that starts it. */
export interface SubagentInheritance {
  readonly definition: AgentDefinition
  /** Depth of the subagent; 1 if the main conversation started it. */
  readonly depth: number
  readonly isPlanning: boolean
  readonly context: PermissionContext
  /** The list of the whole session, to which the subagent adds its own. */
  readonly denials: PermissionDenial[]
  /** Returns true if the starting agent may have a tool. */
  readonly isOffered: (tool: string) => boolean
  readonly servers: InheritedMcpServers
  readonly team: SharedSubagentState
}

/** The MCP servers of the main conversation, with the tools that they have when the subagent starts. */
export interface InheritedMcpServers {
  readonly tools: Tools
  readonly instructions: string | null
  readonly isReadOnly: (tool: string) => boolean
  /** Returns a tool of a server that was not ready yet when the subagent started. */
  readonly findTool: McpServers['findTool']
}

/** What all subagents of a session share. */
export interface SharedSubagentState {
  readonly records: SubagentStore
  /** The subagents that are working, by id. */
  readonly working: Map<string, WorkingSubagent>
  readonly runHooks: Session['runHooks']
  /** Returns what the main conversation itself has used. */
  readonly readMainSpending: () => LimitUsage
}

/** A subagent whose run has not ended. */
export interface WorkingSubagent {
  /** Stops the subagent. `interrupted`: the program ends. */
  stop(status: 'stopped' | 'interrupted'): void
  /** Resolves when the subagent has ended and its record is stored. Never rejects. */
  readonly ended: Promise<SubagentRecord>
}

/** Asks the user whether a call may run. In the answer, `reason` is what the user wrote to the model. */
export type AskPermission = (request: {
  /** The name of the subagent that wants to call the tool; absent for the main conversation. */
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

/** A tool call that was refused, by a rule, by the user, or because nobody could be asked. */
export interface PermissionDenial {
  readonly tool: string
  readonly input: object
  readonly reason: string
  /** Rules that together would allow it. */
  readonly suggestions: readonly string[]
}

interface PromptToRun {
  readonly prompt: AgentPrompt
  /** The texts that the user typed; absent if the prompt is a command. */
  readonly typed?: readonly string[]
  /** Sentences for the user. */
  readonly notices: readonly string[]
  /** The name at the beginning of the prompt, if it looks like a command but no command has that name. */
  readonly unknownCommand?: string
  /** The files that were added, as in `src/a.ts, 61 lines`. */
  readonly attached?: readonly string[]
}

export interface Agent {
  readonly session: Session
  /** The refused calls of this agent and its subagents since it was opened. */
  readonly denials: readonly PermissionDenial[]
  /** Names of the agent's own tools, without those of MCP servers. */
  readonly toolNames: readonly string[]
  /** Returns true while plan mode is on. */
  isPlanning(): boolean
  /** Returns the permission mode as it is now. */
  readMode(): PermissionMode
  /** The sandbox for commands, or why the one that the settings want could not be opened; null if they want none. */
  readonly sandbox: OpenSandboxResult | null
  /** Switches to another permission mode, from the next tool call on. Running subagents follow it. Does nothing in a subagent itself. */
  switchMode(mode: PermissionMode): Promise<void>
  /**
   * Replaces a slash command by the text of its file, and adds the files that the prompt names. Other prompts are returned unchanged. The
   * result is for `run`.
   */
  expandPrompt(prompt: AgentPrompt, signal?: AbortSignal): Promise<PromptToRun>
  /** Lists the skills and the slash commands that are files, as they are now. */
  listPromptFiles(): Promise<readonly FoundPromptFile[]>
  /** Lists the present definitions of subagents; none if this agent may not start any. */
  listDefinitions(): Promise<readonly AgentDefinition[]>
  /** Names of the tools that MCP servers offer now. */
  listServerTools(): readonly string[]
  /** Runs a prompt; null continues an interrupted turn. Without `maxCalls`, the number of calls has no limit. */
  run(
    prompt: string | readonly object[] | null,
    options?: { signal?: AbortSignal; maxCalls?: number; limits?: UsageLimits; typed?: readonly string[] },
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

/**
 * Returns true if the model gets a tool: one in `toolNames`, or any without that list; in a subagent, one that both the starting
 * agent and its own definition have. `AskUser` is left out if nobody can answer.
 */
export function isToolOffered({ toolNames, askUser, inherited }: AgentOptions, name: string): boolean {
  if (name === 'AskUser' && askUser === undefined) return false
  if (inherited === undefined) return toolNames?.includes(name) ?? true
  return inherited.isOffered(name) && canAgentUseTool(inherited.definition, name)
}

/** Returns the environment of commands, hooks and MCP servers: with the variables of the settings, without keys of models. */
export function createCommandEnvironment({ env, settings }: AgentOptions): AgentOptions['env'] {
  // CDPATH is removed: with it, `cd sub` could lead to another folder than the rules for commands assume.
  const {
    ANTHROPIC_API_KEY: _key,
    ANTHROPIC_AUTH_TOKEN: _token,
    OPENAI_API_KEY: _openai,
    CDPATH: _folders,
    ...others
  } = env
  return { ...others, ...settings.env }
}

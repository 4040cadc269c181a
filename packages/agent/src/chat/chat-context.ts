/** What slash commands and the conversation work with: the open session, the screen, and a few ways to tell the user. */
import type { Terminal as ScreenTerminal } from '@earendil-works/pi-tui'
import type { Terminal } from '@tidemark/terminal/terminal'
import type { ModelChoice } from 'tidemark'
import type { Limits } from '../agent/agent-limits.ts'
import type { Agent, AgentOptions } from '../agent/agent-options.ts'
import { chooseModel, type ModelOptions } from '../agent/agent-sessions.ts'
import type { LoadedInstructions } from '../agent/memory-sources.ts'
import type { PermissionMode } from '../agent/permissions.ts'
import type { AgentSettings } from '../agent/settings.ts'
import type { PanelContent } from '../screen/panel.ts'
import { toPageRows } from '../screen/panel.ts'
import type { ChatScreen } from '../screen/screen.ts'
import type { GuardedProcess } from '../screen/terminal-guard.ts'
import type { ScreenTheme, Tone } from '../screen/theme.ts'
import type { Transcript } from '../screen/transcript.ts'

/**
 * Undoes a compaction or clearing of a session that the chat has open, for the page that is served beside it; null if it has
 * not. A refusal is an outcome.
 */
export type UndoInChat = (
  session: string,
  target: string,
) => Promise<{ readonly ok: boolean; readonly message: string } | null>

/** What `tidemark chat` was started with. */
export interface ChatStart extends ModelOptions {
  readonly terminal: Terminal
  readonly folder: string
  readonly home: string
  readonly settings: AgentSettings
  readonly sessionId: string
  readonly allowedTools?: readonly string[]
  readonly permissionMode?: PermissionMode
  readonly appendSystemPrompt?: string
  readonly maxTurns?: number
  /** What the session and its subagents may use, and what one run of a subagent may use. */
  readonly limit?: Limits
  readonly subagentLimit?: Limits
  /** The folder as given on the command line, if it was. */
  readonly cwd?: string
  /** Called with what is under way. */
  readonly onWork?: (work: string) => void
  /** Called with the undo of this chat as soon as it can be used. */
  readonly onUndo?: (undo: UndoInChat) => void
  /** Set by the tour, whose session is in a temporary folder and whose model is simulated. */
  readonly simulation?: ChatSimulation
  /** What the screen draws on. Default: the terminal of this process. */
  readonly device?: ScreenDevice
}

export interface ScreenDevice {
  readonly terminal: ScreenTerminal
  /** The process whose end gives the terminal back. */
  readonly process: GuardedProcess
}

interface ChatSimulation {
  /** Shown below what the session has. */
  readonly greeting: string
  /** Returns a simulated model. Without a name, the one that the session has. */
  createModel(name?: string): ModelChoice
  readonly toolNames: readonly string[]
  /** The environment of commands, in place of the user's. */
  readonly env: AgentOptions['env']
}

/** Returns the model of this name; without a name, the one that the chat was started with. */
export function chooseChatModel(start: ChatStart, name?: string): ModelChoice {
  const { simulation, settings, terminal } = start
  if (simulation !== undefined) return simulation.createModel(name)
  return chooseModel(name === undefined ? start : { ...start, model: name }, settings, terminal)
}

export interface ChatContext {
  readonly start: ChatStart
  /** The agent of the session that is open now. */
  readonly agent: Agent
  readonly screen: ChatScreen
  readonly theme: ScreenTheme
  readonly transcript: Transcript
  /** Memory files that the session has read. */
  readonly memory: readonly LoadedInstructions[]
  /** Rules that allow calls in this session, of the command line and of the user's answers. They can be withdrawn. */
  readonly sessionRules: string[]
  /** True while a turn or a command that changes the session runs. */
  readonly isBusy: boolean
  /** Adds a line to the transcript. */
  show(text: string, tone?: Tone): void
  /**
   * Runs something that changes the session, with its name in the status line. Escape aborts it. Shows a line and returns
   * null if a turn runs, or if it throws.
   */
  work<Result>(status: string, run: (signal: AbortSignal) => Promise<Result>): Promise<Result | null>
  /** Closes the session and opens another one, with what its log has. */
  openSession(id: string): Promise<void>
  /** Sends a prompt; null continues an interrupted turn. */
  send(prompt: string | null): void
  exit(): void
}

export interface SlashCommand {
  readonly name: string
  /** What follows the name, such as `[instructions]`; empty if nothing does. */
  readonly args: string
  readonly description: string
  run(chat: ChatContext, args: string): Promise<void>
  /** Completes the argument. */
  complete?(chat: ChatContext, typed: string): Promise<readonly string[]>
}

/** Shows a text on the whole screen until the user closes it. */
export async function showPage(chat: ChatContext, title: string, text: string): Promise<void> {
  const content: PanelContent = { title, rows: () => toPageRows(text), actions: [] }
  await chat.screen.openPanel(content)
}

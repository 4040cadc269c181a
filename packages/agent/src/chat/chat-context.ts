/** The interface that slash commands use: the open session, the screen, and functions that show text to the user. */
import type { Terminal as ScreenTerminal } from '@earendil-works/pi-tui'
import type { Terminal } from '@tidemark/terminal/terminal'
import type { ModelChoice } from 'tidemark'
import type { UsageLimits } from '../agent/agent-limits.ts'
import type { Agent, AgentOptions } from '../agent/agent-options.ts'
import { chooseModel, type ModelOptions } from '../agent/agent-sessions.ts'
import type { LoadedMemoryFile } from '../agent/memory-sources.ts'
import type { PermissionMode } from '../agent/permissions.ts'
import type { AgentSettings } from '../agent/settings.ts'
import type { PanelContent } from '../screen/panel.ts'
import { toPageRows } from '../screen/panel.ts'
import type { ChatScreen } from '../screen/screen.ts'
import type { GuardedProcess } from '../screen/terminal-guard.ts'
import type { ScreenTheme, Tone } from '../screen/theme.ts'
import type { Transcript } from '../screen/transcript.ts'

/**
 * Undoes the compaction or clearing `target` for the page that the chat serves. Null if `session` is not the one that the chat
 * has open. A refusal is an outcome.
 */
export type UndoInChat = (
  session: string,
  target: string,
) => Promise<{ readonly ok: boolean; readonly message: string } | null>

/** What `tidemark chat` was started with: options of the command line, settings, and the terminal. */
export interface ChatStartOptions extends ModelOptions {
  readonly terminal: Terminal
  readonly folder: string
  readonly home: string
  readonly settings: AgentSettings
  readonly sessionId: string
  readonly allowedTools?: readonly string[]
  readonly permissionMode?: PermissionMode
  readonly appendSystemPrompt?: string
  readonly maxTurns?: number
  /** What the session and its subagents may use. */
  readonly limit?: UsageLimits
  /** What one run of a subagent may use. */
  readonly subagentLimit?: UsageLimits
  /** The folder given on the command line, if any. */
  readonly cwd?: string
  /** Called with a description of the running work, for the watchdog. */
  readonly onWork?: (work: string) => void
  /** Called with this chat's undo function as soon as it works. */
  readonly onUndo?: (undo: UndoInChat) => void
  /** Set by the tour, whose session is in a temporary folder and whose model is simulated. */
  readonly simulation?: ChatSimulation
  /** What the screen draws to. Default: the terminal of this process. */
  readonly device?: ScreenDevice
}

/** The terminal that the screen draws to, and the process that owns it. Tests pass fakes. */
export interface ScreenDevice {
  readonly terminal: ScreenTerminal
  /** The process at whose end the terminal is restored. */
  readonly process: GuardedProcess
}

interface ChatSimulation {
  /** Shown below the replayed conversation of the session. */
  readonly greeting: string
  /** Returns a simulated model. Without a name, the session's model. */
  createModel(name?: string): ModelChoice
  readonly toolNames: readonly string[]
  /** The environment of commands, replacing the user's. */
  readonly env: AgentOptions['env']
}

/** Returns the model of this name; without a name, the model with which the chat was started. */
export function chooseChatModel(start: ChatStartOptions, name?: string): ModelChoice {
  const { simulation, settings, terminal } = start
  if (simulation !== undefined) return simulation.createModel(name)
  return chooseModel(name === undefined ? start : { ...start, model: name }, settings, terminal)
}

/** What a slash command can use of the running chat. */
export interface ChatContext {
  readonly start: ChatStartOptions
  /** The agent of the currently open session. */
  readonly agent: Agent
  readonly screen: ChatScreen
  readonly theme: ScreenTheme
  readonly transcript: Transcript
  /** Memory files that the session has read. */
  readonly memoryFiles: readonly LoadedMemoryFile[]
  /** Rules that allow calls in this session, from the command line and from the user's answers. /permissions can withdraw them. */
  readonly sessionRules: string[]
  /** True while a turn or a command that changes the session runs. */
  readonly isBusy: boolean
  /** Adds a line to the transcript. */
  show(text: string, tone?: Tone): void
  /**
   * Runs work that changes the session, with its name in the status line. Escape aborts it. If a turn is running, or if the work throws,
   * shows a line and returns null.
   */
  work<Result>(status: string, run: (signal: AbortSignal) => Promise<Result>): Promise<Result | null>
  /** Closes the session and opens another one, showing what its log has. */
  openSession(id: string): Promise<void>
  /** Sends a prompt; null continues an interrupted turn. */
  send(prompt: string | null): void
  exit(): void
}

/** A slash command of the screen. Commands from files, which expand to prompts, are not among them. */
export interface SlashCommand {
  readonly name: string
  /** Arguments after the name, such as `[instructions]`, for display; empty if there are none. */
  readonly args: string
  readonly description: string
  run(chat: ChatContext, args: string): Promise<void>
  /** Completes the argument. */
  complete?(chat: ChatContext, typed: string): Promise<readonly string[]>
}

/** Shows a text, safe to print, on the whole screen. Resolves when the user closes it. */
export async function showPage(chat: ChatContext, title: string, text: string): Promise<void> {
  const content: PanelContent = { title, rows: () => toPageRows(text), actions: [] }
  await chat.screen.openPanel(content)
}

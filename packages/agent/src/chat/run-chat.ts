/**
 * `tidemark chat` in a terminal: opens the agent and the screen, and runs prompts and slash commands until the user exits. Events of the
 * session go to the transcript; prompts typed during a turn wait in a queue.
 */

import { join } from 'node:path'
import { ProcessTerminal } from '@earendil-works/pi-tui'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { formatPath, toSafeLine } from '@tidemark/terminal/render/text'
import type { EventOf, SessionEvent } from 'tidemark'
import { findSessionWriter, sessionPaths } from 'tidemark/logs'
import { listConversation } from 'tidemark/records'
import { openAgent } from '../agent/agent.ts'
import { formatResumeCommand, storeWorkingFolder } from '../agent/agent-sessions.ts'
import { describeProgress } from '../agent/chat-output.ts'
import type { SubagentEvent } from '../agent/subagent-records.ts'
import { createMeterTracker } from '../screen/context-meter.ts'
import { createSubagentLine } from '../screen/event-lines.ts'
import { type ChatScreen, createChatScreen } from '../screen/screen.ts'
import { guardTerminal } from '../screen/terminal-guard.ts'
import { createTheme, type Tone } from '../screen/theme.ts'
import { computeCallChange } from '../screen/tool-views.ts'
import { createTranscript } from '../screen/transcript.ts'
import { isTurnInterrupted } from './branch-steps.ts'
import { type ChatContext, type ChatStartOptions, chooseChatModel } from './chat-context.ts'
import { createScreenQuestions } from './chat-questions.ts'
import {
  type ChatState,
  createChatState,
  EXIT_CONFIRM_MS,
  type RunningWork,
  readInputAreaState,
  setRunningStep,
  startRunningWork,
} from './chat-state.ts'
import { switchToNextPermissionMode } from './command-permissions.ts'
import { undoFromPage } from './commands-branch.ts'
import { createAutocomplete } from './completion.ts'
import { showOpenableItems } from './openable-items.ts'
import { openPromptHistory, type PromptHistory } from './prompt-history.ts'
import { readSessionNotes, readSessionRecords } from './session-files.ts'
import { listScreenCommands } from './slash-commands.ts'
import {
  moveNewestQueuedToInput,
  openPromptQueue,
  runPrompt,
  sendNextQueuedPrompt,
  submitInput,
} from './submit-input.ts'

/** Runs the chat until the user exits. Returns the exit code. Throws before the screen opens if the model cannot be used. */
export async function runChat(start: ChatStartOptions): Promise<number> {
  // A missing key is reported before the screen opens.
  chooseChatModel(start)
  const chat = createChat(start)
  const { screen } = chat
  const guard = guardTerminal(start.device?.process ?? process, { stop: screen.stop, close: chat.close })
  try {
    screen.start()
    await chat.openFirst()
    await chat.ended
  } finally {
    await screen.drain()
    guard.release()
    await chat.close()
  }
  const id = chat.findSession()
  if (id !== null && start.simulation === undefined)
    start.terminal.write(
      `To go on: ${formatResumeCommand(id, { ...start, ...chat.findModel() }, start.terminal)}\n`,
    )
  return 0
}

interface Chat {
  readonly screen: ChatScreen
  /** Resolves when the user exits. */
  readonly ended: Promise<void>
  openFirst(): Promise<void>
  /** Returns the id of the session; null if it has no messages. */
  findSession(): string | null
  /** Returns the model that the user has switched to, as an option of the command line. */
  findModel(): Pick<ChatStartOptions, 'model'>
  close(): Promise<void>
}

function createChat(start: ChatStartOptions): Chat {
  const { folder, terminal } = start
  const theme = createTheme(terminal)
  const viewOptions = { folder, withFile: true }
  const transcript = createTranscript((name, input) => computeCallChange(name, input, viewOptions))
  const allowed = [...(start.allowedTools ?? [])]
  const { promise: ended, resolve: leave } = Promise.withResolvers<void>()
  const state = createChatState(start.sessionId)
  const history = openHistory(start)
  const screen = createChatScreen({
    terminal: start.device?.terminal ?? new ProcessTerminal(),
    theme,
    transcript,
    folder,
    now: Date.now,
    readState: (now) => readInputAreaState(state, now),
    actions: {
      submit(text, isPrivate) {
        if (!isPrivate && text !== '') {
          screen.input.remember(text)
          history.add(text)
        }
        submitInput(chat, state, text, isPrivate)
      },
      interrupt: (key) => interrupt(chat, state, key),
      exit: leave,
      openLines: () => void showOpenableItems(chat),
      switchMode: () => void goToNextMode(chat, state),
      editQueued: () => moveNewestQueuedToInput(chat, state),
    },
  })
  terminal.interrupted?.addEventListener('abort', () => leave(), { once: true })
  for (const text of history.prompts) screen.input.remember(text)
  const chat = createContext({ start, state, screen, theme, transcript, leave, allowed, history })
  return {
    screen,
    ended,
    async openFirst() {
      const { simulation } = start
      if (simulation === undefined)
        chat.show(`Tidemark in ${formatPath(start.folder)}. /help lists commands and keys.`)
      for (const notice of start.settings.notices) chat.show(notice, 'warning')
      startRunningWork(state, 'opening the session')
      await chat.openSession(start.sessionId)
      if (simulation !== undefined) chat.show(simulation.greeting, 'good')
      state.running = null
      screen.setCompletion(createAutocomplete(chat, listScreenCommands()))
      sendNextQueuedPrompt(chat, state, false)
    },
    findSession: () => (transcript.items.some(({ kind }) => kind === 'prompt') ? state.sessionId : null),
    findModel: () => (state.model === null ? {} : { model: state.model }),
    async close() {
      state.isClosing = true
      state.running?.stop.abort()
      const { agent } = state
      state.agent = null
      await agent?.close()
    },
  }
}

interface ContextParts {
  readonly start: ChatStartOptions
  readonly state: ChatState
  readonly screen: ChatScreen
  readonly theme: ReturnType<typeof createTheme>
  readonly transcript: ReturnType<typeof createTranscript>
  readonly leave: () => void
  readonly allowed: string[]
  readonly history: PromptHistory
}

/** Opens the prompts of the folder's earlier sessions; none for the session of the tour, or if the settings turn them off. */
function openHistory({ simulation, settings, home, folder }: ChatStartOptions): PromptHistory {
  if (simulation === undefined && settings.promptHistory !== false) return openPromptHistory(home, folder)
  return { prompts: [], add() {} }
}

function createContext(parts: ContextParts): ChatContext {
  const { start, state, screen, theme, transcript, leave } = parts
  const show = (text: string, tone: Tone = 'quiet'): void => {
    const mark = tone === 'warning' || tone === 'error' ? '!' : '·'
    transcript.addLine({ tone, mark, text: toSafeLine(text), detail: null })
    screen.update()
  }
  const chat: ChatContext = {
    start,
    screen,
    theme,
    transcript,
    show,
    exit: leave,
    get agent() {
      if (state.agent === null) throw new Error('The session is not open.')
      return state.agent
    },
    get memoryFiles() {
      return state.memoryFiles
    },
    sessionRules: parts.allowed,
    get isBusy() {
      return state.running !== null
    },
    async work(status, run) {
      if (state.running !== null) {
        show('A turn is running: interrupt it with escape, or wait for its end.', 'warning')
        return null
      }
      const running = startRunningWork(state, status)
      screen.update()
      try {
        return await run(running.stop.signal)
      } catch (error) {
        show(error instanceof Error ? error.message : String(error), 'error')
        return null
      } finally {
        state.running = null
        state.isMeterOld = true
        screen.update()
      }
    },
    openSession: (id) => openSession(chat, parts, id),
    send: (prompt) => void runPrompt(chat, state, prompt === null ? null : { text: prompt, isPlain: false }),
  }
  return chat
}

/** Opens a session: shows the conversation in its log, then starts the agent and shows its events. */
async function openSession(chat: ChatContext, parts: ContextParts, id: string): Promise<void> {
  const { start, state, screen, theme, transcript, allowed, history } = parts
  const { folder, home, settings, terminal, simulation } = start
  const before = state.agent
  state.agent = null
  await before?.close()
  const records = await readSessionRecords(home, id)
  // Branches that /rewind, /undo or /clear left stay in the log but are not shown.
  transcript.replay(listConversation(records))
  state.clock = createMeterTracker((await readSessionNotes(home, id)) !== null)
  state.clock.replay(records)
  state.memoryFiles = []
  state.shellRuns.length = 0
  const writer = records.length === 0 ? null : await findSessionWriter(home, id)
  const interruptTurn = (): void => state.running?.stop.abort()
  const agent = await openAgent({
    folder,
    home,
    sessionId: id,
    model: chooseChatModel(start, state.model ?? undefined),
    settings,
    env: simulation?.env ?? terminal.env,
    ...(simulation === undefined ? {} : { toolNames: simulation.toolNames }),
    allowed,
    canSwitchMode: true,
    ...(start.limit === undefined ? {} : { limits: start.limit }),
    ...(start.subagentLimit === undefined ? {} : { subagentLimits: start.subagentLimit }),
    ...(start.permissionMode === undefined ? {} : { mode: start.permissionMode }),
    ...(start.appendSystemPrompt === undefined ? {} : { appendedPrompt: start.appendSystemPrompt }),
    ...createScreenQuestions({ screen, theme, start, allowed, interrupt: interruptTurn, show: chat.show }),
    onUnread: (kind, { path, why }) => chat.show(`The ${kind} ${path} was not read: ${why}.`, 'warning'),
    onNotice: (message) => chat.show(message, 'warning'),
    onMemoryLoaded: (file) => void state.memoryFiles.push(file),
    // The user can give the next prompt while subagents work in the background.
    waitsForSubagents: false,
    onSubagent: (event) => receiveFromSubagent(event, parts),
    onEvent: (event) => receive(event, parts),
  })
  await storeWorkingFolder(home, id, folder)
  state.agent = agent
  state.sessionId = id
  state.isMeterOld = true
  start.onUndo?.(async (session, target) => (session === id ? undoFromPage(chat, target) : null))
  const known = new Set(history.prompts)
  for (const item of transcript.items)
    if (item.kind === 'prompt' && !known.has(item.text)) screen.input.remember(item.text)
  if (records.length > 0) chat.show(`Resumed ${id}: ${formatCount(records.length, 'record')}.`)
  if (writer !== null)
    chat.show(
      `It is open elsewhere, in ${writer}. Here it can only be read until it is closed there; /fork goes on in a copy.`,
      'warning',
    )
  else if (isTurnInterrupted(records))
    chat.show('Its last turn was interrupted: /retry continues it.', 'warning')
  openPromptQueue(chat, state, join(sessionPaths(home, id).folder, 'queue.json'))
  screen.update()
}

function receive(event: SessionEvent, { start, state, transcript, screen }: ContextParts): void {
  state.clock.apply(event, Date.now())
  if (event.type === 'model-switched') state.model = event.to
  // Shell commands that the user ran belong to the conversation that was left.
  if (event.type === 'branch-switched' && event.before === null) state.shellRuns.length = 0
  const { running } = state
  const text = describeProgress(event)
  if (text !== null) start.onWork?.(text)
  if (running !== null) {
    if (text !== null) setRunningStep(running, event.type === 'tool-started' ? `running ${text}` : text)
    if (event.type === 'reply' && event.event.type === 'block-grew') countArrived(running, event.event.delta)
    if (event.type === 'summary-progress') running.received = event.characters
  }
  if (event.type !== 'reply') state.isMeterOld = true
  transcript.apply(event)
  screen.update()
}

function countArrived(
  running: RunningWork,
  delta: Extract<EventOf<'reply'>['event'], { type: 'block-grew' }>['delta'],
): void {
  if (delta.kind === 'thinking') setRunningStep(running, 'thinking')
  else if (delta.kind === 'text') setRunningStep(running, 'answering')
  else if (delta.kind === 'input') setRunningStep(running, 'writing a tool call')
  else return
  running.received += delta.kind === 'input' ? delta.json.length : delta.text.length
}

/** Shows start and end of a subagent as lines, and its progress in the status line. */
function receiveFromSubagent(event: SubagentEvent, { state, transcript, screen }: ContextParts): void {
  const line = createSubagentLine(event)
  if (line !== null) transcript.addLine(line)
  else if (state.running !== null && event.text !== undefined)
    setRunningStep(state.running, toSafeLine(`${event.agent.type}: ${event.text}`))
  screen.update()
}

/** Switches to the next permission mode. The meter shows it at once, because storing it may take a while on a busy disk. */
async function goToNextMode(chat: ChatContext, state: ChatState): Promise<void> {
  if (state.agent === null) return
  const stored = switchToNextPermissionMode(chat)
  state.isMeterOld = true
  chat.screen.update()
  await stored
}

function interrupt(chat: ChatContext, state: ChatState, key: 'ctrl+c' | 'escape'): void {
  const now = Date.now()
  const isSecond = key === 'ctrl+c' && now - state.exitAskedAt < EXIT_CONFIRM_MS
  if (isSecond) {
    chat.exit()
    return
  }
  if (key === 'ctrl+c') state.exitAskedAt = now
  if (state.running !== null) {
    state.running.stop.abort()
    setRunningStep(state.running, 'interrupting')
  }
  state.hint = key === 'ctrl+c' ? 'Press Ctrl-C again to exit.' : ''
  chat.screen.update()
}

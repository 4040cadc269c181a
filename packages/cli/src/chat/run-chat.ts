/**
 * `tidemark chat` in a terminal: opens the agent and the screen, and runs prompts and slash commands until the user
 * leaves. What the session emits goes to the transcript; prompts that are typed meanwhile wait in a queue.
 */
import { ProcessTerminal } from '@earendil-works/pi-tui'
import type { SessionEvent } from 'tidemark'
import { openAgent } from '../agent/agent.ts'
import type { Agent } from '../agent/agent-options.ts'
import { writeAgentFacts } from '../agent/agent-sessions.ts'
import { describeProgress } from '../agent/chat-output.ts'
import type { LoadedInstructions } from '../agent/memory-sources.ts'
import type { SubagentEvent } from '../agent/subagent-records.ts'
import { formatCount, formatDuration } from '../render/format-numbers.ts'
import { formatPath, sanitizeText } from '../render/text.ts'
import { type CacheClock, createCacheClock, type MeterReading } from '../screen/context-meter.ts'
import { describeSubagent } from '../screen/event-lines.ts'
import { type ChatScreen, createChatScreen, type ScreenState } from '../screen/screen.ts'
import { guardTerminal } from '../screen/terminal-guard.ts'
import { createTheme, type Tone } from '../screen/theme.ts'
import { viewChange } from '../screen/tool-views.ts'
import { createTranscript } from '../screen/transcript.ts'
import { type ChatContext, type ChatStart, chooseChatModel } from './chat-context.ts'
import { createScreenQuestions } from './chat-questions.ts'
import { createCompletion } from './completion.ts'
import { openLines } from './open-lines.ts'
import { readSessionRecords } from './session-files.ts'
import { findCommand, listCommands } from './slash-commands.ts'

/** Runs the chat. Returns the exit code. */
export async function runChat(start: ChatStart): Promise<number> {
  // A missing key is told before the screen opens.
  chooseChatModel(start)
  const chat = createChat(start)
  const { screen } = chat
  const guard = guardTerminal(process, { stop: screen.stop, close: chat.close })
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
    start.terminal.write(`To go on: tidemark chat --resume ${id}\n`)
  return 0
}

interface Chat {
  readonly screen: ChatScreen
  /** Resolves when the user leaves. */
  readonly ended: Promise<void>
  openFirst(): Promise<void>
  /** Returns the id of the session; null if nothing was said in it. */
  findSession(): string | null
  close(): Promise<void>
}

/** What changes while the chat runs. */
interface ChatState {
  agent: Agent | null
  sessionId: string
  clock: CacheClock
  /** The model that the user has switched to. */
  model: string | null
  memory: LoadedInstructions[]
  queue: string[]
  /** What runs now; null if the session is idle. */
  running: { readonly since: number; readonly stop: AbortController; text: string; received: number } | null
  meter: MeterReading | null
  isMeterOld: boolean
  meterAt: number
  /** When Ctrl-C was pressed on an idle session; a second one exits. */
  exitAskedAt: number
  hint: string
}

const METER_MS = 250
const EXIT_MS = 2_000

function createChat(start: ChatStart): Chat {
  const theme = createTheme(start.terminal)
  const { folder } = start
  const transcript = createTranscript((name, input) => viewChange(name, input, { folder, withFile: true }))
  const allowed = [...(start.allowedTools ?? [])]
  const { promise: ended, resolve: leave } = Promise.withResolvers<void>()
  const state: ChatState = {
    agent: null,
    sessionId: start.sessionId,
    clock: createCacheClock(),
    model: null,
    memory: [],
    queue: [],
    running: null,
    meter: null,
    isMeterOld: true,
    meterAt: 0,
    exitAskedAt: 0,
    hint: '',
  }
  const screen = createChatScreen({
    terminal: new ProcessTerminal(),
    theme,
    transcript,
    folder,
    now: Date.now,
    readState: (now) => readScreenState(state, now),
    actions: {
      submit: (text) => submit(chat, state, text),
      interrupt: (key) => interrupt(chat, state, key),
      exit: leave,
      openLines: () => void openLines(chat),
    },
  })
  start.terminal.interrupted?.addEventListener('abort', () => leave(), { once: true })
  const chat = createContext({ start, state, screen, theme, transcript, leave, allowed })
  return {
    screen,
    ended,
    async openFirst() {
      const { simulation } = start
      if (simulation === undefined)
        chat.show(`Tidemark in ${formatPath(start.folder)}. /help lists commands and keys.`)
      for (const notice of start.settings.notices) chat.show(notice, 'warning')
      startRunning(state, 'opening the session')
      await chat.openSession(start.sessionId)
      if (simulation !== undefined) chat.show(simulation.greeting, 'good')
      state.running = null
      screen.setCompletion(createCompletion(chat, listCommands()))
      sendQueued(chat, state, false)
    },
    findSession: () => (transcript.items.some(({ kind }) => kind === 'prompt') ? state.sessionId : null),
    async close() {
      state.running?.stop.abort()
      const { agent } = state
      state.agent = null
      await agent?.close()
    },
  }
}

interface ContextParts {
  readonly start: ChatStart
  readonly state: ChatState
  readonly screen: ChatScreen
  readonly theme: ReturnType<typeof createTheme>
  readonly transcript: ReturnType<typeof createTranscript>
  readonly leave: () => void
  readonly allowed: string[]
}

function createContext(parts: ContextParts): ChatContext {
  const { start, state, screen, theme, transcript, leave } = parts
  const show = (text: string, tone: Tone = 'quiet'): void => {
    const mark = tone === 'warning' || tone === 'error' ? '!' : '·'
    transcript.addLine({ tone, mark, text: sanitizeText(text), detail: null })
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
    get memory() {
      return state.memory
    },
    get isBusy() {
      return state.running !== null
    },
    async work(status, run) {
      if (state.running !== null) {
        show('A turn is running: interrupt it with escape, or wait for its end.', 'warning')
        return null
      }
      const running = startRunning(state, status)
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
    send: (prompt) => void runPrompt(chat, state, prompt),
  }
  return chat
}

/** Opens a session: shows what its log has, then the agent with all that it emits. */
async function openSession(chat: ChatContext, parts: ContextParts, id: string): Promise<void> {
  const { start, state, screen, theme, transcript, allowed } = parts
  const { folder, home, settings, terminal, simulation } = start
  const before = state.agent
  state.agent = null
  await before?.close()
  const records = await readSessionRecords(home, id)
  transcript.replay(records)
  state.clock = createCacheClock()
  state.clock.replay(records)
  state.memory = []
  const noteWait = (): void => {
    if (state.running !== null) state.running.text = 'waiting for your answer'
  }
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
    ...(start.permissionMode === undefined ? {} : { mode: start.permissionMode }),
    ...(start.appendSystemPrompt === undefined ? {} : { appendedPrompt: start.appendSystemPrompt }),
    ...createScreenQuestions({ screen, theme, folder, allowed, interrupt: interruptTurn, noteWait }),
    onUnread: (kind, { path, why }) => chat.show(`The ${kind} ${path} was not read: ${why}.`, 'warning'),
    onNotice: (message) => chat.show(message, 'warning'),
    onMemoryLoaded: (file) => void state.memory.push(file),
    // The user can give the next prompt while subagents work in the background.
    waitsForSubagents: false,
    onSubagent: (event) => receiveFromSubagent(event, parts),
    onEvent: (event) => receive(event, parts),
  })
  await writeAgentFacts(home, id, folder)
  state.agent = agent
  state.sessionId = id
  state.isMeterOld = true
  for (const item of transcript.items) if (item.kind === 'prompt') screen.input.remember(item.text)
  if (records.length > 0) chat.show(`Resumed ${id}: ${formatCount(records.length, 'record')}.`)
  if (records.length > 0 && agent.session.messages().at(-1)?.role === 'user')
    chat.show('Its last turn was interrupted: /retry continues it.', 'warning')
  screen.update()
}

function receive(event: SessionEvent, { state, transcript, screen }: ContextParts): void {
  state.clock.apply(event, Date.now())
  if (event.type === 'model-switched') state.model = event.to
  const { running } = state
  if (running !== null) {
    const text = describeProgress(event)
    if (text !== null) running.text = text
    if (event.type === 'request-sent') running.received = 0
    if (event.type === 'reply' && event.event.type === 'block-grew') {
      const { delta } = event.event
      running.received += delta.kind === 'text' || delta.kind === 'thinking' ? delta.text.length : 0
      running.text = delta.kind === 'thinking' ? 'thinking' : 'answering'
    }
  }
  if (event.type !== 'reply') state.isMeterOld = true
  transcript.apply(event)
  screen.update()
}

/** Shows the beginning and the end of a subagent as lines, and what it does in the status line. */
function receiveFromSubagent(event: SubagentEvent, { state, transcript, screen }: ContextParts): void {
  const line = describeSubagent(event)
  if (line !== null) transcript.addLine(line)
  else if (state.running !== null && event.text !== undefined)
    state.running.text = sanitizeText(`${event.agent.type}: ${event.text}`)
  screen.update()
}

function startRunning(state: ChatState, text: string): NonNullable<ChatState['running']> {
  const running = { since: Date.now(), stop: new AbortController(), text, received: 0 }
  state.running = running
  state.hint = ''
  return running
}

async function runPrompt(chat: ChatContext, state: ChatState, prompt: string | null): Promise<void> {
  const { agent, start } = chat
  const running = startRunning(state, 'starting')
  const { signal } = running.stop
  try {
    const expanded = prompt === null ? null : await agent.expandPrompt(prompt, signal)
    for (const notice of expanded?.notices ?? []) chat.show(notice, 'warning')
    const limit = start.maxTurns === undefined ? {} : { maxCalls: start.maxTurns }
    const run = agent.run(expanded?.prompt ?? null, { signal, ...limit })
    // The screen gets the events from `onEvent`. Those of the run are read as well, because unread ones stay in memory.
    for await (const _ of run);
    const outcome = await run.outcome
    if (!outcome.ok && outcome.reason === 'aborted')
      chat.show('Interrupted. Type what to do instead.', 'warning')
    else if (!outcome.ok) chat.show(`${outcome.message} /retry sends it again.`, 'error')
  } catch (error) {
    chat.show(error instanceof Error ? error.message : String(error), 'error')
  } finally {
    state.running = null
    state.isMeterOld = true
    chat.screen.update()
  }
  sendQueued(chat, state, signal.aborted)
}

/** Sends the next prompt of the queue. After an interruption the queue goes back to the input. */
function sendQueued(chat: ChatContext, state: ChatState, isInterrupted: boolean): void {
  if (isInterrupted && state.queue.length > 0) {
    const { input } = chat.screen
    input.write([...state.queue, input.read()].filter((text) => text !== '').join('\n\n'))
    state.queue = []
  }
  const next = state.queue.shift()
  if (next !== undefined && state.agent !== null) submit(chat, state, next)
}

function submit(chat: ChatContext, state: ChatState, typed: string): void {
  const text = typed.trim()
  if (text === '') return
  state.hint = ''
  if (state.agent !== null) chat.screen.input.remember(text)
  const command = findCommand(text)
  // What is typed before the session is open waits for it.
  if (state.agent === null) state.queue.push(text)
  else if (command !== null) void runCommand(chat, state, text, command)
  else if (state.running !== null) state.queue.push(text)
  else void runPrompt(chat, state, text)
  chat.screen.update()
}

async function runCommand(
  chat: ChatContext,
  state: ChatState,
  text: string,
  command: NonNullable<ReturnType<typeof findCommand>>,
): Promise<void> {
  try {
    await command.run(chat)
  } catch (error) {
    chat.show(`${text}: ${error instanceof Error ? error.message : String(error)}`, 'error')
  }
  // What was typed while the command changed the session has waited for it.
  if (state.running === null) sendQueued(chat, state, false)
}

function interrupt(chat: ChatContext, state: ChatState, key: 'ctrl+c' | 'escape'): void {
  const now = Date.now()
  const isSecond = key === 'ctrl+c' && now - state.exitAskedAt < EXIT_MS
  if (isSecond) {
    chat.exit()
    return
  }
  if (key === 'ctrl+c') state.exitAskedAt = now
  if (state.running !== null) {
    state.running.stop.abort()
    state.running.text = 'interrupting'
  }
  state.hint = key === 'ctrl+c' ? 'Press Ctrl-C again to exit.' : ''
  chat.screen.update()
}

function readScreenState(state: ChatState, now: number): ScreenState {
  if (state.isMeterOld && state.agent !== null && now - state.meterAt >= METER_MS) {
    state.isMeterOld = false
    state.meterAt = now
    state.meter = readMeter(state.agent)
  }
  const { running, meter, clock } = state
  const received = running === null || running.received === 0 ? '' : ` · ${running.received} characters`
  if (state.hint !== '' && now - state.exitAskedAt >= EXIT_MS) state.hint = ''
  return {
    status: running === null ? null : `${running.text} · ${formatDuration(now - running.since)}${received}`,
    queue: state.queue,
    meter: meter === null ? null : { ...meter, expiresAt: clock.expiresAt, notes: clock.notes },
    hint: state.hint,
  }
}

function readMeter({ session, isPlanning }: Agent): MeterReading {
  return {
    remaining: session.contextRemaining(),
    money: session.money(),
    prepared: session.status().preparedSummary,
    notes: 'none',
    expiresAt: null,
    model: session.model,
    mode: isPlanning() ? 'plan mode' : null,
  }
}

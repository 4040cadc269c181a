/**
 * The terminal screen: the transcript, a status line while something runs, the queue, the input and the context meter.
 * It draws and takes keys; what they mean is decided by its caller.
 */
import {
  type AutocompleteProvider,
  Container,
  Editor,
  matchesKey,
  type Terminal as ScreenTerminal,
  TuiMainScreen,
  truncateToWidth,
} from '@earendil-works/pi-tui'
import { drawMeter, type MeterReading } from './context-meter.ts'
import { createPanel, type PanelContent, type PanelResult } from './panel.ts'
import { createQuestion, type QuestionAnswer, type QuestionContent } from './question.ts'
import type { ScreenTheme } from './theme.ts'
import type { Transcript } from './transcript.ts'
import { createTranscriptView, type TranscriptView } from './transcript-view.ts'

export interface ScreenActions {
  /** The user has sent a text. */
  submit(text: string): void
  /** Ctrl-C on an empty input, or escape. */
  interrupt(key: 'ctrl+c' | 'escape'): void
  exit(): void
  /** Ctrl-T: show what can be opened. */
  openLines(): void
}

/** What the lines around the input say at this moment. */
export interface ScreenState {
  /** What is being done; null if nothing is. */
  readonly status: string | null
  readonly queue: readonly string[]
  readonly meter: MeterReading | null
  /** A short remark below the input, such as that Ctrl-C exits. */
  readonly hint: string
}

export interface ChatScreen {
  start(): void
  stop(): void
  /** Waits for answers of the terminal and for keys that are still on their way, so that no shell reads them later. */
  drain(): Promise<void>
  /** Draws what has changed, at most once in 16 ms. */
  update(): void
  /** Draws the whole transcript again. */
  redraw(): void
  toggleFold(): void
  readonly input: { read(): string; write(text: string): void; remember(text: string): void }
  setCompletion(provider: AutocompleteProvider): void
  ask(question: QuestionContent): Promise<QuestionAnswer>
  /** Shows a panel until an action or escape. */
  openPanel(content: PanelContent): Promise<PanelResult | null>
  /** Gives the terminal to another program, such as an editor, while `work` runs. */
  suspend<Result>(work: () => Promise<Result>): Promise<Result>
  readonly fullRedraws: number
}

export interface ScreenOptions {
  readonly terminal: ScreenTerminal
  readonly theme: ScreenTheme
  readonly transcript: Transcript
  readonly folder: string
  readonly actions: ScreenActions
  readState(now: number): ScreenState
  readonly now: () => number
}

/** The screen of the library, with a call after each frame. */
class ChatTui extends TuiMainScreen {
  afterFrame: () => void = () => {}
  protected override doRender(): void {
    super.doRender()
    this.afterFrame()
  }
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const SPIN_MS = 120
const DRAIN_MS = 300
const TICK_MS = 1_000

export function createChatScreen(options: ScreenOptions): ChatScreen {
  const { theme, readState, now, actions } = options
  const parts = createParts(options)
  const { tui, editor, view } = parts
  tui.addInputListener((data) => (parts.isFrozen ? undefined : handleKey(data, actions, editor, toggleFold)))
  function toggleFold(): void {
    parts.isFolded = !parts.isFolded
    view.redraw()
  }
  const timers = createTimers(
    () => readState(now()).status !== null,
    () => tui.requestRender(),
  )
  const panels = createPanels(parts, theme)
  return {
    start() {
      tui.start()
      timers.start()
    },
    stop() {
      timers.stop()
      panels.close()
      tui.stop()
    },
    drain: () => tui.terminal.drainInput(DRAIN_MS),
    update: () => tui.requestRender(),
    redraw: view.redraw,
    toggleFold,
    input: {
      read: () => editor.getExpandedText(),
      write: (text) => editor.setText(text),
      remember: (text) => editor.addToHistory(text),
    },
    setCompletion: (provider) => editor.setAutocompleteProvider(provider),
    async ask(question) {
      // A question that comes while a panel is open appears when the user has closed it.
      await panels.waitForEnd()
      return await askInPlace(question, parts, theme)
    },
    openPanel: panels.open,
    async suspend(work) {
      tui.stop()
      try {
        return await work()
      } finally {
        tui.start()
        view.redraw()
      }
    },
    get fullRedraws() {
      return tui.fullRedraws
    },
  }
}

interface ScreenParts {
  readonly tui: ChatTui
  readonly editor: Editor
  /** Holds the input, or a question in its place. */
  readonly bottom: Container
  readonly view: TranscriptView
  isFolded: boolean
  /** True while a panel or a question has the keys. */
  isFrozen: boolean
}

function createParts({
  terminal,
  theme,
  transcript,
  folder,
  actions,
  readState,
  now,
}: ScreenOptions): ScreenParts {
  let parts: ScreenParts | null = null
  const tui = new ChatTui(keepScrollback(terminal, () => parts?.view.hasRetired() === true))
  const editor = new Editor(tui, theme.editor, { paddingX: 1, autocompleteMaxVisible: 8 })
  editor.onSubmit = (text) => actions.submit(text)
  const bottom = new Container()
  bottom.addChild(editor)
  const view = createTranscriptView(transcript, tui, () => ({
    theme,
    folder,
    isFolded: parts?.isFolded ?? true,
  }))
  const around = (draw: typeof drawStatus) => ({
    invalidate() {},
    render: (width: number) => [...draw(readState(now()), width, theme, now())],
  })
  for (const child of [view, around(drawStatus), bottom, around(drawFoot)]) tui.addChild(child)
  tui.setFocus(editor)
  tui.afterFrame = view.retireLines
  parts = { tui, editor, bottom, view, isFolded: true, isFrozen: false }
  return parts
}

/** Passes on what the screen writes, without clearing the terminal's memory while it has lines that nobody else has. */
function keepScrollback(terminal: ScreenTerminal, isNeeded: () => boolean): ScreenTerminal {
  const write = (data: string): void =>
    terminal.write(isNeeded() ? data.replace('\u001b[2J\u001b[H\u001b[3J', '\u001b[2J\u001b[H') : data)
  return new Proxy(terminal, {
    get(target, name) {
      if (name === 'write') return write
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function handleKey(
  data: string,
  actions: ScreenActions,
  editor: Editor,
  toggleFold: () => void,
): { consume: true } | undefined {
  const isListing = editor.isShowingAutocomplete()
  if (matchesKey(data, 'ctrl+c')) {
    if (editor.getText() !== '') editor.setText('')
    else actions.interrupt('ctrl+c')
  } else if (matchesKey(data, 'escape') && !isListing) actions.interrupt('escape')
  else if (matchesKey(data, 'ctrl+d') && editor.getText() === '') actions.exit()
  else if (matchesKey(data, 'ctrl+o')) toggleFold()
  else if (matchesKey(data, 'ctrl+t')) actions.openLines()
  else return undefined
  return { consume: true }
}

function drawStatus(
  { status, queue }: ScreenState,
  width: number,
  { colors }: ScreenTheme,
  now: number,
): readonly string[] {
  const spinner = SPINNER[Math.floor(now / SPIN_MS) % SPINNER.length] ?? ''
  const line = status === null ? '' : `${colors.cyan(spinner)} ${status} ${colors.dim('· esc interrupts')}`
  const queued = queue.map((text) => {
    const first = text.trim().split('\n')[0] ?? ''
    return colors.dim(truncateToWidth(`  queued: ${first}`, width))
  })
  return ['', ...(line === '' ? [] : [truncateToWidth(line, width)]), ...queued]
}

function drawFoot(state: ScreenState, width: number, theme: ScreenTheme, now: number): readonly string[] {
  const meter = state.meter === null ? [] : drawMeter(state.meter, now, width, theme)
  return [...meter, ...(state.hint === '' ? [] : [theme.colors.dim(truncateToWidth(state.hint, width))])]
}

/** Draws a frame for each step of the spinner while something runs, and one a second for the countdown otherwise. */
function createTimers(isBusy: () => boolean, draw: () => void): { start(): void; stop(): void } {
  let timers: NodeJS.Timeout[] = []
  return {
    start() {
      const spin = setInterval(() => isBusy() && draw(), SPIN_MS)
      timers = [spin, setInterval(draw, TICK_MS)]
    },
    stop() {
      for (const timer of timers) clearInterval(timer)
    },
  }
}

function askInPlace(
  question: QuestionContent,
  parts: ScreenParts,
  theme: ScreenTheme,
): Promise<QuestionAnswer> {
  const { tui, bottom, editor } = parts
  return new Promise((resolve) => {
    const component = createQuestion(question, {
      theme,
      readRows: () => tui.terminal.rows,
      onAnswer(answer) {
        bottom.removeChild(component)
        bottom.addChild(editor)
        tui.setFocus(editor)
        parts.isFrozen = false
        tui.requestRender()
        resolve(answer)
      },
    })
    parts.isFrozen = true
    bottom.removeChild(editor)
    bottom.addChild(component)
    tui.setFocus(component)
    tui.requestRender()
  })
}

const ENTER_SECOND_SCREEN = '\u001b[?1049h\u001b[2J\u001b[H'
const LEAVE_SECOND_SCREEN = '\u001b[?1049l'
const NOTHING_DRAWN = {
  previousLines: [],
  previousWidth: 0,
  previousHeight: 0,
  cursorRow: 0,
  hardwareCursorRow: 0,
  maxLinesRendered: 0,
  previousViewportTop: 0,
}

function createPanels(parts: ScreenParts, theme: ScreenTheme) {
  const { tui } = parts
  let leave: ((result: PanelResult | null) => void) | null = null
  let current: Promise<unknown> | null = null
  const waitForEnd = async (): Promise<void> => {
    while (current !== null) await current
  }
  const openNow = (content: PanelContent): Promise<PanelResult | null> => {
    const { children, afterFrame } = tui
    const focused = tui.getFocusedComponent()
    tui.renderNow()
    const drawn = tui.captureRenderState()
    const { promise, resolve } = Promise.withResolvers<PanelResult | null>()
    leave = (result) => {
      leave = null
      current = null
      tui.terminal.write(LEAVE_SECOND_SCREEN)
      tui.children = children
      tui.afterFrame = afterFrame
      tui.setFocus(focused)
      tui.restoreRenderState(drawn)
      parts.isFrozen = false
      tui.requestRender()
      resolve(result)
    }
    const onKey = (result: PanelResult | null): void => leave?.(result)
    const panel = createPanel(content, { theme, readRows: () => tui.terminal.rows, onKey })
    parts.isFrozen = true
    tui.terminal.write(ENTER_SECOND_SCREEN)
    tui.afterFrame = () => {}
    tui.children = [panel]
    tui.setFocus(panel)
    tui.restoreRenderState(NOTHING_DRAWN)
    tui.requestRender()
    current = promise
    return promise
  }
  return {
    /** Closes the panel that is open, as at the end of the program. */
    close: () => leave?.(null),
    waitForEnd,
    async open(content: PanelContent): Promise<PanelResult | null> {
      await waitForEnd()
      return await openNow(content)
    },
  }
}

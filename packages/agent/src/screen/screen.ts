/**
 * The terminal screen: the transcript, a status line during work, the queue, the input and the context meter. It draws and receives keys;
 * the caller handles what keys mean.
 */
import {
  type AutocompleteProvider,
  type Component,
  Container,
  Editor,
  matchesKey,
  type Terminal as ScreenTerminal,
} from '@earendil-works/pi-tui'
import { layOutFrame } from './frame-layout.ts'
import {
  decorateInputLines,
  drawMeterAndHint,
  drawStatus,
  INPUT_PLACEHOLDER,
  type InputAreaState,
  SPIN_MS,
} from './input-area.ts'
import { createPanel, type PanelChoice, type PanelContent } from './panel.ts'
import { createQuestion, KEY_GUARD_MS, type QuestionAnswer, type QuestionContent } from './question.ts'
import { ScrollSafeTui } from './scroll-safe-tui.ts'
import type { ScreenTheme } from './theme.ts'
import type { Transcript } from './transcript.ts'
import { createTranscriptView } from './transcript-view.ts'

interface ScreenActions {
  /** The user has sent a text. `isPrivate`: typed with a space before it, so that it is not stored in the history. */
  submit(text: string, isPrivate: boolean): void
  /** Ctrl-C on an empty input, or escape. */
  interrupt(key: 'ctrl+c' | 'escape'): void
  exit(): void
  /** Ctrl-T: show what can be opened. */
  openLines(): void
  /** Shift-Tab: switch to the next permission mode. */
  switchMode(): void
  /** Up in an empty input: moves the newest queued text back into it. Returns false if the queue is empty. */
  editQueued?(): boolean
}

export interface ChatScreen {
  start(): void
  /** Draws the last frame and releases the terminal. */
  stop(): void
  /** Waits for late answers of the terminal and late keys, so that no shell reads them afterwards. */
  drain(): Promise<void>
  /** Draws changes, at most once in 16 ms. */
  update(): void
  /** Unfolds or folds tool results: the visible ones and all later ones. */
  toggleFold(): void
  /** The text in the input. `remember` adds a prompt for the arrow keys. */
  readonly input: { read(): string; write(text: string): void; remember(text: string): void }
  setCompletion(provider: AutocompleteProvider): void
  /** Asks in place of the input. When `signal` is aborted, the question closes without an answer. */
  ask(question: QuestionContent, signal?: AbortSignal): Promise<QuestionAnswer>
  /** Shows a panel until an action or Escape. */
  openPanel(content: PanelContent): Promise<PanelChoice | null>
  /** Gives the terminal to another program, such as an editor, while `work` runs. */
  suspend<Result>(work: () => Promise<Result>): Promise<Result>
  /** How often the whole screen had to be drawn again; for tests. */
  readonly fullRedraws: number
}

interface ScreenOptions {
  readonly terminal: ScreenTerminal
  readonly theme: ScreenTheme
  readonly transcript: Transcript
  readonly folder: string
  readonly actions: ScreenActions
  readState(now: number): InputAreaState
  readonly now: () => number
}

/** How long `drain` waits. */
const DRAIN_MS = 300
/** Time between two frames without work, for the countdown of the cache. */
const TICK_MS = 1_000

export function createChatScreen(options: ScreenOptions): ChatScreen {
  const { theme, readState, now, actions } = options
  const parts = createParts(options)
  const { tui, editor } = parts
  tui.addInputListener((data) => (parts.isFrozen ? undefined : handleKey(data, actions, editor, toggleFold)))
  function toggleFold(): void {
    parts.isFolded = !parts.isFolded
    parts.foldedAt = now()
    tui.requestRender()
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
      parts.isLeaving = true
      tui.stopAfterLastFrame()
    },
    drain: () => tui.terminal.drainInput(DRAIN_MS),
    update: () => tui.requestRender(),
    toggleFold,
    input: {
      read: () => editor.getExpandedText(),
      write: (text) => editor.setText(text),
      remember: (text) => editor.addToHistory(text),
    },
    setCompletion: (provider) => editor.setAutocompleteProvider(provider),
    async ask(question, signal) {
      // A question that arrives while a panel is open is shown after the panel is closed.
      await panels.waitForEnd()
      return signal?.aborted === true ? null : await askInPlace(question, parts, theme, signal)
    },
    openPanel: panels.open,
    async suspend(work) {
      tui.eraseDocument()
      tui.stop()
      try {
        return await work()
      } finally {
        tui.start()
      }
    },
    get fullRedraws() {
      return tui.fullRedraws
    },
  }
}

interface ScreenParts {
  readonly tui: ScrollSafeTui
  readonly editor: Editor
  /** Contains the input, or a question that replaces it. */
  readonly bottom: Container
  isFolded: boolean
  /** When results were last folded or unfolded. */
  foldedAt: number
  /** True if only the conversation should stay on the terminal. */
  isLeaving: boolean
  /** True while a question is in place of the input. */
  isAsking: boolean
  /** True while a panel or a question receives the keys. */
  isFrozen: boolean
}

function createParts(options: ScreenOptions): ScreenParts {
  const { terminal, theme, actions } = options
  const tui = new ScrollSafeTui(createOutput(terminal, theme))
  const editor = new Editor(tui, theme.editor, { paddingX: 2, autocompleteMaxVisible: 8 })
  // The editor returns the text without surrounding spaces, so the typed text is kept here.
  let typed = ''
  editor.onChange = (text) => {
    if (text !== '') typed = text
  }
  editor.onSubmit = (text) => actions.submit(text, typed.startsWith(' '))
  const bottom = new Container()
  bottom.addChild(editor)
  const parts: ScreenParts = {
    ...{ tui, editor, bottom, isFolded: true, foldedAt: Number.NEGATIVE_INFINITY },
    ...{ isLeaving: false, isAsking: false, isFrozen: false },
  }
  tui.addChild(createDocument(parts, options))
  tui.setFocus(editor)
  return parts
}

/** Creates the component of the whole screen: the transcript, and below it the lines around the input. */
function createDocument(
  parts: ScreenParts,
  { theme, folder, transcript, readState, now }: ScreenOptions,
): Component {
  const { tui, editor, bottom } = parts
  const view = createTranscriptView(transcript, () => ({ theme, folder, isFolded: parts.isFolded }))
  let leading = 0
  tui.onScroll = (count) => {
    view.leaveLines(Math.min(count, leading))
    leading = Math.max(0, leading - count)
  }
  return {
    render(width) {
      const { settled, pending } = view.draw(width)
      if (parts.isLeaving) return [...settled, ...pending, '', '']
      const { isAsking } = parts
      const state = readState(now())
      const hint = state.hint === '' ? describeFold(parts, now()) : state.hint
      const { rows } = tui.terminal
      const isNew = !transcript.items.some(({ kind }) => kind === 'prompt')
      const frame = layOutFrame({
        settled,
        pending,
        above: drawStatus(state, { width, theme, now: now(), isAsking }),
        input: decorateInputLines(bottom.render(width), {
          ...{ isEmpty: editor.getText() === '', isAsking, hint: isNew ? INPUT_PLACEHOLDER : '', theme },
        }),
        below: drawMeterAndHint({ ...state, hint }, width, theme, now()),
        rows,
        rowsToFill: view.hasLeftLines() ? rows - tui.topRow : null,
      })
      leading = frame.leading
      return frame.lines
    },
    invalidate() {
      view.invalidate()
      bottom.invalidate()
    },
  }
}

/** Milliseconds for which a hint shows the effect of Ctrl-O. */
const FOLD_HINT_MS = 4_000

function describeFold(parts: ScreenParts, now: number): string {
  if (now - parts.foldedAt >= FOLD_HINT_MS) return ''
  return parts.isFolded
    ? 'Results of tools are folded from here on.'
    : 'Results of tools are shown in full from here on. Ctrl-T opens those further up.'
}

/** Passes on the screen's output with characters that the terminal supports. Never clears the terminal's scroll-back. */
function createOutput(terminal: ScreenTerminal, { toTerminalText }: ScreenTheme): ScreenTerminal {
  const write = (data: string): void => terminal.write(toTerminalText(data.replaceAll(CLEAR_MEMORY, '')))
  return new Proxy(terminal, {
    get(target, name) {
      if (name === 'write') return write
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

const CLEAR_MEMORY = '\u001b[3J'

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
  else if (matchesKey(data, 'shift+tab')) actions.switchMode()
  else if (matchesKey(data, 'up') && editor.getText() === '' && actions.editQueued?.() === true)
    return { consume: true }
  else return undefined
  return { consume: true }
}

/** Draws a frame for each step of the spinner during work, otherwise one per second for the countdown. */
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
  signal: AbortSignal | undefined,
): Promise<QuestionAnswer> {
  const { tui, bottom, editor } = parts
  parts.isAsking = true
  return new Promise((resolve) => {
    const close = (answer: QuestionAnswer): void => {
      signal?.removeEventListener('abort', giveUp)
      bottom.removeChild(component)
      bottom.addChild(editor)
      tui.setFocus(editor)
      parts.isAsking = false
      parts.isFrozen = false
      tui.requestRender()
      resolve(answer)
    }
    const giveUp = (): void => close(null)
    const component = createQuestion(question, {
      theme,
      readRows: () => tui.terminal.rows,
      onAnswer: close,
      onEarlyKey: (data) => {
        if (!matchesKey(data, 'enter') && !matchesKey(data, 'escape')) editor.handleInput(data)
      },
    })
    signal?.addEventListener('abort', giveUp, { once: true })
    setTimeout(() => tui.requestRender(), KEY_GUARD_MS + 1)
    parts.isFrozen = true
    bottom.removeChild(editor)
    bottom.addChild(component)
    tui.setFocus(component)
    tui.requestRender()
  })
}

function createPanels(parts: ScreenParts, theme: ScreenTheme) {
  const { tui } = parts
  let leave: ((result: PanelChoice | null) => void) | null = null
  let current: Promise<unknown> | null = null
  const waitForEnd = async (): Promise<void> => {
    while (current !== null) await current
  }
  const openNow = (content: PanelContent): Promise<PanelChoice | null> => {
    const { children } = tui
    const focused = tui.getFocusedComponent()
    const leaveScreen = tui.enterSecondScreen()
    const { promise, resolve } = Promise.withResolvers<PanelChoice | null>()
    leave = (result) => {
      leave = null
      current = null
      leaveScreen()
      tui.children = children
      tui.setFocus(focused)
      parts.isFrozen = false
      tui.requestRender()
      resolve(result)
    }
    const onKey = (result: PanelChoice | null): void => leave?.(result)
    const panel = createPanel(content, { theme, readRows: () => tui.terminal.rows, onKey })
    parts.isFrozen = true
    tui.children = [panel]
    tui.setFocus(panel)
    tui.requestRender()
    current = promise
    return promise
  }
  return {
    /** Closes an open panel, for example when the program ends. */
    close: () => leave?.(null),
    waitForEnd,
    async open(content: PanelContent): Promise<PanelChoice | null> {
      await waitForEnd()
      return await openNow(content)
    },
  }
}

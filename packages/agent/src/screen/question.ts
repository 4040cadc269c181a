/**
 * A question in place of the input: a few choices, one of which may ask for a text. Used for permissions, with the change of a file above
 * the choices, and for questions of the model.
 */
import {
  type Component,
  type Focusable,
  Input,
  matchesKey,
  truncateToWidth,
  wrapTextWithAnsi,
} from '@earendil-works/pi-tui'
import { keepColorsOnly, type ScreenTheme } from './theme.ts'

/** What is asked, and what can be answered. */
export interface QuestionContent {
  readonly title: string
  /** Returns the lines between title and choices, for this width. Some of them are visible; the rest can be scrolled to. */
  body(width: number): readonly string[]
  readonly choices: readonly QuestionChoice[]
  /** True if several choices can be ticked. */
  readonly isMultiple?: boolean
  /** What Escape does, in one word. Default: cancel. */
  readonly onEscape?: string
}

interface QuestionChoice {
  readonly label: string
  /** Set if the choice asks for a text: what the user should type. */
  readonly asksFor?: string
}

/** Indexes of the chosen choices, and the text for a choice that asks for one; null after Escape or Ctrl-C. */
export type QuestionAnswer = { readonly chosen: readonly number[]; readonly text: string } | null

interface QuestionState {
  readonly ticked: Set<number>
  readonly input: Input
  current: number
  /** Index of the first visible line of the body. */
  top: number
  /** Number of visible lines of the body. */
  room: number
  readonly openedAt: number
  /** A typed digit that will answer soon, unless another key shows that it begins a text. */
  digit: { readonly data: string; readonly timer: NodeJS.Timeout } | null
}

interface QuestionOptions {
  readonly theme: ScreenTheme
  readonly readRows: () => number
  readonly onAnswer: (answer: QuestionAnswer) => void
  /** Called for a key that was typed before the question accepts keys, and so was meant for the input. */
  readonly onEarlyKey?: (data: string) => void
}

/** Creates the component of a question. It accepts no keys for `KEY_GUARD_MS`. */
export function createQuestion(content: QuestionContent, options: QuestionOptions): Component & Focusable {
  const { choices, isMultiple = false } = content
  const shown = { ...content, body: rememberBody(content) }
  const state: QuestionState = {
    ticked: new Set(),
    input: new Input(),
    current: 0,
    top: 0,
    room: 1,
    openedAt: performance.now(),
    digit: null,
  }
  const { ticked, input } = state
  let isAnswered = false
  const onAnswer = (given: QuestionAnswer): void => {
    if (isAnswered) return
    isAnswered = true
    forgetDigit(state)
    options.onAnswer(given)
  }
  const isTyping = (): boolean => choices[state.current]?.asksFor !== undefined
  const answer = (): void => {
    const chosen = isMultiple && ticked.size > 0 ? [...ticked].sort() : [state.current]
    onAnswer({ chosen, text: isTyping() ? input.getValue().trim() : '' })
  }
  const move = (by: number): void => {
    state.current = (state.current + by + choices.length) % choices.length
  }
  return {
    focused: false,
    invalidate: () => input.invalidate(),
    render: (width) => drawQuestion(shown, state, options, width),
    handleInput(data) {
      // Keys typed just before the question appeared were meant for the input and must not answer it.
      if (!isTakingKeys(state)) return options.onEarlyKey?.(data)
      const digit = forgetDigit(state)
      if (matchesKey(data, 'escape') || matchesKey(data, 'ctrl+c')) onAnswer(null)
      else if (matchesKey(data, 'enter')) answer()
      else if (matchesKey(data, 'pageUp')) state.top -= Math.max(1, state.room - 1)
      else if (matchesKey(data, 'pageDown')) state.top += Math.max(1, state.room - 1)
      else if (matchesKey(data, 'up')) move(-1)
      else if (matchesKey(data, 'down')) move(1)
      else if (isTyping()) input.handleInput(data)
      else if (isMultiple && data === ' ') tick(ticked, state.current)
      else if (digit === '' && /^[1-9]$/.test(data) && Number(data) <= choices.length) {
        state.current = Number(data) - 1
        if (!isTyping() && !isMultiple) state.digit = { data, timer: setTimeout(answer, DIGIT_MS) }
      } else typeReason(content, state, digit + data)
    },
  }
}

/** Milliseconds after which a digit answers. If another key comes earlier, the digit begins a text. */
const DIGIT_MS = 200

/** Cancels a digit that has not answered yet and returns it; empty if there is none. */
function forgetDigit(state: QuestionState): string {
  const { digit } = state
  state.digit = null
  clearTimeout(digit?.timer)
  return digit?.data ?? ''
}

/** Adds typed text to the choice that asks for a text, so that words never choose an answer by accident. */
function typeReason({ choices }: QuestionContent, state: QuestionState, data: string): void {
  const place = choices.findIndex(({ asksFor }) => asksFor !== undefined)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a control character is no text
  if (place === -1 || /^[\u0000-\u001f\u007f]/.test(data)) return
  state.current = place
  state.input.handleInput(data)
}

/** Returns the body of a question, created once per width, because a change may have thousands of lines. */
function rememberBody({ body }: QuestionContent): QuestionContent['body'] {
  let known: { readonly width: number; readonly lines: readonly string[] } | null = null
  return (width) => {
    if (known?.width !== width) known = { width, lines: body(width) }
    return known.lines
  }
}

function drawQuestion(
  { title, body, choices, isMultiple = false, onEscape = 'cancel' }: QuestionContent,
  state: QuestionState,
  { theme: { colors }, readRows }: QuestionOptions,
  width: number,
): string[] {
  const { current, ticked, input } = state
  const lines = body(Math.max(1, width - 2))
  const head = wrapTextWithAnsi(colors.bold(keepColorsOnly(title)), width)
  const choiceRows = choices.flatMap((choice, index) => {
    const at = { index, isCurrent: index === current, isTicked: ticked.has(index), isMultiple }
    const rows = drawChoice(choice, at, width)
    return index === current ? rows.map((row) => colors.cyan(row)) : rows
  })
  const inputRows = choices[current]?.asksFor === undefined ? [] : drawInput(input, width)
  state.room = Math.max(3, readRows() - head.length - choiceRows.length - inputRows.length - ROWS_AROUND)
  state.top = Math.max(0, Math.min(state.top, lines.length - state.room))
  const shown = lines.slice(state.top, state.top + state.room)
  const range = `lines ${state.top + 1}–${state.top + shown.length} of ${lines.length}: page up, page down`
  const keys = !isTakingKeys(state)
    ? ''
    : `↑↓ choose · ${isMultiple ? 'space tick · ' : ''}enter confirm · esc ${onEscape}`
  const rows = [
    colors.yellow('─'.repeat(width)),
    ...head,
    ...shown.map(keepColorsOnly),
    ...(shown.length < lines.length ? [colors.dim(`  ${range}`)] : []),
    ...choiceRows,
    ...inputRows,
    colors.dim(keys),
  ]
  return rows.map((row) => truncateToWidth(row, width))
}

/** Rows needed besides title, body and choices: border, range, keys, status, meter, and the newest line above. */
const ROWS_AROUND = 10
/**
 * Milliseconds after which a question accepts keys and shows which ones: earlier keys were typed before the user could read it.
 */
export const KEY_GUARD_MS = 300

function isTakingKeys({ openedAt }: QuestionState): boolean {
  return performance.now() - openedAt >= KEY_GUARD_MS
}

function tick(ticked: Set<number>, index: number): void {
  if (!ticked.delete(index)) ticked.add(index)
}

/** Draws a whole choice: a rule that is cut off would allow more than the user has read. */
function drawChoice(
  { label, asksFor }: QuestionChoice,
  at: {
    readonly index: number
    readonly isCurrent: boolean
    readonly isTicked: boolean
    readonly isMultiple: boolean
  },
  width: number,
): readonly string[] {
  const box = at.isMultiple && asksFor === undefined ? (at.isTicked ? '[x] ' : '[ ] ') : ''
  const start = `${at.isCurrent ? '❯' : ' '} ${at.index + 1}. `
  const indent = ' '.repeat(start.length)
  return wrapTextWithAnsi(keepColorsOnly(`${box}${label}`), Math.max(1, width - start.length)).map(
    (line, index) => `${index === 0 ? start : indent}${line}`,
  )
}

function drawInput(input: Input, width: number): readonly string[] {
  return input.render(Math.max(4, width - 4)).map((line) => `    ${line}`)
}

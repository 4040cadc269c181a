/**
 * A question in place of the input: a few choices, of which one may ask for a text. Used for permissions, with the change
 * of a file above the choices, and for questions of the model.
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

export interface QuestionContent {
  readonly title: string
  /** Lines between the title and the choices, for this width. At most `rows` are shown; the rest can be scrolled. */
  body(width: number): readonly string[]
  readonly choices: readonly QuestionChoice[]
  /** True if several choices can be ticked. */
  readonly isMultiple?: boolean
}

export interface QuestionChoice {
  readonly label: string
  /** Set if the choice takes a text: what to type. */
  readonly asksFor?: string
}

/** The chosen indexes, with the text of a choice that takes one; null if the user pressed escape or Ctrl-C. */
export type QuestionAnswer = { readonly chosen: readonly number[]; readonly text: string } | null

interface QuestionState {
  readonly ticked: Set<number>
  readonly input: Input
  current: number
  /** The first line of the body that is shown. */
  top: number
}

interface QuestionOptions {
  readonly theme: ScreenTheme
  readonly readRows: () => number
  readonly onAnswer: (answer: QuestionAnswer) => void
}

export function createQuestion(content: QuestionContent, options: QuestionOptions): Component & Focusable {
  const { onAnswer } = options
  const { choices, isMultiple = false } = content
  const state: QuestionState = { ticked: new Set(), input: new Input(), current: 0, top: 0 }
  const { ticked, input } = state
  const openedAt = performance.now()
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
    render: (width) => drawQuestion(content, state, options, width),
    handleInput(data) {
      // Keys that were meant for the input, typed just before the question appeared, must not answer it.
      if (performance.now() - openedAt < GUARD_MS) return
      if (matchesKey(data, 'escape') || matchesKey(data, 'ctrl+c')) onAnswer(null)
      else if (matchesKey(data, 'enter')) answer()
      else if (matchesKey(data, 'pageUp')) state.top -= PAGE
      else if (matchesKey(data, 'pageDown')) state.top += PAGE
      else if (matchesKey(data, 'up')) move(-1)
      else if (matchesKey(data, 'down')) move(1)
      else if (isTyping()) input.handleInput(data)
      else if (isMultiple && data === ' ') tick(ticked, state.current)
      else if (/^[1-9]$/.test(data) && Number(data) <= choices.length) {
        state.current = Number(data) - 1
        if (!isTyping() && !isMultiple) answer()
      }
    },
  }
}

function drawQuestion(
  { title, body, choices, isMultiple = false }: QuestionContent,
  state: QuestionState,
  { theme: { colors }, readRows }: QuestionOptions,
  width: number,
): string[] {
  const { current, ticked, input } = state
  const lines = body(Math.max(1, width - 2))
  const room = Math.max(3, readRows() - choices.length - 8)
  state.top = Math.max(0, Math.min(state.top, lines.length - room))
  const shown = lines.slice(state.top, state.top + room)
  const hidden = lines.length - shown.length
  const isTyping = choices[current]?.asksFor !== undefined
  const keys = `↑↓ choose · ${isMultiple ? 'space tick · ' : ''}enter confirm · esc cancel`
  const rows = [
    colors.yellow('─'.repeat(width)),
    ...wrapTextWithAnsi(colors.bold(keepColorsOnly(title)), width),
    ...shown.map(keepColorsOnly),
    ...(hidden > 0 ? [colors.dim(`  ${hidden} more lines: page up, page down`)] : []),
    ...choices.map((choice, index) => {
      const at = { index, isCurrent: index === current, isTicked: ticked.has(index), isMultiple }
      const row = keepColorsOnly(drawChoice(choice, at))
      return index === current ? colors.cyan(row) : row
    }),
    ...(isTyping ? drawInput(input, width) : []),
    colors.dim(keys),
  ]
  return rows.map((row) => truncateToWidth(row, width))
}

const PAGE = 10
const GUARD_MS = 300

function tick(ticked: Set<number>, index: number): void {
  if (!ticked.delete(index)) ticked.add(index)
}

function drawChoice(
  { label, asksFor }: QuestionChoice,
  at: {
    readonly index: number
    readonly isCurrent: boolean
    readonly isTicked: boolean
    readonly isMultiple: boolean
  },
): string {
  const box = at.isMultiple && asksFor === undefined ? (at.isTicked ? '[x] ' : '[ ] ') : ''
  return `${at.isCurrent ? '❯' : ' '} ${at.index + 1}. ${box}${label}`
}

function drawInput(input: Input, width: number): readonly string[] {
  return input.render(Math.max(4, width - 4)).map((line) => `    ${line}`)
}

/**
 * A panel takes the whole screen in place of the conversation: a page to scroll, or a list to choose from. It is drawn on
 * the terminal's second screen, so the conversation and its scroll-back are untouched when it is closed.
 */
import { type Component, matchesKey, truncateToWidth, wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { formatCount } from '../render/format-numbers.ts'
import { keepColorsOnly, type ScreenTheme } from './theme.ts'

export interface PanelAction {
  /** The key, as the screen library names it, such as `enter` or `p`. */
  readonly key: string
  readonly label: string
}

export interface PanelRow {
  /** The line, which may have colours. */
  readonly text: string
  /** True for a row that can be chosen. A page has none. */
  readonly isChoice?: boolean
}

export interface PanelContent {
  readonly title: string
  /** Rows for this width. Lines of a page that are too long are wrapped. */
  rows(width: number): readonly PanelRow[]
  readonly actions: readonly PanelAction[]
  /** The row that is chosen at first, among those that can be chosen. Without it, the panel begins at its top. */
  readonly firstChoice?: number
}

export interface PanelResult {
  readonly key: string
  /** The number of the row among those that can be chosen; -1 if there are none. */
  readonly choice: number
}

interface PanelState {
  top: number
  /** The index of the chosen row among those that can be chosen. */
  choice: number
  /** True if the chosen row must be visible: not before the user has come to it from the top. */
  isFollowing: boolean
}

/** Creates the component of a panel. `onKey` gets each action of the user; null for escape. */
export function createPanel(
  content: PanelContent,
  options: {
    readonly theme: ScreenTheme
    readonly readRows: () => number
    readonly onKey: (result: PanelResult | null) => void
  },
): Component {
  const { theme, readRows, onKey } = options
  const { firstChoice } = content
  const state: PanelState = { top: 0, choice: firstChoice ?? 0, isFollowing: firstChoice !== undefined }
  let choices = 0
  /** The rows that can be chosen, by their number in the panel. */
  let places: readonly number[] = []
  const pageRows = (): number => Math.max(1, readRows() - 4)
  const move = (by: number): void => {
    const place = places[state.choice] ?? 0
    const isVisible = place >= state.top && place < state.top + pageRows()
    const isAtFirst = by < 0 && state.choice === 0
    if (choices === 0 || !isVisible || isAtFirst) state.top += by
    else state.choice = Math.min(choices - 1, Math.max(0, state.choice + by))
    state.isFollowing = choices > 0 && isVisible && !isAtFirst
  }
  return {
    invalidate() {},
    render(width) {
      const rows = content.rows(width).flatMap((row) => wrapRow(row, width))
      places = rows.flatMap(({ isChoice }, index) => (isChoice === true ? [index] : []))
      choices = places.length
      state.choice = Math.min(state.choice, Math.max(0, choices - 1))
      const lines = drawRows(rows, state, width, theme)
      if (choices > 0 && state.isFollowing) state.top = scrollToChoice(places, state, pageRows())
      state.top = Math.min(Math.max(0, lines.length - pageRows()), Math.max(0, state.top))
      const shown = lines.slice(state.top, state.top + pageRows())
      const blank = Array.from({ length: pageRows() - shown.length }, () => '')
      return [
        theme.colors.bold(truncateToWidth(keepColorsOnly(content.title), width)),
        theme.colors.dim('─'.repeat(width)),
        ...shown,
        ...blank,
        theme.colors.dim('─'.repeat(width)),
        drawFooter(content, { width, theme, left: lines.length - state.top - shown.length }),
      ]
    },
    handleInput(data) {
      if (matchesKey(data, 'escape') || matchesKey(data, 'ctrl+c') || data === 'q') return onKey(null)
      for (const [key, by] of listMoves(pageRows())) if (matchesKey(data, key)) return move(by)
      const action = content.actions.find(({ key }) => matchesKey(data, key as 'enter'))
      if (action !== undefined) onKey({ key: action.key, choice: choices === 0 ? -1 : state.choice })
    },
  }
}

function listMoves(page: number) {
  return [
    ['up', -1],
    ['down', 1],
    ['pageUp', -page],
    ['pageDown', page],
    ['space', page],
    ['home', -1e9],
    ['end', 1e9],
  ] as const
}

/** A row that can be chosen stays on one line; other rows are wrapped. */
function wrapRow({ text: given, isChoice }: PanelRow, width: number): readonly PanelRow[] {
  const text = keepColorsOnly(given)
  if (isChoice === true) return [{ text, isChoice }]
  return wrapTextWithAnsi(text, Math.max(1, width)).map((line) => ({ text: line }))
}

function drawRows(
  rows: readonly PanelRow[],
  { choice }: PanelState,
  width: number,
  { colors }: ScreenTheme,
): readonly string[] {
  let number = -1
  return rows.map(({ text, isChoice }) => {
    if (isChoice !== true) return truncateToWidth(text, width)
    number += 1
    const isChosen = number === choice
    const line = truncateToWidth(text, Math.max(1, width - 2))
    return isChosen ? `${colors.cyan('❯')} ${colors.bold(line)}` : `  ${line}`
  })
}

function scrollToChoice(places: readonly number[], { top, choice }: PanelState, page: number): number {
  const place = places[choice] ?? 0
  return place < top ? place : place >= top + page ? place - page + 1 : top
}

function drawFooter(
  { actions }: PanelContent,
  { width, theme, left }: { readonly width: number; readonly theme: ScreenTheme; readonly left: number },
): string {
  const more = left > 0 ? `${formatCount(left, 'more line')} · ` : ''
  const keys = actions.map(({ key, label }) => `${key} ${label}`)
  return theme.colors.dim(truncateToWidth(`${more}${[...keys, 'esc close'].join(' · ')}`, width))
}

/** Turns a text into the rows of a page. */
export function toPageRows(text: string): readonly PanelRow[] {
  return text.split('\n').map((line) => ({ text: line }))
}

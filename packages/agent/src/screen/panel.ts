/**
 * A panel fills the whole screen in place of the conversation: a page to scroll, or a list to choose from. It is drawn on the terminal's
 * second screen, so the conversation and its scroll-back are unchanged when it closes.
 */
import {
  type Component,
  matchesKey,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
} from '@earendil-works/pi-tui'
import { keepColorsOnly, type ScreenTheme } from './theme.ts'

interface PanelAction {
  /** The key, with its name in the screen library, such as `enter` or `p`. */
  readonly key: string
  readonly label: string
}

export interface PanelRow {
  /** The line, which may have colours. */
  readonly text: string
  /** True for a row that can be chosen. Pages have no such rows. */
  readonly isChoice?: boolean
}

export interface PanelContent {
  readonly title: string
  /** A remark below the title that does not scroll. */
  readonly note?: string
  /** Rows for this width. Lines of a page that are too long are wrapped. */
  rows(width: number): readonly PanelRow[]
  readonly actions: readonly PanelAction[]
  /** Index, among the rows that can be chosen, of the one chosen at first. If omitted, the panel starts at its top. */
  readonly firstChoice?: number
}

/** What the user did in a panel. */
export interface PanelChoice {
  /** The key of the action. */
  readonly key: string
  /** Index of the row among those that can be chosen; -1 if there are none. */
  readonly choice: number
}

interface PanelState {
  top: number
  /** The index of the chosen row among those that can be chosen. */
  choice: number
  /** True if the chosen row must stay visible: not before the user has moved to it from the top. */
  isFollowing: boolean
  /** Indexes of the rows that can be chosen, among all rows. */
  places: readonly number[]
  /** Number of rows that are visible; 0 before the panel is first drawn. */
  page: number
}

/** Creates the component of a panel. `onKey` gets each action of the user; null for Escape. */
export function createPanel(
  content: PanelContent,
  options: {
    readonly theme: ScreenTheme
    readonly readRows: () => number
    readonly onKey: (result: PanelChoice | null) => void
  },
): Component {
  const { theme, readRows, onKey } = options
  const { firstChoice } = content
  const { note = '' } = content
  const isFollowing = firstChoice !== undefined
  const state: PanelState = { top: 0, choice: firstChoice ?? 0, isFollowing, places: [], page: 0 }
  return {
    invalidate() {},
    render(width) {
      const remark =
        note === '' ? [] : wrapTextWithAnsi(keepColorsOnly(note), Math.max(1, width)).slice(0, MAX_NOTE_ROWS)
      const rows = content.rows(width).flatMap((row) => wrapRow(row, width))
      state.page = Math.max(1, readRows() - 4 - remark.length)
      state.places = rows.flatMap(({ isChoice }, index) => (isChoice === true ? [index] : []))
      state.choice = Math.min(state.choice, Math.max(0, state.places.length - 1))
      const lines = drawRows(rows, state, width, theme)
      if (state.places.length > 0 && state.isFollowing) state.top = scrollToChoice(state)
      state.top = Math.min(Math.max(0, lines.length - state.page), Math.max(0, state.top))
      const shown = lines.slice(state.top, state.top + state.page)
      const blank = Array.from({ length: state.page - shown.length }, () => '')
      return [
        theme.colors.bold(truncateToWidth(keepColorsOnly(content.title), width)),
        theme.colors.dim('─'.repeat(width)),
        ...remark.map(theme.colors.yellow),
        ...shown,
        ...blank,
        theme.colors.dim('─'.repeat(width)),
        theme.colors.dim(describeKeys(content, state, { width, total: lines.length })),
      ]
    },
    handleInput(data) {
      if (matchesKey(data, 'escape') || matchesKey(data, 'ctrl+c') || data === 'q') return onKey(null)
      // A key typed before the panel is visible was not meant for it.
      if (state.page === 0) return
      for (const [key, by] of listMoves(state.page)) if (matchesKey(data, key)) return moveBy(state, by)
      for (const key of ['home', 'end'] as const) if (matchesKey(data, key)) return jumpTo(state, key)
      const action = content.actions.find(({ key }) => matchesKey(data, key as 'enter'))
      if (action === undefined) return
      // The chosen row is scrolled into view before an action on it.
      if (isChoiceAway(state)) state.isFollowing = true
      else onKey({ key: action.key, choice: state.places.length === 0 ? -1 : state.choice })
    },
  }
}

const MAX_NOTE_ROWS = 3
/** Returns true if there is a chosen row but it is not visible. */
function isChoiceAway({ places, choice, top, page }: PanelState): boolean {
  const place = places[choice]
  return place !== undefined && (place < top || place >= top + page)
}

function moveBy(state: PanelState, by: number): void {
  const { places, choice } = state
  const isScrolled = places.length === 0 || isChoiceAway(state) || (by < 0 && choice === 0)
  if (isScrolled) state.top += by
  else state.choice = Math.min(places.length - 1, Math.max(0, choice + by))
  state.isFollowing = !isScrolled
}

function jumpTo(state: PanelState, key: 'home' | 'end'): void {
  state.choice = key === 'home' ? 0 : Math.max(0, state.places.length - 1)
  state.top = key === 'home' ? 0 : Number.MAX_SAFE_INTEGER
  state.isFollowing = false
}

function listMoves(page: number) {
  return [
    ['up', -1],
    ['down', 1],
    ['pageUp', -page],
    ['pageDown', page],
    ['space', page],
  ] as const
}

/** Wraps a row. A row that can be chosen stays on one line; other rows continue below their own beginning. */
function wrapRow({ text: given, isChoice }: PanelRow, width: number): readonly PanelRow[] {
  const text = keepColorsOnly(given)
  if (isChoice === true) return [{ text, isChoice }]
  const indent = /^ */.exec(text)?.[0] ?? ''
  const room = Math.max(1, width - indent.length)
  return wrapTextWithAnsi(text.slice(indent.length), room).map((line) => ({ text: `${indent}${line}` }))
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

function scrollToChoice({ places, top, choice, page }: PanelState): number {
  const place = places[choice] ?? 0
  return place < top ? place : place >= top + page ? place - page + 1 : top
}

/** Describes the keys that currently have an effect, shorter on a narrow screen. Escape is always included. */
function describeKeys(
  { actions }: PanelContent,
  state: PanelState,
  { width, total }: { readonly width: number; readonly total: number },
): string {
  const { top, page } = state
  const range = `${top + 1}–${Math.min(total, top + page)} of ${total}`
  const isPaged = page < total
  const keys = isChoiceAway(state) ? ['↓ to the list'] : actions.map(({ key, label }) => `${key} ${label}`)
  const end = 'esc close'
  const ways = [[range, 'page up, page down'], [range, 'pgup/pgdn'], ['pgup/pgdn']].map((paging) =>
    [...(isPaged ? paging : []), ...keys].join(' · '),
  )
  const room = Math.max(1, width - end.length - 3)
  const shortest = truncateToWidth(ways.at(-1) ?? '', room, '…')
  const text = ways.find((line) => visibleWidth(line) <= room) ?? shortest
  return truncateToWidth(text === '' ? end : `${text} · ${end}`, width)
}

/** Converts a text to the rows of a page. */
export function toPageRows(text: string): readonly PanelRow[] {
  return text.split('\n').map((line) => ({ text: line }))
}

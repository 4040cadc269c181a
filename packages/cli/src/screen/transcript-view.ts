/**
 * The transcript as a component of the screen. Each item is drawn once for each change. Lines that have scrolled out of
 * view for good are left to the terminal, so that a frame costs the same in a long session as in a short one; after a
 * resize all items are drawn again.
 */
import { type Component, type TuiMainScreen, truncateToWidth } from '@earendil-works/pi-tui'
import { type DrawOptions, drawItem } from './draw-items.ts'
import type { Transcript, TranscriptItem } from './transcript.ts'

export interface TranscriptView extends Component {
  /** Draws everything again: after a change of how items look. */
  redraw(): void
  /** Lets go of lines that are far above the visible part. Called after a frame was drawn. */
  retireLines(): void
  /** True if lines of the transcript are only in the terminal's own memory. */
  hasRetired(): boolean
}

interface DrawnItem {
  readonly version: number
  readonly width: number
  readonly isFolded: boolean
  readonly lines: readonly string[]
}

/** Lines above the visible part that are still drawn in each frame. More are retired together. */
const LINES_KEPT = 150
const LINES_BEFORE_RETIRING = 400

export function createTranscriptView(
  transcript: Transcript,
  tui: TuiMainScreen,
  readOptions: () => DrawOptions,
): TranscriptView {
  let drawn = new WeakMap<TranscriptItem, DrawnItem>()
  /** The first item that is drawn, by its id; those before it are retired. */
  let firstId = 0
  let size = { width: 0, rows: 0 }
  const draw = (item: TranscriptItem, width: number): readonly string[] => {
    const options = readOptions()
    const known = drawn.get(item)
    const { version } = item
    if (known?.version === version && known.width === width && known.isFolded === options.isFolded)
      return known.lines
    // The library ends the program if a line is too wide, so that no character of unknown width may get through.
    const lines = drawItem(item, width, options).map((line) => truncateToWidth(line, width))
    drawn.set(item, { version, width, isFolded: options.isFolded, lines })
    return lines
  }
  return {
    render(width) {
      const { rows } = tui.terminal
      // The library clears the screen and the terminal's memory of it when the size changes.
      if (width !== size.width || rows !== size.rows) firstId = 0
      size = { width, rows }
      const lines: string[] = []
      for (const item of listLive(transcript.items, firstId)) lines.push(...draw(item, width))
      return lines
    },
    invalidate() {
      drawn = new WeakMap()
    },
    redraw() {
      firstId = 0
      tui.requestRender(true)
    },
    retireLines() {
      const live = listLive(transcript.items, firstId)
      const total = live.reduce((sum, item) => sum + draw(item, size.width).length, 0)
      if (total < LINES_BEFORE_RETIRING + 2 * size.rows) return
      let spare = total - LINES_KEPT - 2 * size.rows
      let retired = 0
      for (const item of live) {
        const { length } = draw(item, size.width)
        if (isUnfinished(item) || length > spare) break
        spare -= length
        retired += length
        firstId = item.id + 1
        drawn.delete(item)
      }
      if (retired > 0) forgetTopLines(tui, retired)
    },
    hasRetired: () => firstId > (transcript.items[0]?.id ?? 0),
  }
}

/** Returns the items from one on, found from the end, because few are drawn. */
function listLive(items: readonly TranscriptItem[], firstId: number): readonly TranscriptItem[] {
  let start = items.length
  while (start > 0 && (items[start - 1]?.id ?? -1) >= firstId) start -= 1
  return items.slice(start)
}

function isUnfinished(item: TranscriptItem): boolean {
  if (item.kind === 'call') return item.result === null && item.state !== 'interrupted'
  return (item.kind === 'answer' || item.kind === 'thinking') && item.isStreaming
}

/** Tells the library that its document begins `count` lines later. What the terminal shows does not change. */
function forgetTopLines(tui: TuiMainScreen, count: number): void {
  const state = tui.captureRenderState()
  tui.restoreRenderState({
    ...state,
    previousLines: state.previousLines.slice(count),
    cursorRow: state.cursorRow - count,
    hardwareCursorRow: state.hardwareCursorRow - count,
    maxLinesRendered: Math.max(0, state.maxLinesRendered - count),
    previousViewportTop: state.previousViewportTop - count,
  })
}

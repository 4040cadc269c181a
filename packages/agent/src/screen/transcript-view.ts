/**
 * The transcript as lines of the screen. Each item is drawn once after each change. Lines that have scrolled away are left to the terminal
 * and never drawn again, whatever happens to their item. So a frame costs the same in long and short sessions, and the scroll-back has each
 * line once.
 */

import { stripVTControlCharacters } from 'node:util'
import { sliceByColumn, truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import { type DrawOptions, drawTranscriptItem } from './draw-items.ts'
import type { Transcript, TranscriptItem } from './transcript.ts'

interface TranscriptView {
  /** Returns the lines that are not left to the terminal. Lines of running calls come last, in `pending`. */
  draw(width: number): { readonly settled: readonly string[]; readonly pending: readonly string[] }
  /** Leaves the first settled lines of the last drawing to the terminal. */
  leaveLines(count: number): void
  /** True if lines have been left to the terminal. */
  hasLeftLines(): boolean
  invalidate(): void
}

interface DrawnItem {
  readonly version: number
  readonly width: number
  readonly isFolded: boolean
  readonly lines: readonly string[]
}

/** An item whose first lines have scrolled away. */
interface SplitItem {
  readonly item: TranscriptItem
  readonly width: number
  readonly isFolded: boolean
  /** Number of lines of the item that have scrolled away. */
  readonly lines: number
  /** Number of letters and digits in those lines, with which the place is found again at another width. */
  readonly letters: number
  /** After a change of the width: columns of the first remaining line that have also scrolled away. */
  readonly columns: number
}

/** Creates the view. `readOptions` is called for each frame. */
export function createTranscriptView(transcript: Transcript, readOptions: () => DrawOptions): TranscriptView {
  let drawn = new WeakMap<TranscriptItem, DrawnItem>()
  /** All items with a smaller id are left to the terminal, and of the others those in `left`. */
  let firstId = 0
  const left = new WeakSet<TranscriptItem>()
  let hasLeft = false
  let split: SplitItem | null = null
  let settledItems: readonly { readonly item: TranscriptItem; readonly lines: readonly string[] }[] = []
  const drawRest = (item: TranscriptItem, width: number, options: DrawOptions): readonly string[] => {
    const lines = drawOne(drawn, item, width, options)
    if (split?.item !== item) return lines
    split = fitSplit(split, lines, width, options.isFolded)
    const rest = lines.slice(split.lines)
    const [first] = rest
    if (first === undefined || split.columns === 0) return rest
    return [sliceByColumn(first, split.columns, visibleWidth(first)), ...rest.slice(1)]
  }
  return {
    draw(width) {
      const options = readOptions()
      const live = listLive(transcript.items, firstId).filter((item) => !left.has(item))
      const isPending = (item: TranscriptItem): boolean => item !== split?.item && canShrink(item, options)
      const settled = live.filter((item) => !isPending(item))
      // An item whose first lines have scrolled away keeps its place.
      const ordered = settled.toSorted(
        (one, other) => Number(other === split?.item) - Number(one === split?.item),
      )
      settledItems = ordered.map((item) => ({ item, lines: drawRest(item, width, options) }))
      return {
        settled: settledItems.flatMap(({ lines }) => lines),
        pending: live.filter(isPending).flatMap((item) => drawOne(drawn, item, width, options)),
      }
    },
    leaveLines(count) {
      let rest = count
      settledItems = settledItems.flatMap((each) => {
        if (rest === 0) return [each]
        const { item, lines } = each
        const gone = lines.slice(0, rest)
        rest -= gone.length
        hasLeft = true
        // An answer that is still arriving continues below its last line.
        if (gone.length < lines.length || isStreaming(item)) {
          split = advanceSplit(split, item, gone, drawn.get(item))
          return [{ item, lines: lines.slice(gone.length) }]
        }
        left.add(item)
        drawn.delete(item)
        return []
      })
      const live = listLive(transcript.items, firstId)
      firstId = live.find((item) => !left.has(item))?.id ?? (live.at(-1)?.id ?? firstId - 1) + 1
    },
    hasLeftLines: () => hasLeft,
    invalidate() {
      drawn = new WeakMap()
    },
  }
}

/** Draws an item, or returns its earlier drawing. */
function drawOne(
  drawn: WeakMap<TranscriptItem, DrawnItem>,
  item: TranscriptItem,
  width: number,
  options: DrawOptions,
): readonly string[] {
  const known = drawn.get(item)
  const { version } = item
  const { isFolded } = options
  if (known?.version === version && known.width === width && known.isFolded === isFolded) return known.lines
  // The library ends the program if a line is too wide, so every line is cut, in case a character's width was misjudged.
  const lines = drawTranscriptItem(item, width, options).map((line) =>
    dropPadding(truncateToWidth(line, width)),
  )
  drawn.set(item, { version, width, isFolded, lines })
  return lines
}

/** Returns the items with at least this id, searched from the end, because only a few are drawn. */
function listLive(items: readonly TranscriptItem[], firstId: number): readonly TranscriptItem[] {
  let start = items.length
  while (start > 0 && (items[start - 1]?.id ?? -1) >= firstId) start -= 1
  return items.slice(start)
}

function isStreaming(item: TranscriptItem): boolean {
  return (item.kind === 'answer' || item.kind === 'thinking') && item.isStreaming
}

/** Returns true if lines of the item may still disappear: of calls without a result, and of thinking, which is folded later. */
function canShrink(item: TranscriptItem, { isFolded }: DrawOptions): boolean {
  if (item.kind === 'call') return item.result === null && item.state !== 'interrupted'
  return item.kind === 'thinking' && item.isStreaming && isFolded
}

function advanceSplit(
  before: SplitItem | null,
  item: TranscriptItem,
  gone: readonly string[],
  drawing: DrawnItem | undefined,
): SplitItem {
  const known = before?.item === item ? before : null
  return {
    item,
    width: drawing?.width ?? 0,
    isFolded: drawing?.isFolded ?? true,
    lines: (known?.lines ?? 0) + gone.length,
    letters: (known?.letters ?? 0) + countLetters(gone),
    columns: 0,
  }
}

/** Finds the same place in a redrawn item: by its letters; for a call that was folded or unfolded, after its title. */
function fitSplit(split: SplitItem, lines: readonly string[], width: number, isFolded: boolean): SplitItem {
  if (split.width === width && split.isFolded === isFolded) return split
  if (split.isFolded !== isFolded && split.item.kind === 'call')
    return { ...split, width, isFolded, lines: 1, letters: countLetters(lines.slice(0, 1)), columns: 0 }
  let letters = 0
  let place = 0
  for (; place < lines.length; place += 1) {
    const more = countLetters(lines.slice(place, place + 1))
    if (letters + more > split.letters) break
    letters += more
  }
  const columns = findColumn(lines[place] ?? '', split.letters - letters)
  return { ...split, width, isFolded, lines: place, columns }
}

const LETTER = /[\p{L}\p{N}]/gu

function countLetters(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + [...stripVTControlCharacters(line).matchAll(LETTER)].length, 0)
}

/** Returns the column after this many letters of a line and the spaces after them. */
function findColumn(line: string, letters: number): number {
  if (letters <= 0) return 0
  const text = stripVTControlCharacters(line)
  const last = [...text.matchAll(LETTER)][letters - 1]
  if (last === undefined) return 0
  const end = last.index + last[0].length
  return visibleWidth(text.slice(0, end + (/^\S*\s+/.exec(text.slice(end))?.[0].length ?? 0)))
}

/** Removes spaces at the end of a line, which a narrower terminal would wrap. */
function dropPadding(line: string): string {
  return line.replace(PADDING, '$1')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours may end after the spaces
const PADDING = / +((?:\u001b\[[\d;]*m)*)$/

/** Texts of the notes: without secrets and control characters, on one line or quoted, and lists that keep the newest items. */

import { redact } from '../text/redact.ts'
import { truncateEnd } from '../text/truncate-text.ts'
import { removeControlCharacters, sliceText } from '../text/well-formed-text.ts'

/** Matches characters that change the direction of the text after them. */
const DIRECTION_MARK = /[\u202a-\u202e\u2066-\u2069]/g

const LINE_END = /\r\n?/g

/**
 * Removes credentials, control characters and direction marks from a text, and ends its lines with a line feed. It must
 * be whole: half a secret is not recognized.
 */
export function cleanNoteText(text: string): string {
  return redact(removeControlCharacters(text).replace(LINE_END, '\n').replace(DIRECTION_MARK, ''))
}

/** Characters at the end of a long result that are cleaned when only its end is shown. */
const END_CHARACTERS = 20_000

/** Cleans the end of a text, of which less than half is shown: a secret that begins before it is then not shown either. */
export function cleanTextEnd(text: string): string {
  return cleanNoteText(text.length <= END_CHARACTERS ? text : sliceText(text, -END_CHARACTERS))
}

/** Returns a text on one line, with each run of white space as one blank, cut to `most` characters. */
export function toNoteLine(text: string, most: number = Number.POSITIVE_INFINITY): string {
  // Only the beginning of a long text is read. It has enough characters unless nearly all are white space.
  const isLong = text.length > 20 * most
  const line = (isLong ? sliceText(text, 0, 20 * most) : text).replace(/\s+/g, ' ').trim()
  return isLong && line.length <= most ? `${line}…` : truncateEnd(line, most)
}

/** Returns a text in quotation marks on one line. */
export function quoteInline(text: string, most: number): string {
  return `"${toNoteLine(text, most)}"`
}

/** Returns both ends of a text with an ellipsis between them, or the whole text if it is short enough. */
export function cutMiddle(text: string, head: number, tail: number): string {
  if (text.length <= head + tail) return text
  return `${sliceText(text, 0, head)}…${sliceText(text, -tail)}`
}

/** Formats the time of a record: `2026-02-14 21:28`. */
export function formatNoteTime(timestamp: string): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(timestamp) ? timestamp.slice(0, 16).replace('T', ' ') : ''
}

/** A list that keeps its newest items. Adding one takes the same time however many came before. */
interface NewestList<Item> {
  add(item: Item): void
  /** Returns the items, newest first. */
  list(): readonly Item[]
  /** Number of items that are no longer in the list. */
  countDropped(): number
}

export function createNewestList<Item>(limit: number): NewestList<Item> {
  let items: Item[] = []
  let added = 0
  return {
    add(item) {
      added += 1
      items.push(item)
      if (items.length >= 2 * limit) items = items.slice(-limit)
    },
    list: () => items.slice(-limit).reverse(),
    countDropped: () => Math.max(0, added - limit),
  }
}

/** Creates a list that has one item of each key. An item whose key is added again becomes the newest. */
export function createDistinctList<Item>(limit: number, toKey: (item: Item) => string): NewestList<Item> {
  const items = new Map<string, Item>()
  let dropped = 0
  return {
    add(item) {
      items.delete(toKey(item))
      items.set(toKey(item), item)
      const [oldest] = items.keys()
      if (items.size <= limit || oldest === undefined) return
      items.delete(oldest)
      dropped += 1
    },
    list: () => [...items.values()].reverse(),
    countDropped: () => dropped,
  }
}

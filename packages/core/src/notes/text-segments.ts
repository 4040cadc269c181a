/**
 * Texts of the model by segments of the session, and the choice of those that fit into a number of tokens. A segment ends
 * at a compaction, or when it is full. Each has an equal share, so that new texts never push out all of the old ones.
 */
import type { TokenCounter } from '../text/truncate-text.ts'
import { cutMiddle } from './note-text.ts'

/** A text of the model with where it stands: before which change, after which failure, at the end of which turn. */
export interface PlacedText {
  readonly text: string
  readonly where: string
  /** True if the user corrected the model in the turn of the text. */
  isCorrected: boolean
}

interface Segment {
  /** Oldest first. */
  readonly texts: readonly PlacedText[]
  /** Number of texts that it has had. */
  readonly added: number
}

const EMPTY: Segment = { texts: [], added: 0 }
const MOST_SEGMENTS = 12
const MOST_TEXTS = 24

export class TextSegments {
  /** Oldest first, without the one that is still open. */
  #closed: readonly Segment[] = []
  #open = EMPTY

  /** Adds a text. One that the segment has already becomes its newest. */
  add(text: PlacedText): void {
    const others = this.#open.texts.filter((one) => one.text !== text.text)
    const isNew = others.length === this.#open.texts.length
    this.#open = { texts: [...others, text], added: this.#open.added + (isNew ? 1 : 0) }
    if (this.#open.texts.length >= MOST_TEXTS) this.endSegment()
  }

  endSegment(): void {
    if (this.#open.texts.length === 0) return
    this.#closed = joinSmallest([...this.#closed, this.#open])
    this.#open = EMPTY
  }

  countAdded(): number {
    return [...this.#closed, this.#open].reduce((sum, { added }) => sum + added, 0)
  }

  /** Lists the segments, newest first, each with its newest text first. A text that stands in several is in the newest. */
  list(): readonly (readonly PlacedText[])[] {
    const seen = new Set<string>()
    return [...this.#closed, this.#open].toReversed().flatMap(({ texts }) => {
      const own = texts.toReversed().filter(({ text }) => !seen.has(text))
      for (const { text } of own) seen.add(text)
      return own.length === 0 ? [] : [own]
    })
  }
}

/** Joins the two neighbours that had the fewest texts, if there are too many segments. Where both are full, every second text stays. */
function joinSmallest(segments: readonly Segment[]): readonly Segment[] {
  if (segments.length < MOST_SEGMENTS) return segments
  const sizes = segments.slice(1).map(({ added }, index) => added + (segments[index]?.added ?? 0))
  const size = Math.min(...sizes)
  const at = sizes.indexOf(size)
  const both = segments.slice(at, at + 2).flatMap(({ texts }) => texts)
  const texts = both.length > MOST_TEXTS ? both.filter((_, index) => index % 2 === 0) : both
  return segments.toSpliced(at, 2, { texts, added: size })
}

/** A text is first shown by its ends, up to this many tokens, and whole if there is room after the others. */
const SHORT_TOKENS = 170
const LEAST_TOKENS = 40
/** Tokens reserved for the line above a text. */
const LABEL_TOKENS = 16

/**
 * Chooses texts and writes them within `tokens`. The segment that has got the least is served next, with its newest text
 * that is not shown yet; then texts that were cut are shown whole in the same order. `write` formats a text as it is shown.
 */
export function fitTexts(
  segments: readonly (readonly PlacedText[])[],
  options: {
    readonly tokens: number
    readonly countTokens: TokenCounter
    readonly write: (placed: PlacedText, text: string) => string
  },
): ReadonlyMap<PlacedText, string> {
  const { countTokens } = options
  const shown = new Map<PlacedText, string>()
  const shares = segments.flatMap((texts) => (texts.length === 0 ? [] : [{ texts, used: 0 }]))
  const each = Math.floor(options.tokens / Math.max(1, shares.length)) - LABEL_TOKENS
  const most = Math.min(SHORT_TOKENS, Math.max(LEAST_TOKENS, each))
  let left = options.tokens
  const show = (share: { used: number }, placed: PlacedText, text: string): boolean => {
    const written = options.write(placed, text)
    const before = shown.get(placed)
    const more = countTokens(written) + 1 - (before === undefined ? 0 : countTokens(before) + 1)
    if (more > left) return false
    shown.set(placed, written)
    share.used += more
    left -= more
    return true
  }
  for (const { share, placed } of takeInTurns(shares))
    show(share, placed, cutSentences(placed.text, most, countTokens))
  for (const { share, placed } of takeInTurns(shares)) {
    if (left < LEAST_TOKENS) break
    if (!shown.has(placed) || show(share, placed, placed.text)) continue
    show(share, placed, cutSentences(placed.text, most + left - LABEL_TOKENS, countTokens))
  }
  return shown
}

/** Takes the texts of all segments, the next one always from the segment that has used the least. */
function* takeInTurns<Share extends { readonly texts: readonly PlacedText[]; readonly used: number }>(
  shares: readonly Share[],
): Generator<{ readonly share: Share; readonly placed: PlacedText }> {
  const waiting = shares.map((share) => ({ share, next: 0 }))
  for (;;) {
    const open = waiting.filter(({ share, next }) => next < share.texts.length)
    const [first] = open.toSorted((one, other) => one.share.used - other.share.used)
    const placed = first?.share.texts[first.next]
    if (first === undefined || placed === undefined) return
    first.next += 1
    yield { share: first.share, placed }
  }
}

/** Matches a sentence with the white space after it, in scripts with and without blanks between words, or a line. */
const SENTENCE = /[^\n]*?(?:[.!?](?=\s)|[。！？]+|(?=\n)|$)\s*/gu
const CUT_MARK = '[…]'

/**
 * Returns a text of at most about `most` by `measure`: sentences from its beginning, a mark of the cut, and sentences from
 * its end. Only a sentence that is longer than half of it is cut itself.
 */
export function cutSentences(text: string, most: number, measure: TokenCounter): string {
  const size = measure(text)
  if (size <= most) return text
  const sentences = text.match(SENTENCE)?.filter((sentence) => sentence !== '') ?? []
  const head = takeWhole(sentences, most / 2, measure)
  const tail = takeWhole(sentences.slice(head.length).toReversed(), most / 2, measure).toReversed()
  if (head.length + tail.length === 0) {
    const end = Math.floor((text.length * most) / size / 2)
    return cutMiddle(text, end, end)
  }
  const parts = [head.join('').trimEnd(), CUT_MARK, tail.join('').trim()]
  return parts.filter((part) => part !== '').join('\n')
}

function takeWhole(sentences: readonly string[], most: number, measure: TokenCounter): readonly string[] {
  let room = most
  const end = sentences.findIndex((sentence) => {
    room -= measure(sentence)
    return room < 0
  })
  return end === -1 ? sentences : sentences.slice(0, end)
}

/**
 * The model's own texts, chosen by their place and never by their words: the last text before a change of a file and at
 * the end of a turn (decisions), the first text after a failure (findings), the newest answer and the latest text.
 */
import { isTextBlock, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import { removeCodeBlocks } from '../text/code-in-text.ts'
import { sliceWholeCharacters, type TokenCounter, toOneLine, truncateMiddle } from '../text/truncate-text.ts'
import { formatCommand } from './shell-commands.ts'
import { isFailedStatus, type ToolRun } from './tool-runs.ts'

/** A text of the model, without credentials. */
export interface AssistantText {
  readonly uuid: string
  /** Index of the record in the history. */
  readonly place: number
  readonly text: string
}

/** A text of the model that counts as a decision or a finding, because of where it stands. */
export interface DecisionOrFinding {
  readonly text: string
  /** Words for where it stands: before which change, after which failure, or at the end of which turn. */
  readonly where: string
  /** True if the user corrected the model in the turn of the text. */
  isCorrected: boolean
}

/** Decisions and findings by segments of the session. A segment ends at a compaction, or when it is full. */
export interface DecisionsAndFindings {
  /** The segments, newest first, each with its newest text first. A text of several segments is listed in the newest. */
  readonly segments: readonly (readonly DecisionOrFinding[])[]
  /** Number of texts that there have been, also of those that are no longer kept. */
  readonly added: number
}

const ANSWER_CHARACTERS = 6_000
const TEXT_CHARACTERS = 4_000
const COMMAND_CHARACTERS = 60

/** Keeps the model's texts, record by record and call by call. `clean` removes credentials from every text. */
export class ModelTextTracker {
  readonly #texts = new Map<string, AssistantText>()
  readonly #placed = createSegments()
  readonly #clean: (text: string) => string
  /** The texts of the current turn that are kept. */
  #turnTexts: DecisionOrFinding[] = []
  #answer: string | null = null
  #latest: AssistantText | null = null
  #isAnswer = false
  #isFollowedByCall = false
  /** True if the latest text is among those that are kept. */
  #isKept = false
  /** The command that failed last, until the model writes something. */
  #failure: string | null = null

  constructor(clean: (text: string) => string) {
    this.#clean = clean
  }

  /** Adds a record of the branch, before its calls are added. */
  addRecord(record: KnownRecord, place: number): void {
    for (const text of readAssistantTexts(record, this.#clean)) {
      this.#latest = { uuid: record.uuid, place, text }
      this.#texts.delete(text)
      this.#texts.set(text, this.#latest)
      this.#isAnswer = true
      this.#isFollowedByCall = false
      this.#isKept = false
      if (this.#failure !== null) this.#keepLatest(`after ${this.#failure} failed`)
      this.#failure = null
    }
    // Claude Code logs each block of a response as a record of its own, so the call may come in a later record.
    if (record.type === 'assistant' && record.stop === 'tools') this.#addCall()
  }

  /** Adds a call that begins. The text before a change of a file says why it is made. */
  addStart({ kind, path, touches }: ToolRun): void {
    this.#addCall()
    const isChange = kind === 'edit' || kind === 'write' || touches.some(({ action }) => action !== 'read')
    const changed = (path ?? touches[0]?.path ?? '').split(/[\\/]/).at(-1) ?? ''
    if (isChange) this.#keepLatest(`before a change of ${toOneLine(this.#clean(changed))}`)
  }

  /** Adds a call with its result. If it is a command that failed, the model's next text is a finding. */
  addRun({ command, status }: ToolRun): void {
    if (command !== null && isFailedStatus(status))
      this.#failure = formatCommand(this.#clean(command), COMMAND_CHARACTERS)
  }

  /** Ends the turn, because the user typed something: the latest text is an answer if no call followed it. */
  endTurn(time: string): void {
    if (this.#latest !== null && this.#isAnswer) {
      this.#keepLatest(`${time === '' ? '' : `${time}, `}at the end of a turn`)
      this.#answer = sliceWholeCharacters(this.#latest.text, 0, ANSWER_CHARACTERS)
    }
    this.#isAnswer = false
    this.#failure = null
  }

  /**
   * Begins a turn with a message of the user. If it is a correction, the kept texts of the turn before are marked as
   * corrected.
   */
  beginTurn(isCorrection: boolean): void {
    if (isCorrection) for (const one of this.#turnTexts) one.isCorrected = true
    this.#turnTexts = []
  }

  /** Ends a segment. Later texts of the model are kept in a segment of their own. */
  endSegment(): void {
    this.#placed.endSegment()
  }

  /** Lists all texts, oldest first. A text that the model repeats is listed once, where it was written last. */
  listTexts(): readonly AssistantText[] {
    return [...this.#texts.values()]
  }

  listPlaced(): DecisionsAndFindings {
    return this.#placed.list()
  }

  /** Returns the newest answer at the end of a turn; null if there is none. */
  readAnswer(): string | null {
    return this.#latest !== null && this.#isAnswer ? this.#latest.text : this.#answer
  }

  /** Returns true if the model has ended its turn with a text, and the user has typed nothing since. */
  hasAnswered(): boolean {
    return this.#isAnswer
  }

  /** Returns the place of the latest text, if no call followed it; -1 otherwise. */
  readReplyPlace(): number {
    return this.#latest === null || this.#isFollowedByCall ? -1 : this.#latest.place
  }

  #addCall(): void {
    this.#isAnswer = false
    this.#isFollowedByCall = true
  }

  /** Keeps the latest text, unless it is kept already. */
  #keepLatest(where: string): void {
    if (this.#latest === null || this.#isKept) return
    this.#isKept = true
    const one = { text: condenseModelText(this.#latest.text), where, isCorrected: false }
    if (one.text === '') return
    this.#placed.add(one)
    this.#turnTexts.push(one)
  }
}

/** Returns the texts that the model wrote in a record, without empty ones. */
function readAssistantTexts(record: KnownRecord, clean: (text: string) => string): readonly string[] {
  if (record.type !== 'assistant' || isSyntheticError(record) || record.isCompactSummary === true) return []
  return toBlocks(record.message.content).flatMap((block) => {
    const text = isTextBlock(block) ? clean(block.text.trim()) : ''
    return text === '' ? [] : [text]
  })
}

/**
 * Returns a text as it is kept among decisions and findings: without code and blank lines, and with sentences cut from its
 * middle if it is longer than 4,000 characters.
 */
export function condenseModelText(text: string): string {
  const lines = removeCodeBlocks(text).split('\n')
  const kept = lines.filter((line) => line.trim() !== '').join('\n')
  return cutMiddleSentences(kept, TEXT_CHARACTERS, (part) => part.length)
}

// Segments.

interface Segment {
  /** Oldest first. */
  readonly texts: readonly DecisionOrFinding[]
  /** Number of texts that the segment has had, including those no longer kept. */
  readonly added: number
}

const EMPTY: Segment = { texts: [], added: 0 }
const MOST_SEGMENTS = 12
const MOST_TEXTS = 24

function createSegments() {
  /** Closed segments, oldest first. */
  let closed: readonly Segment[] = []
  let open = EMPTY

  function endSegment(): void {
    if (open.texts.length === 0) return
    closed = joinSmallest([...closed, open])
    open = EMPTY
  }

  return {
    /** Adds a text. A text that the segment already has becomes its newest. */
    add(text: DecisionOrFinding): void {
      const others = open.texts.filter((one) => one.text !== text.text)
      const isNew = others.length === open.texts.length
      open = { texts: [...others, text], added: open.added + (isNew ? 1 : 0) }
      if (open.texts.length >= MOST_TEXTS) endSegment()
    },
    endSegment,
    list(): DecisionsAndFindings {
      const all = [...closed, open].toReversed()
      const seen = new Set<string>()
      const segments = all.flatMap(({ texts }) => {
        const own = texts.toReversed().filter(({ text }) => !seen.has(text))
        for (const { text } of own) seen.add(text)
        return own.length === 0 ? [] : [own]
      })
      return { segments, added: all.reduce((sum, { added }) => sum + added, 0) }
    },
  }
}

/**
 * If there are too many segments, joins the two neighbours with the fewest texts. If both are full, every second text stays.
 */
function joinSmallest(segments: readonly Segment[]): readonly Segment[] {
  if (segments.length < MOST_SEGMENTS) return segments
  const sizes = segments.slice(1).map(({ added }, index) => added + (segments[index]?.added ?? 0))
  const size = Math.min(...sizes)
  const at = sizes.indexOf(size)
  const both = segments.slice(at, at + 2).flatMap(({ texts }) => texts)
  const texts = both.length > MOST_TEXTS ? both.filter((_, index) => index % 2 === 0) : both
  return segments.toSpliced(at, 2, { texts, added: size })
}

/** Matches a sentence with the white space after it, in scripts with and without blanks between words, or a line. */
const SENTENCE = /[^\n]*?(?:[.!?](?=\s)|[。！？]+|(?=\n)|$)\s*/gu
const CUT_MARK = '[…]'

/**
 * Returns a text that is at most about `most` by `measure`: sentences from its beginning, `[…]`, and sentences from its end.
 * A sentence longer than half of `most` is cut itself.
 */
export function cutMiddleSentences(text: string, most: number, measure: TokenCounter): string {
  const size = measure(text)
  if (size <= most) return text
  const sentences = text.match(SENTENCE)?.filter((sentence) => sentence !== '') ?? []
  const head = takeWhole(sentences, most / 2, measure)
  const tail = takeWhole(sentences.slice(head.length).toReversed(), most / 2, measure).toReversed()
  if (head.length + tail.length === 0) {
    const end = Math.floor((text.length * most) / size / 2)
    return truncateMiddle(text, end, end)
  }
  const parts = [head.join('').trimEnd(), CUT_MARK, tail.join('').trim()]
  return parts.filter((part) => part !== '').join('\n')
}

/** Returns the first sentences that together measure at most `most`. */
function takeWhole(sentences: readonly string[], most: number, measure: TokenCounter): readonly string[] {
  let room = most
  const end = sentences.findIndex((sentence) => {
    room -= measure(sentence)
    return room < 0
  })
  return end === -1 ? sentences : sentences.slice(0, end)
}

/**
 * Notes from the model's own texts, chosen by where they stand and never by their words: the last text before a change of
 * a file and at the end of a turn (decisions), the first text after a failure (findings), its newest answer and its
 * latest text. Nothing is put in other words, and the oldest decisions keep their share of the tokens.
 */
import { isFailure } from '../facts/command-status.ts'
import { readPlanText } from '../facts/todo-list.ts'
import type { ToolRun } from '../facts/tool-runs.ts'
import { quoteBlock, removeCodeBlocks } from '../text/code-blocks.ts'
import { truncateEnd } from '../text/truncate-text.ts'
import { sliceText } from '../text/well-formed-text.ts'
import { formatCommand } from './command-notes.ts'
import type { FitOptions, NoteGroup } from './fit-notes.ts'
import { cleanNoteText, cutMiddle, toNoteLine } from './note-text.ts'
import { cutSentences, fitTexts, type PlacedText, TextSegments } from './text-segments.ts'

interface ModelText {
  readonly text: string
  readonly place: number
}

const ANSWER_CHARACTERS = 6_000
const SHORT_ANSWER_CHARACTERS = 1_500
const TEXT_CHARACTERS = 4_000
const TEXTS_TITLE = 'Decisions and findings, in the words of the model, oldest first:'
/** Tokens reserved for the title and the line about what was left out. */
const TITLE_TOKENS = 32
const PLAN_CHARACTERS = 4_000
const SHORT_PLAN_CHARACTERS = 1_200
const REQUEST_CHARACTERS = 80
const COMMAND_CHARACTERS = 60

export class ModelNotes {
  readonly #texts = new TextSegments()
  /** The texts of the current turn that are kept. */
  #turnTexts: PlacedText[] = []
  #answer: string | null = null
  #latest: ModelText | null = null
  #isAnswer = false
  #isFollowedByCall = false
  /** True if the latest text is among those that are kept. */
  #isKept = false
  /** The command that failed last, until the model writes something. */
  #failure: string | null = null
  #plan: string | null = null

  addText(text: string, place: number): void {
    this.#latest = { text, place }
    this.#isAnswer = true
    this.#isFollowedByCall = false
    this.#isKept = false
    if (this.#failure !== null) this.#keepLatest(`after ${this.#failure} failed`)
    this.#failure = null
  }

  /** Adds a call that begins, or the news that one follows in the same response. The text before it is then no answer. */
  addCall(): void {
    this.#isAnswer = false
    this.#isFollowedByCall = true
  }

  /** Adds a call that begins. The text before a change of a file says why it is made. */
  addStart({ kind, path, touches }: ToolRun): void {
    this.addCall()
    const isChange = kind === 'edit' || kind === 'write' || touches.some(({ action }) => action !== 'read')
    const changed = (path ?? touches[0]?.path ?? '').split(/[\\/]/).at(-1) ?? ''
    if (isChange) this.#keepLatest(`before a change of ${toNoteLine(cleanNoteText(changed))}`)
  }

  /** Adds a call with its result, which may hold a plan or a failure. */
  addRun(run: ToolRun): void {
    const text = run.failed ? null : readPlanText(run)
    if (text !== null) this.#plan = cleanNoteText(text)
    if (run.command !== null && isFailure(run.status))
      this.#failure = formatCommand(run.command, COMMAND_CHARACTERS)
  }

  /** Ends the turn, because the user typed something: the latest text is an answer if no call followed it. */
  endTurn(time: string): void {
    if (this.#latest !== null && this.#isAnswer) {
      this.#keepLatest(`${time === '' ? '' : `${time}, `}at the end of a turn`)
      this.#answer = sliceText(this.#latest.text, 0, ANSWER_CHARACTERS)
    }
    this.#isAnswer = false
    this.#failure = null
  }

  /** Begins a turn with a message of the user. A correction is about what the model decided in the turn before it. */
  beginTurn(isCorrection: boolean): void {
    if (isCorrection) for (const one of this.#turnTexts) one.isCorrected = true
    this.#turnTexts = []
  }

  /** Ends a segment: what the model writes from now on has a share of its own. */
  endSegment(): void {
    this.#texts.endSegment()
  }

  readLatest(): ModelText | null {
    return this.#latest
  }

  /** Returns the latest text of the model, unless a call followed it. */
  readLatestEnd(): ModelText | null {
    return this.#isFollowedByCall ? null : this.#latest
  }

  /** Returns true if the model has ended its turn with a text, and the user has typed nothing since. */
  hasAnswered(): boolean {
    return this.#isAnswer
  }

  /** Lists the plan, the shorter the more requests share its section. */
  listPlan(requests: number): readonly NoteGroup[] {
    if (this.#plan === null) return []
    const most = Math.max(SHORT_PLAN_CHARACTERS, PLAN_CHARACTERS - REQUEST_CHARACTERS * requests)
    const full = quoteBlock(truncateEnd(this.#plan, most))
    const short = quoteBlock(truncateEnd(this.#plan, SHORT_PLAN_CHARACTERS))
    return [{ title: 'The plan, as last written:', items: [{ full, short, rank: 1 }] }]
  }

  /** Writes decisions and findings, oldest first, with an equal share for each segment. */
  formatTexts({ tokens, countTokens }: FitOptions): string {
    const answer = this.#readAnswer()
    const shownAnswer = answer === null ? '' : toKeptText(answer)
    const all = this.#texts.list()
    const segments = all.map((texts) => texts.filter(({ text }) => text !== shownAnswer))
    const elsewhere = all.flat().length - segments.flat().length
    const shown = fitTexts(segments, {
      tokens: tokens - TITLE_TOKENS,
      countTokens,
      write: ({ where, isCorrected }, text) =>
        `- ${where}${isCorrected ? ', which the user corrected then' : ''}:\n${quoteBlock(text)}`,
    })
    const items = segments.flat().flatMap((placed) => shown.get(placed) ?? [])
    const missing = this.#texts.countAdded() - shown.size - elsewhere
    if (items.length + missing === 0) return ''
    const rest = missing === 0 ? [] : [`… ${missing} more ${missing === 1 ? 'is' : 'are'} in the transcript`]
    return [TEXTS_TITLE, ...rest, ...items.toReversed()].join('\n')
  }

  /** Lists the newest answer at the end of a turn. */
  listAnswers(): readonly NoteGroup[] {
    const text = this.#readAnswer()
    if (text === null) return []
    const full = quoteBlock(truncateEnd(text, ANSWER_CHARACTERS))
    const short = quoteBlock(cutMiddle(text, SHORT_ANSWER_CHARACTERS, SHORT_ANSWER_CHARACTERS / 3))
    return [{ title: "The model's latest answer:", items: [{ full, short, rank: 1 }] }]
  }

  #readAnswer(): string | null {
    return this.#latest !== null && this.#isAnswer ? this.#latest.text : this.#answer
  }

  /** Keeps the latest text, unless it is kept already. */
  #keepLatest(where: string): void {
    if (this.#latest === null || this.#isKept) return
    this.#isKept = true
    const placed = { text: toKeptText(this.#latest.text), where, isCorrected: false }
    if (placed.text === '') return
    this.#texts.add(placed)
    this.#turnTexts.push(placed)
  }
}

/** Returns a text as it is kept: without code and blank lines. */
function toKeptText(text: string): string {
  const lines = removeCodeBlocks(text).split('\n')
  const kept = lines.filter((line) => line.trim() !== '').join('\n')
  return cutSentences(kept, TEXT_CHARACTERS, (part) => part.length)
}

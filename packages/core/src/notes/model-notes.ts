/**
 * Notes from the model's own texts, chosen by where they stand and never by their words: the last text before a change of
 * a file and at the end of a turn (decisions), the first text after a failure (findings), its newest answer and its
 * latest text. Nothing is put in other words.
 */
import { isFailure } from '../log/command-status.ts'
import { readPlanText } from '../log/todo-list.ts'
import type { ToolRun } from '../log/tool-runs.ts'
import { sliceText } from '../log/well-formed-text.ts'
import { removeCodeBlocks } from '../summary/code-blocks.ts'
import { markOrdersAndClaims } from '../summary/repair-summary.ts'
import { truncateEnd } from '../summary/truncate-text.ts'
import type { UserPrompt } from '../summary/user-messages.ts'
import { formatCommand } from './command-notes.ts'
import type { NoteGroup } from './fit-notes.ts'
import {
  cleanNoteText,
  createDistinctList,
  cutMiddle,
  type NewestList,
  quoteBlock,
  quoteInline,
  toNoteLine,
} from './note-text.ts'

export interface ModelText {
  readonly text: string
  readonly place: number
}

/** A text of the model with where it stands: before which change, after which failure, at the end of which turn. */
interface PlacedText {
  readonly text: string
  readonly where: string
  /** True if the user corrected the model in the turn of the text. */
  isCorrected: boolean
}

const MOST_TEXTS = 80
const ANSWER_CHARACTERS = 6_000
const SHORT_ANSWER_CHARACTERS = 1_500
const TEXT_CHARACTERS = 320
const PLAN_CHARACTERS = 4_000
const SHORT_PLAN_CHARACTERS = 1_200
const REQUEST_CHARACTERS = 80
const COMMAND_CHARACTERS = 60

export class ModelNotes {
  readonly #decisions = createTextList()
  readonly #findings = createTextList()
  /** The decisions of the current turn. */
  #turnDecisions: PlacedText[] = []
  #answer: string | null = null
  #latest: ModelText | null = null
  #isAnswer = false
  #isFollowedByCall = false
  /** True if the latest text is among the decisions. */
  #isDecision = false
  /** The command that failed last, until the model writes something. */
  #failure: string | null = null
  #plan: string | null = null

  addText(text: string, place: number): void {
    this.#latest = { text, place }
    this.#isAnswer = true
    this.#isFollowedByCall = false
    this.#isDecision = false
    if (this.#failure !== null) this.#findings.add(toPlacedText(text, `after ${this.#failure} failed`))
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
    if (isChange) this.#addDecision(`before a change of ${toNoteLine(cleanNoteText(changed))}`)
  }

  /** Adds a call with its result, which may hold a plan or a failure. */
  addRun(run: ToolRun): void {
    const text = run.failed ? null : readPlanText(run)
    if (text !== null) this.#plan = cleanNoteText(text)
    if (run.command !== null && isFailure(run.status))
      this.#failure = formatCommand(run.command, COMMAND_CHARACTERS)
  }

  /** Ends the turn, because the user typed something: the latest text is an answer if no call followed it. */
  endTurn(request: string, time: string): void {
    if (this.#latest !== null && this.#isAnswer) {
      const about = request === '' ? '' : ` to ${quoteInline(request, REQUEST_CHARACTERS)}`
      this.#addDecision(`${time === '' ? '' : `${time}, `}answer${about}`)
      this.#answer = sliceText(this.#latest.text, 0, ANSWER_CHARACTERS)
    }
    this.#isAnswer = false
    this.#failure = null
  }

  /** Begins a turn with a message of the user. A correction is about what the model decided in the turn before it. */
  beginTurn(isCorrection: boolean): void {
    if (isCorrection) for (const one of this.#turnDecisions) one.isCorrected = true
    this.#turnDecisions = []
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

  /** Lists decisions. `messages`: those of the user, which alone support a claim of permission. */
  listDecisions(messages: readonly UserPrompt[]): readonly NoteGroup[] {
    return [toTextGroup('Decisions, in the words of the model, newest first:', this.#decisions, messages)]
  }

  listFindings(messages: readonly UserPrompt[]): readonly NoteGroup[] {
    return [toTextGroup('In the words of the model, newest first:', this.#findings, messages)]
  }

  /** Lists the newest answer at the end of a turn. */
  listAnswers(messages: readonly UserPrompt[]): readonly NoteGroup[] {
    const newest = this.#latest !== null && this.#isAnswer ? this.#latest.text : this.#answer
    if (newest === null) return []
    const text = markOrders(newest, messages)
    const full = quoteBlock(truncateEnd(text, ANSWER_CHARACTERS))
    const short = quoteBlock(cutMiddle(text, SHORT_ANSWER_CHARACTERS, SHORT_ANSWER_CHARACTERS / 3))
    return [{ title: "The model's latest answer:", items: [{ full, short, rank: 1 }] }]
  }

  #addDecision(where: string): void {
    if (this.#latest === null || this.#isDecision) return
    this.#isDecision = true
    const decision = toPlacedText(this.#latest.text, where)
    if (decision.text === '') return
    this.#decisions.add(decision)
    this.#turnDecisions.push(decision)
  }
}

function createTextList(): NewestList<PlacedText> {
  return createDistinctList<PlacedText>(MOST_TEXTS, ({ text }) => text)
}

function toPlacedText(text: string, where: string): PlacedText {
  return { text: toNoteLine(removeCodeBlocks(text), TEXT_CHARACTERS), where, isCorrected: false }
}

function toTextGroup(
  title: string,
  texts: NewestList<PlacedText>,
  messages: readonly UserPrompt[],
): NoteGroup {
  const items = texts.list().map(({ text, where, isCorrected }) => {
    const note = isCorrected ? ', which the user corrected then' : ''
    return { full: `- ${where}${note}: ${markOrders(text, messages)}`, rank: 3 }
  })
  return { title, items, dropped: texts.countDropped() }
}

/** Marks orders and claims of permissions in a text; its questions stay as they are. */
function markOrders(text: string, messages: readonly UserPrompt[]): string {
  const questions = text.split('\n').flatMap((line) => (/\?\W*$/.test(line) ? [line.trim()] : []))
  return markOrdersAndClaims(text, { lines: new Set(questions), messages }).text
}

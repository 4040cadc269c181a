/**
 * Notes from the model's own texts: sentences that state a decision or a finding, its answers at the end of a turn, and
 * its latest text. Nothing is put in other words.
 */
import { readPlanText } from '../log/todo-list.ts'
import type { ToolRun } from '../log/tool-runs.ts'
import { sliceText } from '../log/well-formed-text.ts'
import { removeCodeBlocks } from '../summary/code-blocks.ts'
import { markOrdersAndClaims } from '../summary/repair-summary.ts'
import { truncateEnd } from '../summary/truncate-text.ts'
import type { UserPrompt } from '../summary/user-messages.ts'
import type { NoteGroup } from './fit-notes.ts'
import {
  cleanNoteText,
  createNewestList,
  createNewestTexts,
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

const MOST_SENTENCES = 80
const MOST_ANSWERS = 12
const ANSWER_CHARACTERS = 6_000
const SHORT_ANSWER_CHARACTERS = 1_500
const OLD_ANSWER_CHARACTERS = 280
const PLAN_CHARACTERS = 4_000
const SHORT_PLAN_CHARACTERS = 1_200
const LEAST_SENTENCE = 40
const MOST_SENTENCE = 320
const REQUEST_CHARACTERS = 80

const DECISION =
  /\b(?:decided|decision(?: is| was|:)|(?:I|we)['’]ll (?:use|go with|store|split|avoid|leave)|going with|chose|opted|trade-?off|by design|deliberately|on purpose|(?:us(?:e|es|ing)|keep|keeps|kept|put|store[sd]?|made) [^.]{3,120} (?:instead of|rather than))\b/i
const FINDING =
  /\b(?:root cause|turns out|the (?:real |actual |main )?(?:issue|problem|bug|reason|cause|culprit) (?:is|was|here)|found (?:that|it|the)|because|caused by|pre-?existing|flaky|only works|does not work|doesn['’]t work|needs? to be|must (?:be|not)|requires?|note that|important|caveat|limitation)\b/i
/** Matches sentences that tell what the model does next, which is no decision about the work. */
const ANNOUNCEMENT =
  /^(?:now|next|let me|let['’]s|first|then|ok(?:ay)?|great|good|perfect|I['’]ll now|I['’]m going to|I will)\b/i

export class ModelNotes {
  readonly #decisions = createNewestTexts(MOST_SENTENCES)
  readonly #findings = createNewestTexts(MOST_SENTENCES)
  readonly #answers = createNewestList<{ readonly text: string; readonly about: string }>(MOST_ANSWERS)
  #latest: ModelText | null = null
  #isAnswer = false
  #isFollowedByCall = false
  #plan: string | null = null

  addText(text: string, place: number): void {
    this.#latest = { text, place }
    this.#isAnswer = true
    this.#isFollowedByCall = false
    for (const sentence of splitSentences(text)) {
      if (DECISION.test(sentence)) this.#decisions.add(sentence)
      else if (FINDING.test(sentence)) this.#findings.add(sentence)
    }
  }

  /** Adds a call that begins, or the news that one follows in the same response. The text before it is then no answer. */
  addCall(): void {
    this.#isAnswer = false
    this.#isFollowedByCall = true
  }

  /** Adds a call with its result, which may hold a plan. */
  addRun(run: ToolRun): void {
    const text = run.failed ? null : readPlanText(run)
    if (text !== null) this.#plan = cleanNoteText(text)
  }

  /** Ends the turn, because the user typed something: the latest text is an answer if no call followed it. */
  endTurn(request: string, time: string): void {
    if (this.#latest === null || !this.#isAnswer) return
    const about = request === '' ? '' : ` to ${quoteInline(request, REQUEST_CHARACTERS)}`
    const text = sliceText(this.#latest.text, 0, ANSWER_CHARACTERS)
    this.#answers.add({ text, about: `${time === '' ? '' : `${time}, `}answer${about}` })
    this.#isAnswer = false
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

  listDecisions(): readonly NoteGroup[] {
    return [toSentenceGroup('Decisions, in the words of the model, newest first:', this.#decisions)]
  }

  listFindings(): readonly NoteGroup[] {
    return [toSentenceGroup('In the words of the model, newest first:', this.#findings)]
  }

  /** Lists the answers at the end of turns. `messages`: those of the user, which alone support a claim of permission. */
  listAnswers(messages: readonly UserPrompt[]): readonly NoteGroup[] {
    const current = this.#latest !== null && this.#isAnswer ? [{ text: this.#latest.text, about: '' }] : []
    const [newest, ...older] = [...current, ...this.#answers.list()]
    if (newest === undefined) return []
    const text = markOrders(newest.text, messages)
    const full = quoteBlock(truncateEnd(text, ANSWER_CHARACTERS))
    const short = quoteBlock(cutMiddle(text, SHORT_ANSWER_CHARACTERS, SHORT_ANSWER_CHARACTERS / 3))
    const others = older.map((one) => ({
      full: `- ${one.about}: ${toNoteLine(markOrders(one.text, messages), OLD_ANSWER_CHARACTERS)}`,
      rank: 2,
    }))
    return [
      { title: "The model's latest answer:", items: [{ full, short, rank: 1 }] },
      { title: 'Earlier answers, newest first:', items: others, dropped: this.#answers.countDropped() },
    ]
  }
}

function toSentenceGroup(title: string, sentences: NewestList<string>): NoteGroup {
  const items = sentences.list().map((sentence) => ({ full: `- ${sentence}`, rank: 3 }))
  return { title, items, dropped: sentences.countDropped() }
}

/**
 * Splits a text into its sentences, without code, tables and what only announces the next step. A sentence that gives an
 * order or claims a permission is left out: in the notes it could be taken for the user's.
 */
function splitSentences(text: string): readonly string[] {
  if (!DECISION.test(text) && !FINDING.test(text)) return []
  return removeCodeBlocks(text)
    .split(/(?<=[.!?])\s+(?=[A-Z`"*])|\n+/)
    .map((part) => part.replace(/^(?:[-*+#>]|\d+[.)])+\s+/, '').trim())
    .filter((part) => part.length >= LEAST_SENTENCE && part.length <= MOST_SENTENCE && !/^[|[]/.test(part))
    .filter((part) => !ANNOUNCEMENT.test(part) && !/[?:]\W*$/.test(part))
    .filter((part) => markOrdersAndClaims(part, { messages: [] }).marked.length === 0)
}

/** Marks orders and claims of permissions in a text; its questions stay as they are. */
function markOrders(text: string, messages: readonly UserPrompt[]): string {
  const questions = text.split('\n').flatMap((line) => (/\?\W*$/.test(line) ? [line.trim()] : []))
  return markOrdersAndClaims(text, { lines: new Set(questions), messages }).text
}

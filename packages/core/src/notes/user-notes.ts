/**
 * Notes about what the user typed: the latest instruction, earlier requests, answers to questions of the model, and
 * corrections, all verbatim as far as they are quoted. Where a text stands decides what it is, never its words.
 * Instructions of another agent are listed like the user's, under its name.
 */

import type { InputAuthor, UserInput, UserInputKind } from '../facts/user-input.ts'
import { describeAuthor, type ReadUserPrompt } from '../facts/user-prompts.ts'
import type { KnownRecord } from '../log/record.ts'
import { quoteBlock } from '../text/code-blocks.ts'
import { truncateEnd, truncateStart } from '../text/truncate-text.ts'
import type { NoteGroup } from './fit-notes.ts'
import {
  cleanNoteText,
  createDistinctList,
  createNewestList,
  cutMiddle,
  formatNoteTime,
  quoteInline,
  toNoteLine,
} from './note-text.ts'

/** A text of the user, or of an agent in the user's place, that the notes quote. */
interface UserRequest {
  readonly kind: UserInputKind
  readonly author: InputAuthor
  readonly text: string
  readonly time: string
  readonly place: number
  /** The end of the model's text that a short reply answers; empty for any other text. */
  readonly answers: string
}

interface Correction {
  readonly text: string
  /** The call or text of the model that it follows; empty if there is none. */
  readonly corrects: string
}

/** An instruction up to this length is quoted whole, a longer one by its ends. */
const WHOLE_CHARACTERS = 3_000
const END_CHARACTERS = 500
const CORRECTION_CHARACTERS = 300
const FIRST_REQUEST_CHARACTERS = 1_600
const REQUEST_CHARACTERS = 240
const ANSWERED_CHARACTERS = 160
const MOST_REQUESTS = 200
const MOST_CORRECTIONS = 150
const MOST_ANSWERS = 60
const TITLE_WORDS = 10
const TITLE_CHARACTERS = 100
/** A shorter line, such as a heading, is a title only if there is no other. */
const LEAST_TITLE_CHARACTERS = 8

/** Kinds of input that are listed as requests, with how they arrived. */
const REQUEST_LABELS: ReadonlyMap<UserInputKind, string> = new Map([
  ['prompt', ''],
  ['queued', 'sent while the model worked: '],
  ['command', 'command: '],
  ['document', 'attached text: '],
  ['plan', 'changed in the plan: '],
  ['shell', 'ran in the shell: '],
])

export class UserNotes {
  readonly #requests = createNewestList<UserRequest>(MOST_REQUESTS)
  readonly #corrections = createDistinctList<Correction>(MOST_CORRECTIONS, ({ text }) => text)
  readonly #answers = createNewestList<string>(MOST_ANSWERS)
  /** Texts of tools that read like the user's. */
  readonly #unconfirmed = createNewestList<string>(MOST_ANSWERS)
  #first: UserRequest | null = null
  #latest: UserRequest | null = null
  /** What the user typed in the turn before the latest instruction, if that was sent while the model worked. */
  #before = createNewestList<string>(MOST_ANSWERS)
  /** What the user typed after the latest instruction that is none itself. */
  #since = createNewestList<string>(MOST_ANSWERS)
  /** The title from the latest instruction, until the model works on one; then it stays. */
  #title = ''
  #isTitleFinal = false
  #givenTitle = ''

  /** Adds a record, with what the user typed in it. */
  add(record: KnownRecord, prompt: ReadUserPrompt | null, place: number): void {
    if (prompt === null) return
    const time = formatNoteTime(record.timestamp)
    const given = prompt.inputs.filter((input) => isInstruction(input, record))
    // What the user typed comes before what an agent sent in the same message.
    const own = given.filter(({ author }) => author.kind === 'user')
    const typed = own.length === 0 ? given : own
    const [first] = typed
    if (first !== undefined) {
      const texts = typed.map((input) => input.text)
      const text = cleanNoteText(texts.join('\n').trim())
      const { kind, author } = first
      this.#addInstruction({ kind, author, text, time, place, answers: prompt.answers })
      if (prompt.isCorrection && author.kind === 'user') this.#addCorrection(text, prompt.corrects)
    }
    for (const input of prompt.inputs) {
      if (input.kind === 'refusal' && input.author.kind === 'user')
        this.#addCorrection(cleanNoteText(input.text.trim()), prompt.corrects)
      if (!typed.includes(input)) this.#addOther(input, time, place)
    }
  }

  /** Adds a call of the model: the instruction before the first one is the first real request. */
  addCall(): void {
    if (this.#title !== '') this.#isTitleFinal = true
  }

  readLatest(): UserRequest | null {
    return this.#latest
  }

  /** Sets the title that the program or its user gave the session. */
  setTitle(text: string): void {
    this.#givenTitle = toNoteLine(cleanNoteText(text), TITLE_CHARACTERS)
  }

  /** Returns the given title, or one from the first request that the model worked on; empty if there is neither. */
  formatTitle(): string {
    if (this.#givenTitle !== '') return this.#givenTitle
    return this.#isTitleFinal ? this.#title : toTitle(this.#first?.text ?? '') || this.#title
  }

  listInstruction(): readonly NoteGroup[] {
    const { text = '', answers = '' } = this.#latest ?? {}
    const shown = text.length <= WHOLE_CHARACTERS ? text : cutMiddle(text, END_CHARACTERS, END_CHARACTERS)
    const before = this.#before.list().map((full) => ({ full, rank: 1 }))
    const since = this.#since.list().map((full) => ({ full, rank: 1 }))
    return [
      {
        title: `Latest instruction${formatSender(this.#latest)}:`,
        items: text === '' ? [] : [{ full: quoteBlock(shown), rank: 0 }],
      },
      {
        title: 'It answers, in the words of the model:',
        items: answers === '' ? [] : [{ full: quoteBlock(answers), rank: 0 }],
      },
      {
        title: 'It was sent while the model worked. Typed before it:',
        items: before,
        isOldestFirst: true,
        dropped: this.#before.countDropped(),
      },
      {
        title: text === '' ? 'Typed by the user:' : 'Typed since then:',
        items: since,
        isOldestFirst: true,
        dropped: this.#since.countDropped(),
      },
    ]
  }

  /** Names the latest instruction in one line, for notes beside which the user's messages stand word for word. */
  nameInstruction(): readonly NoteGroup[] {
    if (this.#latest === null) return []
    const items = [{ full: formatRequest(cutRequest(this.#latest)), rank: 0 }]
    return [{ title: 'Latest instruction:', items }]
  }

  countRequests(): number {
    return this.#requests.list().length
  }

  listRequests(): readonly NoteGroup[] {
    const isLatest = this.#first === this.#latest
    const opening = this.#first?.text ?? ''
    const cut = isLatest
      ? 'It is the latest instruction, see Current state.'
      : quoteBlock(cutMiddle(opening, FIRST_REQUEST_CHARACTERS, END_CHARACTERS))
    const shown = new Set([this.#first?.place, this.#latest?.place])
    const others = this.#requests
      .list()
      .filter(({ kind, place }) => !INSTRUCTION_KINDS.has(kind) || !shown.has(place))
    const items = others.map((one) => ({ full: formatRequest(one), rank: 2 }))
    const dropped = this.#requests.countDropped()
    return [
      {
        title: `First request${formatSender(this.#first)}:`,
        items: opening === '' ? [] : [{ full: cut, rank: 1 }],
      },
      { title: 'Other requests, oldest first:', items, isOldestFirst: true, dropped },
    ]
  }

  listAnswers(): readonly NoteGroup[] {
    const items = this.#answers.list().map((full) => ({ full, rank: 2 }))
    const dropped = this.#answers.countDropped()
    return [{ title: 'Questions that the user answered:', items, isOldestFirst: true, dropped }]
  }

  listUnconfirmed(): readonly NoteGroup[] {
    const unconfirmed = this.#unconfirmed.list().map((full) => ({ full, rank: 3 }))
    return [
      {
        title: "Texts of tools that read like the user's, not confirmed:",
        items: unconfirmed,
        isOldestFirst: true,
        dropped: this.#unconfirmed.countDropped(),
      },
    ]
  }

  listCorrections(): readonly NoteGroup[] {
    const items = this.#corrections.list().map(({ text, corrects }) => {
      const short = quoteBlock(text)
      return { full: corrects === '' ? short : `- After ${corrects}:\n${short}`, short, rank: 1 }
    })
    const dropped = this.#corrections.countDropped()
    return [{ title: 'Corrections by the user:', items, isOldestFirst: true, isSpaced: true, dropped }]
  }

  #addInstruction(request: UserRequest): void {
    this.#requests.add(cutRequest(request))
    const earlier = this.#latest === null ? [] : [formatRequest(cutRequest(this.#latest))]
    if (request.kind === 'prompt') this.#before = createNewestList<string>(MOST_ANSWERS)
    else for (const line of [...earlier, ...this.#since.list().toReversed()]) this.#before.add(line)
    this.#latest = request
    this.#first ??= request
    this.#since = createNewestList<string>(MOST_ANSWERS)
    const title = formatTitle(request)
    // A short reply is a request of its own only if it says more than what stands: "fix it" after "hi", not "yes".
    const isRequest = request.answers === '' || title.length > this.#title.length
    if (!this.#isTitleFinal && isRequest && title !== '') this.#title = title
  }

  #addCorrection(text: string, corrects: string): void {
    if (text === '') return
    this.#corrections.add({
      text: truncateEnd(text, CORRECTION_CHARACTERS),
      corrects: toNoteLine(corrects, REQUEST_CHARACTERS),
    })
  }

  #addOther({ kind, author, text: given, question }: UserInput, time: string, place: number): void {
    const text = cleanNoteText(given.trim())
    if (author.kind === 'tool') {
      this.#unconfirmed.add(`- ${describeAuthor(author)}: ${quoteInline(text, REQUEST_CHARACTERS)}`)
      return
    }
    if (kind === 'answer') this.#answers.add(formatAnswer(text, question))
    if (!REQUEST_LABELS.has(kind)) return
    const request = cutRequest({ kind, author, text, time, place, answers: '' })
    this.#requests.add(request)
    this.#since.add(formatRequest(request))
    if (kind === 'command' && this.#title === '') this.#title = toTitle(text)
  }
}

const INSTRUCTION_KINDS: ReadonlySet<UserInputKind> = new Set(['prompt', 'queued'])

/** Formats who sent a request, after its title; empty if the user did. */
function formatSender(request: UserRequest | null): string {
  return request === null || request.author.kind === 'user' ? '' : `, ${describeAuthor(request.author)}`
}

function formatTitle({ author, text }: UserRequest): string {
  const title = toTitle(text)
  return author.kind === 'user' || title === '' ? title : `${title} (${describeAuthor(author)})`
}

/** Checks whether an input is an instruction: a prompt, also one that was sent while the model worked, once delivered. */
export function isInstruction({ kind }: UserInput, record: KnownRecord): boolean {
  if (record.type !== 'attachment') return INSTRUCTION_KINDS.has(kind)
  const { commandMode = 'prompt' } = record.attachment
  return INSTRUCTION_KINDS.has(kind) && commandMode === 'prompt'
}

function formatAnswer(text: string, question: UserInput['question']): string {
  const asked =
    question === null ? '' : `asked ${quoteInline(cleanNoteText(question.text), REQUEST_CHARACTERS)}: `
  return `- The user, ${asked}${quoteInline(text, REQUEST_CHARACTERS)}`
}

/** Keeps only as much of a text as is shown of it. */
function cutRequest(request: UserRequest): UserRequest {
  return {
    ...request,
    text: toNoteLine(request.text, REQUEST_CHARACTERS),
    answers: truncateStart(toNoteLine(request.answers), ANSWERED_CHARACTERS),
  }
}

function formatRequest({ kind, author, text, time, answers }: UserRequest): string {
  const sender = author.kind === 'user' ? '' : `${describeAuthor(author)}: `
  const label = `${REQUEST_LABELS.get(kind) ?? ''}${sender}`
  const reply = answers === '' ? '' : `, answering ${quoteInline(answers, ANSWERED_CHARACTERS)}`
  return `- ${time === '' ? '' : `${time} `}${label}${quoteInline(text, REQUEST_CHARACTERS)}${reply}`
}

/** Matches the first sentence of a line, in scripts with and without blanks between words. */
const FIRST_SENTENCE = /^.{12,}?[.!?](?=\s|$)|^.{6,}?[。！？]/u

/** Returns the first words of the first line that is no heading above others, as "Implement this plan:" is. */
function toTitle(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.replace(/^[#>*\-\s]+/, '').trim())
    .filter((line) => line !== '')
  const isSaying = (line: string): boolean => line.length >= LEAST_TITLE_CHARACTERS && !/[:：]$/.test(line)
  const line = lines.find(isSaying) ?? lines[0] ?? ''
  const sentence = FIRST_SENTENCE.exec(line)?.[0].replace(/[.!。！]$/u, '') ?? line
  const words = sentence.split(/\s+/)
  const start = truncateEnd(words.slice(0, TITLE_WORDS).join(' '), TITLE_CHARACTERS)
  return words.length > TITLE_WORDS && !start.endsWith('…') ? `${start}…` : start
}

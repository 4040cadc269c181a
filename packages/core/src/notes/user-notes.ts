/**
 * Notes about what the user typed: the latest instruction, earlier requests, answers to questions of the model, and
 * corrections, all verbatim as far as they are quoted.
 */
import type { KnownRecord } from '../log/record.ts'
import type { UserInput, UserInputKind } from '../log/user-input.ts'
import { truncateEnd } from '../summary/truncate-text.ts'
import { isInterruption, type ReadUserPrompt } from '../summary/user-messages.ts'
import type { NoteGroup } from './fit-notes.ts'
import {
  cleanNoteText,
  createNewestList,
  createNewestTexts,
  cutMiddle,
  formatNoteTime,
  type NewestList,
  quoteBlock,
  quoteInline,
  toNoteLine,
} from './note-text.ts'

/** A text of the user that the notes quote. */
export interface UserRequest {
  readonly kind: UserInputKind
  readonly text: string
  readonly time: string
  readonly place: number
}

/** An instruction up to this length is quoted whole, a longer one by its ends. */
const WHOLE_CHARACTERS = 3_000
const END_CHARACTERS = 500
const CORRECTION_CHARACTERS = 300
const FIRST_REQUEST_CHARACTERS = 1_600
const REQUEST_CHARACTERS = 240
const MOST_REQUESTS = 200
const MOST_CORRECTIONS = 150
const MOST_ANSWERS = 60
const TITLE_WORDS = 10
const LEAST_TITLE_WORDS = 3
const TITLE_CHARACTERS = 100

const CORRECTING_START =
  /^\W*(?:no|nope|don['’]?t|do not|stop|wait|wrong|not|actually|instead|undo|revert|never|rather)(?![\p{L}\p{N}_])/iu
/** Words before a request that say nothing about it. */
const REQUEST_OPENING =
  /^(?:(?:hi|hello|hey|ok(?:ay)?|yes|yeah|yep|sure|so|now|please|can you|could you|would you|I(?:['’]d| would) like (?:you )?to|I want (?:you )?to|I need you to|let['’]s)[\s,:]+)+(?=\S)/i
/** A prompt that only goes on with something, or replies to it, says nothing about what it is. */
const CONTINUATION = /^(?:pick up|continue|go on|go ahead|resume|proceed|keep going|carry on)\b|^re:/i
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
  readonly #corrections = createNewestTexts(MOST_CORRECTIONS)
  /** Prompts after an interruption. They may correct the model, or ask for something else. */
  readonly #afterInterruptions = createNewestTexts(MOST_CORRECTIONS)
  readonly #answers = createNewestList<string>(MOST_ANSWERS)
  #first: UserRequest | null = null
  #latest: UserRequest | null = null
  /** What the user typed in the turn before the latest instruction, if that was sent while the model worked. */
  #before = createNewestList<string>(MOST_ANSWERS)
  /** What the user typed after the latest instruction that is none itself. */
  #since = createNewestList<string>(MOST_ANSWERS)
  #title = ''
  #givenTitle = ''
  #isInterrupted = false

  /** Adds a record, with what the user typed in it. */
  add(record: KnownRecord, prompt: ReadUserPrompt | null, place: number): void {
    if (isInterruption(record)) this.#isInterrupted = true
    if (prompt === null) return
    const time = formatNoteTime(record.timestamp)
    const typed = prompt.inputs.filter((input) => isInstruction(input, record))
    const [first] = typed
    if (first !== undefined) {
      const text = cleanNoteText(
        typed
          .map((input) => input.text)
          .join('\n')
          .trim(),
      )
      this.#addInstruction({ kind: first.kind, text, time, place })
    }
    for (const input of prompt.inputs) if (!typed.includes(input)) this.#addOther(input, time, place)
  }

  readLatest(): UserRequest | null {
    return this.#latest
  }

  /** Sets the title that the program or its user gave the session. One that says nothing is not used. */
  setTitle(text: string): void {
    const title = toNoteLine(cleanNoteText(text), TITLE_CHARACTERS)
    this.#givenTitle = CONTINUATION.test(title) ? '' : title
  }

  /** Returns the given title, or one from the first request that has enough words; empty if there is neither. */
  formatTitle(): string {
    return this.#givenTitle || this.#title
  }

  listInstruction(): readonly NoteGroup[] {
    const text = this.#latest?.text ?? ''
    const shown = text.length <= WHOLE_CHARACTERS ? text : cutMiddle(text, END_CHARACTERS, END_CHARACTERS)
    const before = this.#before.list().map((full) => ({ full, rank: 1 }))
    const since = this.#since.list().map((full) => ({ full, rank: 1 }))
    return [
      { title: 'Latest instruction:', items: text === '' ? [] : [{ full: quoteBlock(shown), rank: 0 }] },
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
      { title: 'First request:', items: opening === '' ? [] : [{ full: cut, rank: 1 }] },
      { title: 'Other requests, oldest first:', items, isOldestFirst: true, dropped },
    ]
  }

  listAnswers(): readonly NoteGroup[] {
    const items = this.#answers.list().map((full) => ({ full, rank: 2 }))
    const dropped = this.#answers.countDropped()
    return [{ title: 'Questions that the user answered:', items, isOldestFirst: true, dropped }]
  }

  listCorrections(): readonly NoteGroup[] {
    const toGroup = (title: string, texts: NewestList<string>): NoteGroup => {
      const items = texts.list().map((text) => ({ full: quoteBlock(text), rank: 1 }))
      return { title, items, isOldestFirst: true, isSpaced: true, dropped: texts.countDropped() }
    }
    return [
      toGroup('Corrections by the user:', this.#corrections),
      toGroup('Typed first after an interruption:', this.#afterInterruptions),
    ]
  }

  #addInstruction(request: UserRequest): void {
    const { kind, text } = request
    this.#requests.add(cutRequest(request))
    const earlier = this.#latest === null ? [] : [formatRequest(cutRequest(this.#latest))]
    if (kind === 'prompt') this.#before = createNewestList<string>(MOST_ANSWERS)
    else for (const line of [...earlier, ...this.#since.list().toReversed()]) this.#before.add(line)
    this.#latest = request
    this.#first ??= request
    this.#since = createNewestList<string>(MOST_ANSWERS)
    if (isWeakTitle(this.#title)) this.#title = toTitle(text) || this.#title
    const quoted = truncateEnd(text, CORRECTION_CHARACTERS)
    if (CORRECTING_START.test(text)) this.#corrections.add(quoted)
    else if (this.#isInterrupted) this.#afterInterruptions.add(quoted)
    this.#isInterrupted = false
  }

  #addOther({ kind, text: given, question }: UserInput, time: string, place: number): void {
    const text = cleanNoteText(given.trim())
    if (kind === 'refusal') this.#corrections.add(truncateEnd(text, CORRECTION_CHARACTERS))
    if (kind === 'answer') this.#answers.add(formatAnswer(text, question))
    if (!REQUEST_LABELS.has(kind)) return
    const request = cutRequest({ kind, text, time, place })
    this.#requests.add(request)
    this.#since.add(formatRequest(request))
    if (kind === 'command' && this.#title === '') this.#title = toTitle(text)
  }
}

const INSTRUCTION_KINDS: ReadonlySet<UserInputKind> = new Set(['prompt', 'queued'])

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
  return { ...request, text: toNoteLine(request.text, REQUEST_CHARACTERS) }
}

function formatRequest({ kind, text, time }: UserRequest): string {
  const label = REQUEST_LABELS.get(kind) ?? ''
  return `- ${time === '' ? '' : `${time} `}${label}${quoteInline(text, REQUEST_CHARACTERS)}`
}

/** Returns the first words of the first line that says something: not "Implement the following plan:". */
function toTitle(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.replace(/^[#>*\-\s]+/, '').trim())
    .filter((line) => line !== '')
  const line =
    lines.find((given) => !given.endsWith(':') && countWords(given) >= LEAST_TITLE_WORDS) ?? lines[0] ?? ''
  const request = line.replace(REQUEST_OPENING, '')
  const sentence = /^.{12,}?[.!?](?=\s|$)/.exec(request)?.[0].replace(/[.!]$/, '') ?? request
  const words = sentence.split(/\s+/)
  const start = truncateEnd(words.slice(0, TITLE_WORDS).join(' '), TITLE_CHARACTERS)
  return words.length > TITLE_WORDS && !start.endsWith('…') ? `${start}…` : start
}

function isWeakTitle(title: string): boolean {
  return countWords(title) < LEAST_TITLE_WORDS || CONTINUATION.test(title)
}

function countWords(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length
}

/**
 * What the notes say of the user: the latest instruction, earlier requests, answers to questions of the model, and
 * corrections, all verbatim as far as they are quoted. Where a text stands decides what it is, never its words.
 * Instructions of another agent are listed like the user's, under its name.
 */
import type { SessionFacts } from '../facts/session-facts.ts'
import type { InputAuthor, UserInput, UserInputKind } from '../facts/user-input.ts'
import { describeForeignAuthor, type UserPrompt } from '../facts/user-prompts.ts'
import { toBlockQuote } from '../text/code-in-text.ts'
import { quoteInline, toOneLine, truncateEnd, truncateMiddle, truncateStart } from '../text/truncate-text.ts'
import { type NoteGroup, toNoteGroup } from './notes-file.ts'

/** A text of the user, or of an agent in the user's place, that the notes quote. */
interface UserRequest {
  readonly kind: UserInputKind
  readonly author: InputAuthor
  readonly text: string
  readonly message: UserPrompt
  readonly isInstruction: boolean
}

/** An instruction up to this length is quoted whole; a longer one only by its beginning and end. */
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
/** Shorter lines, such as headings, become the title only if there is no other line. */
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

/** The user's part of the notes, by where it stands. */
interface UserSections {
  readonly title: string
  readonly instruction: readonly NoteGroup[]
  /** The latest instruction in one line, for notes beside which the user's messages stand word for word. */
  readonly instructionName: readonly NoteGroup[]
  readonly requests: readonly NoteGroup[]
  readonly countRequests: number
  readonly answers: readonly NoteGroup[]
  /** Texts of tools that read like the user's. */
  readonly unconfirmed: readonly NoteGroup[]
  readonly corrections: readonly NoteGroup[]
}

/** Creates what the notes say of the user, for the section where each part belongs. Nothing is cut to a budget yet. */
export function createUserSections({ messages }: SessionFacts): UserSections {
  const requests = messages.flatMap((message) => listRequests(message))
  const inputs = messages.flatMap(({ inputs: own }) => own)
  return {
    title: findTitle(requests),
    instruction: listInstruction(requests),
    instructionName: requests
      .filter(({ isInstruction }) => isInstruction)
      .slice(-1)
      .map((latest) => toNoteGroup('Latest instruction:', [formatRequest(latest)], 0)),
    requests: listEarlierRequests(requests),
    countRequests: Math.min(requests.length, MOST_REQUESTS),
    answers: listNewest(
      'Questions that the user answered:',
      inputs.filter(({ kind, author }) => kind === 'answer' && author.kind !== 'tool'),
      (input) => ({ full: formatAnswer(input), rank: 2 }),
      MOST_ANSWERS,
    ),
    unconfirmed: listNewest(
      "Texts of tools that read like the user's, not confirmed:",
      inputs.filter(({ author }) => author.kind === 'tool'),
      ({ author, text }) => ({
        full: `- ${describeForeignAuthor(author)}: ${quoteInline(text, REQUEST_CHARACTERS)}`,
        rank: 3,
      }),
      MOST_ANSWERS,
    ),
    corrections: listCorrections(messages),
  }
}

/** Lists the newest of some facts, oldest first. */
function listNewest<Fact>(
  title: string,
  facts: readonly Fact[],
  format: (fact: Fact) => NoteGroup['items'][number],
  most: number,
): readonly NoteGroup[] {
  const items = facts.slice(-most).reverse().map(format)
  return [{ title, items, isOldestFirst: true, dropped: facts.length - items.length }]
}

/** Lists what one message asks for: one instruction for each author, joined from all their texts, and other input. */
function listRequests(message: UserPrompt): readonly UserRequest[] {
  const { inputs, instructions } = message
  // What the user typed comes before what an agent sent in the same message.
  const own = instructions.filter(({ author }) => author.kind === 'user')
  const typed = own.length === 0 ? instructions : own
  const listFrom = (name: string) => typed.filter(({ author }) => author.name === name)
  const firsts = typed.filter((input) => listFrom(input.author.name)[0] === input)
  const others = inputs.filter(
    (input) => !typed.includes(input) && input.author.kind !== 'tool' && REQUEST_LABELS.has(input.kind),
  )
  const toRequest = ({ kind, author }: UserInput, given: string, isInstruction: boolean): UserRequest => ({
    kind,
    author,
    text: given.trim(),
    message,
    isInstruction,
  })
  return [
    ...firsts.map((first) => {
      const texts = listFrom(first.author.name).map(({ text }) => text)
      return toRequest(first, texts.join('\n'), true)
    }),
    ...others.map((input) => toRequest(input, input.text, false)),
  ]
}

/** Lists the latest instruction in full, what it answers, and what was typed around it. */
function listInstruction(requests: readonly UserRequest[]): readonly NoteGroup[] {
  const at = requests.findLastIndex(({ isInstruction }) => isInstruction)
  const latest = requests[at]
  const since = requests.slice(at + 1)
  // The latest instruction may have been sent while the model worked: its turn began with this prompt.
  const begin = requests.findLastIndex(
    ({ isInstruction, kind }, index) => isInstruction && kind === 'prompt' && index <= at,
  )
  const before = requests.slice(Math.max(0, begin), Math.max(0, at))
  const { text = '', message: { answers = '' } = {} } = latest ?? {}
  const shown = text.length <= WHOLE_CHARACTERS ? text : truncateMiddle(text, END_CHARACTERS, END_CHARACTERS)
  const format = (one: UserRequest) => ({ full: formatRequest(one), rank: 1 })
  return [
    toNoteGroup(`Latest instruction${formatSender(latest)}:`, text === '' ? [] : [toBlockQuote(shown)], 0),
    toNoteGroup('It answers, in the words of the model:', answers === '' ? [] : [toBlockQuote(answers)], 0),
    ...listNewest('It was sent while the model worked. Typed before it:', before, format, MOST_ANSWERS),
    ...listNewest(text === '' ? 'Typed by the user:' : 'Typed since then:', since, format, MOST_ANSWERS),
  ]
}

/** Lists the first request at length, and the others but the latest in one line each. */
function listEarlierRequests(requests: readonly UserRequest[]): readonly NoteGroup[] {
  const instructions = requests.filter(({ isInstruction }) => isInstruction)
  const [first] = instructions
  const latest = instructions.at(-1)
  const cut =
    first === latest
      ? 'It is the latest instruction, see Current state.'
      : toBlockQuote(truncateMiddle(first?.text ?? '', FIRST_REQUEST_CHARACTERS, END_CHARACTERS))
  const others = requests.filter((one) => one !== first && one !== latest)
  return [
    toNoteGroup(`First request${formatSender(first)}:`, (first?.text ?? '') === '' ? [] : [cut]),
    ...listNewest(
      'Other requests, oldest first:',
      others,
      (one) => ({ full: formatRequest(one), rank: 2 }),
      MOST_REQUESTS,
    ),
  ]
}

/** Lists what the user typed while refusing a call, or as the first instruction after stopping the model, each text once. */
function listCorrections(messages: readonly UserPrompt[]): readonly NoteGroup[] {
  const found = new Map<string, string>()
  for (const { inputs, instructions, isCorrection, corrects } of messages) {
    const own = instructions.filter(({ author }) => author.kind === 'user')
    const refusals = inputs.filter(({ kind, author }) => kind === 'refusal' && author.kind === 'user')
    const texts = [
      ...(isCorrection ? [own.map(({ text }) => text).join('\n')] : []),
      ...refusals.map(({ text }) => text),
    ]
    for (const text of texts.map((given) => given.trim()).filter((given) => given !== '')) {
      found.delete(text)
      found.set(text, corrects)
    }
  }
  const [group] = listNewest(
    'Corrections by the user:',
    [...found],
    ([text, corrects]) => {
      const short = toBlockQuote(truncateEnd(text, CORRECTION_CHARACTERS))
      const full = corrects === '' ? short : `- After ${toOneLine(corrects, REQUEST_CHARACTERS)}:\n${short}`
      return { full, short, rank: 1 }
    },
    MOST_CORRECTIONS,
  )
  return group === undefined ? [] : [{ ...group, isSpaced: true }]
}

/** Formats who sent a request, after its title; empty if the user did. */
function formatSender(request: UserRequest | undefined): string {
  return request === undefined || request.author.kind === 'user'
    ? ''
    : `, ${describeForeignAuthor(request.author)}`
}

function formatAnswer({ text, question }: UserInput): string {
  const asked = question === null ? '' : `asked ${quoteInline(question.text, REQUEST_CHARACTERS)}: `
  return `- The user, ${asked}${quoteInline(text, REQUEST_CHARACTERS)}`
}

function formatRequest({ kind, author, text, message, isInstruction }: UserRequest): string {
  const sender = author.kind === 'user' ? '' : `${describeForeignAuthor(author)}: `
  const label = `${REQUEST_LABELS.get(kind) ?? ''}${sender}`
  const answers = isInstruction ? truncateStart(toOneLine(message.answers), ANSWERED_CHARACTERS) : ''
  const reply = answers === '' ? '' : `, answering "${answers}"`
  return `- ${message.time === '' ? '' : `${message.time} `}${label}${quoteInline(text, REQUEST_CHARACTERS)}${reply}`
}

/**
 * Returns a title from the first request that the model worked on, or else from the first request. A short reply
 * replaces the title of the request before it only if it is longer: "fix it" after "hi", but not "yes".
 */
function findTitle(requests: readonly UserRequest[]): string {
  let title = ''
  for (const request of requests) {
    const own = formatTitle(request)
    const isShortReply = request.message.answers !== '' && own.length <= title.length
    if (own !== '' && (request.isInstruction ? !isShortReply : request.kind === 'command' && title === ''))
      title = own
    if (request.message.hasCalls && title !== '') return title
  }
  const first = requests.find(({ isInstruction }) => isInstruction)
  return (first === undefined ? '' : formatTitle(first)) || title
}

function formatTitle({ author, text }: UserRequest): string {
  const title = toTitle(text)
  return author.kind === 'user' || title === '' ? title : `${title} (${describeForeignAuthor(author)})`
}

/** Matches the first sentence of a line, in scripts with and without blanks between words. */
const FIRST_SENTENCE = /^.{12,}?[.!?](?=\s|$)|^.{6,}?[。！？]/u

/** Returns the first words of the first line that is not a heading for other lines, such as "Implement this plan:". */
function toTitle(text: string): string {
  let line = ''
  for (const given of text.split('\n')) {
    const bare = given.replace(/^[#>*\-\s]+/, '').trim()
    const isSaying = bare.length >= LEAST_TITLE_CHARACTERS && !/[:：]$/.test(bare)
    if (isSaying || line === '') line = bare
    if (isSaying) break
  }
  const sentence = FIRST_SENTENCE.exec(line)?.[0].replace(/[.!。！]$/u, '') ?? line
  const words = sentence.split(/\s+/)
  const start = truncateEnd(words.slice(0, TITLE_WORDS).join(' '), TITLE_CHARACTERS)
  return words.length > TITLE_WORDS && !start.endsWith('…') ? `${start}…` : start
}

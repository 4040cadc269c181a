/**
 * The user's messages in a summary: cut only if the budget is short, the longest first; and which of them a text lacks.
 */
import type { UserPrompt } from '../facts/user-prompts.ts'
import type { Policy } from '../policy/policy.ts'
import { formatRecordPointer, truncateMiddle } from '../text/truncate-text.ts'
import type { Estimator } from '../tokens/estimator.ts'

// Cutting of user messages to a budget: the longest first, in the middle, with the id of the record that has the whole.

export interface UserPromptLimits {
  /** A user message with more tokens than this is cut in the middle. */
  readonly eachTokens: number
  /** Maximum tokens of all user messages together. Messages that the model has not answered do not count. */
  readonly totalTokens: number
  readonly estimate: Pick<Estimator, 'text'>
}

/**
 * Computes the budget of user messages in a summary. `target`: tokens of the context after the compaction; null if the
 * compaction has no target, so that only the limits of the policy apply.
 */
export function computeUserMessageBudget(
  ledger: Policy['ledger'],
  target: number | null,
): { readonly each: number; readonly total: number } {
  const share = Math.floor(((target ?? Number.POSITIVE_INFINITY) * ledger.userMessagesPercent) / 100)
  const total = Math.min(ledger.userMessagesTokens ?? share, share)
  return { each: Math.min(ledger.userMessageTokens ?? total, total), total }
}

/** No message is cut to fewer tokens than this. If that is still too much, whole messages are left out. */
const LEAST_TOKENS = 120

/**
 * Formats the user messages for a summary, in order. All are whole if they fit the budget; otherwise the longest are
 * cut in the middle to one length at which all fit.
 */
export function formatUserPrompts(
  messages: readonly UserPrompt[],
  { eachTokens, totalTokens, estimate }: UserPromptLimits,
): readonly string[] {
  const whole = messages.map(({ lead, text }) => `${lead}${text}`)
  const sizes = messages.map(({ isAnswered }, index) => (isAnswered ? estimate.text(whole[index] ?? '') : 0))
  const most = findLevel(sizes, eachTokens, totalTokens)
  return messages.map((message, index) =>
    (sizes[index] ?? 0) <= most ? (whole[index] ?? '') : cutPrompt(message, most, estimate),
  )
}

/** Returns the number of tokens to which messages must be cut so that all fit into `total`. */
function findLevel(sizes: readonly number[], each: number, total: number): number {
  const ascending = sizes.toSorted((one, other) => one - other)
  let left = total
  for (const [index, size] of ascending.entries()) {
    const level = left / (ascending.length - index)
    if (size > level) return Math.max(LEAST_TOKENS, Math.min(each, Math.floor(level)))
    left -= size
  }
  return Math.max(LEAST_TOKENS, each)
}

function cutPrompt(message: UserPrompt, tokens: number, estimate: Pick<Estimator, 'text'>): string {
  const { text, lead, uuid } = message
  const perToken = text.length / Math.max(1, estimate.text(text))
  for (let each = Math.floor((perToken * tokens) / 2); each > 0; each = Math.floor(each * 0.9) - 8) {
    const cut = `${lead}${truncateMiddle(text, each, uuid)}`
    if (estimate.text(cut) <= tokens) return cut
  }
  return `${lead}${truncateMiddle(text, 1, uuid)}`
}

// What a text lacks of the user's messages.

/** Checks whether a text contains a user message whole. */
export function hasUserPrompt(text: string, message: UserPrompt): boolean {
  return message.required.every((part) => hasPart(text, part, message))
}

/** A shorter text, such as "no", may be part of other words: it must be a whole line. */
const LEAST_FOUND_ANYWHERE = 30
/** Matches the marks before an item of a list of messages: a bullet, a number, a label such as "User:". */
const LIST_ITEM_START =
  /^\s*(?:(?:[-*+>]|\d{1,3}[.)]|\[\d+\]|\*{0,2}(?:user|message|prompt|turn)(?: message)?(?: #?\d+)?\*{0,2}\s*:)\s*)*/i
/** Matches what may stand between the start of a line and a user's text, after the marks of a list. */
const BEFORE_TEXT = /^(?:Answered:\s*|Asked:\s*(?="))?["“'‘*_`]*\s*$/
/** Matches from the end of a user's text to the end of its line. */
const AFTER_TEXT = /["”'’*_`]*[^\S\n]*(?:\((?:answering|options:)[^\n]*)?(?:\n|$)/y

function hasPart(text: string, part: string, { lead }: UserPrompt): boolean {
  if (part.length >= LEAST_FOUND_ANYWHERE || part === '') return text.includes(part)
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) {
    AFTER_TEXT.lastIndex = at + part.length
    if (!AFTER_TEXT.test(text)) continue
    const before = text.slice(0, at)
    const start = before.slice(before.lastIndexOf('\n') + 1).replace(LIST_ITEM_START, '')
    if (BEFORE_TEXT.test(start) || (lead !== '' && before.trimEnd().endsWith(lead.trimEnd()))) return true
  }
  return false
}

/** Checks whether a text refers to the record of a user message, as a message that was cut does. */
export function hasPointerTo(text: string, { uuid }: UserPrompt): boolean {
  return text.includes(formatRecordPointer(uuid))
}

/** A shorter beginning or end of a message than this may be in a text by chance, so it does not count as kept. */
const LEAST_KEPT_CHARACTERS = 20

/**
 * Returns how many characters of a user message a text lacks: 0 if it has the whole message. `own`: the part of the text
 * that shows the record of the message itself; its words count wherever they stand there.
 */
export function countMissingCharacters(text: string, message: UserPrompt, own = ''): number {
  if (own !== '' && message.sources.every((part) => own.includes(part))) return 0
  const missing = message.required.filter((part) => !own.includes(part) && !hasPart(text, part, message))
  return missing.reduce((sum, part) => sum + countMissing(text, part), 0)
}

function countMissing(text: string, part: string): number {
  if (part.length < LEAST_FOUND_ANYWHERE) return part.length
  const head = countKept(text, part, 'beginning')
  const tail = countKept(text, part.slice(head), 'end')
  return part.length - head - tail
}

/**
 * Returns the length of the longest beginning or end of `part` that is in the text; 0 if it is too short to count. Takes
 * time proportional to both lengths, whatever repeats in them (the search of Knuth, Morris and Pratt, for an end backwards).
 */
function countKept(text: string, part: string, side: 'beginning' | 'end'): number {
  const least = side === 'end' ? part.slice(-LEAST_KEPT_CHARACTERS) : part.slice(0, LEAST_KEPT_CHARACTERS)
  if (least.length < LEAST_KEPT_CHARACTERS || !text.includes(least)) return 0
  const readFrom = (whole: string, at: number): number =>
    whole.charCodeAt(side === 'end' ? whole.length - 1 - at : at)
  const shorter = new Int32Array(part.length)
  for (let at = 1, size = 0; at < part.length; at += 1) {
    while (size > 0 && readFrom(part, at) !== readFrom(part, size)) size = shorter[size - 1] ?? 0
    if (readFrom(part, at) === readFrom(part, size)) size += 1
    shorter[at] = size
  }
  let longest = 0
  for (let at = 0, size = 0; at < text.length && longest < part.length; at += 1) {
    while (size > 0 && readFrom(text, at) !== readFrom(part, size)) size = shorter[size - 1] ?? 0
    if (readFrom(text, at) === readFrom(part, size)) size += 1
    longest = Math.max(longest, size)
  }
  return longest
}

/** Returns what the user typed of a message, without the questions that it answers. */
export function removeContext({ text, context }: Pick<UserPrompt, 'text' | 'context'>): string {
  return context.reduce((left, part) => left.replaceAll(part, ''), text)
}

/** Returns a text in a form in which quotation marks, emphasis, white space and case make no difference. */
export function normalizeUserText(text: string): string {
  return text
    .toLowerCase()
    .replace(/["“”„'‘’«»‹›「」『』*_`]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
}

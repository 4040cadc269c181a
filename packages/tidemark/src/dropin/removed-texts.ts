/**
 * Finds what a client has removed from messages that it still has, and removes it from the engine's texts that quote
 * it. A replaced value is removed word for word. After a long cut, which only saves space, only keys and ids are
 * removed. Words that are still anywhere in the client's list are never removed.
 */
import { type Block, isTextBlock, isToolResult, isToolUse } from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import {
  alignParts,
  type ConversationPart,
  findCommonEnds,
  isSameJsonValue,
  toToolResultText,
} from '../session/conversation-parts.ts'

/** A text of the log, and the client's version of it. */
interface TextChange {
  readonly before: string
  readonly after: string
  /** True if the client shortened the text to save space, not to replace a value. */
  readonly isCut: boolean
}

/** A change of at most this many different words is a replaced value: a recovery phrase has 24. A larger one is a cut. */
const MAX_VALUE_WORDS = 24

/** A text that replaces at least this many others is a placeholder that saves space. */
const MIN_PLACEHOLDERS = 3

/** Shorter words, in bytes of UTF-8, are never removed: they are in every conversation. */
const MIN_WORD_BYTES = 4

/** A word with a digit and at least this many characters counts as a key, hash or id, not as a word of a language. */
const MIN_KEY_CHARACTERS = 6

/** Cased letters and digits: a word of these ends at the next other character. Other scripts have no spaces between words. */
const WORD_CHARACTER = '[\\p{Lu}\\p{Ll}\\p{Lt}\\p{N}]'
const SEPARATORS = /[\s"'`,;:=()[\]{}<>|]+/u

const encoder = new TextEncoder()

/**
 * Lists the texts that have fewer words in the client's list than in the log. A removed message counts only if its
 * neighbours are still there and it is as short as a value, because clients also drop messages to save space. `places`:
 * the index in the given list of each known block.
 */
export function listShortenedTexts(
  known: readonly ConversationPart[],
  given: readonly ConversationPart[],
  places: readonly (number | null)[] = alignParts(known, given),
): readonly TextChange[] {
  const changes = known.flatMap((old, index) => {
    const now = given[places[index] ?? -1]
    return now === undefined ? [] : compareBlocks(old.block, now.block)
  })
  // A text that replaces several others is a placeholder.
  const uses = new Map<string, number>()
  for (const { after } of changes) uses.set(after, (uses.get(after) ?? 0) + 1)
  const marked = changes.map((change) =>
    (uses.get(change.after) ?? 0) >= MIN_PLACEHOLDERS ? { ...change, isCut: true } : change,
  )
  return [...marked, ...listDeletions(known, places)].filter(
    ({ before, after }) => listLostWords(before, after).length > 0,
  )
}

/**
 * Returns a function that applies the client's removals to a text. `ours`: the texts that it will be applied to.
 * `present`: the client's list. Null if `ours` quotes nothing that the client has removed everywhere.
 */
export function createTextRemover(
  changes: readonly TextChange[],
  ours: unknown,
  present: unknown,
): ((text: string) => string) | null {
  if (changes.length === 0) return null
  const [written, given] = [joinTexts(ours), joinTexts(present)]
  const replacements = new Map<string, Replacement>()
  for (const change of changes)
    for (const each of listReplacements(change))
      if (!replacements.has(each.lost) && hasWord(written, each.lost) && !hasWord(given, each.lost))
        replacements.set(each.lost, each)
  if (replacements.size === 0) return null
  const sorted = [...replacements.values()].toSorted(
    (one, other) => Number(other.isWhole) - Number(one.isWhole) || other.lost.length - one.lost.length,
  )
  return (text) => {
    let rest = text
    for (const { lost, instead } of sorted)
      if (rest.includes(lost)) rest = rest.replace(createWordPattern(lost), () => instead)
    return rest
  }
}

/** A text that must not be sent again, and its replacement. `isWhole`: it is all that was replaced in one place. */
interface Replacement {
  readonly lost: string
  readonly instead: string
  readonly isWhole: boolean
}

const REMOVED = '[removed]'

function listReplacements(change: TextChange): readonly Replacement[] {
  const lost = listLostWords(change.before, change.after)
  const toRemoval = (word: string): Replacement => ({ lost: word, instead: REMOVED, isWhole: false })
  if (lost.length > MAX_VALUE_WORDS || change.isCut) return lost.filter(isKey).map(toRemoval)
  const { before, after } = findDifference(change)
  const words = lost.flatMap((word) => [word, ...listParts(word)]).filter(isLong)
  const whole = trimPunctuation(before)
  const isValue = after.trim() !== '' && listWords(after).length <= MAX_VALUE_WORDS
  const replaced = { lost: whole, instead: isValue ? after.trim() : REMOVED, isWhole: true }
  return [...(isLong(whole) ? [replaced] : []), ...words.map(toRemoval)]
}

function compareBlocks(old: Block, now: Block): readonly TextChange[] {
  if (isSameJsonValue(old, now)) return []
  const texts = new Map(listTexts(now))
  return listTexts(old).flatMap(([path, before]) => {
    const after = texts.get(path) ?? ''
    // A program cuts the end of a call or result to save space. A text block that lost its end was changed on purpose.
    const isCut = !isTextBlock(old) && after !== '' && before.startsWith(after)
    return after === before ? [] : [{ before, after, isCut }]
  })
}

/** Lists the texts of a block, each with its path in the block. */
function listTexts(block: Block): readonly (readonly [path: string, text: string])[] {
  if (isTextBlock(block)) return [['', block.text]]
  if (isToolResult(block)) return [['', toToolResultText(block)]]
  return listLeaves(isToolUse(block) ? block.input : block, '')
}

function listLeaves(value: unknown, path: string): readonly (readonly [string, string])[] {
  if (typeof value === 'string' || typeof value === 'number') return [[path, String(value)]]
  if (!isObject(value) && !Array.isArray(value)) return []
  return Object.entries(value).flatMap(([name, item]) => listLeaves(item, `${path}/${name}`))
}

function listDeletions(
  known: readonly ConversationPart[],
  places: readonly (number | null)[],
): readonly TextChange[] {
  const last = places.findLastIndex((place) => place !== null)
  const deletions: TextChange[] = []
  for (let index = places.findIndex((place) => place !== null) + 1; index < last; index += 1) {
    if (places[index] !== null) continue
    const end = places.findIndex((place, at) => at > index && place !== null)
    const texts = known.slice(index, end).flatMap(({ block }) => listTexts(block).map(([, text]) => text))
    const before = texts.join('\n')
    if (listLostWords(before, '').length <= MAX_VALUE_WORDS)
      deletions.push({ before, after: '', isCut: false })
    index = end
  }
  return deletions
}

/** Lists the words of a text that its new version no longer has. */
function listLostWords(before: string, after: string): readonly string[] {
  const kept = new Set(listWords(after))
  return [...new Set(listWords(before))].filter((word) => !kept.has(word))
}

function listWords(text: string): readonly string[] {
  return text
    .split(SEPARATORS)
    .map(trimPunctuation)
    .filter((word) => word !== '')
}

function listParts(word: string): readonly string[] {
  return word.split(/[^\p{L}\p{N}]+/u).filter((part) => part !== word)
}

function trimPunctuation(text: string): string {
  return text.replace(/^[\s\p{P}]+|[\s\p{P}]+$/gu, '')
}

/** Returns the part in which two versions differ, extended to whole words. */
function findDifference({ before, after }: TextChange): Pick<TextChange, 'before' | 'after'> {
  let { start, end } = findCommonEnds(before, after)
  while (start > 0 && isWordAt(before, start - 1)) start -= 1
  while (end > 0 && isWordAt(before, before.length - end)) end -= 1
  return { before: before.slice(start, before.length - end), after: after.slice(start, after.length - end) }
}

const WORD_CHARACTER_ALONE = new RegExp(WORD_CHARACTER, 'u')

function isWordAt(text: string, index: number): boolean {
  return WORD_CHARACTER_ALONE.test(text[index] ?? '')
}

function isLong(word: string): boolean {
  return encoder.encode(word).length >= MIN_WORD_BYTES
}

function isKey(word: string): boolean {
  return word.length >= MIN_KEY_CHARACTERS && /\p{N}/u.test(word)
}

function hasWord(text: string, word: string): boolean {
  return text.includes(word) && createWordPattern(word).test(text)
}

function createWordPattern(word: string): RegExp {
  const source = word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  return new RegExp(`(?<!${WORD_CHARACTER})${source}(?!${WORD_CHARACTER})`, 'gu')
}

/** Returns all texts in a value, one after the other. */
function joinTexts(value: unknown): string {
  return listLeaves(value, '')
    .map(([, text]) => text)
    .join('\n')
}

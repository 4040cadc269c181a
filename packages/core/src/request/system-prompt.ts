/**
 * Defines the named sections of the system prompt. The text of a section is computed once and kept until the session is
 * cleared or compacted; a volatile section is computed each turn. The host supplies the texts, and this file puts them
 * in order.
 */

import { TidemarkError } from '../errors.ts'
import { isObject } from '../log/json.ts'
import type { SnapshotSection } from '../log/record.ts'

/** Separates static from dynamic sections in a list of sections. It is never sent. */
export const SYSTEM_PROMPT_DYNAMIC_BOUNDARY = '__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__'

/** Section names with this prefix are reserved for the engine. */
const RESERVED_NAME_PREFIX = '@'

/** Text between sections that are joined into one block of the system prompt. */
export const PROMPT_SECTION_SEPARATOR = '\n\n'

export type SectionText = string | null

/** Computes the text of a section. Null or blank text leaves the section out. */
type SectionComputation = () => SectionText | Promise<SectionText>

/** A named part of the system prompt. */
export interface Section {
  readonly name: string
  readonly compute: SectionComputation
  /** The reason why the section is computed each turn; null if its text is kept until the session is cleared or compacted. */
  readonly volatileBecause: string | null
}

/** A section together with the part of the system prompt that it belongs to. */
export interface PlacedSection extends Section {
  readonly part: SnapshotSection['part']
}

/**
 * Creates a section of the system prompt. `compute` is called once; its text is kept until the session is cleared or
 * compacted. Throws `bad-option` for other arguments.
 *
 * @example section('rules', () => 'Amounts are in cents.')
 */
export function section(name: string, compute: SectionComputation, ...others: never[]): Section {
  if (others.length > 0 || !isSectionName(name) || typeof compute !== 'function')
    throw badSystemError(
      `section(name, compute): expected ${EXPECTED_SECTION}; a text that changes is a volatileSection(name, compute, reason)`,
    )
  return { name, compute, volatileBecause: null }
}

/**
 * Creates a section whose text changes during the session: `compute` is called before each request. `reason` says why
 * that is worth it. Throws `bad-option` for other arguments.
 *
 * @example volatileSection('git', () => describeBranch(), 'the branch changes during the session')
 */
export function volatileSection(
  name: string,
  compute: SectionComputation,
  reason: string,
  ...others: never[]
): Section {
  const isReason = typeof reason === 'string' && reason.trim() !== ''
  if (others.length > 0 || !isSectionName(name) || typeof compute !== 'function' || !isReason)
    throw badSystemError(
      `volatileSection(name, compute, reason): expected ${EXPECTED_SECTION} but the reason why the text changes`,
    )
  return { name, compute, volatileBecause: reason }
}

function isSectionName(name: unknown): boolean {
  return typeof name === 'string' && name.trim() !== '' && !name.startsWith(RESERVED_NAME_PREFIX)
}

const EXPECTED_SECTION = `a name that does not begin with ${RESERVED_NAME_PREFIX}, a function that returns the text or null, and nothing else`

/** Section texts computed so far, by section name. Emptied when the session is cleared or compacted. */
export type SectionTexts = ReadonlyMap<string, SectionText>

// The boundary separates static sections, which are the same for all users, from dynamic ones, which belong to the
// session. A system prompt from the caller replaces all sections.

/** Names of the engine's own sections. */
export const ATTRIBUTION_SECTION = '@attribution'
export const IDENTITY_SECTION = '@identity'
const CALLER_STATIC_SECTION = '@system-static'
const CALLER_DYNAMIC_SECTION = '@system'
const HOST_BLOCK_SECTION = '@block-'

/**
 * The system prompt that a host supplies: named sections, optionally with the boundary between them, and texts that
 * come before them.
 */
export interface SystemPrompt {
  /** An attribution line. It is sent as a block of its own without a cache marker and stays the same for the session. */
  readonly attribution?: string
  /** A short identity text, sent in the same way. */
  readonly identity?: string
  /**
   * Sections in order, with the boundary between static and dynamic sections. Without a boundary all sections are
   * dynamic.
   */
  readonly sections: readonly (Section | string)[]
}

/**
 * A system prompt from the caller, which replaces all sections, including attribution and identity: text, texts, or text
 * blocks in the format of the API. The engine sets the cache markers, so those of the blocks are not used.
 */
export type CallerPrompt = string | readonly (string | SystemTextBlock)[]

/** A block of the API's `system` field. */
interface SystemTextBlock {
  readonly type: 'text'
  readonly text: string
  readonly [field: string]: unknown
}

/**
 * Returns the sections in order, each with its part of the prompt. Throws a `TidemarkError` for duplicate names, for
 * text without a section name, for a volatile section before the boundary, or for a second boundary.
 */
export function orderPromptSections(given: SystemPrompt | CallerPrompt): readonly PlacedSection[] {
  if (!isSystemPrompt(given)) return toCallerSections(listCallerTexts(given))
  const { attribution, identity, sections, ...others } = given
  const isText = (text: unknown): boolean => text === undefined || typeof text === 'string'
  if (!Array.isArray(sections) || Object.keys(others).length > 0 || !isText(attribution) || !isText(identity))
    throw badSystemError()
  const placed = [
    ...toFixedSection(ATTRIBUTION_SECTION, 'static', attribution ?? ''),
    ...toFixedSection(IDENTITY_SECTION, 'static', identity ?? ''),
    ...assignParts(sections),
  ]
  const names = placed.map(({ name }) => name)
  const repeated = names.find((name, index) => names.indexOf(name) < index)
  if (repeated === undefined) return placed
  throw badSystemError(`expected one section named "${repeated}", found two`)
}

/** Returns the texts of a caller's system prompt. Throws a `TidemarkError` for an element that is no text. */
function listCallerTexts(given: CallerPrompt): readonly string[] {
  if (typeof given === 'string') return [given]
  return given.map((item: unknown) => {
    if (typeof item === 'string') return item
    if (isObject(item) && item.type === 'text' && typeof item.text === 'string') return item.text
    throw badSystemError()
  })
}

const EXPECTED_SYSTEM =
  'expected text, a list of texts or of { type: "text", text } blocks, or { sections, attribution, identity }'

function badSystemError(problem: string = EXPECTED_SYSTEM): TidemarkError {
  return new TidemarkError('bad-option', `system: ${problem}.`, { details: { option: 'system' } })
}

function isSystemPrompt(given: SystemPrompt | CallerPrompt): given is SystemPrompt {
  return typeof given !== 'string' && !Array.isArray(given)
}

function assignParts(sections: readonly (Section | string)[]): readonly PlacedSection[] {
  const boundary = findBoundary(sections)
  return sections.flatMap((item, index) => {
    if (item === SYSTEM_PROMPT_DYNAMIC_BOUNDARY) return []
    if (typeof item === 'string' || !isSection(item))
      throw badSystemError(
        'expected sections and the boundary between their parts: give a text its name with section(name, compute)',
      )
    return [{ ...item, part: findSectionPart(item, index < boundary) }]
  })
}

/** Returns the index of the boundary, or -1. Throws for a second one: it would be unclear where the static part ends. */
function findBoundary(items: readonly unknown[]): number {
  const first = items.indexOf(SYSTEM_PROMPT_DYNAMIC_BOUNDARY)
  if (first === items.lastIndexOf(SYSTEM_PROMPT_DYNAMIC_BOUNDARY)) return first
  throw badSystemError('expected one boundary between the static and the dynamic part, found more')
}

function isSection(item: Section): boolean {
  return isObject(item) && isSectionName(item.name) && typeof item.compute === 'function'
}

function findSectionPart({ name, volatileBecause }: Section, isStatic: boolean): SnapshotSection['part'] {
  if (volatileBecause === null) return isStatic ? 'static' : 'dynamic'
  if (!isStatic) return 'volatile'
  throw badSystemError(
    `expected section "${name}" behind the boundary: it is volatile, and what precedes it never changes`,
  )
}

/**
 * Turns a caller's system prompt into a static and a dynamic section. Each array element is a paragraph. The boundary
 * separates the two sections and is removed from the text.
 */
function toCallerSections(given: readonly string[]): readonly PlacedSection[] {
  const texts = given.flatMap(splitAtDynamicBoundaries)
  const boundary = Math.max(0, findBoundary(texts))
  const joinPart = (some: readonly string[]): string =>
    some.filter((text) => text !== SYSTEM_PROMPT_DYNAMIC_BOUNDARY).join(PROMPT_SECTION_SEPARATOR)
  return [
    ...toFixedSection(CALLER_STATIC_SECTION, 'static', joinPart(texts.slice(0, boundary))),
    ...toFixedSection(CALLER_DYNAMIC_SECTION, 'dynamic', joinPart(texts.slice(boundary))),
  ]
}

/**
 * Returns the blocks of a system prompt that a host sends with every request. Each stays a block of its own, as some
 * accounts require, and is compared with the one before, since hosts write the time and the working folder into them.
 */
export function toHostSections(texts: readonly string[]): readonly PlacedSection[] {
  return texts.flatMap((text, index) => toFixedSection(`${HOST_BLOCK_SECTION}${index + 1}`, 'volatile', text))
}

/** True for the name of a section that is one block of a host's system prompt. */
export function isHostSection(name: string): boolean {
  return name.startsWith(HOST_BLOCK_SECTION)
}

function splitAtDynamicBoundaries(text: string): readonly string[] {
  const [first = '', ...others] = text.split(SYSTEM_PROMPT_DYNAMIC_BOUNDARY)
  if (others.length === 0) return [first]
  const apart = others.flatMap((other) => [SYSTEM_PROMPT_DYNAMIC_BOUNDARY, other.trim()])
  return [first.trim(), ...apart].filter((piece) => piece !== '')
}

function toFixedSection(name: string, part: SnapshotSection['part'], text: string): readonly PlacedSection[] {
  return text.trim() === '' ? [] : [{ name, part, compute: () => text, volatileBecause: null }]
}

/** Returns the text that tells the model of a changed section. `before`: the text that it knows. */
export function formatSectionUpdate(name: string, text: string | null, before: string): string {
  const lines = isHostSection(name) ? formatChangedLines(before, text ?? '') : null
  if (lines !== null) return lines
  const what = name.startsWith(RESERVED_NAME_PREFIX) ? 'The system prompt' : `Its section "${name}"`
  return text === null ? `${what} no longer applies.` : `${what} now reads:\n${text}`
}

/**
 * For a long text in which little changes, such as the time: returns the lines in which the two texts differ, or the
 * words if a line is long. Null if the whole new text is not much longer than that.
 */
function formatChangedLines(before: string, now: string): string | null {
  const lines = findChangedPart(before, now, '\n', 0)
  const words = findChangedPart(before, now, ' ', CONTEXT_WORDS)
  const texts = [
    lines.from === ''
      ? `The system prompt has these lines in addition:\n${lines.to}`
      : `In the system prompt, these lines:\n${lines.from}\nnow read:\n${lines.to}`,
    `In the system prompt, this part:\n${words.from}\nnow reads:\n${words.to}`,
  ]
  return texts.find((text) => text.length * 2 <= now.length) ?? null
}

/** Number of words shown before and after a change, so that the model finds its place. */
const CONTEXT_WORDS = 8

/** Returns the part in which two texts differ, in pieces between separators, with some pieces around it. */
function findChangedPart(
  before: string,
  now: string,
  separator: string,
  context: number,
): { readonly from: string; readonly to: string } {
  const [old, fresh] = [before.split(separator), now.split(separator)]
  const shortest = Math.min(old.length, fresh.length)
  let head = 0
  while (head < shortest && old[head] === fresh[head]) head += 1
  let tail = 0
  while (tail < shortest - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1
  const cut = (pieces: readonly string[]): string =>
    pieces.slice(Math.max(0, head - context), pieces.length - Math.max(0, tail - context)).join(separator)
  return { from: cut(old), to: cut(fresh) }
}

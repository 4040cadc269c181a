/**
 * The sections of the system prompt: named texts. One is computed once and kept until clear or compact, a
 * volatile one each turn. Computing is the host's; here are only the texts.
 */

import { TidemarkError } from '../errors.ts'
import type { EpochSection } from '../log/record.ts'

/** Parts the static sections of a list from the dynamic ones. It never reaches the wire. */
export const SYSTEM_PROMPT_DYNAMIC_BOUNDARY = '__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__'

/** Names that begin so are the engine's own. */
export const OWN_NAME = '@'

export type SectionText = string | null

/** Null or blank text: the section is not there. */
export type ComputeSection = () => SectionText | Promise<SectionText>

export interface Section {
  readonly name: string
  readonly compute: ComputeSection
  /** Why it must be computed anew each turn; null: it is computed once and kept until clear or compact. */
  readonly volatileBecause: string | null
}

/** A section in its place. */
export interface PlacedSection extends Section {
  readonly part: EpochSection['part']
}

export function section(name: string, compute: ComputeSection): Section {
  return { name: checkedName(name), compute, volatileBecause: null }
}

export function volatileSection(name: string, compute: ComputeSection, reason: string): Section {
  if (reason.trim() === '') {
    throw new TidemarkError('bad-option', `Expected the reason why section "${name}" is volatile.`)
  }
  return { name: checkedName(name), compute, volatileBecause: reason }
}

function checkedName(name: string): string {
  if (name.trim() !== '' && !name.startsWith(OWN_NAME)) return name
  throw new TidemarkError('bad-option', `Expected a section name that does not begin with ${OWN_NAME}.`)
}

/** Texts computed so far, by name. Forget them all (an empty map) at clear and compact. */
export type SectionTexts = ReadonlyMap<string, SectionText>

/** What the host must compute before the next request: what has no text yet, and what is volatile. */
export function sectionsDue(
  sections: readonly PlacedSection[],
  texts: SectionTexts,
): readonly PlacedSection[] {
  return sections.filter(({ name, part }) => part === 'volatile' || !texts.has(name))
}

/** The sections that are there now, with their texts. The boundary is taken out of what a section computed. */
export function presentSections(
  sections: readonly PlacedSection[],
  texts: SectionTexts,
): readonly EpochSection[] {
  return sections.flatMap(({ name, part }) => {
    const text = (texts.get(name) ?? '').replaceAll(SYSTEM_PROMPT_DYNAMIC_BOUNDARY, '')
    return text.trim() === '' ? [] : [{ name, part, text }]
  })
}

// The system prompt as a list of sections in two parts. What stands before the boundary is the same for
// everybody, what stands behind it is this session's. A caller's own prompt takes the place of it all.

export const ATTRIBUTION = '@attribution'
export const IDENTITY = '@identity'
const CALLER_STATIC = '@system-static'
const CALLER_DYNAMIC = '@system'

/** What a host gives: the sections with the boundary among them, and what stands in front of them all. */
export interface SystemPrompt {
  /** One line, and a short text: each a block of its own without a marker, constant for the session. */
  readonly attribution?: string
  readonly identity?: string
  /** Without a boundary every section is dynamic. */
  readonly sections: readonly (Section | string)[]
}

/** A system prompt of the caller's own. It replaces everything, attribution and identity too. */
export type CallerPrompt = string | readonly string[]

/** The sections in order with the part each belongs to; a list that contradicts itself is refused. */
export function placeSections(given: SystemPrompt | CallerPrompt): readonly PlacedSection[] {
  if (!isSystemPrompt(given)) return callerSections(given)
  const { attribution, identity, sections } = given
  const placed = [
    ...fixed(ATTRIBUTION, 'static', attribution ?? ''),
    ...fixed(IDENTITY, 'static', identity ?? ''),
    ...inParts(sections),
  ]
  const names = placed.map(({ name }) => name)
  const repeated = names.find((name, index) => names.indexOf(name) < index)
  if (repeated === undefined) return placed
  throw new TidemarkError('bad-option', `Expected one section named "${repeated}", found two.`)
}

function isSystemPrompt(given: SystemPrompt | CallerPrompt): given is SystemPrompt {
  return typeof given !== 'string' && !Array.isArray(given)
}

function inParts(sections: readonly (Section | string)[]): readonly PlacedSection[] {
  const boundary = sections.indexOf(SYSTEM_PROMPT_DYNAMIC_BOUNDARY)
  return sections.flatMap((item, index) => {
    if (item === SYSTEM_PROMPT_DYNAMIC_BOUNDARY) return []
    if (typeof item === 'string') {
      const expected = 'Expected sections and the boundary between their parts, found a text'
      throw new TidemarkError('bad-option', `${expected}: give it a name with section(name, compute).`)
    }
    return [{ ...item, part: partOf(item, index < boundary) }]
  })
}

function partOf({ name, volatileBecause }: Section, isStatic: boolean): EpochSection['part'] {
  if (volatileBecause === null) return isStatic ? 'static' : 'dynamic'
  if (!isStatic) return 'volatile'
  const expected = `Expected section "${name}" behind the boundary: it is volatile`
  throw new TidemarkError('bad-option', `${expected}, and what stands before it never changes.`)
}

/** Elements are paragraphs. The boundary may stand alone or inside a text; the first one parts, all are removed. */
function callerSections(given: CallerPrompt): readonly PlacedSection[] {
  const texts = (typeof given === 'string' ? [given] : given).flatMap(aroundBoundaries)
  const boundary = Math.max(0, texts.indexOf(SYSTEM_PROMPT_DYNAMIC_BOUNDARY))
  const joined = (some: readonly string[]): string =>
    joinTexts(some.filter((text) => text !== SYSTEM_PROMPT_DYNAMIC_BOUNDARY))
  return [
    ...fixed(CALLER_STATIC, 'static', joined(texts.slice(0, boundary))),
    ...fixed(CALLER_DYNAMIC, 'dynamic', joined(texts.slice(boundary))),
  ]
}

function aroundBoundaries(text: string): readonly string[] {
  const [first = '', ...others] = text.split(SYSTEM_PROMPT_DYNAMIC_BOUNDARY)
  if (others.length === 0) return [first]
  const apart = others.flatMap((other) => [SYSTEM_PROMPT_DYNAMIC_BOUNDARY, other.trim()])
  return [first.trim(), ...apart].filter((piece) => piece !== '')
}

/** How the sections of a part become one block. */
export function joinTexts(texts: readonly string[]): string {
  return texts.join('\n\n')
}

function fixed(name: string, part: EpochSection['part'], text: string): readonly PlacedSection[] {
  return text.trim() === '' ? [] : [{ name, part, compute: () => text, volatileBecause: null }]
}

/**
 * The sections of the system prompt: named texts. One is computed once and kept until clear or compact, a
 * volatile one each turn. Computing is the host's; here are only the texts.
 */
import type { EpochSection } from '../conversation/record.ts'
import { TidemarkError } from '../errors.ts'

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

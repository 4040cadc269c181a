/**
 * Limits of the notes: which sections the next update must condense, whether new notes may replace the old ones, and
 * how notes are cut to stand for a conversation.
 */

import { sliceText } from '../text/well-formed-text.ts'
import {
  areNotesEmpty,
  formatNotes,
  NOTES_SECTIONS,
  NOTES_TEMPLATE,
  type NotesSection,
  parseNotes,
} from './notes-file.ts'

/** Limits of the notes in tokens. */
export interface NotesLimits {
  /** Maximum tokens of one section, and of all notes. */
  readonly section: number
  /** Tokens that the section about the task may have beside, for decisions and findings of the model. */
  readonly decisions: number
  readonly total: number
  readonly countTokens: (text: string) => number
}

/** Returns the maximum tokens of the section with a heading. */
export function limitSection(
  { section, decisions }: Pick<NotesLimits, 'section' | 'decisions'>,
  heading: string,
): number {
  return heading === NOTES_SECTIONS.task.heading ? section + decisions : section
}

/** Returns the headings of sections over their limit, with their tokens, and the tokens of the notes if over the total. */
export function findExcess(
  text: string,
  limits: NotesLimits,
): {
  readonly sections: readonly { readonly heading: string; readonly tokens: number }[]
  readonly total: number | null
} {
  const { total, countTokens } = limits
  const sized = parseNotes(text).map(({ heading, body }) => ({ heading, tokens: countTokens(body) }))
  const all = countTokens(text)
  return {
    sections: sized.filter(({ heading, tokens }) => tokens > limitSection(limits, heading)),
    total: all > total ? all : null,
  }
}

/** Returns a template that a user gave, or the default one if it has no headings. */
export function chooseTemplate(given: string | undefined): string {
  const hasHeadings = given !== undefined && parseNotes(given).some(({ heading }) => heading !== '')
  return hasHeadings ? formatNotes(parseNotes(given)) : NOTES_TEMPLATE
}

/**
 * Moves notes to a template, which may have changed since they were written. Sections that it lacks stay at the end, if
 * they have a text.
 */
export function moveToTemplate(text: string, template: string): string {
  const [given, wanted] = [parseNotes(text), parseNotes(template)]
  const headings = new Set(wanted.map(({ heading }) => heading))
  const filled = wanted.map((section) => {
    const own = given.filter(({ heading }) => heading === section.heading)
    const bodies = own.map((one) => restoreHint(dropDefaultHint(one), section.hint).body)
    return own.length === 0
      ? section
      : { ...section, body: bodies.filter((body) => body !== '').join('\n\n') }
  })
  return formatNotes([
    ...filled,
    ...given.filter(({ heading, body }) => !headings.has(heading) && body !== ''),
  ])
}

const DEFAULT_HINTS: ReadonlySet<string> = new Set(Object.values(NOTES_SECTIONS).map(({ hint }) => hint))

function dropDefaultHint(section: NotesSection): NotesSection {
  return DEFAULT_HINTS.has(section.hint) ? { ...section, hint: '' } : section
}

/** Notes may be this many times their total limit; a larger text is a mistake and not stored. */
const LARGEST_SHARE_OF_TOTAL = 2

type NotesCheck =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly message: string }

/**
 * Checks notes that a model wrote. They must have every section of the template once, something in them, and a sane
 * size. Returns them with the template's italic lines put back.
 */
export function checkNotes(text: string, template: string, limits: NotesLimits): NotesCheck {
  const [sections, wanted] = [parseNotes(text), parseNotes(template)]
  for (const { heading } of wanted) {
    const count = sections.filter((section) => section.heading === heading).length
    if (count !== 1) return { ok: false, message: `The section "${heading}" is there ${count} times.` }
  }
  const hints = new Map(wanted.map(({ heading, hint }) => [heading, hint]))
  const restored = formatNotes(sections.map((section) => restoreHint(section, hints.get(section.heading))))
  if (areNotesEmpty(restored)) return { ok: false, message: 'The notes are empty.' }
  const tokens = limits.countTokens(restored)
  const most = limits.total * LARGEST_SHARE_OF_TOTAL
  if (tokens > most)
    return { ok: false, message: `The notes have ${tokens} tokens; at most ${most} are stored.` }
  return { ok: true, text: restored }
}

/** Puts the template's italic line back. An own first italic line of the section stays as part of its text. */
function restoreHint(section: NotesSection, hint: string | undefined): NotesSection {
  if (hint === undefined || section.hint === hint) return section
  const body = section.hint === '' ? section.body : `_${section.hint}_\n${section.body}`.trim()
  return { ...section, hint, body }
}

/**
 * Cuts each section at the characters for its heading, at the end of a line where there is one. Headings and italic lines stay whole, and
 * each cut section ends with a line that names the file with the whole text.
 */
export function cutNotes(
  text: string,
  { characters, path }: { readonly characters: (heading: string) => number; readonly path: string },
): { readonly text: string; readonly cut: readonly string[] } {
  const cut: string[] = []
  const sections = parseNotes(text).map((section) => {
    const most = characters(section.heading)
    if (section.body.length <= most) return section
    cut.push(section.heading)
    return { ...section, body: cutBody(section.body, most, path) }
  })
  return { text: formatNotes(sections), cut }
}

function cutBody(body: string, characters: number, path: string): string {
  const start = sliceText(body, 0, characters)
  const lineEnd = start.lastIndexOf('\n')
  const kept = (lineEnd > characters / 2 ? start.slice(0, lineEnd) : start).trimEnd()
  const fences = kept.split('\n').filter((line) => /^\s*(```|~~~)/.test(line))
  const closing = fences.length % 2 === 1 ? [(fences.at(-1) ?? '').trim().slice(0, 3)] : []
  return [kept, ...closing, `[This section was cut here. Its whole text is in ${path}]`].join('\n')
}

/**
 * Returns true if a claim of the notes has outlived its time. One from the future was made before the clock was set
 * back.
 */
export function isClaimDead(startedAt: number, now: number, deadAfterMs: number): boolean {
  return Math.abs(now - startedAt) >= deadAfterMs
}

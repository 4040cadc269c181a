/** Writes the notes from what the keeper collected: each section within its budget, and all of them within theirs. */
import type { Steps } from '../log/work-steps.ts'
import { type FitOptions, fitNoteGroups, type NoteGroup } from './fit-notes.ts'
import {
  formatNotes,
  NOTES_SECTION_NAMES,
  NOTES_SECTIONS,
  NOTES_TEMPLATE,
  type NotesSectionName,
  parseNotes,
} from './notes-file.ts'

export interface NotesRenderOptions {
  /** Maximum tokens of one section. Only open todos, the latest instruction and commands that still fail may exceed it. */
  readonly sectionTokens: number
  readonly totalTokens: number
  readonly countTokens: (text: string) => number
  /** Headings and hints to use instead of the default ones. Sections that it lacks are added at its end. */
  readonly template?: string
}

/** The items of a section, or a function that writes the section itself. */
export type SectionSource = readonly NoteGroup[] | ((options: FitOptions) => string)

type Sources = Readonly<Record<NotesSectionName, SectionSource>>
type Bodies = Record<NotesSectionName, string>

/** Sections in the order in which they give up tokens if all together have too many. */
const YIELDING_ORDER: readonly NotesSectionName[] = [
  ...(['learnings', 'worklog', 'results', 'system', 'task'] as const),
  ...(['workflow', 'files', 'errors', 'state', 'title'] as const),
]
/** Shares of a section's budget to which sections are cut, all of them in turn. */
const CUTS = [0.5, 0.2, 0]
/** Work of writing a section, in characters that would be read in the same time. */
const SECTION_WORK = 20_000

export function* renderNotes(sources: Sources, options: NotesRenderOptions): Steps<string> {
  const budget = { tokens: options.sectionTokens, countTokens: options.countTokens }
  const bodies = Object.fromEntries(NOTES_SECTION_NAMES.map((name) => [name, ''])) as Bodies
  for (const name of NOTES_SECTION_NAMES) {
    bodies[name] = writeSection(sources[name], budget)
    yield SECTION_WORK
  }
  const count = (): number => options.countTokens(formatSections(bodies, options.template))
  let total = count()
  // Errors are written at length where the other sections leave tokens free.
  if (total < options.totalTokens) {
    const errors = writeSection(sources.errors, { ...budget, spareTokens: options.totalTokens - total })
    const text = formatSections({ ...bodies, errors }, options.template)
    if (options.countTokens(text) <= options.totalTokens) return text
  }
  for (const mayDropAll of [false, true]) {
    for (const share of CUTS) {
      for (const name of YIELDING_ORDER) {
        if (total <= options.totalTokens) return formatSections(bodies, options.template)
        const own = bodies[name] === '' ? 0 : options.countTokens(bodies[name])
        const least = Math.floor(options.sectionTokens * share)
        if (own <= least) continue
        const tokens = Math.max(least, own - (total - options.totalTokens) - 1)
        bodies[name] = writeSection(sources[name], { ...budget, tokens, mayDropAll })
        total = count()
        yield SECTION_WORK
      }
    }
  }
  return formatSections(bodies, options.template)
}

function writeSection(source: SectionSource, options: FitOptions): string {
  return typeof source === 'function' ? source(options) : fitNoteGroups(source, options)
}

/** Puts the bodies below the headings of the template. A section that the template lacks is added, unless it is empty. */
function formatSections(bodies: Readonly<Bodies>, template: string = NOTES_TEMPLATE): string {
  const given = parseNotes(template)
  const names = new Map(NOTES_SECTION_NAMES.map((name) => [toKey(NOTES_SECTIONS[name].heading), name]))
  const used = new Set<NotesSectionName>()
  const filled = given.map((section) => {
    const name = names.get(toKey(section.heading))
    if (name === undefined || used.has(name)) return section
    used.add(name)
    return { ...section, body: [section.body, bodies[name]].filter((part) => part !== '').join('\n\n') }
  })
  const added = NOTES_SECTION_NAMES.filter((name) => !used.has(name) && bodies[name] !== '')
  return formatNotes([...filled, ...added.map((name) => ({ ...NOTES_SECTIONS[name], body: bodies[name] }))])
}

function toKey(heading: string): string {
  return heading.trim().toLowerCase()
}

/**
 * The notes of a session as a Markdown file: ten sections, each with a heading and an italic line that says what belongs
 * there. The file stays readable after any edit by a user or a model: text outside the known sections is kept. Also the
 * limits of notes: what an update must condense, which new notes may replace the old ones, how notes are cut for the
 * context, and how many items of a section are shown.
 */
import { closeCodeBlock } from '../text/code-in-text.ts'
import {
  fitTextsToTokens,
  type RankedText,
  sliceWholeCharacters,
  type TokenCounter,
} from '../text/truncate-text.ts'

/** Short names of the sections, in the order of the file. */
export type NotesSectionName =
  | 'title'
  | 'state'
  | 'task'
  | 'files'
  | 'workflow'
  | 'errors'
  | 'system'
  | 'learnings'
  | 'results'
  | 'worklog'

interface NotesSection {
  /** The heading, without `#`. */
  readonly heading: string
  /** The italic line below the heading, without the marks; empty if there is none. */
  readonly hint: string
  /** The text below the hint, without blank lines around it. */
  readonly body: string
}

/** Headings and hints of the default template. */
export const NOTES_SECTION_TEMPLATES: Readonly<Record<NotesSectionName, Omit<NotesSection, 'body'>>> = {
  title: { heading: 'Session title', hint: 'What this session is about, in five to ten dense words.' },
  state: {
    heading: 'Current state',
    hint: 'What is being worked on now, what is still open, what comes next.',
  },
  task: {
    heading: 'Task specification',
    hint: 'What the user asked for, and the design decisions made for it.',
  },
  files: { heading: 'Files and functions', hint: 'Which files matter, what is in them, and why.' },
  workflow: {
    heading: 'Workflow',
    hint: 'The usual commands, in their order, and how to read their output.',
  },
  errors: {
    heading: 'Errors and corrections',
    hint: 'Errors with their fixes, corrections by the user, and approaches not to try again.',
  },
  system: {
    heading: 'Codebase and system documentation',
    hint: 'The parts of the system and how they fit together.',
  },
  learnings: {
    heading: 'Learnings',
    hint: 'What works well and what to avoid, unless another section has it.',
  },
  results: {
    heading: 'Key results',
    hint: 'The exact output that the user asked for: an answer, a table, a document.',
  },
  worklog: { heading: 'Worklog', hint: 'What was done, one terse line per step.' },
}

/** The names of all sections, in the order of the file. */
export const NOTES_SECTION_NAMES: readonly NotesSectionName[] = [
  'title',
  'state',
  'task',
  'files',
  'workflow',
  'errors',
  'system',
  'learnings',
  'results',
  'worklog',
]

/** The template of a session without notes: headings and hints only. */
export const NOTES_TEMPLATE: string = formatNotes(
  NOTES_SECTION_NAMES.map((name) => ({ ...NOTES_SECTION_TEMPLATES[name], body: '' })),
)

/** Writes sections as the text of the file, the inverse of `parseNotes`. */
export function formatNotes(sections: readonly NotesSection[]): string {
  const parts = sections.map(({ heading, hint, body }) =>
    [
      ...(heading === '' ? [] : [`# ${heading}`]),
      ...(hint === '' ? [] : [`_${hint}_`]),
      ...(body === '' ? [] : ['', body]),
    ].join('\n'),
  )
  return `${parts.join('\n\n')}\n`
}

/**
 * Splits notes into sections. A section begins with a line `# Heading` outside code blocks. Text before the first
 * heading becomes a section without a heading.
 */
export function parseNotes(text: string): readonly NotesSection[] {
  const sections: { heading: string; lines: string[] }[] = []
  let fence: string | null = null
  for (const line of text.replaceAll('\r\n', '\n').split('\n')) {
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark !== undefined) {
      if (fence === null) fence = mark
      else if (mark.startsWith(fence)) fence = null
    }
    const heading = fence === null ? /^#\s+(\S.*)$/.exec(line)?.[1] : undefined
    if (heading !== undefined) sections.push({ heading: heading.trim(), lines: [] })
    else if (sections.length > 0) sections.at(-1)?.lines.push(line)
    else if (line.trim() !== '') sections.push({ heading: '', lines: [line] })
  }
  return sections.map(({ heading, lines }) => {
    const rest = lines.join('\n').trim()
    const hint = /^_(\S[^\n]*)_(?=\n|$)/.exec(rest)
    return { heading, hint: hint?.[1] ?? '', body: rest.slice(hint?.[0].length ?? 0).trim() }
  })
}

/** Returns true if the notes have nothing but headings and hints. */
export function areNotesEmpty(text: string): boolean {
  return parseNotes(text).every(({ heading, body }) => heading !== '' && body === '')
}

// Limits.

/** Limits of the notes in tokens. */
export interface NotesLimits {
  /** Maximum tokens of one section. */
  readonly section: number
  /** Tokens that the section about the task may have in addition, for decisions and findings of the model. */
  readonly decisions: number
  /** Maximum tokens of all notes. */
  readonly total: number
  readonly countTokens: (text: string) => number
}

/** Returns the maximum tokens of the section with a heading. */
function findSectionLimit(
  { section, decisions }: Pick<NotesLimits, 'section' | 'decisions'>,
  heading: string,
): number {
  return heading === NOTES_SECTION_TEMPLATES.task.heading ? section + decisions : section
}

/** Returns the headings of sections over their limit, with their tokens, and the tokens of the notes if over the total. */
export function findNotesExcess(
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
    sections: sized.filter(({ heading, tokens }) => tokens > findSectionLimit(limits, heading)),
    total: all > total ? all : null,
  }
}

/** Returns a template that a user gave, or the default one if it has no headings. */
export function chooseNotesTemplate(given: string | undefined): string {
  const hasHeadings = given !== undefined && parseNotes(given).some(({ heading }) => heading !== '')
  return hasHeadings ? formatNotes(parseNotes(given)) : NOTES_TEMPLATE
}

/**
 * Moves notes to a template, which may have changed since they were written. Sections that the template lacks are put
 * at the end if they have a text.
 */
export function moveNotesToTemplate(text: string, template: string): string {
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

const DEFAULT_HINTS: ReadonlySet<string> = new Set(
  Object.values(NOTES_SECTION_TEMPLATES).map(({ hint }) => hint),
)

function dropDefaultHint(section: NotesSection): NotesSection {
  return DEFAULT_HINTS.has(section.hint) ? { ...section, hint: '' } : section
}

/** Notes may be this many times their total limit; a larger text is a mistake and not stored. */
const LARGEST_SHARE_OF_TOTAL = 2

type NotesCheck =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly message: string }

/**
 * Checks notes that a model wrote. They must have every section of the template once, must not be empty, and must not
 * be far above their limit. Returns them with the template's italic lines put back.
 */
export function acceptModelNotes(text: string, template: string, limits: NotesLimits): NotesCheck {
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
 * Cuts each section to its limit, at the end of a line if there is one. Headings and italic
 * lines stay whole, and each cut section ends with a line that names the file with the whole text.
 */
export function cutNotes(
  text: string,
  limits: Pick<NotesLimits, 'section' | 'decisions'>,
  { charactersPerToken, path }: { readonly charactersPerToken: number; readonly path: string },
): { readonly text: string; readonly cut: readonly string[] } {
  const cut: string[] = []
  const sections = parseNotes(text).map((section) => {
    const most = Math.floor(findSectionLimit(limits, section.heading) * charactersPerToken)
    if (section.body.length <= most) return section
    cut.push(section.heading)
    return { ...section, body: cutBody(section.body, most, path) }
  })
  return { text: formatNotes(sections), cut }
}

function cutBody(body: string, characters: number, path: string): string {
  const start = sliceWholeCharacters(body, 0, characters)
  const lineEnd = start.lastIndexOf('\n')
  const kept = (lineEnd > characters / 2 ? start.slice(0, lineEnd) : start).trimEnd()
  return `${closeCodeBlock(kept)}\n[This section was cut here. Its whole text is in ${path}]`
}

/**
 * Returns true if a claim of the notes has expired. So has a claim from the future, made before the clock was set back,
 * if it is at least as far away.
 */
export function isNotesClaimExpired(startedAt: number, now: number, deadAfterMs: number): boolean {
  return Math.abs(now - startedAt) >= deadAfterMs
}

// Items of the notes below titles, as many as fit. A line says how many were left out.

/** One item of the notes, in a full and perhaps a shorter form. One with rank 0 is left out only if there is no room at all. */
export type RankedNoteItem = RankedText

/** Items below one title. */
export interface NoteGroup {
  /** The line above the items; empty for none. */
  readonly title: string
  /** The items, newest first. */
  readonly items: readonly RankedNoteItem[]
  /** True if the oldest item is shown first. */
  readonly isOldestFirst?: boolean
  /** True if a blank line separates the items, as quotations need. */
  readonly isSpaced?: boolean
  /** Number of older items that are not among them. */
  readonly dropped?: number
}

/** How long one section may become. */
export interface SectionBudget {
  /** Maximum tokens of the section. */
  readonly tokens: number
  readonly countTokens: TokenCounter
  /** True if items of rank 0 may be left out too. */
  readonly mayDropAll?: boolean
  /** Maximum of the remaining tokens that go into `longer` forms of items. Default: 0. */
  readonly spareTokens?: number
}

/** Tokens reserved for the title of a group and the line about what was left out. */
const GROUP_TOKENS = 24

/** Returns the text of a section with as many items as fit. */
export function writeNoteGroups(groups: readonly NoteGroup[], budget: SectionBudget): string {
  const filled = groups.filter(({ items, dropped = 0 }) => items.length > 0 || dropped > 0)
  const placed = chooseFittingItems(
    filled.flatMap(({ items }) => items),
    { ...budget, tokens: budget.tokens - GROUP_TOKENS * filled.length },
  )
  return filled.flatMap((group) => formatGroup(group, placed)).join('\n\n')
}

/** Chooses the items that fit, each with the line break after it. */
export function chooseFittingItems<Item extends RankedNoteItem>(
  items: readonly Item[],
  {
    countTokens,
    mayDropAll = false,
    ...options
  }: SectionBudget & { readonly caps?: ReadonlyMap<string, number> },
): ReadonlyMap<RankedNoteItem, string> {
  return fitTextsToTokens(items, {
    ...options,
    countTokens: (text) => countTokens(text) + 1,
    isKept: ({ rank }) => rank === 0 && !mayDropAll,
  })
}

function formatGroup(group: NoteGroup, placed: ReadonlyMap<RankedNoteItem, string>): readonly string[] {
  const { title, items, isOldestFirst = false, isSpaced = false, dropped = 0 } = group
  const shown = items.flatMap((item) => placed.get(item) ?? [])
  const separator = isSpaced ? '\n\n' : '\n'
  const text = (isOldestFirst ? shown.toReversed() : shown).join(separator)
  const note = formatMissingCount(items.length - shown.length + dropped, shown.length)
  if (text === '' && note === '') return []
  const parts = isOldestFirst ? [note, text] : [text, note]
  const body = parts.filter((part) => part !== '').join(separator)
  return [title === '' ? body : `${title}\n${body}`]
}

/** Formats a line about how many items are missing beside those that are shown; empty if none are. */
export function formatMissingCount(missing: number, shown: number): string {
  if (missing === 0) return ''
  const older = shown === 0 ? '' : ' older'
  return missing === 1
    ? `… one${older} is in the transcript`
    : `… ${missing}${older}${older === '' ? '' : ' ones'} are in the transcript`
}

/** Returns a group of lines that are equally important. */
export function toNoteGroup(title: string, lines: readonly string[], rank = 1): NoteGroup {
  return { title, items: lines.map((full) => ({ full, rank })) }
}

/**
 * The notes of a session as a Markdown file: ten sections, each with a heading and an italic line that says what belongs
 * there. The file stays readable after any edit by a user or a model: text outside the known sections is kept.
 */

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

export interface NotesSection {
  /** The heading, without `#`. */
  readonly heading: string
  /** The italic line below the heading, without the marks; empty if there is none. */
  readonly hint: string
  /** The text below the hint, without blank lines around it. */
  readonly body: string
}

/** Headings and hints of the default template. */
export const NOTES_SECTIONS: Readonly<Record<NotesSectionName, Omit<NotesSection, 'body'>>> = {
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
  NOTES_SECTION_NAMES.map((name) => ({ ...NOTES_SECTIONS[name], body: '' })),
)

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

/** Returns notes without hints and empty sections, which only tell a writer what belongs where. */
export function withoutTemplate(text: string): string {
  const filled = parseNotes(text).filter(({ body }) => body !== '')
  return formatNotes(filled.map((section) => ({ ...section, hint: '' })))
}

/** Returns true if the notes have nothing but headings and hints. */
export function areNotesEmpty(text: string): boolean {
  return parseNotes(text).every(({ heading, body }) => heading !== '' && body === '')
}

/** The nine sections of a summary: what they are called, and how to find them in a text that was asked for them. */

/** Which part of a conversation a summary stands for: all of it, what comes behind a cut, or what lies before one. */
export type CompactForm = 'full' | 'from' | 'up_to'

const COMMON = [
  'Primary request and intent',
  'Key technical concepts',
  'Files and code sections',
  'Errors and fixes',
  'Problem solving',
  'All user messages',
  'Pending tasks',
] as const

const CLOSING: Readonly<Record<CompactForm, readonly [string, string]>> = {
  full: ['Current work', 'Optional next step'],
  from: ['Current work', 'Optional next step'],
  up_to: ['Work completed', 'Context for continuing work'],
}

/** The titles in order; section 1 comes first. Newer messages follow an `up_to` summary, so its end looks ahead. */
export function sectionTitles(form: CompactForm): readonly string[] {
  return [...COMMON, ...CLOSING[form]]
}

/** What is in the title of each section, however a model words it. */
const KNOWN_BY: readonly RegExp[] = [
  /request|intent/i,
  /concept/i,
  /\bfiles?\b/i,
  /\berrors?\b/i,
  /problem/i,
  /user messages?/i,
  /pending|\btasks?\b/i,
  /current work|work completed/i,
  /next step|context for/i,
]

/** A numbered heading: `3. Files`, `## 3) **Files**`. */
const HEADING = /^[ \t#*]*([1-9])[.)][ \t*]*([^\n]{3,80})$/gm

/** Numbers of the sections that have a heading in `text`, each once, in the order of the list. */
export function sectionsIn(text: string): readonly number[] {
  const found = new Set<number>()
  for (const [, digit, title] of text.matchAll(HEADING)) {
    const number = Number(digit)
    if (KNOWN_BY[number - 1]?.test(title ?? '') === true) found.add(number)
  }
  return [...found].sort((one, other) => one - other)
}

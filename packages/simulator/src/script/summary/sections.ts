/** The nine sections of a summary: their titles, as a prompt gives them, and their bodies, as a summary has them. */

export const SECTION_NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, 9] as const

export type SectionNumber = (typeof SECTION_NUMBERS)[number]

export type Sections<T> = Readonly<Record<SectionNumber, T>>

export const TITLES: Sections<string> = {
  1: 'Primary request and intent',
  2: 'Key technical concepts',
  3: 'Files and code sections',
  4: 'Errors and fixes',
  5: 'Problem solving',
  6: 'All user messages',
  7: 'Pending tasks',
  8: 'Current work',
  9: 'Optional next step',
}

/** What the title of a section has in it, however it is worded. */
const KNOWN_BY: Sections<RegExp> = {
  1: /request|intent/i,
  2: /concept/i,
  3: /\bfiles?\b/i,
  4: /\berrors?\b/i,
  5: /problem/i,
  6: /user messages?/i,
  7: /pending|\btasks?\b/i,
  8: /current work|work completed/i,
  9: /next step|context for/i,
}

interface Heading {
  readonly number: SectionNumber
  readonly title: string
  /** Where the line begins, and where it ends. */
  readonly start: number
  readonly end: number
}

/** The nine headings in order; null where one is missing. Numbered lists inside a section are no headings. */
function headingsIn(text: string): readonly Heading[] | null {
  const headings: Heading[] = []
  let from = 0
  for (const number of SECTION_NUMBERS) {
    const heading = headingFrom(text, number, from)
    if (heading === null) return null
    headings.push(heading)
    from = heading.end
  }
  return headings
}

function headingFrom(text: string, number: SectionNumber, from: number): Heading | null {
  const line = new RegExp(`^[ \\t#*]*${number}[.)][ \\t*]*([^\\n:(—]{3,60}?)[ \\t*]*(?=[:(—\\n]|$).*$`, 'gm')
  line.lastIndex = from
  for (let found = line.exec(text); found !== null; found = line.exec(text)) {
    const title = (found[1] ?? '').replace(/[.\s*]+$/, '')
    if (KNOWN_BY[number].test(title))
      return { number, title, start: found.index, end: found.index + found[0].length }
  }
  return null
}

/** The titles a prompt asks for, where it lists all nine; otherwise the usual ones. */
export function titlesIn(prompt: string): Sections<string> {
  const headings = headingsIn(prompt)
  if (headings === null) return TITLES
  return { ...TITLES, ...Object.fromEntries(headings.map(({ number, title }) => [number, title])) }
}

/** The bodies of a summary; null where the text is none. */
export function bodiesIn(text: string): Sections<string> | null {
  const headings = headingsIn(text)
  if (headings === null) return null
  const bodies = headings.map(({ number, end }, index) => [
    number,
    text.slice(end, headings[index + 1]?.start ?? text.length).trim(),
  ])
  return { ...EMPTY, ...Object.fromEntries(bodies) }
}

const EMPTY: Sections<string> = { 1: '', 2: '', 3: '', 4: '', 5: '', 6: '', 7: '', 8: '', 9: '' }

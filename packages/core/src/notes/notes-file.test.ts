import { describe, expect, it } from 'vitest'
import { areNotesEmpty, formatNotes, NOTES_SECTION_NAMES, NOTES_TEMPLATE, parseNotes } from './notes-file.ts'

describe('the notes file', () => {
  it('begins as a template of ten sections, each with a heading and an italic line, and counts as empty', () => {
    const sections = parseNotes(NOTES_TEMPLATE)
    expect(sections).toHaveLength(NOTES_SECTION_NAMES.length)
    expect(sections.every(({ heading, hint, body }) => heading !== '' && hint !== '' && body === '')).toBe(
      true,
    )
    expect(areNotesEmpty(NOTES_TEMPLATE)).toBe(true)
    expect(areNotesEmpty('')).toBe(true)
  })

  it('is the same after it was read and written again', () => {
    const text = formatNotes([
      { heading: 'Worklog', hint: 'Terse.', body: '- one\n- two\n\n## Part\ntext' },
      { heading: 'Mine', hint: '', body: '```sh\n# no heading\n```' },
    ])
    expect(formatNotes(parseNotes(text))).toBe(text)
    expect(parseNotes(text).map(({ heading }) => heading)).toEqual(['Worklog', 'Mine'])
    expect(areNotesEmpty(text)).toBe(false)
  })

  it('keeps text that stands before the first heading, and italic text that is no hint', () => {
    const text = 'A line by hand.\n\n# Title\nplain\n_italic_ and more\n'
    expect(parseNotes(text)).toEqual([
      { heading: '', hint: '', body: 'A line by hand.' },
      { heading: 'Title', hint: '', body: 'plain\n_italic_ and more' },
    ])
  })
})

import { describe, expect, it } from 'vitest'
import { readRequestedSectionTitles, readSummarySections, SUMMARY_SECTION_TITLES } from './summary-facts.ts'

describe('the titles that a prompt asks for', () => {
  it.each([
    ['plain', (number: string, title: string) => `${number}. ${title}: what belongs there`],
    ['in markdown', (number: string, title: string) => `## ${number}. **${title}**`],
    ['indented, with a dash', (number: string, title: string) => `   ${number}) ${title} — and so on`],
    ['with something in brackets', (number: string, title: string) => `${number}. ${title} (verbatim)`],
  ])('%s', (_, written) => {
    const asked = { ...SUMMARY_SECTION_TITLES, 8: 'Work completed', 9: 'Context for continuing work' }
    const prompt = `Write these:\n${Object.entries(asked)
      .map(([number, title]) => written(number, title))
      .join('\n')}\n`
    expect(readRequestedSectionTitles(prompt)).toEqual(asked)
  })

  it('are the default ones if it does not list all nine', () => {
    expect(readRequestedSectionTitles('Summarise.')).toBe(SUMMARY_SECTION_TITLES)
    expect(readRequestedSectionTitles('1. Primary request\n2. Key concepts')).toBe(SUMMARY_SECTION_TITLES)
  })
})

describe('the bodies of a summary', () => {
  const text = Object.entries(SUMMARY_SECTION_TITLES)
    .map(([number, title]) => `${number}. ${title}:\nbody ${number}\n`)
    .join('\n')

  it('by number', () => {
    expect(readSummarySections(`Summary:\n${text}`)).toEqual(
      Object.fromEntries(Object.keys(SUMMARY_SECTION_TITLES).map((number) => [number, `body ${number}`])),
    )
  })

  it('keep numbered lists of their own', () => {
    const listed = text.replace('body 6', '- Do this:\n1. one\n7. seven\n2. two')
    expect(readSummarySections(listed)?.[6]).toBe('- Do this:\n1. one\n7. seven\n2. two')
  })

  it('are not found in other text', () => {
    expect([readSummarySections('1. one\n2. two'), readSummarySections(text.slice(0, -40))]).toEqual([
      null,
      null,
    ])
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseSummary } from './parse-summary.ts'
import { sectionTitles } from './sections.ts'

const SECTIONS = sectionTitles('full')
  .map((title, index) => `${index + 1}. ${title}:\nbody ${index + 1}`)
  .join('\n\n')

describe('a summary is found', () => {
  it.each<[string, string, string, string]>([
    ['as asked for', '<analysis>\nA\n</analysis>\n\n<summary>\nB\n</summary>', 'B', 'closed'],
    ['on one line', '<analysis>A</analysis><summary>B</summary>', 'B', 'closed'],
    ['without an analysis', '<summary>B</summary>', 'B', 'closed'],
    ['with words around it', 'Sure.\n<summary>B</summary>\nAnything else?', 'B', 'closed'],
    ['in a code fence', '```xml\n<summary>\nB\n</summary>\n```', 'B', 'closed'],
    ['in other letters', '<Analysis>A</Analysis> <SUMMARY lang="en">B</SUMMARY>', 'B', 'closed'],
    ['unclosed', '<analysis>A</analysis>\n<summary>\nB', 'B', 'open'],
    ['behind an unclosed analysis', '<analysis>\nA\n<summary>\nB\n</summary>', 'B', 'closed'],
    ['both unclosed', '<analysis>A\n<summary>B', 'B', 'open'],
    ['behind an analysis that never opened', 'A\n</analysis>\n<summary>B</summary>', 'B', 'closed'],
    ['inside the analysis', '<analysis>A\n<summary>B</summary>\n</analysis>', 'B', 'closed'],
    ['crossing the analysis', '<analysis>A <summary>B</analysis> C</summary>', 'B C', 'closed'],
    ['without its first tag', '<analysis>A</analysis>\nB\n</summary>', 'B', 'none'],
    ['without any tag', '<analysis>A</analysis>\nB', 'B', 'none'],
    ['bare', SECTIONS, SECTIONS, 'none'],
    ['twice', '<summary>\nB\n</summary>\n<summary>\nC\n</summary>', 'B\n\nC', 'closed'],
    [
      'twice, with an analysis between',
      '<summary>\nB\n</summary>\n<analysis>X</analysis>\n<summary>\nC\n</summary>',
      'B\n\nC',
      'closed',
    ],
    ['in itself', '<summary>\n<summary>\nB\n</summary>\n</summary>', 'B', 'closed'],
    ['before the analysis', '<summary>B</summary>\n<analysis>A</analysis>', 'B', 'closed'],
    ['with a heading of its own', '<summary>\n**Summary:**\nB\n</summary>', 'B', 'closed'],
    [
      'with the tags named in the analysis',
      '<analysis>then <summary> comes</analysis>\n<summary>B</summary>',
      'B',
      'closed',
    ],
    [
      'with tags quoted in it',
      '<summary>\nsay `</summary>` and <analysis> too\n</summary>',
      'say `</summary>` and <analysis> too',
      'closed',
    ],
    [
      'where markup of the conversation has such tags',
      `${SECTIONS}\n<details><summary>Click</summary></details>`,
      `${SECTIONS}\n<details><summary>Click</summary></details>`,
      'none',
    ],
  ])('%s', (_, text, body, tags) => {
    expect(parseSummary(text)).toEqual({ text: `Summary:\n${body}`, tags })
  })

  it.each([
    ['nothing', ''],
    ['blanks', ' \n\t\n'],
    ['nothing but analysis', '<analysis>\nFirst this, then that.\n</analysis>'],
    ['analysis that never ends', '<analysis>\nFirst this, then that.'],
    ['empty tags', '<analysis>A</analysis><summary>\n\n</summary>'],
    ['a heading alone', '<summary>Summary:</summary>'],
  ])('not in %s', (_, text) => {
    expect(parseSummary(text)).toBeNull()
  })

  it('blank lines are squeezed and ends of lines trimmed', () => {
    expect(parseSummary('<summary>\r\na  \n \n\t\n\nb\r\n\r\n\r\nc</summary>')?.text).toBe(
      'Summary:\na\n\nb\n\nc',
    )
  })
})

const words = fc.stringMatching(/^[a-z0-9 .,<>/\n`"_-]{1,80}$/)
/** Text with something in it, that is no tag at either end and has no tag on a line of its own. */
const body = words.map((text) => `x${text.replaceAll('<', '< ')}y`.replaceAll('\n', '\nz '))

describe('whatever a model writes around it', () => {
  it('what was inside the tags is there, and nothing of the analysis', () => {
    fc.assert(
      fc.property(body, words, fc.boolean(), (inside, thought, closes) => {
        const analysis = `<analysis>${thought.replaceAll('<', '')}SECRET</analysis>`
        const text = parseSummary(`${analysis}\n<summary>${inside}${closes ? '</summary>' : ''}`)?.text
        expect(text?.replaceAll(/\s+/g, '')).toBe(`Summary:${inside}`.replaceAll(/\s+/g, ''))
      }),
    )
  })

  it('any jumble of tags gives a tidy text or none', () => {
    const tag = fc.constantFrom(
      '<summary>',
      '</summary>',
      '<analysis>',
      '</analysis>',
      '\n',
      'word ',
      '\n\n\n',
    )
    fc.assert(
      fc.property(fc.array(tag, { maxLength: 14 }), (pieces) => {
        const parsed = parseSummary(pieces.join(''))
        if (parsed === null) return
        expect(parsed.text.startsWith('Summary:\n')).toBe(true)
        expect(parsed.text).not.toMatch(/\n{3}|[ \t]$/m)
        expect(parsed.text.length).toBeGreaterThan('Summary:\n'.length)
      }),
      { numRuns: 500 },
    )
  })

  it('a summary without any analysis never gets lost, however its tags are broken', () => {
    const tag = fc.constantFrom('<summary>', '</summary>', '\n')
    fc.assert(
      fc.property(fc.array(tag, { maxLength: 6 }), fc.array(tag, { maxLength: 6 }), (before, behind) => {
        const text = `${before.join('')}\n${SECTIONS}\n${behind.join('')}`
        expect(parseSummary(text)?.text).toContain(SECTIONS)
      }),
    )
  })

  it('takes time in proportion to the text', () => {
    const blanks = `<summary>${' '.repeat(100_000)}\n${'\n'.repeat(100_000)}x${'<'.repeat(50_000)}</summary>`
    expect(parseSummary(blanks)?.tags).toBe('closed')
  })
})

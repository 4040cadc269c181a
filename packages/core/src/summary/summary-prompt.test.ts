import { describe, expect, it } from 'vitest'
import {
  type CompactionForm,
  composeInstructions,
  findSections,
  listSectionTitles,
  writeSummaryPrompt,
} from './summary-prompt.ts'

const FORMS: readonly CompactionForm[] = ['full', 'from', 'up_to']

describe.each(FORMS)('the prompt of a %s summary', (form) => {
  const prompt = writeSummaryPrompt({ form, instructions: 'Dwell on the tests.' })

  it('demands text alone, first and last', () => {
    const lines = prompt.split('\n')
    expect([lines[0], lines.at(-1)]).toEqual([
      'Answer with plain text and nothing else. Call no tool: every call would be refused, and there is only this one turn.',
      'Remember: plain text only, no tool call of any kind; a call would be refused and the turn would be lost.',
    ])
  })

  it('demands the analysis, then the summary with its sections but the user’s messages, then what was wished for', () => {
    const places = [
      '<analysis>',
      '<summary>',
      ...listSectionTitles(form).filter((title) => title !== 'All user messages'),
      '</summary>',
      'Dwell on the tests.',
    ]
    const found = places.map((part) => prompt.indexOf(part))
    expect(found).toEqual(found.toSorted((one, other) => one - other))
    expect(found.every((at) => at > 0)).toBe(true)
    expect(findSections(prompt.replaceAll(/: .*$/gm, ':'))).toEqual([1, 2, 3, 4, 5, 7, 8, 9])
  })
})

describe('the variants', () => {
  it('up_to looks ahead: what was done, and what is needed to go on', () => {
    expect(listSectionTitles('up_to').slice(7)).toEqual(['Work completed', 'Context for continuing work'])
    expect([listSectionTitles('full').slice(7), listSectionTitles('from').slice(7)]).toEqual([
      ['Current work', 'Optional next step'],
      ['Current work', 'Optional next step'],
    ])
    expect(writeSummaryPrompt({ form: 'up_to' })).toContain(
      'newer messages, which are not shown here, will follow',
    )
  })

  it('from says that the earlier ones are kept, and where the part begins', () => {
    const prompt = writeSummaryPrompt({ form: 'from', beginsWith: 'now the parser' })
    expect(prompt).toContain('do not summarise them again')
    expect(prompt).toContain('begins with the message that starts: "now the parser"')
  })

  it('all differ', () => {
    const made = [
      ...FORMS.map((form) => writeSummaryPrompt({ form })),
      writeSummaryPrompt({ form: 'full', remark: 'This is attempt 2.' }),
      writeSummaryPrompt({ form: 'full', analysis: false }),
    ]
    expect(new Set(made).size).toBe(made.length)
  })

  it('without an analysis where the answer goes into the conversation as it is', () => {
    expect(writeSummaryPrompt({ form: 'up_to', analysis: false })).not.toContain('<analysis>')
  })

  it.each([null, '', ' \n '])('blank instructions are none: %j', (instructions) => {
    expect(writeSummaryPrompt({ form: 'full', instructions })).toBe(writeSummaryPrompt({ form: 'full' }))
  })
})

describe('instructions', () => {
  it.each<[Parameters<typeof composeInstructions>[0], number, string | null, number]>([
    [{}, 100, null, 0],
    [{ person: ' ', policy: '', hooks: ['\n'] }, 100, null, 0],
    [{ person: 'mine', hooks: ['a hook’s', ' ', 'another’s '] }, 100, 'mine\n\na hook’s\n\nanother’s', 0],
    [{ policy: 'always', person: 'now' }, 100, 'now\n\nalways', 0],
    [{ person: 'mine', hooks: ['theirs'] }, 6, 'mine', 6],
    [{ person: '😀😀😀' }, 2, '😀😀', 1],
    [{ person: 'mine' }, 0, null, 4],
  ])('%j within %i', (sources, characters, text, cutCharacters) => {
    expect(composeInstructions(sources, characters)).toEqual({ text, cutCharacters })
  })
})

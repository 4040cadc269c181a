import { describe, expect, it } from 'vitest'
import { listSectionsWithText } from '../engine/announce-updates.ts'
import type { TidemarkError } from '../errors.ts'
import {
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY as BOUNDARY,
  type CallerPrompt,
  formatSectionUpdate,
  orderPromptSections,
  type Section,
  type SystemPrompt,
  section,
  volatileSection,
} from './system-prompt.ts'

const rules = section('rules', () => 'Be kind.')
const environment = section('environment', () => 'Linux')
const git = volatileSection('git', () => 'clean', 'the work tree changes')

/** The texts computed, as a host would, and the sections they make. */
function present(given: SystemPrompt | CallerPrompt) {
  const placed = orderPromptSections(given)
  const texts = new Map(placed.map(({ name, compute }) => [name, compute() as string | null]))
  return listSectionsWithText(placed, texts)
}

function codeOf(run: () => unknown): unknown {
  try {
    run()
    return null
  } catch (error) {
    return (error as TidemarkError).code
  }
}

describe('sections', () => {
  it('belong to the part of the list they stand in', () => {
    const sections = [rules, BOUNDARY, environment, git]
    expect(present({ attribution: 'bill: me', identity: 'An agent.', sections })).toEqual([
      { name: '@attribution', part: 'static', text: 'bill: me' },
      { name: '@identity', part: 'static', text: 'An agent.' },
      { name: 'rules', part: 'static', text: 'Be kind.' },
      { name: 'environment', part: 'dynamic', text: 'Linux' },
      { name: 'git', part: 'volatile', text: 'clean' },
    ])
  })

  it('are all dynamic without a boundary, and gone where they have nothing to say', () => {
    const sections = [rules, section('quiet', () => null), section('blank', () => ' \n')]
    expect(present({ sections })).toEqual([{ name: 'rules', part: 'dynamic', text: 'Be kind.' }])
  })

  it('never let the boundary through, whoever computed it', () => {
    const sections = [section('odd', () => `a${BOUNDARY}b`)]
    expect(present({ sections })).toEqual([{ name: 'odd', part: 'dynamic', text: 'ab' }])
  })

  it.each([
    ['a volatile section without a reason', () => volatileSection('git', () => '', ' ')],
    ['a name of the engine', () => section('@identity', () => '')],
    ['no name', () => section('', () => '')],
    ['options behind a section', () => Reflect.apply(section, null, ['git', () => '', { volatile: true }])],
    ['a text in place of a function', () => Reflect.apply(section, null, ['git', 'on main'])],
    ['options in place of the reason', () => Reflect.apply(volatileSection, null, ['git', () => '', {}])],
    [
      'an object that section did not make',
      () => orderPromptSections({ sections: [{ name: 'x' } as Section] }),
    ],
    ['an unknown field', () => orderPromptSections({ sections: [rules], dynamic: [] } as SystemPrompt)],
    ['one name twice', () => orderPromptSections({ sections: [rules, rules] })],
    ['a volatile section in front of the boundary', () => orderPromptSections({ sections: [git, BOUNDARY] })],
    [
      'a second boundary among sections',
      () => orderPromptSections({ sections: [rules, BOUNDARY, environment, BOUNDARY] }),
    ],
    ['a second boundary in a list of texts', () => orderPromptSections(['one', BOUNDARY, 'two', BOUNDARY])],
    ['two boundaries in one text', () => orderPromptSections(`one ${BOUNDARY} two ${BOUNDARY} three`)],
    ['a text among sections', () => orderPromptSections({ sections: ['Be kind.', rules] })],
  ])('refuse %s', (_, run) => {
    expect(codeOf(run)).toBe('bad-option')
  })
})

describe("a caller's own prompt", () => {
  it.each<[string, CallerPrompt, readonly (readonly [string, string])[]]>([
    ['a string is sent as it is', ' You are X.\n', [['dynamic', ' You are X.\n']]],
    ['paragraphs', ['one', 'two'], [['dynamic', 'one\n\ntwo']]],
    [
      'parts',
      ['one', BOUNDARY, 'two', 'three'],
      [
        ['static', 'one'],
        ['dynamic', 'two\n\nthree'],
      ],
    ],
    [
      'parts in one string',
      `one\n${BOUNDARY}\ntwo`,
      [
        ['static', 'one'],
        ['dynamic', 'two'],
      ],
    ],
    ['a boundary in front of all', [BOUNDARY, 'one'], [['dynamic', 'one']]],
    ['nothing', [], []],
    ['nothing but a boundary', BOUNDARY, []],
  ])('%s', (_, given, expected) => {
    expect(present(given).map(({ part, text }) => [part, text])).toEqual(expected)
  })
})

describe('the change of a block that a host sends', () => {
  const rules = 'You are a helper. '.repeat(200)

  it('is told by its lines', () => {
    const update = formatSectionUpdate('@block-1', `It is 12:01.\n${rules}`, `It is 12:00.\n${rules}`)
    expect(update).toBe('In the system prompt, these lines:\nIt is 12:00.\nnow read:\nIt is 12:01.')
  })

  it('is told by its words if all is one line, and not by the whole text', () => {
    const update = formatSectionUpdate('@block-1', `It is 12:01. ${rules}`, `It is 12:00. ${rules}`)
    expect(update).toBe(
      'In the system prompt, this part:\nIt is 12:00. You are a helper. You are a helper.\nnow reads:\nIt is 12:01. You are a helper. You are a helper.',
    )
  })

  it('is told by the whole text if most of it has changed', () => {
    expect(formatSectionUpdate('@block-1', 'Be brief.', rules)).toBe(
      'The system prompt now reads:\nBe brief.',
    )
  })
})

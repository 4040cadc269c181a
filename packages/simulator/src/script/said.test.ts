import { expect, it } from 'vitest'
import { assistant, call, result, user } from '../../test/script-request.ts'
import { beginning, lastResults, lastUserText } from './said.ts'

const MESSAGES = [
  user('One'),
  assistant('Two', call('a', 'Read'), call('b', 'Bash')),
  user(result('a', 'A'), {
    type: 'tool_result',
    tool_use_id: 'b',
    content: [{ type: 'text', text: 'B' }],
    is_error: true,
  }),
  { role: 'system', content: 'Aside' } as const,
  user('Three'),
  user('Four', 'Five'),
]

it('the last text is all that was said since the last response', () => {
  expect(lastUserText(MESSAGES)).toBe('Three\nFour\nFive')
  expect(lastUserText([])).toBe('')
})

it('the last results have the names of their tools', () => {
  expect(lastResults(MESSAGES)).toEqual([
    { id: 'a', name: 'Read', text: 'A', isError: false },
    { id: 'b', name: 'Bash', text: 'B', isError: true },
  ])
  expect(lastResults([user(result('x', 'X'))])).toEqual([{ id: 'x', name: '', text: 'X', isError: false }])
})

it('a beginning has no half characters in it', () => {
  expect([beginning('ab😀c', 2), beginning('ab😀c', 3), beginning('ab😀c', 4)]).toEqual(['ab', 'ab', 'ab😀'])
})

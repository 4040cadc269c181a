import { describe, expect, it } from 'vitest'
import { typedText } from './typed-text.ts'

const base = { uuid: 'u', parentUuid: null, timestamp: 't', sessionId: 's' }
const result = { type: 'tool_result', tool_use_id: 'a', content: 'no' }
const text = (given: string): object => ({ type: 'text', text: given })

describe('what the person typed', () => {
  it.each<[string, object, string | null]>([
    ['a text', { content: 'go' }, 'go'],
    ['a block', { content: [text('go'), { type: 'image' }] }, 'go'],
    ['blocks', { content: [text('go'), text('on')] }, 'go\non'],
    [
      'what was said while a call was turned down',
      { content: [result, text('use the other one')] },
      'use the other one',
    ],
    ['a result alone', { content: [result] }, null],
    ['nothing', { content: ' ' }, null],
    ['a command', { content: '<command-name>/clear</command-name>' }, null],
    ['output of a command', { content: '<local-command-stdout></local-command-stdout>' }, null],
    ['a shell command', { content: '<bash-input>ls</bash-input>' }, null],
    ['an interruption', { content: [text('[Request interrupted by user for tool use]')] }, null],
    [
      'an interruption and a text',
      { content: [text('[Request interrupted by user]'), text('stop')] },
      'stop',
    ],
    ['a system message', { role: 'system', content: 'go' }, null],
  ])('%s', (_, message, expected) => {
    expect(typedText({ ...base, type: 'user', message: { role: 'user', ...message } } as never)).toBe(
      expected,
    )
  })

  it.each([{ isMeta: true }, { isCompactSummary: true }])('nothing where %j', (flag) => {
    const message = { role: 'user', content: 'go' } as const
    expect(typedText({ ...base, ...flag, type: 'user', message })).toBeNull()
  })

  it('nothing in a record of another kind', () => {
    expect(typedText({ type: 'summary' })).toBeNull()
  })
})

import { describe, expect, it } from 'vitest'
import type { MessageContent } from './block.ts'
import { isTurnEndingMessage, readUserTypedText } from './record.ts'

const result = { type: 'tool_result', tool_use_id: 'c', content: 'done' }
const text = { type: 'text', text: 'go on' }

it.each<[string, string, MessageContent, boolean]>([
  ['words', 'user', 'go on', true],
  ['words in a block', 'user', [text], true],
  ['a picture', 'user', [{ type: 'image' }], true],
  ['results alone', 'user', [result, result], false],
  ['words behind a result', 'user', [result, text], true],
  ['a picture inside a result', 'user', [{ ...result, content: [{ type: 'image' }] }], false],
  ['a request to the cache behind a result', 'user', [result, { type: 'cache_edits', edits: [] }], false],
  ['nothing', 'user', '', false],
  ['no blocks', 'user', [], false],
  ['a system message in mid-conversation', 'system', 'it is late', false],
  ['a response', 'assistant', [text], false],
])('%s of the %s', (_, role, content, expected) => {
  expect(isTurnEndingMessage({ role, content })).toBe(expected)
})

const base = { uuid: 'u', parentUuid: null, timestamp: 't', sessionId: 's' }
const resultTypedText = { type: 'tool_result', tool_use_id: 'a', content: 'no' }
const textTypedText = (given: string): object => ({ type: 'text', text: given })

describe('the text that the user typed', () => {
  it.each<[string, object, string | null]>([
    ['a text', { content: 'go' }, 'go'],
    ['a block', { content: [textTypedText('go'), { type: 'image' }] }, 'go'],
    ['blocks', { content: [textTypedText('go'), textTypedText('on')] }, 'go\non'],
    [
      'what was said while a call was turned down',
      { content: [resultTypedText, textTypedText('use the other one')] },
      'use the other one',
    ],
    ['a result alone', { content: [resultTypedText] }, null],
    ['nothing', { content: ' ' }, null],
    ['a command', { content: '<command-name>/clear</command-name>' }, null],
    ['output of a command', { content: '<local-command-stdout></local-command-stdout>' }, null],
    ['a shell command', { content: '<bash-input>ls</bash-input>' }, null],
    ['an interruption', { content: [textTypedText('[Request interrupted by user for tool use]')] }, null],
    [
      'an interruption and a text',
      { content: [textTypedText('[Request interrupted by user]'), textTypedText('stop')] },
      'stop',
    ],
    ['a system message', { role: 'system', content: 'go' }, null],
  ])('%s', (_, message, expected) => {
    expect(readUserTypedText({ ...base, type: 'user', message: { role: 'user', ...message } } as never)).toBe(
      expected,
    )
  })

  it.each([{ isMeta: true }, { isCompactSummary: true }])('is null with %j', (flag) => {
    const message = { role: 'user', content: 'go' } as const
    expect(readUserTypedText({ ...base, ...flag, type: 'user', message })).toBeNull()
  })

  it('is null in a record of another type', () => {
    expect(readUserTypedText({ type: 'summary' })).toBeNull()
  })
})

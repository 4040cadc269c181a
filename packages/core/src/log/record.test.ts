import { expect, it } from 'vitest'
import type { MessageContent } from './block.ts'
import { isNewTurnMessage } from './record.ts'

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
  expect(isNewTurnMessage({ role, content })).toBe(expected)
})

import type { AssistantMessage, Usage } from '@tidemark/core'
import { expect, it } from 'vitest'
import { overflowOfReply } from './reply-overflow.ts'

const FULL = 'model_context_window_exceeded'

function message(stop_reason: string, usage?: Usage): AssistantMessage {
  const base = { id: 'msg_1', role: 'assistant' as const, model: 'm', content: [], stop_reason }
  return usage === undefined ? base : { ...base, usage }
}

const usage = (input_tokens: number, output_tokens: number, cached = 0): Usage => ({
  input_tokens,
  output_tokens,
  cache_read_input_tokens: cached,
})

it.each([
  ['an answer that fits', message('end_turn', usage(10, 5)), null],
  ['an answer cut by its own limit', message('max_tokens', usage(500, 100)), null],
  ['an answer the window cut', message(FULL, usage(100, 40, 860)), { actual: 1000, limit: 1000, over: 0 }],
  ['the window, with nothing measured', message(FULL), { limit: 1000 }],
  [
    'more read than the window holds',
    message('end_turn', usage(1, 5, 1000)),
    { actual: 1001, limit: 1000, over: 1 },
  ],
  ['full, and nothing said', message('max_tokens', usage(990, 0)), { actual: 990, limit: 1000, over: 0 }],
  ['a warming call', message('max_tokens', usage(500, 0)), null],
  ['full, but it meant to stop', message('end_turn', usage(1000, 0)), null],
  [
    'runs of a compaction: only the last message counts',
    message('end_turn', {
      ...usage(300, 5),
      iterations: [
        { type: 'compaction', input_tokens: 1500, output_tokens: 50 },
        { type: 'message', input_tokens: 300, output_tokens: 5 },
      ],
    }),
    null,
  ],
])('%s', (_, reply, gap) => {
  expect(overflowOfReply(reply, 1000)).toEqual(gap)
})

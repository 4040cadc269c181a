import { collectReply } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { decode, delta, ending, PING, START, STOP, start, stop, TOOL } from '../../test/stream-frames.ts'
import type { SseFrame } from '../http/sse.ts'

/** Returns the blocks that are decoded from the frames of one block. */
function blockOf(...frames: readonly SseFrame[]): unknown {
  const reply = collectReply(decode([START, ...frames, stop(0), ending({ stop_reason: 'end_turn' }), STOP]))
  return {
    content: reply?.message.content,
    raw: reply?.rawBlocks,
    cut: reply?.cutInputs,
    others: reply?.others,
  }
}

function made(block: object, more: object = {}): object {
  return { content: [block], raw: [], cut: [], others: [], ...more }
}

describe('blocks', () => {
  it.each<[string, readonly SseFrame[], unknown]>([
    [
      'thinking with its text',
      [
        start(0, { type: 'thinking', thinking: '', signature: '' }),
        delta(0, { type: 'thinking_delta', thinking: 'Let me', estimated_tokens: 3 }),
        delta(0, { type: 'thinking_delta', thinking: ' see', estimated_tokens: null }),
        delta(0, { type: 'signature_delta', signature: 'c2ln' }),
      ],
      made({ type: 'thinking', thinking: 'Let me see', signature: 'c2ln' }),
    ],
    [
      'thinking whose text is withheld',
      [
        start(0, { type: 'thinking', thinking: '', signature: '' }),
        delta(0, { type: 'signature_delta', signature: 'c2ln' }),
      ],
      made({ type: 'thinking', thinking: '', signature: 'c2ln' }),
    ],
    [
      'redacted thinking',
      [start(0, { type: 'redacted_thinking', data: 'x' })],
      made({ type: 'redacted_thinking', data: 'x' }),
    ],
    [
      'a call in pieces',
      [
        start(0, TOOL),
        delta(0, { type: 'input_json_delta', partial_json: '' }),
        delta(0, { type: 'input_json_delta', partial_json: '{"path": "a' }),
        delta(0, { type: 'input_json_delta', partial_json: '.ts"}' }),
      ],
      made({ ...TOOL, input: { path: 'a.ts' } }),
    ],
    [
      'a call without input',
      [start(0, TOOL), delta(0, { type: 'input_json_delta', partial_json: '' })],
      made(TOOL),
    ],
    [
      'a call whose input parsing would change',
      [
        start(0, TOOL),
        delta(0, { type: 'input_json_delta', partial_json: '{"b":1, "10":9007199254740993,"b":1.0}' }),
      ],
      made(
        { ...TOOL, input: { 10: 9007199254740992, b: 1 } },
        {
          raw: [
            {
              index: 0,
              text: '{"type":"tool_use","id":"toolu_1","name":"read","input":{"b":1, "10":9007199254740993,"b":1.0}}',
            },
          ],
        },
      ),
    ],
    [
      'a call whose input broke off',
      [start(0, TOOL), delta(0, { type: 'input_json_delta', partial_json: '{"path": "a' })],
      made(TOOL, { cut: [{ index: 0, text: '{"path": "a' }] }),
    ],
    [
      'a block that parsing would change, grown',
      [
        {
          event: 'content_block_start',
          data: '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","x":1.0}}',
        },
        delta(0, { type: 'text_delta', text: 'hi' }),
      ],
      made(
        { type: 'text', text: 'hi', x: 1 },
        { raw: [{ index: 0, text: '{"type":"text","text":"hi","x":1.0}' }] },
      ),
    ],
    [
      'citations',
      [
        start(0, { type: 'text', text: '', citations: null }),
        delta(0, { type: 'text_delta', text: 'hi' }),
        delta(0, { type: 'citations_delta', citation: { type: 'char_location', start_char_index: 1 } }),
      ],
      made({ type: 'text', text: 'hi', citations: [{ type: 'char_location', start_char_index: 1 }] }),
    ],
    [
      'a citation that parsing would change',
      [
        start(0, { type: 'text', text: '', citations: [{ n: 1 }] }),
        {
          event: 'content_block_delta',
          data: '{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"n":2.0}}}',
        },
      ],
      made(
        { type: 'text', text: '', citations: [{ n: 1 }, { n: 2 }] },
        { raw: [{ index: 0, text: '{"type":"text","text":"","citations":[{"n":1},{"n":2.0}]}' }] },
      ),
    ],
    [
      'compaction by threshold: one delta',
      [
        start(0, { type: 'compaction', content: null, encrypted_content: null }),
        delta(0, { type: 'compaction_delta', content: 'Summary', encrypted_content: 'ZW5j' }),
      ],
      made({ type: 'compaction', content: 'Summary', encrypted_content: 'ZW5j' }),
    ],
    [
      'compaction by threshold that failed',
      [
        start(0, { type: 'compaction', content: null }),
        delta(0, { type: 'compaction_delta', content: null, encrypted_content: null }),
      ],
      made({ type: 'compaction', content: null, encrypted_content: null }),
    ],
    [
      'compaction on demand: whole at once',
      [start(0, { type: 'compaction', content: 'Summary', signature: 'c2ln', tool_changes: [] }), PING],
      made({ type: 'compaction', content: 'Summary', signature: 'c2ln', tool_changes: [] }),
    ],
    [
      'an unknown block with known deltas',
      [start(0, { type: 'next_year', level: 3 }), delta(0, { type: 'text_delta', text: 'hi' })],
      made({ type: 'next_year', level: 3, text: 'hi' }),
    ],
    [
      'a delta nobody knows: kept beside the block',
      [start(0, { type: 'text', text: 'hi' }), delta(0, { type: 'mood_delta', mood: 'calm' })],
      made(
        { type: 'text', text: 'hi' },
        { others: [{ index: 0, delta: { type: 'mood_delta', mood: 'calm' } }] },
      ),
    ],
    [
      'a known delta in another shape',
      [start(0, { type: 'text', text: 'hi' }), delta(0, { type: 'text_delta', text: 7 })],
      made({ type: 'text', text: 'hi' }, { others: [{ index: 0, delta: { type: 'text_delta', text: 7 } }] }),
    ],
  ])('%s', (_, frames, expected) => {
    expect(blockOf(...frames)).toEqual(expected)
  })

  it('that interleave are separated by index and kept in order', () => {
    const reply = collectReply(
      decode([
        START,
        start(0, TOOL),
        start(1, { type: 'text', text: '' }),
        delta(1, { type: 'text_delta', text: 'b' }),
        stop(1),
        delta(0, { type: 'input_json_delta', partial_json: '{"a":1.0}' }),
        stop(0),
        STOP,
      ]),
    )
    expect(reply?.message.content).toEqual([
      { ...TOOL, input: { a: 1 } },
      { type: 'text', text: 'b' },
    ])
    expect(reply?.rawBlocks.map(({ index }) => index)).toEqual([0])
  })

  it('are ended by the end of the message where the server left that out', () => {
    const reply = collectReply(
      decode([
        START,
        start(0, { type: 'text', text: '' }),
        delta(0, { type: 'text_delta', text: 'hi' }),
        STOP,
      ]),
    )
    expect([reply?.message.content, reply?.unfinished]).toEqual([[{ type: 'text', text: 'hi' }], []])
  })
})

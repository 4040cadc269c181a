import { describe, expect, it } from 'vitest'
import { FIVE_MINUTES, longTalk, ONE_HOUR, requestOf, tailOf } from '../../test/breaks/talk.ts'
import { List } from '../log/append-list.ts'
import type { Block } from '../log/block.ts'
import { countMessages } from '../request/block-index.ts'
import { type CachedEntry, reaches, readableEntry, withEntry } from './cache-model.ts'
import type { SentRequest } from './sent-request.ts'

const text: Block = { type: 'text', text: 'x' }
const call: Block = { type: 'tool_use', id: 'c', name: 'n', input: {} }
const result: Block = { type: 'tool_result', tool_use_id: 'c', content: 'x' }

/** One message of these blocks, marked at its end. */
function marked(blocks: readonly Block[]): SentRequest {
  const messages = {
    frozen: List.of([{ message: { role: 'user' as const, content: blocks }, origins: [] }]),
    tail: [],
  }
  return {
    ...requestOf(longTalk(), 0),
    messages,
    markers: [{ zone: 'messages', ...tailOf(messages), ...FIVE_MINUTES }],
  }
}

const START = { message: 0, block: 0 }

describe('reaches', () => {
  it.each([
    { name: '19 positions back', blocks: Array(20).fill(text), collapsed: true, is: true },
    { name: '20 positions back', blocks: Array(21).fill(text), collapsed: true, is: false },
    {
      name: 'a run of calls and one of results',
      blocks: [text, ...Array(30).fill(call), ...Array(30).fill(result)],
      collapsed: true,
      is: true,
    },
    {
      name: 'such runs where each counts',
      blocks: [text, ...Array(30).fill(call)],
      collapsed: false,
      is: false,
    },
  ])('$name: $is', ({ blocks, collapsed, is }) => {
    const sent = marked(blocks)
    const counted = countMessages(sent.messages, collapsed)
    expect(reaches({ sent, counted, lookBack: 20 }, START)).toBe(is)
  })

  it('does not look forward', () => {
    const sent = marked([text, text])
    const counted = countMessages(sent.messages, true)
    expect(reaches({ sent, counted, lookBack: 20 }, { message: 1, block: 0 })).toBe(false)
  })
})

describe('entries', () => {
  const sent = requestOf(longTalk(), 100_000)
  const counted = countMessages(sent.messages, true)
  const entry = (message: number, at: number): CachedEntry => ({
    place: { message, block: 0 },
    tokens: message * 100,
    at,
    seconds: 300,
  })

  it('are read if they live, end in front of the limit, and are within reach', () => {
    const limit = { message: 20, block: 0 }
    const found = (entries: readonly CachedEntry[]) =>
      readableEntry({ entries, sent, counted, lookBack: 20, limit })?.tokens
    expect([
      found([entry(14, 0), entry(18, 0), entry(20, 0)]),
      found([entry(14, 0), entry(18, -201_000)]),
      found([entry(0, 0)]),
    ]).toEqual([1_800, 1_400, undefined])
  })

  it('are kept while they live and stand in front, and never more than so many', () => {
    const next = withEntry([entry(1, -201_000), entry(2, 0), entry(30, 0)], sent, 5_000)
    expect(next).toEqual([
      entry(2, 0),
      { place: { message: 20, block: 1 }, tokens: 5_000, at: 100_000, seconds: 300 },
    ])
    const many = Array.from({ length: 80 }, () => entry(3, 0))
    expect(withEntry(many, requestOf(longTalk(), 0, ONE_HOUR), 1).length).toBe(50)
  })
})

import { describe, expect, it } from 'vitest'
import { longTalk, rounded, TEXT } from '../../test/breaks/talk.ts'
import type { TracedMessage } from '../context/flatten-context.ts'
import type { ApiMessage } from '../context/payload.ts'
import type { Block } from '../log/block.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { findFirstChangedBlock, type MessageList } from './block-index.ts'

function sent(...messages: readonly (ApiMessage | TracedMessage)[]): MessageList {
  const all = messages.map(
    (each): TracedMessage =>
      'message' in each ? (each as TracedMessage) : { message: each as ApiMessage, origins: ['r'] },
  )
  return { frozen: AppendList.of(all), tail: [] }
}

function user(content: string | readonly Block[], fields: object = {}): ApiMessage {
  return { role: 'user', content, ...fields }
}

const text = (words: string, fields: object = {}): Block => ({ type: 'text', text: words, ...fields })
const MARKER = { cache_control: { type: 'ephemeral' } }

describe('firstDifference', () => {
  it.each([
    { name: 'the same', before: user('a'), after: user('a'), place: null },
    { name: 'a string and one block of text', before: user('a'), after: user([text('a')]), place: null },
    { name: 'a marker set', before: user([text('a')]), after: user([text('a', MARKER)]), place: null },
    {
      name: 'a message that grew',
      before: user([text('a')]),
      after: user([text('a'), text('b')]),
      place: null,
    },
    {
      name: 'another text',
      before: user([text('a'), text('b')]),
      after: user([text('a'), text('c')]),
      place: 1,
    },
    { name: 'a block less', before: user([text('a'), text('b')]), after: user([text('a')]), place: 1 },
    { name: 'another role', before: user('a'), after: { role: 'system', content: 'a' } as const, place: 0 },
    {
      name: 'another field',
      before: user('a', { clear_at: 1 }),
      after: user('a', { clear_at: 2 }),
      place: 0,
    },
    {
      name: 'another order of keys',
      before: user([{ type: 'x', a: 1, b: 2 }]),
      after: user([{ type: 'x', b: 2, a: 1 }]),
      place: 0,
    },
    {
      name: 'a field that is undefined',
      before: user([text('a')]),
      after: user([text('a', { x: undefined })]),
      place: null,
    },
    {
      name: 'a marker inside a result',
      before: user([{ type: 'tool_result', tool_use_id: 'c', content: [text('a')] }]),
      after: user([{ type: 'tool_result', tool_use_id: 'c', content: [text('a', MARKER)] }]),
      place: null,
    },
    {
      name: 'a call whose input is named like a marker',
      before: user([{ type: 'tool_use', id: 'c', name: 'n', input: { cache_control: 1 } }]),
      after: user([{ type: 'tool_use', id: 'c', name: 'n', input: { cache_control: 2 } }]),
      place: 0,
    },
  ])('$name', ({ before, after, place }) => {
    expect(findFirstChangedBlock(sent(before), sent(after))).toEqual(
      place === null ? null : { message: 0, block: place },
    )
  })

  it('goes by the exact text where a block has one', () => {
    const message = user([{ type: 'tool_use', id: 'c', name: 'n', input: { n: 1 } }])
    const raw = (value: string): TracedMessage => ({
      message,
      origins: ['r'],
      raw: new Map([[0, `{"type":"tool_use","id":"c","name":"n","input":{"n":${value}}}`]]),
    })
    expect([
      findFirstChangedBlock(sent(raw('1.0')), sent(raw('1.0'))),
      findFirstChangedBlock(sent(raw('1.0')), sent(raw('1'))),
      findFirstChangedBlock(sent(message), sent(raw('1'))),
    ]).toEqual([null, { message: 0, block: 0 }, null])
  })

  it('is at a block added to a message that others follow', () => {
    const [before, after] = [
      sent(user([text('a')]), user('b')),
      sent(user([text('a'), text('x')]), user('b')),
    ]
    expect(findFirstChangedBlock(before, after)).toEqual({ message: 0, block: 1 })
  })

  it('is at the first message that is missing', () => {
    expect(findFirstChangedBlock(sent(user('a'), user('b')), sent(user('a')))).toEqual({
      message: 1,
      block: 0,
    })
  })

  it('does not look at frozen messages that are the same list', () => {
    const talk = longTalk()
    const longer = rounded(talk, 1, TEXT)
    const { frozen, tail } = longer.flat
    const touched: number[] = []
    const at = (index: number) => {
      touched.push(index)
      return frozen.at(index)
    }
    const watched = Object.create(frozen, {
      at: { value: at },
      extends: { value: (other: typeof frozen) => frozen.extends(other) },
      length: { value: frozen.length },
    })
    expect(findFirstChangedBlock(talk.flat, { frozen: watched, tail })).toBeNull()
    expect(touched.every((index) => index >= talk.flat.frozen.length)).toBe(true)
  })
})

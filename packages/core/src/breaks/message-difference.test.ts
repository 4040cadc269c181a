import { describe, expect, it } from 'vitest'
import { longTalk, requestOf } from '../../test/breaks/talk.ts'
import { List } from '../conversation/list.ts'
import { messageDifference } from './message-difference.ts'
import { partingOf } from './parting.ts'
import type { MessageDifference } from './reason.ts'
import type { SentRequest } from './sent.ts'

/** Messages as `text@record`, without a record where none is named. */
function request(...messages: readonly string[]): SentRequest {
  const frozen = messages.map((each) => {
    const [text = '', origin] = each.split('@')
    return {
      message: { role: 'user' as const, content: text },
      origins: origin === undefined ? [] : [origin],
    }
  })
  return { ...requestOf(longTalk(), 0), messages: { frozen: List.of(frozen), tail: [] } }
}

function change(before: SentRequest, after: SentRequest): MessageDifference | null {
  const place = partingOf(before.messages, after.messages)
  if (place === null) throw new Error('nothing changed')
  return messageDifference({ before, after, place })
}

const before = request('one@a', 'two@b', 'three@c')

describe('messageDifference', () => {
  it.each([
    { name: 'rewritten', after: request('one@a', 'TWO@b', 'three@c'), kind: 'message-changed', origin: 'b' },
    {
      name: 'rewritten under another record',
      after: request('one@a', 'TWO@x', 'three@c'),
      kind: 'message-changed',
      origin: 'b',
    },
    { name: 'taken out', after: request('one@a', 'three@c'), kind: 'message-removed', origin: 'b' },
    {
      name: 'put between',
      after: request('one@a', 'new@n', 'two@b', 'three@c'),
      kind: 'message-inserted',
      origin: 'n',
    },
  ])('$name', ({ after, kind, origin }) => {
    const found = change(before, after)
    expect([found?.kind, found?.index, found?.origin]).toEqual([kind, 1, origin])
  })

  it.each([
    { name: 'cut short', after: request('one@a') },
    { name: 'gone another way', after: request('one@a', 'else@x', 'where@y') },
  ])('is none where the conversation is $name', ({ after }) => {
    expect(change(before, after)).toBeNull()
  })

  it('goes by what is said where no record is named', () => {
    const told = request('one', 'two', 'three')
    const kinds = [
      change(told, request('one', 'TWO', 'three')),
      change(told, request('one', 'three')),
      change(told, request('one', 'else')),
    ].map((found) => (found === null ? null : [found.kind, found.origin, found.by]))
    expect(kinds).toEqual([['message-changed', null, 'host'], ['message-removed', null, 'host'], null])
  })

  it.each(['hook', 'host', 'compaction', 'clearing'] as const)(
    'says that it was the %s, where that is told',
    (hand) => {
      const after = { ...request('one@a', 'TWO@b', 'three@c'), touched: new Map([[1, hand]]) }
      expect(change(before, after)?.by).toBe(hand)
    },
  )

  it('knows a clearing by what it leaves', () => {
    const after = request('one@a', '[Old tool result content cleared]@b', 'three@c')
    expect(change(before, after)?.by).toBe('clearing')
  })
})

import { describe, expect, it } from 'vitest'
import type { Block } from '../conversation/block.ts'
import { List } from '../conversation/list.ts'
import { type Counted, countMessages } from '../prompt/count.ts'
import type { FlatMessage } from '../view/draft.ts'
import { traitDifferences } from './trait-differences.ts'

const picture: Block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } }
const words: Block = { type: 'text', text: 'x' }
const seen: Block = { type: 'tool_result', tool_use_id: 'c', content: [words, picture] }
const cited: Block = { type: 'document', source: { type: 'text', data: 'x' }, citations: { enabled: true } }

function said(origin: string, ...content: readonly Block[]): FlatMessage {
  return { message: { role: 'user', content }, origins: content.map(() => origin) }
}

function counted(frozen: readonly FlatMessage[], tail: readonly FlatMessage[] = []): Counted {
  return countMessages({ frozen: List.of(frozen), tail }, true)
}

const none = counted([said('a', words)])
const late = counted([said('a', words)], [said('b', words, picture)])

describe('traitDifferences', () => {
  it.each([
    { name: 'never any', before: none, after: none, found: [] },
    {
      name: 'the first image',
      before: none,
      after: late,
      found: [{ kind: 'image-added', index: 1, origin: 'b' }],
    },
    {
      name: 'the first image in a result',
      before: none,
      after: counted([said('a', words), said('b', seen)]),
      found: [{ kind: 'image-added', index: 1, origin: 'b' }],
    },
    { name: 'one more', before: late, after: counted([said('a', picture), said('b', picture)]), found: [] },
    {
      name: 'the last gone',
      before: late,
      after: none,
      found: [{ kind: 'image-removed', index: 1, origin: 'b' }],
    },
    {
      name: 'citations',
      before: none,
      after: counted([said('a', cited)]),
      found: [{ kind: 'parameter-changed', name: 'citations', before: 'off', after: 'on' }],
    },
  ])('$name', ({ before, after, found }) => {
    expect(traitDifferences(before, after)).toEqual(found)
  })
})

import { describe, expect, it } from 'vitest'
import { longTalk, requestOf } from '../../test/breaks/talk.ts'
import type { TracedMessage } from '../context/flatten-context.ts'
import type { Block } from '../log/block.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { type BlockIndex, findFirstChangedBlock, indexBlocks } from '../request/block-index.ts'
import type { MessageDifference } from './cache-break-types.ts'
import { classifyMessageDifference, diffMessageTraits, formatRequestDiff } from './request-diff.ts'
import type { SentRequest } from './sent-request.ts'

const picture: Block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } }
const words: Block = { type: 'text', text: 'x' }
const seen: Block = { type: 'tool_result', tool_use_id: 'c', content: [words, picture] }
const cited: Block = { type: 'document', source: { type: 'text', data: 'x' }, citations: { enabled: true } }

function said(origin: string, ...content: readonly Block[]): TracedMessage {
  return { message: { role: 'user', content }, origins: content.map(() => origin) }
}

function counted(frozen: readonly TracedMessage[], tail: readonly TracedMessage[] = []): BlockIndex {
  return indexBlocks({ frozen: AppendList.of(frozen), tail }, true)
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
    expect(diffMessageTraits(before, after)).toEqual(found)
  })
})

/** Messages as `text@record`, without a record where none is named. */
function request(...messages: readonly string[]): SentRequest {
  const frozen = messages.map((each) => {
    const [text = '', origin] = each.split('@')
    return {
      message: { role: 'user' as const, content: text },
      origins: origin === undefined ? [] : [origin],
    }
  })
  return { ...requestOf(longTalk(), 0), messages: { frozen: AppendList.of(frozen), tail: [] } }
}

function change(before: SentRequest, after: SentRequest): MessageDifference | null {
  const position = findFirstChangedBlock(before.messages, after.messages)
  if (position === null) throw new Error('nothing changed')
  return classifyMessageDifference(before, after, position)
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

const beforeDiffText = requestOf(longTalk(), 0)
const plain = (text: string): string => text

function systemDiff(was: string, is: string, redact = plain): string {
  const named = (text: string): SentRequest => ({ ...beforeDiffText, system: [{ name: 'rules', text }] })
  const difference = { kind: 'section-changed', name: 'rules', characters: is.length - was.length } as const
  return formatRequestDiff(
    { before: named(was), after: named(is), differences: [difference], position: null },
    redact,
  )
}

describe('diffText', () => {
  it('shows what was and what is, from a little before the change', () => {
    expect(systemDiff('one\ntwo', 'one\nthree')).toBe(
      '@@ section rules of the system prompt changed (+2 characters) @@\n- one\n- two\n+ one\n+ three\n',
    )
  })

  it('leaves out what is the same in front', () => {
    const same = 'x'.repeat(500)
    expect(systemDiff(`${same}a`, `${same}b`).split('\n').slice(1, 3)).toEqual([
      `- …${'x'.repeat(80)}a`,
      `+ …${'x'.repeat(80)}b`,
    ])
  })

  it('shows parameters, tools that came and messages', () => {
    const tool = { name: 'New', text: '{"name":"New"}' }
    const text = formatRequestDiff(
      {
        before: beforeDiffText,
        after: { ...beforeDiffText, tools: [...beforeDiffText.tools, tool] },
        differences: [
          { kind: 'effort-changed', before: 'high', after: null },
          { kind: 'tools-added', names: ['New'] },
        ],
        position: null,
      },
      plain,
    )
    expect(text).toBe(
      '@@ the effort changed (high → not set) @@\n- high\n\n@@ tools were added (New) @@\n+ {"name":"New"}\n',
    )
  })

  it('is bounded', () => {
    const differences = Array.from(
      { length: 30 },
      (_, index) => ({ kind: 'tools-added', names: [`t${index}`] }) as const,
    )
    const tools = differences.map(({ names: [name = ''] }) => ({ name, text: name.repeat(9_000) }))
    const text = formatRequestDiff(
      { before: beforeDiffText, after: { ...beforeDiffText, tools }, differences, position: null },
      plain,
    )
    expect([text.length < 20_020, text.endsWith('\n… cut here\n')]).toEqual([true, true])
  })

  it('holds no secret: it is taken out before anything is cut', () => {
    const redact = (text: string): string => text.replaceAll(/key-\d{6}/g, '[redacted]')
    const text = systemDiff(`${'a'.repeat(1_992)} key-123456`, `${'b'.repeat(1_992)} key-654321`, redact)
    expect(text).not.toMatch(/key-|123|654/)
  })

  it('says so where only what is redacted changed', () => {
    const redact = (text: string): string => text.replaceAll(/key-\w+/g, '[redacted]')
    expect(systemDiff('token key-1', 'token key-2', redact)).toMatch(
      /\(the same but for what is redacted\)\n$/,
    )
  })

  it('redacts what the headings quote', () => {
    const differences = [
      { kind: 'parameter-changed', name: 'metadata', before: null, after: 'key-1' },
    ] as const
    const redact = (text: string): string => text.replaceAll(/key-\w+/g, '[redacted]')
    expect(
      formatRequestDiff(
        { before: beforeDiffText, after: beforeDiffText, differences, position: null },
        redact,
      ),
    ).not.toContain('key-1')
  })

  it('says that nothing changed where nothing did', () => {
    expect(
      formatRequestDiff(
        { before: beforeDiffText, after: beforeDiffText, differences: [], position: null },
        plain,
      ),
    ).toBe('Nothing in the request changed.\n')
  })
})

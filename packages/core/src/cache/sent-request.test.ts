import { describe, expect, it } from 'vitest'
import { longTalk, rounded, TEXT } from '../../test/breaks/talk.ts'
import type { FlatMessage } from '../context/message-parts.ts'
import type { ApiMessage } from '../context/payload.ts'
import { List } from '../log/append-list.ts'
import type { Block } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { createProfile } from '../policy/provider-profile.ts'
import type { MessageList } from '../request/block-index.ts'
import { type AssembledRequest, assembleRequest } from '../request/build-request.ts'
import { type Front, frontOf } from '../request/prefix.ts'
import { differencesOf } from './request-diff.ts'
import { partingOf, type Sending, sentRequest } from './sent-request.ts'

const profile = createProfile({
  cache: {
    ttls: [
      { name: '1h', seconds: 3600 },
      { name: '5m', seconds: 300 },
    ],
    defaultTtl: '5m',
  },
})
const PARAMETERS: JsonObject = {
  max_tokens: 100,
  thinking: { type: 'adaptive' },
  output_config: { effort: 'high', format: { type: 'json' } },
  betas: ['one'],
  metadata: { user_id: 'u' },
  container: 'c1',
}

function front(parameters: JsonObject = PARAMETERS): Front {
  const sections = [
    { name: 'rules', part: 'static', text: 'be kind' },
    { name: 'environment', part: 'dynamic', text: 'a folder' },
    { name: 'language', part: 'dynamic', text: 'English' },
  ] as const
  const epoch = { sections, tools: [{ name: 'Read', input_schema: {} }], model: 'model-a', parameters }
  return frontOf({ uuid: 'e', epoch, parameters, isFresh: false })
}

function assembled(given: Front, extra: JsonObject = {}): AssembledRequest {
  const { flat } = longTalk()
  return assembleRequest({
    front: given,
    flat,
    profile,
    markers: DEFAULT_POLICY.cache.markers,
    ttl: '1h',
    clears: false,
    extra,
  })
}

const SENDING: Sending = { source: 'sdk', at: 7, cache: profile.cache }

describe('sentRequest', () => {
  it('is what the engine put together, in the pieces a cache can lose', () => {
    const request = assembled(front(), { diagnostics: { previous_message_id: 'm' } })
    const {
      messages,
      front: _,
      ...sent
    } = sentRequest(request, { ...SENDING, circumstances: { overage: 'no' } })
    expect(messages).toBe(request.messages)
    expect(sent).toEqual({
      source: 'sdk',
      at: 7,
      tools: [{ name: 'Read', text: '{"name":"Read","input_schema":{}}' }],
      system: [
        { name: 'rules', text: 'be kind' },
        { name: 'environment', text: 'a folder' },
        { name: 'language', text: 'English' },
      ],
      parameters: {
        model: 'model-a',
        speed: undefined,
        effort: 'high',
        thinking: '{"type":"adaptive"}',
        toolChoice: undefined,
        betas: ['one'],
        others: { container: '"c1"', output: '{"format":{"type":"json"}}', overage: 'no' },
      },
      markers: sent.markers,
    })
    expect(sent.markers.at(-1)).toEqual({ zone: 'messages', index: 20, block: 1, ttl: '1h', seconds: 3600 })
  })

  it('takes over the pieces of a front that still stands', () => {
    const standing = front()
    const first = sentRequest(assembled(standing), SENDING)
    const again = sentRequest(assembled(standing), { ...SENDING, previous: first })
    const other = sentRequest(assembled(front()), { ...SENDING, previous: first })
    expect([again.tools === first.tools, again.system === first.system, other.tools === first.tools]).toEqual(
      [true, true, false],
    )
  })

  it('does not tell of what no cache depends on', () => {
    const before = sentRequest(assembled(front()), SENDING)
    const after = sentRequest(
      assembled(front({ ...PARAMETERS, max_tokens: 5, metadata: { user_id: 'v' } })),
      SENDING,
    )
    expect(differencesOf(before, after)).toEqual([])
  })

  it('tells of what one does', () => {
    const before = sentRequest(assembled(front()), SENDING)
    const changed = {
      ...PARAMETERS,
      output_config: { effort: 'low' },
      tool_choice: { type: 'none' },
      container: 'c2',
    }
    const after = sentRequest(assembled(front(changed)), SENDING)
    expect(differencesOf(before, after)).toEqual([
      { kind: 'effort-changed', before: 'high', after: 'low' },
      { kind: 'tool-choice-changed', before: null, after: '{"type":"none"}' },
      { kind: 'parameter-changed', name: 'container', before: '"c1"', after: '"c2"' },
      { kind: 'parameter-changed', name: 'output', before: '{"format":{"type":"json"}}', after: null },
    ])
  })
})

function sent(...messages: readonly (ApiMessage | FlatMessage)[]): MessageList {
  const all = messages.map(
    (each): FlatMessage =>
      'message' in each ? (each as FlatMessage) : { message: each as ApiMessage, origins: ['r'] },
  )
  return { frozen: List.of(all), tail: [] }
}

function user(content: string | readonly Block[], fields: object = {}): ApiMessage {
  return { role: 'user', content, ...fields }
}

const text = (words: string, fields: object = {}): Block => ({ type: 'text', text: words, ...fields })
const MARKER = { cache_control: { type: 'ephemeral' } }

describe('partingOf', () => {
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
    expect(partingOf(sent(before), sent(after))).toEqual(place === null ? null : { message: 0, block: place })
  })

  it('goes by the exact text where a block has one', () => {
    const message = user([{ type: 'tool_use', id: 'c', name: 'n', input: { n: 1 } }])
    const raw = (value: string): FlatMessage => ({
      message,
      origins: ['r'],
      raw: new Map([[0, `{"type":"tool_use","id":"c","name":"n","input":{"n":${value}}}`]]),
    })
    expect([
      partingOf(sent(raw('1.0')), sent(raw('1.0'))),
      partingOf(sent(raw('1.0')), sent(raw('1'))),
      partingOf(sent(message), sent(raw('1'))),
    ]).toEqual([null, { message: 0, block: 0 }, null])
  })

  it('is at the first message that is missing', () => {
    expect(partingOf(sent(user('a'), user('b')), sent(user('a')))).toEqual({ message: 1, block: 0 })
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
    expect(partingOf(talk.flat, { frozen: watched, tail })).toBeNull()
    expect(touched.every((index) => index >= talk.flat.frozen.length)).toBe(true)
  })
})

import { createUsage } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import type { Block } from '../../src/log/block.ts'
import { toPayload } from '../../src/request/build-request.ts'
import {
  computeCacheReadShare,
  createForkRequest,
  cutRequestToRecords,
  type ForkMessage,
  listMessagesAfterRequest,
} from '../../src/request/fork-request.ts'
import { Conversation, PROFILE } from './conversation.ts'

const text = (said: string): Block => ({ type: 'text', text: said })
const QUESTION: readonly ForkMessage[] = [{ role: 'user', content: 'sum up' }]

function sent(profile = PROFILE) {
  const conversation = new Conversation(profile)
  conversation.builder.user('begin')
  const { request, payload } = conversation.ask()
  return { conversation, payload, request }
}

function forked({ ttl = '5m' }: { readonly ttl?: string | null } = {}, profile = PROFILE) {
  const { request, payload } = sent(profile)
  return { payload, sent: toPayload(createForkRequest(request, QUESTION, { profile, ttl })) }
}

describe('a fork', () => {
  it('adds its messages and carries one marker, where its parent carried the last', () => {
    const { sent: body, payload } = forked()
    expect(body).toEqual({
      ...JSON.parse(JSON.stringify(payload, (key, value) => (key === 'cache_control' ? undefined : value))),
      messages: [
        { role: 'user', content: [{ ...text('begin'), cache_control: { type: 'ephemeral' } }] },
        { role: 'user', content: 'sum up' },
      ],
    })
  })

  it('asks for the lifetime it is given, and for none where caching is off', () => {
    const control = (ttl: string | null) =>
      JSON.stringify(forked({ ttl }).sent).match(/"cache_control":\{[^}]*\}/g)
    expect(control('1h')).toEqual(['"cache_control":{"type":"ephemeral","ttl":"1h"}'])
    expect(control(null)).toBe(null)
  })

  it('goes on with the last message where a role may not come twice', () => {
    const { sent: body } = forked({}, defineMessagesProfile({ thinking: { binding: 'none' } }))
    expect(body.messages).toEqual([
      { role: 'user', content: [{ ...text('begin'), cache_control: { type: 'ephemeral' } }, text('sum up')] },
    ])
  })

  it('keeps the records and exact texts of both messages that it joins', () => {
    const profile = defineMessagesProfile({ thinking: { binding: 'none' } })
    const { request } = sent(profile)
    const raw = new Map([[0, '{"type":"text","text":"1e2"}']])
    const message = { message: { role: 'user' as const, content: [text('1e2')] }, origins: ['late'], raw }
    const [joined] = createForkRequest(request, [message], { profile, ttl: '5m' }).messages.tail
    expect(joined?.origins).toEqual([request.messages.tail[0]?.origins[0], 'late'])
    expect(joined?.raw).toEqual(new Map([[1, raw.get(0)]]))
  })

  it('denies its tools at the host, not in the request', () => {
    const { sent: body, payload } = forked()
    expect([body.tools, body.tool_choice]).toEqual([
      payload.tools?.map(({ cache_control: _, ...tool }) => tool),
      undefined,
    ])
  })

  it.each([
    [{ input: 1, output: 5, read: 98, short: 1 }, 0.98],
    [{ input: 10, output: 5 }, 0],
    [{ input: 0, output: 5 }, null],
  ])('tells the share it read: %j', (usage, share) => {
    expect(computeCacheReadShare(createUsage(usage))).toBe(share)
  })
})

describe('what was said since a request went out', () => {
  it('is the response and all behind it', () => {
    const { conversation, request } = sent()
    conversation.answer([text('yes')])
    conversation.builder.user('and now')
    conversation.assemble()
    if (conversation.flat === undefined) throw new Error('no messages')
    expect(listMessagesAfterRequest(request, conversation.flat)?.map(({ message }) => message)).toEqual([
      { role: 'assistant', content: [text('yes')] },
      { role: 'user', content: 'and now' },
    ])
  })

  it('and what joined the last message', () => {
    const { conversation, request } = sent()
    conversation.builder.user('one more thing')
    conversation.assemble()
    if (conversation.flat === undefined) throw new Error('no messages')
    expect(listMessagesAfterRequest(request, conversation.flat)?.map(({ message }) => message)).toEqual([
      { role: 'user', content: [text('one more thing')] },
    ])
  })

  it('cannot be told where the conversation begins otherwise now', () => {
    const { conversation, request } = sent()
    conversation.answer([text('yes')])
    conversation.builder.user('and now')
    conversation.compact()
    conversation.assemble()
    if (conversation.flat === undefined) throw new Error('no messages')
    expect(listMessagesAfterRequest(request, conversation.flat)).toBe(null)
  })
})

describe('the first part of a request', () => {
  function cut(count: number) {
    const conversation = new Conversation(PROFILE)
    const uuids = [
      conversation.builder.user('begin'),
      conversation.builder.assistant('a', [{ type: 'tool_use', id: 't1', name: 'Read', input: {} }]),
      conversation.builder.result('t1', 'found'),
      conversation.builder.user('stop'),
    ].map(({ uuid }) => uuid)
    const { request } = conversation.ask()
    const part = cutRequestToRecords(request, new Set(uuids.slice(0, count)), PROFILE)
    return part === null ? null : toPayload(part).messages
  }

  it('ends in a message where the records end there', () => {
    expect(cut(3)?.at(-1)).toEqual({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 't1', content: 'found' }],
    })
    expect(cut(4)?.at(-1)?.content).toHaveLength(2)
    expect(cut(1)).toEqual([{ role: 'user', content: 'begin' }])
  })

  it('is none where the records are not the first ones', () => {
    const { request } = sent()
    expect(cutRequestToRecords(request, new Set(['another']), PROFILE)).toBe(null)
  })
})

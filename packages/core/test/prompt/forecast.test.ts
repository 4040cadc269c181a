import { SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import {
  forecastCacheRead,
  restoreCacheModel,
  updateCacheModelFromFork,
  updateCacheModelFromResponse,
} from '../../src/cache/cache-forecast.ts'
import { EMPTY_CACHE_MODEL, findNewestPrefixExpiry } from '../../src/cache/cache-model.ts'
import type { Block } from '../../src/log/block.ts'
import { type AssembledRequest, toPayload } from '../../src/request/build-request.ts'
import { tallyLoggedGaps } from '../../src/request/cache-ttl.ts'
import { createForkRequest } from '../../src/request/fork-request.ts'
import { Conversation, POLICY, PRESENT, PROFILE } from './conversation.ts'

const text = (said: string): Block => ({ type: 'text', text: said })
const MINUTE = 60_000

function begun(ttl = '5m', profile = PROFILE): Conversation {
  const conversation = new Conversation(profile)
  conversation.ttl = ttl
  conversation.builder.user('begin')
  conversation.ask()
  conversation.answer([text('yes')])
  conversation.builder.user('go on')
  return conversation
}

/** One round of a tool loop. */
function round(conversation: Conversation, id: string, said = 'result '.repeat(50)): void {
  conversation.answer([{ type: 'tool_use', id, name: 'Read', input: {} }])
  conversation.builder.result(id, said)
}

/** What was foreseen, why, and whether the provider agreed. */
function asked(conversation: Conversation) {
  const { forecast, usage } = conversation.ask()
  return { why: forecast.why, isRight: forecast.read === usage.read, read: forecast.read }
}

describe('what is foreseen', () => {
  it.each([
    ['5m', 4 * MINUTE, 'warm'],
    ['5m', 5 * MINUTE, 'expired'],
    ['1h', 59 * MINUTE, 'warm'],
    ['1h', 60 * MINUTE, 'expired'],
  ])('a life of %s, after %i ms: %s', (ttl, pause, why) => {
    const conversation = begun(ttl)
    conversation.now += pause
    expect(asked(conversation)).toMatchObject({ why, isRight: true })
  })

  it('using it keeps it alive', () => {
    const conversation = begun()
    const whys = [1, 2, 3].map((turn) => {
      conversation.now += 4 * MINUTE
      const { why, isRight } = asked(conversation)
      conversation.answer([text(`${turn}`)])
      conversation.builder.user(`${turn}`)
      return [why, isRight]
    })
    expect(whys).toEqual([
      ['warm', true],
      ['warm', true],
      ['warm', true],
    ])
    expect(findNewestPrefixExpiry(conversation.lineage)).toBe(conversation.now + 5 * MINUTE)
  })

  it('nothing before the first request, and nothing without markers', () => {
    const conversation = new Conversation()
    conversation.builder.user('begin')
    expect(asked(conversation)).toEqual({ why: 'first', isRight: true, read: 0 })
    conversation.ttl = null
    expect(asked(conversation)).toEqual({ why: 'off', isRight: true, read: 0 })
    conversation.ttl = '5m'
    expect(asked(conversation)).toMatchObject({ why: 'warm', isRight: true })
  })

  it('a turn wider than the look-back is caught by the lagging marker, and lost without it', () => {
    const wide = (clears: boolean) => {
      const conversation = begun()
      conversation.clears = clears
      conversation.ask()
      conversation.answer(Array.from({ length: 30 }, (_, index) => text(`step ${index}`)))
      conversation.builder.user('more')
      return asked(conversation)
    }
    expect(wide(true)).toMatchObject({ why: 'warm', isRight: true })
    expect(wide(false).why).toBe('out-of-reach')
  })

  it.each([
    [18, 'warm'],
    [19, 'out-of-reach'],
  ])('one marker looks back over 20 positions, itself the first: %i between are %s', (between, why) => {
    const conversation = begun()
    conversation.clears = false
    conversation.ask()
    conversation.answer(Array.from({ length: between }, (_, index) => text(`step ${index}`)))
    conversation.builder.user('more')
    const { forecast, usage } = conversation.ask()
    expect([forecast.why, usage.read === 0 || forecast.read > 0]).toEqual([why, true])
    if (why === 'warm') expect(usage.read).toBe(forecast.read)
  })

  it('the first image loses the messages', () => {
    const conversation = begun()
    conversation.ask()
    conversation.answer([text('show me')])
    conversation.builder.user([{ type: 'image', source: { type: 'url', url: 'https://example.test/a.png' } }])
    const { forecast, usage } = conversation.ask()
    expect([forecast.why, forecast.isCertain]).toEqual(['key', false])
    expect(usage.read).toBeGreaterThan(0)
  })

  it('too short a prefix is not kept', () => {
    const conversation = begun(
      '5m',
      defineMessagesProfile({ ...PROFILE, cache: { ...PROFILE.cache, minimumTokens: 100_000 } }),
    )
    expect(asked(conversation)).toEqual({ why: 'first', isRight: true, read: 0 })
    expect(findNewestPrefixExpiry(conversation.lineage)).toBe(null)
  })

  it('what the provider dropped on its own is forgotten', () => {
    const conversation = begun()
    const { request, forecast, usage } = conversation.ask()
    const evicted = { ...usage, read: 0, writes: { short: forecast.read + 50, long: 0 } }
    const lineage = updateCacheModelFromResponse(conversation.lineage, forecast, evicted)
    const again = forecastCacheRead(lineage, { request, now: conversation.now, profile: PROFILE })
    expect([again.read, again.isCertain]).toEqual([forecast.read + 50, true])
    expect(lineage.chains[0]?.prefixes.map(({ blocks }) => blocks)).toEqual(
      forecast.basis.request.markedPrefixes.map(({ blocks }) => blocks),
    )
  })
})

describe('a clearing', () => {
  const ids = Array.from({ length: 20 }, (_, index) => `call-${index}`)

  /** A tool loop longer than a marker looks back, most of its results cleared. */
  function cleared(): Conversation {
    const conversation = begun()
    for (const id of ids) {
      conversation.ask()
      round(conversation, id)
    }
    conversation.ask()
    conversation.answer([text('done')])
    conversation.builder.user('next')
    conversation.ask()
    const microcompactMetadata = {
      trigger: 'auto',
      preTokens: 2,
      tokensSaved: 1,
      compactedToolIds: ids.slice(0, -3),
      clearedAttachmentUUIDs: [],
    }
    conversation.builder.notice('microcompact_boundary', { microcompactMetadata })
    return conversation
  }

  it('re-bills only what lies behind the edge', () => {
    const conversation = cleared()
    const { payload, usage, forecast } = conversation.ask()
    const first = payload.messages.findIndex(({ content }) =>
      JSON.stringify(content).includes('"tool_result"'),
    )
    const before = { ...payload, messages: payload.messages.slice(0, first) }
    const kept = conversation.cache.ask(before, conversation.now)
    const size = kept.read + kept.writes.short + kept.writes.long + kept.input
    expect(usage.read).toBe(size)
    expect(forecast.why).toBe('rewritten')
  })

  it('and its undoing finds what was there before, to the token', () => {
    const conversation = cleared()
    const before = conversation.lineage.chains[0]?.sizes.last?.tokens
    conversation.ask()
    conversation.builder.notice('clear_undone', { of: conversation.builder.view.rewrites[0]?.uuid ?? '' })
    const { forecast, usage } = conversation.ask()
    expect([forecast.isCertain, forecast.read, usage.read]).toEqual([true, before, before])
  })
})

describe('a fork', () => {
  function fork(conversation: Conversation, parent: AssembledRequest) {
    const made = createForkRequest(parent, [{ role: 'user', content: 'sum up' }], {
      profile: PROFILE,
      ttl: '5m',
    })
    const { now, lineage, cache } = conversation
    const forecast = forecastCacheRead(lineage, { request: made, now, profile: PROFILE })
    return { forecast, usage: cache.ask(toPayload(made), now) }
  }

  it.each([2, 6])('forgets nothing that a request answered meanwhile has used, %i minutes on', (minutes) => {
    const conversation = begun()
    const { request } = conversation.ask()
    conversation.now += minutes * MINUTE
    const { forecast, usage } = fork(conversation, request)
    round(conversation, 'a')
    conversation.ask()
    const used = conversation.lineage.chains[0]?.prefixes.map(({ blocks, usedAt }) => ({ blocks, usedAt }))
    conversation.lineage = updateCacheModelFromFork(conversation.lineage, forecast, usage)
    const kept = conversation.lineage.chains[0]?.prefixes ?? []
    for (const prefix of used ?? [])
      if (prefix.usedAt === conversation.now) expect(kept).toContainEqual(expect.objectContaining(prefix))
  })

  it('that only reads keeps the entry alive and changes nothing else', () => {
    const conversation = begun()
    const { request } = conversation.ask()
    conversation.now += 4 * MINUTE
    const { forecast, usage } = fork(conversation, request)
    expect([forecast.read, forecast.why]).toEqual([usage.read, 'warm'])
    const strand = conversation.lineage.chains[0]
    conversation.lineage = updateCacheModelFromFork(conversation.lineage, forecast, usage)
    expect(conversation.lineage.chains[0]?.blockIndex).toBe(strand?.blockIndex)
    conversation.now += 4 * MINUTE
    expect(asked(conversation)).toMatchObject({ why: 'warm', isRight: true })
  })
})

describe('a session opened again', () => {
  it('recalls from its log what its newest response left in the cache', () => {
    const conversation = begun()
    round(conversation, 'a')
    const { usage } = conversation.ask()
    const { builder, front, flat } = conversation
    const said = { id: 'm', role: 'assistant' as const, model: 'model-a', content: [text('done')] }
    const prompt = Date.parse(builder.records.findLast(({ type }) => type === 'user')?.timestamp ?? '')
    builder.assistant('m', [text('done')], { message: said, usage })
    builder.user('next')
    const { request } = conversation.assemble()
    if (front === undefined || flat === undefined || conversation.flat === undefined)
      throw new Error('no request')
    const { markers } = POLICY.cache
    const question = { front, flat: conversation.flat, profile: PROFILE, markers, ttl: '5m', clears: true }
    const recalled = restoreCacheModel({ ...question, edge: conversation.edge }, builder.view)
    expect(findNewestPrefixExpiry(recalled)).toBe(prompt + 5 * MINUTE)
    const left = usage.read + usage.writes.short + usage.writes.long
    const warm = forecastCacheRead(recalled, { request, now: prompt + MINUTE, profile: PROFILE })
    expect([warm.read, warm.isCertain, warm.why]).toEqual([left, true, 'warm'])
    const late = forecastCacheRead(recalled, { request, now: prompt + 6 * MINUTE, profile: PROFILE })
    expect([late.read, late.why]).toEqual([0, 'expired'])
  })

  it('recalls the gaps between its calls', () => {
    const builder = new SessionBuilder()
    const at = (minutes: number) => ({ timestamp: new Date(minutes * MINUTE).toISOString() })
    const answer = (id: string, input: number, minutes: number) => {
      const usage = { input: input, output: 5 }
      const message = { id, role: 'assistant' as const, model: 'm', content: [text('x')], usage }
      for (const _ of [1, 2]) builder.assistant(id, 'x', { message, ...at(minutes) })
    }
    builder.user('one', at(0))
    answer('a', 1000, 1)
    builder.user('two', at(2))
    answer('b', 1500, 3)
    builder.user('three', at(20))
    answer('c', 1800, 21)
    builder.user('four', at(120))
    answer('d', 2000, 121)
    expect(tallyLoggedGaps(builder.session, PROFILE.cache)).toEqual({
      calls: 4,
      added: 2000,
      lapsed: 1500,
      lost: 1800,
      tail: { added: 1000, lapsed: 500, lost: 800 },
    })
  })

  it('knows nothing where nothing was measured, or all was measured before a rewrite', () => {
    const conversation = begun()
    const { request } = conversation.assemble()
    if (conversation.flat === undefined) throw new Error('no request')
    const { markers } = POLICY.cache
    const question = {
      front: request.front,
      flat: conversation.flat,
      profile: PROFILE,
      markers,
      ttl: '5m',
      clears: true,
    }
    expect(restoreCacheModel(question, conversation.builder.view)).toEqual(EMPTY_CACHE_MODEL)
    const usage = { input: 1, output: 1, read: 9 }
    const said = { id: 'm', role: 'assistant' as const, model: 'model-a', content: 'x', usage }
    conversation.builder.assistant('m', 'x', { message: said })
    conversation.present = { ...PRESENT, model: 'model-b' }
    conversation.assemble()
    expect(restoreCacheModel({ ...question, flat: conversation.flat }, conversation.builder.view)).toEqual(
      EMPTY_CACHE_MODEL,
    )
  })
})

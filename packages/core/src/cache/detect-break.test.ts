import { createUsage } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { MUTATIONS, type Mutation, messages, withText } from '../../test/breaks/mutations.ts'
import { RULES } from '../../test/breaks/rules.ts'
import { FIVE_MINUTES, longTalk, requestOf, rounded, TEXT } from '../../test/breaks/talk.ts'
import { createWatcher, type Sent, type Watcher } from '../../test/breaks/watcher.ts'
import type { TokenUsage } from '../log/reply-report.ts'
import { countMessages } from '../request/block-index.ts'
import type { CacheBreak } from './cache-break-types.ts'
import { countLostCacheTokens, findCallRates, isCacheBreak, priceLostCacheTokens } from './detect-break.ts'
import type { SentRequest } from './sent-request.ts'

/** What the first request leaves in the cache. */
const CACHED = 28_803

interface Run extends Sent {
  readonly watcher: Watcher
}

function run({ mutate, lifetime = FIVE_MINUTES, habits, befall }: Mutation): Run {
  const watcher = createWatcher(RULES, habits)
  const talk = longTalk()
  watcher.send(requestOf(talk, 0, lifetime))
  befall?.(watcher.cache)
  return { watcher, ...watcher.send(mutate(requestOf(rounded(talk, 2, TEXT), 1_000, lifetime))) }
}

function eventIn({ outcome, usage }: Sent): CacheBreak {
  if (outcome.kind !== 'broke') throw new Error(`no break: ${JSON.stringify([outcome, usage])}`)
  return outcome.event
}

function anew({ input, writes }: TokenUsage): number {
  return input + writes.short + writes.long
}

describe('a cache broken on purpose', () => {
  it.each(MUTATIONS)('gives its own reason: $name', (mutation) => {
    const event = eventIn(run(mutation))
    expect([event.reason, event.also]).toEqual([mutation.reason, mutation.also ?? []])
  })

  it.each(MUTATIONS)('is counted and priced: $name', (mutation) => {
    const sent = run(mutation)
    const { expected, read, tokensLost, moneyLost } = eventIn(sent)
    const fallen = CACHED - sent.usage.read
    const lost = Math.min(fallen, anew(sent.usage))
    const rate = mutation.rate ?? 2.5
    expect([expected, read, tokensLost]).toEqual([CACHED, sent.usage.read, lost])
    expect(moneyLost).toBeCloseTo((lost * (rate - 0.2)) / 1e6, 12)
  })

  it.each(MUTATIONS)('is told once: $name', (mutation) => {
    const { watcher } = run(mutation)
    const again = mutation.mutate(requestOf(rounded(longTalk(), 2, TEXT), 2_000, mutation.lifetime))
    expect(watcher.send(again).outcome.kind).toBe('read')
  })

  it.each(MUTATIONS)('is told in a line a person can act on: $name', (mutation) => {
    const { sentence } = eventIn(run(mutation))
    expect(sentence).toMatch(/^Cache broke: .+; [\d,]+ tokens processed again \(\$\d+\.\d+\)\. [A-Z].+\.$/)
    expect(sentence).not.toContain('\n')
  })

  it('has a reason of its own in each of the table', () => {
    const reasons = MUTATIONS.map(({ reason }) => JSON.stringify(reason))
    expect([reasons.length, new Set(reasons).size]).toEqual([28, 28])
  })
})

describe('reading again and again too little', () => {
  it('is a break every time, though the read never falls', () => {
    const watcher = createWatcher()
    let talk = longTalk()
    const kinds = [0, 1, 2, 3].map((turn) => {
      watcher.cache.evict()
      const { outcome } = watcher.send(requestOf(talk, turn * 1_000))
      talk = rounded(talk, 2, TEXT)
      return outcome.kind
    })
    expect(kinds).toEqual(['first', 'broke', 'broke', 'broke'])
  })
})

describe('several things at once', () => {
  const talk = longTalk()
  const next = rounded(talk, 2, TEXT)

  it('puts what lies earliest in the key first, and names the rest', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    const sent = requestOf(next, 1_000)
    const event = eventIn(
      watcher.send({
        ...sent,
        tools: sent.tools.slice(1),
        parameters: { ...sent.parameters, effort: 'low' },
      }),
    )
    expect([event.reason.kind, event.also.map(({ kind }) => kind)]).toEqual([
      'tools-removed',
      ['effort-changed'],
    ])
    expect(event.evidence).toBe(
      '0 of 28,803 expected tokens were read, 1 s after the request before. also: the effort changed (high → low)',
    )
  })

  it('believes the provider where it says which it was', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    const sent = requestOf(next, 1_000)
    const changed = {
      ...sent,
      tools: sent.tools.slice(1),
      system: sent.system.map((piece) => ({ ...piece, text: `${piece.text}!` })),
    }
    const word = { zone: 'system', missedTokens: 25_000, said: 'system_changed' } as const
    const event = eventIn(watcher.send(changed, { word }))
    expect([event.reason, event.provider]).toEqual([
      { kind: 'section-changed', name: 'identity', characters: 1 },
      word,
    ])
    expect(event.evidence).toMatch(/the provider agrees: system_changed \(25,000 tokens\)$/)
  })

  it('takes the word of the provider where nothing we sent changed', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.cache.evict()
    const word = { zone: 'tools', missedTokens: null, said: 'tools_changed' } as const
    const event = eventIn(watcher.send(requestOf(next, 1_000), { word }))
    expect(event.reason).toEqual({ kind: 'told-by-provider', zone: 'tools' })
  })

  it('does not take it for a reason that the provider could not look', () => {
    const word = { zone: 'other', missedTokens: null, said: 'unavailable', isVague: true } as const
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.cache.evict()
    const lost = eventIn(watcher.send(requestOf(next, 1_000), { word }))
    expect(lost.reason).toEqual({ kind: 'evicted' })
    expect(lost.evidence).toMatch(/the provider cannot tell: unavailable$/)
  })

  it('lets it back a change of a parameter', () => {
    const word = { zone: 'other', missedTokens: null, said: 'unavailable', isVague: true } as const
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    const sent = requestOf(next, 1_000)
    const changed = { ...sent, parameters: { ...sent.parameters, effort: 'low' } }
    const event = eventIn(watcher.send(changed, { word }))
    expect(event.reason.kind).toBe('effort-changed')
    expect(event.evidence).toMatch(/the provider may agree: unavailable$/)
  })

  it.each([
    { minutes: 20, kind: 'expired', also: ['parameter-changed'] },
    { minutes: 1, kind: 'parameter-changed', also: [] },
  ])(
    'names a pause of $minutes minutes before context edits that cleared nothing',
    ({ minutes, kind, also }) => {
      const watcher = createWatcher()
      watcher.send(requestOf(talk, 0))
      watcher.cache.evict()
      const sent = requestOf(next, minutes * 60_000)
      const others = { context_management: '{"edits":[{"type":"clear_tool_uses_20250919"}]}' }
      const event = eventIn(watcher.send({ ...sent, parameters: { ...sent.parameters, others } }))
      expect([event.reason.kind, event.also.map((each) => each.kind)]).toEqual([kind, also])
    },
  )

  it.each(MUTATIONS.filter(({ befall, reason }) => befall === undefined && reason.kind !== 'expired'))(
    'names a pause that the cache did not outlive, and as a second fact: $name',
    ({ mutate, reason, also = [] }) => {
      const watcher = createWatcher()
      watcher.send(requestOf(longTalk(), 0))
      const event = eventIn(watcher.send(mutate(requestOf(rounded(longTalk(), 2, TEXT), 301_000))))
      expect(event.reason).toEqual({ kind: 'expired', ttl: '5m', gapMs: 301_000 })
      expect(event.also).toEqual(reason.kind === 'look-back-outrun' ? [] : [reason, ...also])
      expect([event.read, event.ours]).toEqual([0, null])
    },
  )

  it('quotes no secret of what changed', () => {
    const redact = (text: string): string => text.replaceAll(/key-\w+/g, '[redacted]')
    const watcher = createWatcher({ ...RULES, redact })
    const sending = (at: number, body: string): SentRequest => {
      const sent = requestOf(at === 0 ? talk : next, at)
      return { ...sent, parameters: { ...sent.parameters, others: { body } } }
    }
    watcher.send(sending(0, 'key-1'))
    const event = eventIn(watcher.send(sending(1_000, 'key-2')))
    expect(event.reason).toEqual({
      kind: 'parameter-changed',
      name: 'body',
      before: '[redacted]',
      after: '[redacted]',
    })
    expect(JSON.stringify(event)).not.toContain('key-')
  })

  it.each(['thinking', 'toolChoice', 'speed', 'effort'] as const)('quotes no secret of %s either', (name) => {
    const redact = (text: string): string => text.replaceAll(/key-\w+/g, '[redacted]')
    const watcher = createWatcher({ ...RULES, redact })
    const sending = (at: number, value: string): SentRequest => {
      const sent = requestOf(at === 0 ? talk : next, at)
      return { ...sent, parameters: { ...sent.parameters, [name]: value } }
    }
    watcher.send(sending(0, 'key-1'))
    const event = eventIn(watcher.send(sending(1_000, 'key-2')))
    expect(event.reason).toMatchObject({ before: '[redacted]', after: '[redacted]' })
    expect(JSON.stringify(event)).not.toContain('key-')
  })

  it('does not lay a lost prefix on a message far behind it', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.send(requestOf(next, 1_000))
    watcher.cache.evict()
    const behind = countMessages(talk.flat) + 1
    const event = eventIn(watcher.send(rewritten(requestOf(rounded(next, 2, TEXT), 2_000), behind)))
    const change = { kind: 'message-changed', index: behind, origin: 'r22', by: 'unknown', characters: 0 }
    expect([event.reason, event.also]).toEqual([{ kind: 'evicted' }, [change]])
  })

  it('lays it there where all in front of it was read', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.send(requestOf(next, 1_000))
    const behind = countMessages(talk.flat) + 1
    const event = eventIn(watcher.send(rewritten(requestOf(rounded(next, 2, TEXT), 2_000), behind)))
    expect([event.reason.kind, event.read, event.tokensLost]).toEqual(['message-changed', CACHED, 2_228])
  })
})

function rewritten(sent: SentRequest, at: number): SentRequest {
  return messages((all) =>
    all.map((each, index) => (index === at ? withText(each, 'words', 'WORDS') : each)),
  )(sent)
}

const LIMITS = { percent: 5, tokens: 2_000 }

function billed(cacheRead: number, writeShort: number, others: { writeLong?: number; input?: number } = {}) {
  return { cacheRead, writeShort, writeLong: 0, input: 0, output: 0, ...others }
}

describe('isBreak', () => {
  it.each([
    { expected: 100_000, read: 95_000, anew: 9_000, is: false, why: 'exactly five per cent' },
    { expected: 100_000, read: 94_999, anew: 9_000, is: true, why: 'more than five per cent' },
    { expected: 10_000, read: 8_000, anew: 9_000, is: false, why: 'exactly two thousand' },
    { expected: 10_000, read: 7_999, anew: 9_000, is: true, why: 'more than two thousand' },
    { expected: 100_000, read: 50_000, anew: 2_000, is: false, why: 'nothing was paid for again' },
    { expected: 100_000, read: 110_000, anew: 9_000, is: false, why: 'more was read than expected' },
    { expected: 0, read: 0, anew: 90_000, is: false, why: 'nothing was expected' },
  ])('$why: $is', ({ expected, read, anew, is }) => {
    expect(isCacheBreak({ expected, tokens: billed(read, anew) }, LIMITS)).toBe(is)
  })
})

describe('tokensLost', () => {
  it('is what is missing, as far as it was paid for', () => {
    const readings = [
      { expected: 50_000, tokens: billed(10_000, 45_000) },
      { expected: 50_000, tokens: billed(10_000, 30_000, { input: 5_000 }) },
      { expected: 50_000, tokens: billed(60_000, 1_000) },
    ]
    expect(readings.map(countLostCacheTokens)).toEqual([40_000, 35_000, 0])
  })
})

describe('moneyLost', () => {
  const rates = { input: 2, cacheRead: 0.2, writeShort: 2.5, writeLong: 4, output: 10 }

  it.each([
    { name: '5-minute writes', lost: 10_000, tokens: billed(0, 20_000), dollars: 0.023 },
    { name: '1-hour writes', lost: 10_000, tokens: billed(0, 0, { writeLong: 20_000 }), dollars: 0.038 },
    {
      name: 'both, by their shares',
      lost: 10_000,
      tokens: billed(0, 5_000, { writeLong: 15_000 }),
      dollars: 0.03425,
    },
    {
      name: 'plain input, where not enough was written',
      lost: 10_000,
      tokens: billed(0, 4_000, { input: 6_000 }),
      dollars: 0.02,
    },
    { name: 'nothing', lost: 0, tokens: billed(0, 0), dollars: 0 },
  ])('of $name', ({ lost, tokens, dollars }) => {
    expect(priceLostCacheTokens(lost, tokens, rates)).toBeCloseTo(dollars, 12)
  })

  it.each([
    { name: 'no prices at all', rates: null },
    { name: 'no price of a read', rates: { ...rates, cacheRead: null } },
    { name: 'no price of what was written', rates: { ...rates, writeShort: null } },
  ])('is not known with $name', ({ rates: given }) => {
    expect(priceLostCacheTokens(10_000, billed(0, 20_000), given)).toBeNull()
  })

  it('needs no price of what was not used', () => {
    expect(
      priceLostCacheTokens(10_000, billed(0, 20_000), { ...rates, writeLong: null, input: null }),
    ).toBeCloseTo(0.023, 12)
  })
})

describe('ratesOf', () => {
  const prices = {
    input: 1,
    cacheRead: 0.1,
    writeShort: 1.25,
    writeLong: 2,
    output: 5,
    tiers: [{ above: 100_000, input: 5, cacheRead: 0.5, writeShort: 6.25, writeLong: 10, output: 25 }],
    factors: { speed: { fast: 2 } },
  }
  const usage = createUsage({})

  it('goes by the size of the prompt and by what the usage says', () => {
    const small = findCallRates(usage, billed(90_000, 10_000), prices)
    const large = findCallRates(usage, billed(90_000, 10_001), prices)
    const fast = findCallRates({ ...usage, terms: { speed: 'fast' } }, billed(0, 0), prices)
    expect([
      small?.writeShort,
      large?.writeShort,
      fast?.writeShort,
      findCallRates(usage, billed(0, 0), null),
    ]).toEqual([1.25, 6.25, 2.5, null])
  })
})

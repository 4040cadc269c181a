/** What is no break, on the simulator: the cache is read as it should be, or the engine said beforehand what it would do. */
import type { RewriteAnnouncement } from '@tidemark/core/cache/cache-break-types'
import { withAnnouncedRewrite } from '@tidemark/core/cache/cache-monitor'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { describe, expect, it } from 'vitest'
import { CacheTalk, type CacheTalkOptions, type Change, MAIN, type Seen } from './cache-talk.ts'
import { turnedBetas } from './mutations.ts'

interface Quiet {
  readonly name: string
  readonly options?: CacheTalkOptions
  readonly befall?: (talk: CacheTalk) => void | Promise<void>
  readonly change?: Change
}

const LATE = { name: 'mcp__late', description: 'Comes late.', input_schema: { type: 'object' } }

const QUIET: readonly Quiet[] = [
  { name: 'a turn like any other' },
  { name: 'a pause just short of the lifetime', befall: (talk) => talk.clock.advance(289_999) },
  {
    name: 'a pause just short of the longer lifetime',
    befall: (talk) => talk.clock.advance(3_589_999),
    options: { ttl: '1h' },
  },
  { name: 'the lifetime of the markers, which the provider does not cache by', change: { ttl: '1h' } },
  {
    name: 'a parameter that no cache depends on',
    change: { epoch: (epoch) => ({ ...epoch, parameters: { ...epoch.parameters, max_tokens: 3_000 } }) },
  },
  {
    name: 'betas in another order',
    change: { epoch: turnedBetas },
    options: { parameters: { betas: ['context-1m-2025-08-07', 'interleaved-thinking-2025-05-14'] } },
  },
  {
    name: 'messages that say the same and are other objects',
    change: { messages: (all) => structuredClone(all) },
  },
  {
    name: 'a turn wider than the look-back, with its lagging marker',
    befall: ({ told }) => {
      told.builder.user(Array.from({ length: 24 }, (_, index) => ({ type: 'text', text: `Note ${index}.` })))
    },
  },
]

/** Twelve calls, and what the twelfth left in the cache. */
async function begun(
  options: CacheTalkOptions = {},
): Promise<{ readonly talk: CacheTalk; readonly left: number }> {
  const talk = new CacheTalk(options)
  const { usage } = await talk.goOn(12)
  talk.answerCalls()
  return { talk, left: readReportedContextTokens(usage) }
}

async function next(talk: CacheTalk, change: Change = {}): Promise<Seen> {
  await talk.clock.advance(10_000)
  return talk.ask(change)
}

function announce(talk: CacheTalk, announcement: RewriteAnnouncement): void {
  talk.watch = withAnnouncedRewrite(talk.watch, MAIN, announcement)
}

const readIn = (usage: TokenUsage): number => usage.read

describe('no break', () => {
  it('is in the first call', async () => {
    expect((await new CacheTalk().goOn(1)).outcome).toEqual({ kind: 'first' })
  })

  it.each(QUIET)('is $name', async ({ options, befall, change }) => {
    const { talk, left } = await begun(options)
    await befall?.(talk)
    const { outcome, usage, forecast } = await next(talk, change)
    expect([outcome, readIn(usage), forecast.read]).toEqual([
      { kind: 'read', expected: left, read: left },
      left,
      left,
    ])
  })

  it('is a section that changed: it comes as a delta', async () => {
    const { talk, left } = await begun()
    const { present } = talk.told
    const sections = present.sections.map((each) =>
      each.name === 'git' ? { ...each, text: 'Two files changed.' } : each,
    )
    talk.told.present = { ...present, sections }
    const { outcome } = await next(talk)
    expect(talk.told.changes.map(({ kind }) => kind)).toEqual(['delta'])
    expect(outcome).toEqual({ kind: 'read', expected: left, read: left })
  })

  it('is a tool that comes late or goes', async () => {
    const { talk, left } = await begun()
    const { present } = talk.told
    talk.told.present = { ...present, tools: [...present.tools, LATE] }
    const { outcome } = await next(talk)
    expect([talk.told.changes.map(({ kind }) => kind), outcome]).toEqual([
      ['delta'],
      { kind: 'read', expected: left, read: left },
    ])
    talk.told.present = present
    const { usage } = talk.last ?? { usage: null }
    expect((await talk.goOn(1)).outcome).toEqual({
      kind: 'read',
      expected: readReportedContextTokens(usage),
      read: readReportedContextTokens(usage),
    })
  })

  it('is a rewind: what it goes back to is read', async () => {
    const { talk } = await begun()
    const prompt = talk.told.builder.user('One way.')
    const { usage: before } = await next(talk)
    talk.told.builder.user('Another way.', { parentUuid: prompt.parentUuid })
    const { outcome, usage } = await next(talk)
    expect([outcome.kind, readIn(usage)]).toEqual(['read', readIn(before)])
  })

  it('is a compaction, nor the call behind it', async () => {
    const { talk } = await begun()
    talk.told.compact()
    announce(talk, { kind: 'compaction' })
    const { outcome, usage } = await next(talk)
    expect(outcome).toEqual({ kind: 'first' })
    const left = readReportedContextTokens(usage)
    expect((await talk.goOn(1)).outcome).toEqual({ kind: 'read', expected: left, read: left })
  })

  it('is a clearing that was announced; it is told with what it really cost', async () => {
    const [{ talk, left }, { talk: twin }] = [await begun(), await begun()]
    const cleared = talk.told.clearable.slice(0, 6)
    const { usage: plain } = await next(twin)
    const freedTokens =
      readReportedContextTokens(plain) -
      readReportedContextTokens((await next(await clearing(cleared))).usage)
    talk.told.clear(cleared)
    announce(talk, { kind: 'clearing', act: 'cleared 6 results', freedTokens })
    const { outcome, usage } = await next(talk)
    const tokensRewritten = left - freedTokens - readIn(usage)
    expect(readReportedContextTokens(usage) - readIn(usage)).toBe(
      tokensRewritten + (readReportedContextTokens(plain) - left),
    )
    expect(
      outcome.kind === 'ours' && [outcome.act.tokensRewritten, outcome.act.moneySpent?.toFixed(12)],
    ).toEqual([tokensRewritten, ((tokensRewritten * (6.25 - 0.5)) / 1e6).toFixed(12)])
    expect((await talk.goOn(1)).outcome).toEqual({
      kind: 'read',
      expected: readReportedContextTokens(usage),
      read: readReportedContextTokens(usage),
    })
  })

  it('is a deletion from the cached prefix, and nothing is processed again for it', async () => {
    const { talk, left } = await begun({ cacheEdits: true, simulator: { cachedClearing: true } })
    talk.told.delete(talk.told.clearable.slice(0, 6))
    announce(talk, { kind: 'cache-edits', act: 'deleted 6 results', deletedBefore: 0 })
    const { outcome, usage } = await next(talk)
    const deleted = Number(usage.removed)
    expect(deleted).toBeGreaterThan(4_000)
    expect(outcome).toEqual({ kind: 'read', expected: left - deleted, read: left - deleted })
    expect((await talk.goOn(1)).outcome).toEqual({
      kind: 'read',
      expected: readReportedContextTokens(usage),
      read: readReportedContextTokens(usage),
    })
  })
})

/** A conversation where those results are cleared, to see how large it then is. */
async function clearing(cleared: readonly string[]): Promise<CacheTalk> {
  const { talk } = await begun()
  talk.told.clear(cleared)
  return talk
}

describe('a break that is ours', () => {
  it('is told as such, with the act', async () => {
    const { talk } = await begun()
    announce(talk, { kind: 'rewrite', zone: 'system', act: 'rewrote section git' })
    const { outcome } = await next(talk, {
      epoch: (epoch) => ({
        ...epoch,
        sections: epoch.sections.map((each) =>
          each.name === 'git' ? { ...each, text: 'Two files changed.' } : each,
        ),
      }),
    })
    if (outcome.kind !== 'broke') throw new Error('expected a break')
    expect([outcome.event.reason, outcome.event.ours]).toEqual([
      { kind: 'section-changed', name: 'git', characters: -4 },
      { act: 'rewrote section git', breakEvenTurns: null },
    ])
  })
})

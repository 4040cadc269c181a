/** The edge marker on the simulator: a clearing re-bills what lies behind it, and without it all messages. */
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { describe, expect, it } from 'vitest'
import { CacheTalk, type CacheTalkOptions, type Seen } from './cache-talk.ts'

const readIn = (usage: TokenUsage): number => usage.read

const STORY = 'Here is the whole story. '.repeat(2_000)

/** A long session: a prompt of 12,500 tokens, thirty calls, twenty results cleared, ten calls more. */
async function long(options: CacheTalkOptions): Promise<CacheTalk> {
  const talk = new CacheTalk(options)
  talk.told.builder.user(STORY)
  await talk.goOn(30)
  talk.told.clear(talk.told.clearable.slice(0, 20))
  await talk.goOn(10)
  talk.answerCalls()
  await talk.clock.advance(10_000)
  return talk
}

interface Cleared {
  readonly talk: CacheTalk
  readonly seen: Seen
  /** Tokens the request before had left in the cache, that are still sent and had to be written again. */
  readonly rebilled: number
}

/** Clears eight more results; a conversation like it that does not tells what is new and would be written anyway. */
async function cleared(options: CacheTalkOptions): Promise<Cleared> {
  const [talk, twin] = [await long(options), await long(options)]
  talk.told.clear(talk.told.clearable.slice(0, 8))
  const [seen, plain] = [await talk.ask(), await twin.ask()]
  const isNew = readReportedContextTokens(plain.usage) - readIn(plain.usage)
  return { talk, seen, rebilled: readReportedContextTokens(seen.usage) - readIn(seen.usage) - isNew }
}

/** Tokens up to where a marker of the request stands, by the simulator's count. */
function tokensAt({ request, record }: Seen, kind: string): number | undefined {
  const index = request.markers.findIndex((marker) => marker.kind === kind)
  return record.cache?.breakpoints[index]?.tokens
}

describe('a clearing', () => {
  it('re-bills only what lies behind the edge marker; the calls behind it read what is foreseen', async () => {
    const { talk, seen, rebilled } = await cleared({ clears: true })
    expect([readIn(seen.usage), rebilled]).toEqual([18_071, 21_525])
    expect(tokensAt(seen, 'before-first-clearable')).toBe(18_071)
    // Nobody has told how large the prefix at the edge is: an estimate, and known to be one.
    expect([seen.forecast.why, seen.forecast.isCertain]).toEqual(['rewritten', false])
    expect(Math.abs(seen.forecast.read / 18_071 - 1)).toBeLessThan(0.1)
    for (let call = 0; call < 8; call += 1) {
      const { forecast, usage } = await talk.goOn(1)
      expect([forecast.why, forecast.read]).toEqual(['warm', readIn(usage)])
    }
    // The edge has moved on: the next clearing finds more in front of it.
    talk.told.clear(talk.told.clearable.slice(0, 6))
    const next = await talk.goOn(1)
    expect(readIn(next.usage)).toBe(tokensAt(next, 'before-first-clearable'))
    expect(readIn(next.usage)).toBeGreaterThan(18_071)
  })

  it('re-bills all messages where there is none: tier 1 is off, and one marker stands on them', async () => {
    const { seen, rebilled } = await cleared({ clears: false })
    const onMessages = seen.request.markers.filter(({ place }) => place.zone === 'messages')
    expect(onMessages.map(({ kind }) => kind)).toEqual(['last-message'])
    expect([readIn(seen.usage), rebilled]).toEqual([3_229, 36_367])
    expect(tokensAt(seen, 'system')).toBe(3_229)
  })
})

describe('a session with a clearing every eight calls', () => {
  it('costs less with the edge marker than without, and reads what is foreseen', async () => {
    const bill = async (clears: boolean): Promise<number> => {
      const talk = new CacheTalk({ clears })
      talk.told.builder.user(STORY)
      let dollars = 0
      for (let round = 0; round < 6; round += 1) {
        for (let call = 0; call < 8; call += 1) {
          const { record, forecast, usage } = await talk.goOn(1)
          if (forecast.isCertain) expect(forecast.read).toBe(readIn(usage))
          dollars += record.cost?.total ?? Number.NaN
        }
        talk.told.clear(talk.told.clearable.slice(0, 8))
      }
      return dollars
    }
    const [withEdge, without] = [await bill(true), await bill(false)]
    expect([withEdge.toFixed(2), without.toFixed(2)]).toEqual(['1.46', '1.88'])
  })
})

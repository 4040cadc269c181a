import { countPropertyRuns, SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { buildContextView } from '../../src/context/context-view.ts'
import type { ApiMessage, Payload } from '../../src/context/payload.ts'
import type { SessionRecord } from '../../src/log/record.ts'
import { buildSessionLog } from '../../src/log/session-log.ts'
import { toPayload } from '../../src/request/build-request.ts'
import { createForkRequest } from '../../src/request/fork-request.ts'
import { emptyKnownPrefix, type KnownPrefix, updateKnownPrefix } from '../../src/request/prefix-snapshot.ts'
import { validateRequest } from '../../src/validate/validate-request.ts'
import { Conversation, PROFILE } from './conversation.ts'
import { lead, led } from './led.ts'

/** What a cache sees of a payload, block by block, markers aside. */
function fragmentsOf({ tools = [], system = [], messages }: Payload): readonly string[] {
  const blocks = [...tools, ...(typeof system === 'string' ? [] : system)]
  return [...blocks.map((block) => bare('front', block)), ...messages.flatMap(messageFragments)]
}

function messageFragments({ role, content }: ApiMessage): readonly string[] {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  return blocks.map((block) => bare(role, block))
}

function bare(zone: string, block: object): string {
  const { cache_control: _, ...rest } = block as { cache_control?: unknown }
  return `${zone} ${JSON.stringify(rest)}`
}

const markersIn = (payload: Payload): number => JSON.stringify(payload).split('"cache_control"').length - 1

const foldOf = ({ current: standing, sections, tools }: KnownPrefix) => ({ standing, sections, tools })

const RUNS = countPropertyRuns(100, 20)
const FEW_RUNS = countPropertyRuns(40)

describe('law 5: prefix, epochs and deltas included', () => {
  it('every request extends the one before except at declared breaks', () => {
    let compared = 0
    let deltas = 0
    fc.assert(
      fc.property(led(), (story) => {
        let before: readonly string[] = []
        lead(story, ({ payload, changes }, step) => {
          const now = fragmentsOf(payload)
          const isBreak = step !== 'turn' || changes.some((each) => each.kind === 'epoch' && each.breaksCache)
          deltas += changes.filter(({ kind }) => kind === 'delta').length
          if (!isBreak) {
            expect(now.slice(0, before.length)).toEqual(before)
            compared += 1
          }
          before = now
        })
      }),
      { numRuns: RUNS },
    )
    expect(compared).toBeGreaterThan(2 * RUNS)
    expect(deltas).toBeGreaterThan(RUNS / 2)
  })
})

describe('law 2: wire, markers included', () => {
  it('every request is one a provider takes, with at most four markers', () => {
    fc.assert(
      fc.property(led(), fc.boolean(), (story, clears) => {
        story.conversation.clears = clears
        lead(story, ({ payload, findings }) => {
          expect(findings).toEqual([])
          expect(validateRequest(payload, PROFILE)).toEqual([])
          expect(markersIn(payload)).toBeLessThanOrEqual(4)
          if (!clears) expect(markersIn({ ...payload, system: [], tools: [] })).toBe(1)
        })
      }),
      { numRuns: RUNS },
    )
  })
})

describe('law 1: replay of the prefix', () => {
  it('the log read again in another process gives the same request', () => {
    let whole = 0
    fc.assert(
      fc.property(led(), (story) => {
        const { conversation } = story
        lead(story, () => {})
        const { request } = conversation.assemble()
        const again = new Conversation(conversation.profile, new SessionBuilder('led'))
        for (const line of conversation.builder.records.map((record) => JSON.stringify(record)))
          again.builder.foreign(JSON.parse(line) as SessionRecord)
        again.present = conversation.present
        const reread = again.assemble()
        expect(reread.changes).toEqual([])
        expect(fragmentsOf(toPayload(reread.request))).toEqual(fragmentsOf(toPayload(request)))
        // Where the edge has just moved, the other process does not know from where.
        if (conversation.edge.left !== null) return
        expect(JSON.stringify(toPayload(reread.request))).toBe(JSON.stringify(toPayload(request)))
        whole += 1
      }),
      { numRuns: RUNS },
    )
    expect(whole).toBeGreaterThan(RUNS / 4)
  })

  it('what was told, kept up to date, equals what is folded from scratch', () => {
    fc.assert(
      fc.property(led(), (story) => {
        const { conversation } = story
        lead(story, () => {
          const { records } = conversation.builder
          const session = buildSessionLog(records)
          const fresh = updateKnownPrefix(emptyKnownPrefix(), session, buildContextView(session))
          expect(foldOf(conversation.told)).toEqual(foldOf(fresh))
        })
      }),
      { numRuns: FEW_RUNS },
    )
  })
})

describe('law: what is foreseen of the cache', () => {
  it('a figure that is certain is the one the provider bills', () => {
    let certain = 0
    let hits = 0
    fc.assert(
      fc.property(led(), (story) => {
        lead(story, ({ forecast, usage }) => {
          if (!forecast.isCertain) return
          expect([forecast.why, forecast.read]).toEqual([forecast.why, usage.read])
          certain += 1
          hits += forecast.read > 0 ? 1 : 0
        })
      }),
      { numRuns: RUNS },
    )
    expect(certain).toBeGreaterThan(2 * RUNS)
    expect(hits).toBeGreaterThan(1.5 * RUNS)
  })

  it('without a rewrite or a pause all that the request before left is read', () => {
    let warm = 0
    fc.assert(
      fc.property(led(), (story) => {
        let [left, at] = [0, 0]
        lead(story, ({ usage, changes }, step) => {
          const { now } = story.conversation
          const isBreak = step !== 'turn' || changes.some((each) => each.kind === 'epoch' && each.breaksCache)
          if (!isBreak && now - at < 300_000) {
            expect(usage.read).toBe(left)
            warm += 1
          }
          left = usage.read + usage.writes.short + usage.writes.long
          at = now
        })
      }),
      { numRuns: RUNS },
    )
    expect(warm).toBeGreaterThan(1.5 * RUNS)
  })
})

describe('law: forks', () => {
  it('say what their parent said, write nothing and leave it unaffected', () => {
    let forks = 0
    fc.assert(
      fc.property(led(), (story) => {
        const { conversation } = story
        lead(story, ({ request, payload, usage }) => {
          const parent = JSON.stringify(payload)
          const made = createForkRequest(request, [{ role: 'user', content: 'sum up' }], {
            profile: conversation.profile,
            ttl: '5m',
          })
          const forked = toPayload(made)
          const before = fragmentsOf(payload)
          expect(fragmentsOf(forked).slice(0, before.length)).toEqual(before)
          expect(fragmentsOf(forked)).toHaveLength(before.length + 1)
          expect(validateRequest(forked, conversation.profile)).toEqual([])
          const entries = conversation.cache.size
          const read = conversation.cache.ask(forked, conversation.now)
          expect(read.read).toBe(usage.read + usage.writes.short + usage.writes.long)
          expect([read.writes.short + read.writes.long, conversation.cache.size]).toEqual([0, entries])
          expect(JSON.stringify(toPayload(request))).toBe(parent)
          forks += 1
        })
      }),
      { numRuns: FEW_RUNS },
    )
    expect(forks).toBeGreaterThan(2.5 * FEW_RUNS)
  })
})

/** What is planned for a compaction: the target after a refusal, and the room that files leave free behind notes. */
import { describe, expect, it } from 'vitest'
import { addLargeRound, openTestSession, SESSION } from '../../test/engine/test-session.ts'
import { SessionBuilder } from '../../testing/session-builder.ts'
import { createUsage } from '../../testing/test-usage.ts'
import { isKnownRecord, type SessionRecord } from '../log/record.ts'
import { type CompactionOptions, estimatePrefixTokens, planCompaction } from './plan-compaction.ts'

const AUTO: CompactionOptions = { trigger: 'auto', cause: 'threshold' }
/** The auto-compact threshold in this window is 43,840 tokens, and the target 21,920. */
const WINDOW = 64_000

/** Plans for a session whose context grows by so many tokens a call, at a read price of a tenth of the input price. */
async function plan(growth: number, request: Partial<CompactionOptions>, cacheRead: number | null = 1) {
  const builder = new SessionBuilder(SESSION)
  builder.user('look at the login')
  for (let round = 0; round < 7; round += 1) addLargeRound(builder, 5_000)
  let calls = 0
  const records = builder.records.map((record): SessionRecord => {
    if (!isKnownRecord(record) || record.type !== 'assistant') return record
    calls += 1
    return { ...record, usage: createUsage({ input: calls * growth }) }
  })
  const { run, host } = await openTestSession(records, {
    window: WINDOW,
    policy: { compact: { target: { countsPrefix: true } }, notes: { kept: { maximumTokens: 40_000 } } },
    host: { pricesOf: () => ({ input: 10, cacheRead, writeShort: 12.5, writeLong: 20, output: 50 }) },
  })
  const planned = planCompaction(run.state, { ...AUTO, ...request }, host)
  if (!planned.ok) throw new Error(planned.message)
  return planned
}

describe('files do not fill the share of kept messages', () => {
  const notes = { notesText: 'Notes.', form: 'full' } as const

  it('behind notes, if the context is full again before reading it has cost as much as writing it', async () => {
    // 21,920 tokens are left above the target: 12 calls of 1,800 tokens, 13 of 1,600; a write costs 12.5 reads.
    const [fast, slow] = [await plan(1_800, notes), await plan(1_600, notes)]
    expect([fast.reservedTokens > 0, slow.reservedTokens]).toEqual([true, 0])
  })

  it('in no other compaction, and not if prices are unknown', async () => {
    const [summary, unpriced] = [await plan(1_800, {}), await plan(1_800, notes, null)]
    expect([summary.reservedTokens, unpriced.reservedTokens]).toEqual([0, 0])
  })
})

describe('the target', () => {
  it('after a refusal is half of the limit that the provider named, in tokens as they are estimated', async () => {
    const reactive = { cause: 'reactive', isForced: true } as const
    expect((await plan(1_000, reactive)).target).toBe(21_920)
    const { target, before } = await plan(1_000, { ...reactive, refused: { limit: 14_000 } })
    expect(target).toBe(7_000)
    const twice = { limit: 14_000, actual: 2 * before.expected }
    expect((await plan(1_000, { ...reactive, refused: twice })).target).toBe(3_500)
    expect((await plan(1_000, { ...reactive, refused: { limit: 900_000 } })).target).toBe(21_920)
  })
})

it('behind notes, a long system prompt takes nothing from the room of what comes back, unless the policy counts it', async () => {
  const findRoom = async (words: number, countsPrefix: boolean): Promise<number> => {
    const builder = new SessionBuilder(SESSION)
    builder.user('look at the login')
    for (let round = 0; round < 7; round += 1) addLargeRound(builder, 5_000)
    const tools = [{ name: 'Read', description: 'abc '.repeat(words), input_schema: { type: 'object' } }]
    const { run, host } = await openTestSession(builder.records, {
      window: 200_000,
      policy: { compact: { target: { countsPrefix } } },
      host: { readOfferedPrefix: () => ({ tools, model: 'model-a', parameters: { max_tokens: 100 } }) },
    })
    const planned = planCompaction(run.state, { ...AUTO, notesText: 'Notes.', form: 'full' }, host)
    if (!planned.ok) throw new Error(planned.message)
    const prefix = estimatePrefixTokens(run.state, host).expected
    expect(prefix).toBeGreaterThan(words / 2)
    return (planned.target ?? Number.NaN) - prefix
  }
  const [short, long] = [await findRoom(100, false), await findRoom(40_000, false)]
  expect(Math.abs(short - long)).toBeLessThan(2)
  expect(long).toBeGreaterThan(83_500)
  expect(await findRoom(40_000, true)).toBeLessThan(83_500 - 20_000)
})

import { presets } from '@tidemark/core/policy/presets'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { describe, expect, it } from 'vitest'
import { type AnswerOptions, LogBuilder } from '../../test/claude-code-log.ts'
import { inspectLog } from '../inspect/inspect-log.ts'
import { createDayFormatter } from '../inspect/spending.ts'
import type { LogContents } from '../logs/read-log.ts'
import { replayLog } from './replay-log.ts'

const POLICIES = [
  { name: 'default', policy: presets.default },
  { name: 'nothing', policy: presets.nothing },
]

/** A conversation whose requests grow by what is put in, all of it read from the cache that the last one wrote. */
function chat(rounds: number, given: AnswerOptions = {}): LogBuilder {
  const log = new LogBuilder()
  for (let round = 0; round < rounds; round += 1)
    log
      .prompt(`${round} `.repeat(1_800))
      .answer(round === 0 ? 0 : 20_000 + round * 1_000, { written: round === 0 ? 21_000 : 1_000, ...given })
  return log
}

function toContents(log: LogBuilder, agents: LogContents['agents'] = []): LogContents {
  const meta = { sessionId: 's', cwd: '/a', startedAt: null, endedAt: null, copiedFrom: null, agent: null }
  return {
    ok: true,
    path: 'log.jsonl',
    format: 'claude-code',
    sizeBytes: 1,
    modifiedMs: 1,
    lines: log.records.length,
    records: log.records,
    damage: [],
    meta: meta as unknown as LogContents['meta'],
    agents,
  }
}

async function replay(contents: LogContents) {
  const result = await replayLog(contents, { policies: POLICIES })
  if (!result.ok) throw new Error(result.why)
  return result
}

describe('a replayed log', () => {
  it('has the recorded cost that inspect shows, and about that cost if nothing is changed', async () => {
    const contents = toContents(chat(12))
    const { recorded, policies, calls } = await replay(contents)
    const options = { catalogue: modelCatalogue, toDay: createDayFormatter(), seenCalls: new Set<string>() }
    const { costUsd } = inspectLog(contents, options)
    expect(calls).toBe(12)
    expect(recorded.usd).toBe(costUsd)
    expect((recorded.replayedUsd ?? 0) / (costUsd ?? 0)).toBeGreaterThan(0.9)
    expect((recorded.replayedUsd ?? 0) / (costUsd ?? 0)).toBeLessThan(1.1)
    expect(policies.map(({ name }) => name)).toEqual(['default', 'nothing'])
  })

  it('is priced at the models of its responses', async () => {
    const [dear, cheap] = await Promise.all(
      ['claude-opus-4-5-20251101', 'claude-haiku-4-5'].map((model) => replay(toContents(chat(5, { model })))),
    )
    const [one, other] = [dear?.policies[1]?.usd ?? 0, cheap?.policies[1]?.usd ?? 1]
    expect(one / other).toBeCloseTo(5, 5)
  })

  it('is priced at the date of its responses, and by the size of its requests', async () => {
    const replayAfter = (seconds: number) =>
      replay(
        toContents(
          new LogBuilder().wait(seconds).prompt().answer(0, { model: 'claude-opus-4-6', written: 250_000 }),
        ),
      )
    const [early, late] = [await replayAfter(0), await replayAfter(30 * 86_400)]
    expect((early.recorded.usd ?? 0) / (late.recorded.usd ?? 1)).toBeCloseTo(2, 2)
    expect((early.policies[1]?.usd ?? 0) / (late.policies[1]?.usd ?? 1)).toBeCloseTo(2, 2)
  })

  it('bills the output that the log has', async () => {
    const short = await replay(toContents(chat(5, { usage: { output_tokens: 10 } })))
    const long = await replay(toContents(chat(5, { usage: { output_tokens: 10_010 } })))
    expect((long.policies[1]?.usd ?? 0) - (short.policies[1]?.usd ?? 0)).toBeCloseTo(
      (5 * 10_000 * 25) / 1e6,
      4,
    )
  })

  it('has the calls and the cost of its subagents', async () => {
    const alone = await replay(toContents(chat(5)))
    const agent = chat(5)
    const records = agent.records.map(({ record, line }) => ({ record: renameResponse(record, 'sub'), line }))
    const both = await replay(toContents(chat(5), [{ agent: 'a', path: 'a.jsonl', records, damage: [] }]))
    expect(both.calls).toBe(10)
    expect((both.recorded.usd ?? 0) / (alone.recorded.usd ?? 1)).toBeCloseTo(2, 5)
    expect((both.policies[1]?.usd ?? 0) / (alone.policies[1]?.usd ?? 1)).toBeCloseTo(2, 5)
  })

  it('pays for pauses in which the cache expires', async () => {
    const quick = await replay(toContents(chat(5)))
    const log = chat(4).wait(2 * 3_600)
    const slow = await replay(toContents(log.prompt('4 '.repeat(1_800)).answer(24_000, { written: 1_000 })))
    expect((slow.policies[1]?.usd ?? 0) / (quick.policies[1]?.usd ?? 1)).toBeGreaterThan(1.3)
  })

  it('does not judge the replay by a log with rewrites', async () => {
    const log = chat(3).line({
      type: 'system',
      subtype: 'compact_boundary',
      parentUuid: null,
      content: 'Conversation compacted',
      compactMetadata: { trigger: 'auto', preTokens: 24_000 },
    })
    log.prompt('A summary.', { isCompactSummary: true }).answer(0, { written: 21_000 })
    expect((await replay(toContents(log))).recorded.replayedUsd).toBeNull()
  })

  it('is left out if a price is unknown or no model has responded', async () => {
    const unknown = await replayLog(toContents(chat(2, { model: 'llama-x' })), { policies: POLICIES })
    expect(unknown).toEqual({ ok: false, why: 'the prices of its model llama-x are not known' })
    const empty = await replayLog(toContents(new LogBuilder().prompt()), { policies: POLICIES })
    expect(empty).toEqual({ ok: false, why: 'it has no response of a model' })
  })

  it('stops when it is interrupted', async () => {
    const interruption = new AbortController()
    const running = replayLog(toContents(chat(40)), {
      policies: POLICIES,
      signal: interruption.signal,
      onProgress: () => interruption.abort(),
    })
    await expect(running).rejects.toThrow(/abort/i)
  })
})

function renameResponse<T>(record: T, name: string): T {
  const { message } = record as { readonly message?: { readonly id?: string } }
  return message?.id === undefined
    ? record
    : { ...record, message: { ...message, id: `${name}-${message.id}` } }
}

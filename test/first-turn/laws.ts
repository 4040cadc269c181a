/** What holds of every conversation with a cache, whatever its length. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { contextOf, moneyTotals, openSession, withMoney } from '@tidemark/core'
import { createFileJournal } from 'tidemark'
import { expect } from 'vitest'
import { SESSION, type SeenCall, Talk } from './talk.ts'

/** Places of the calls that break a law: none, if it holds. */
export function offences(calls: readonly SeenCall[]): {
  readonly rewritten: readonly number[]
  readonly misread: readonly (readonly [call: number, forecast: number, read: number])[]
} {
  const rewritten = calls.flatMap((call, at) => (call.isExtended || call.isDeclared ? [] : [at]))
  const misread = calls.flatMap(({ forecast, usage }, at) => {
    const read = usage.cache_read_input_tokens ?? 0
    return read === forecast.read ? [] : [[at, forecast.read, read] as const]
  })
  return { rewritten, misread }
}

/** Half a point below the best that an append-only prompt can have. */
export function expectHighRate(calls: readonly SeenCall[]): void {
  const sum = (pick: (call: SeenCall) => number): number => calls.reduce((all, call) => all + pick(call), 0)
  const points = (tokens: number): number => (100 * tokens) / sum(({ usage }) => contextOf(usage))
  const hit = points(sum(({ usage }) => usage.cache_read_input_tokens ?? 0))
  expect(hit).toBeGreaterThan(points(sum(({ ceiling }) => ceiling)) - 0.5)
}

/** Breaks that were told, by place and reason, and those that were to be: a pause that outlives the cache, an own act. */
export function alarms(calls: readonly SeenCall[]): {
  readonly told: readonly Alarm[]
  readonly due: readonly Alarm[]
} {
  const told = calls.flatMap(({ broke }, at): readonly Alarm[] =>
    broke === null ? [] : [[at, broke.reason.kind, broke.ours !== null]],
  )
  const due = calls.flatMap(({ forecast, isDeclared }, at): readonly Alarm[] => {
    if (isDeclared) return [[at, 'tools-added', true]]
    return forecast.why === 'expired' ? [[at, 'expired', false]] : []
  })
  return { told, due }
}

type Alarm = readonly [call: number, reason: string, isOurs: boolean]

/** The engine's bill is the simulator's, to a billionth of a dollar; and the log alone tells the same. */
export async function expectMoney(talk: Talk): Promise<void> {
  const { totals, billed, calls } = talk
  const lost = calls.reduce((sum, { broke }) => sum + (broke?.moneyLost ?? 0), 0)
  expect(totals?.spent.total).toBeCloseTo(billed.total, 9)
  expect(totals?.savedByCache.total).toBeCloseTo(billed.saved, 9)
  expect(totals?.lostToBreaks.total).toBeCloseTo(lost, 9)
  expect([totals?.calls, totals?.unpricedCalls]).toEqual([calls.length, 0])
  const opened = withMoney(await openSession(talk.host.journal, SESSION), talk.host.pricesOf)
  expect(opened.money === null ? null : moneyTotals(opened.money)).toEqual(totals)
}

/** Goes on for `calls`, and then asks this process and a new one, which has only the file, for the next request. */
export async function bodiesAfter(calls: number): Promise<{ readonly here: string; readonly there: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-first-turn-'))
  const [home, copy] = [join(folder, 'home'), join(folder, 'copy')]
  const journal = createFileJournal({ home })
  try {
    const talk = new Talk({ journal, ttl: '5m' })
    const state = await talk.until(calls)
    await journal.close()
    cpSync(home, copy, { recursive: true })
    talk.world.commits += 1
    const prompt = 'What is left to do?'
    const there = bodyElsewhere({ home: copy, now: talk.clock.now(), world: talk.world, prompt })
    return { here: await talk.nextBody(state, prompt), there }
  } finally {
    await journal.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function bodyElsewhere(given: object): string {
  const file = fileURLToPath(new URL('next-body.ts', import.meta.url))
  const command = ['--conditions=tidemark-source', file, JSON.stringify(given)]
  return execFileSync(process.execPath, command, { encoding: 'utf8', maxBuffer: 2 ** 28 })
}

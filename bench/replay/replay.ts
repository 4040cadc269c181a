/**
 * `npm run bench:replay -- FOLDER [--window N] [--policy JSON]`: replays the logs in a folder through the library and
 * reports cost (doing nothing with an unbounded window and a 5-minute cache is 1.000) and anchor@use, the share of edits
 * whose old text was still in the request. Reads only; prints nothing of a session.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { KnownRecord, PolicyOverrides } from '@tidemark/core'
import { linear, readRecords } from '../../scripts/plan-table/linear.ts'
import { table } from '../../scripts/table.ts'
import { runScript, WrongUse } from '../../scripts/wrong-use.ts'
import { NO_TOTALS, type ReplayOptions, type ReplayTotals, replaySession } from './replay-session.ts'

const UNBOUNDED = 10_000_000
const DEFAULT_POLICIES = ['{}', '{"cache":{"ttl":"5m"}}', '{"cache":{"ttl":"1h"}}']
const HEAD = [
  'policy',
  'calls',
  'cost',
  'anchor@use',
  'edits',
  'context',
  'compacted',
  'to',
  'files',
  'dropped',
  'none',
  'cleared',
  'refused',
]

await runScript('bench:replay', async () => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      window: { type: 'string', default: '200000' },
      policy: { type: 'string', multiple: true },
      interactive: { type: 'boolean', default: false },
      each: { type: 'boolean', default: false },
    },
  })
  const [folder] = positionals
  if (folder === undefined || !existsSync(folder)) throw new WrongUse('give a folder of recorded sessions')
  const sessions = readSessions(folder)
  const window = Number(values.window)
  const { interactive } = values
  const nothing = {
    policy: { cache: { ttl: '5m' }, clear: { ways: [] } },
    window: UNBOUNDED,
    interactive,
  } as const
  const given: readonly string[] = values.policy ?? DEFAULT_POLICIES
  const rows: (readonly string[])[] = []
  const base = await replayAll(sessions, nothing)
  rows.push(toRow('nothing, unbounded, 5m', sum(base), sum(base).cost))
  for (const policy of given) {
    const options: ReplayOptions = { policy: JSON.parse(policy) as PolicyOverrides, window, interactive }
    const all = await replayAll(sessions, options)
    rows.push(toRow(policy, sum(all), sum(base).cost))
    if (values.each)
      for (const [index, one] of all.entries())
        rows.push(toRow(`  ${sessions[index]?.name ?? ''}`, one, base[index]?.cost ?? 0))
  }
  console.log(table(HEAD, rows))
  return 0
})

interface NamedSession {
  readonly name: string
  readonly records: readonly KnownRecord[]
}

function readSessions(folder: string): readonly NamedSession[] {
  const files = readdirSync(folder).filter((name) => /^(?:claude|codex).*\.jsonl(?:\.gz)?$/.test(name))
  return files
    .toSorted()
    .map((name) => ({ name: name.slice(0, 24), records: linear(readRecords(join(folder, name))) }))
}

async function replayAll(
  sessions: readonly NamedSession[],
  options: ReplayOptions,
): Promise<readonly ReplayTotals[]> {
  const all: ReplayTotals[] = []
  for (const { records } of sessions) all.push(await replaySession(records, options))
  return all
}

function sum(all: readonly ReplayTotals[]): ReplayTotals {
  const totals = { ...NO_TOTALS }
  for (const one of all)
    for (const name of Object.keys(totals) as (keyof ReplayTotals)[]) totals[name] += one[name]
  return totals
}

function toRow(name: string, totals: ReplayTotals, base: number): readonly string[] {
  const { calls, cost, edits, editsInView, compactions, tokensAfter } = totals
  const per = (count: number, of: number): string =>
    of === 0 ? '-' : `${Math.round(count / of / 100) / 10}k`
  return [
    name,
    String(calls),
    (cost / base).toFixed(3),
    edits === 0 ? '-' : `${((100 * editsInView) / edits).toFixed(1)}%`,
    String(edits),
    per(totals.contextTokens, calls),
    String(compactions),
    per(tokensAfter, compactions),
    String(totals.filesBack),
    String(totals.filesDropped),
    String(totals.emptyHanded),
    String(totals.clearings),
    String(totals.refused),
  ]
}

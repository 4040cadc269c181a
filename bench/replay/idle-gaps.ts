/**
 * `npm run bench:gaps -- FOLDER`: takes the pauses of the logs in a folder and reports what keeping the cache alive, and
 * preparing summaries from the warning threshold on, would have saved or cost, by the price model. Reads only; prints
 * nothing of a session but figures.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { countPayingRenewals, pricePausePerMillion } from '@tidemark/core/background/idle-cache'
import { type KnownRecord, SYNTHETIC_MODEL } from '@tidemark/core/log/record'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { linear, readRecords } from '../../scripts/plan-table/linear.ts'
import { table } from '../../scripts/table.ts'
import { runScript, WrongUse } from '../../scripts/wrong-use.ts'

const TTL_MS = 300_000
/** Dollars per million tokens of a model of the middle class: a read costs a tenth of the input, a write 1.25. */
const RATES = { input: 3, cacheRead: 0.3, writeShort: 3.75, writeLong: 6, output: 15 }
/** Thresholds of a window of 200,000 tokens, and the tokens of a summary. */
const [WARNING, AUTO_COMPACT, SUMMARY] = [147_000, 167_000, 3_000]

interface Call {
  readonly at: number
  readonly tokens: number
}

await runScript('bench:gaps', async () => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { most: { type: 'string', default: '10' } },
  })
  const [folder] = positionals
  if (folder === undefined || !existsSync(folder)) throw new WrongUse('give a folder of recorded sessions')
  const files = readdirSync(folder).filter((name) => /^(?:claude|codex).*\.jsonl(?:\.gz)?$/.test(name))
  const sessions = files.toSorted().map((name) => ({
    name: name.slice(0, 24),
    ...replayPauses(listCalls(linear(readRecords(join(folder, name))))),
  }))
  const chosen = sessions.toSorted((one, other) => other.pauses - one.pauses).slice(0, Number(values.most))
  const rows = chosen.map(({ name, ...figures }) => [name, ...Object.values(figures).map(format)])
  const total = chosen.reduce<readonly number[]>(
    (sums, { name: _, ...figures }) =>
      Object.values(figures).map((figure, index) => figure + (sums[index] ?? 0)),
    [],
  )
  const names = Object.keys(replayPauses([]))
  console.log(table(['session', ...names], [...rows, ['all', ...total.map(format)]]))
  return 0
})

function format(figure: number): string {
  return Number.isInteger(figure) ? String(figure) : figure.toFixed(2)
}

function listCalls(records: readonly KnownRecord[]): readonly Call[] {
  const calls = new Map<string, Call>()
  for (const record of records) {
    if (record.type !== 'assistant' || record.message.model === SYNTHETIC_MODEL) continue
    const { id } = record.message
    const tokens = readReportedContextTokens(record.usage)
    const at = Date.parse(record.timestamp)
    if (tokens > 0 && !Number.isNaN(at) && !calls.has(id)) calls.set(id, { at, tokens })
  }
  return [...calls.values()]
}

/**
 * Walks through the calls in order. `auto` knows only the pauses before. At the end the session is left open, so that
 * requests which keep its cache alive are lost.
 */
function replayPauses(calls: readonly Call[]) {
  const figures = {
    calls: calls.length,
    pauses: 0,
    underAnHour: 0,
    /** Dollars for writing the cache again after pauses; and for pauses with each policy, the end included. */
    letGo: 0,
    keepAlive: 0,
    auto: 0,
    /** Dollars of `keepAlive` and `auto` that were spent after the last call. */
    keepAliveAtEnd: 0,
    autoAtEnd: 0,
    ...replaySummaries(calls),
  }
  const seen: number[] = []
  const prices = { read: RATES.cacheRead, write: RATES.writeShort }
  const count = (mode: 'keep-alive' | 'auto'): number =>
    countPayingRenewals({
      mode,
      rates: RATES,
      write: 'writeShort',
      ttlMs: TTL_MS,
      maximum: 11,
      readPauses: () => seen,
    })
  calls.forEach(({ at, tokens }, index) => {
    const next = calls[index + 1]
    const pause = next === undefined ? Number.POSITIVE_INFINITY : next.at - at
    const price = (renewals: number): number =>
      (tokens * pricePausePerMillion(pause, renewals, TTL_MS, prices)) / 1_000_000
    if (next === undefined) {
      // Nobody comes back, so that the cache need not be written again.
      const rewrite = (tokens * (prices.write - prices.read)) / 1_000_000
      figures.keepAliveAtEnd += price(count('keep-alive')) - rewrite
      figures.autoAtEnd += price(count('auto')) - rewrite
    } else if (pause >= TTL_MS) {
      figures.pauses += 1
      figures.underAnHour += pause < 12 * TTL_MS ? 1 : 0
      figures.letGo += price(0)
      figures.keepAlive += price(count('keep-alive'))
      figures.auto += price(count('auto'))
      seen.push(pause)
    }
  })
  figures.keepAlive += figures.keepAliveAtEnd
  figures.auto += figures.autoAtEnd
  return figures
}

/** Counts the summaries prepared at the warning threshold that were used, and those that were not with their cost. */
function replaySummaries(calls: readonly Call[]) {
  const figures = { prepared: 0, unused: 0, unusedCost: 0 }
  let summary: 'none' | 'prepared' | 'used' = 'none'
  for (const { tokens } of calls) {
    if (tokens >= WARNING && summary === 'none') summary = 'prepared'
    // A smaller context was compacted by whoever wrote the log, which the summary would have served as well.
    if (summary === 'prepared' && (tokens >= AUTO_COMPACT || tokens < WARNING)) {
      figures.prepared += 1
      summary = 'used'
    }
    if (tokens < WARNING) summary = 'none'
  }
  if (summary !== 'prepared') return figures
  const cost = ((calls.at(-1)?.tokens ?? 0) * RATES.cacheRead + SUMMARY * RATES.output) / 1_000_000
  return { ...figures, unused: 1, unusedCost: cost }
}

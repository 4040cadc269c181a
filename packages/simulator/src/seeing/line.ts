/** A request on one line of a terminal. */
import type { RequestRecord } from './record.ts'

export function lineOf(record: RequestRecord): string {
  const head = `#${record.number} ${record.at.slice(11, 19)} ${record.model ?? record.endpoint}`
  if (record.error !== null) return `${head} ${record.status} ${record.error.type}: ${record.error.message}`
  const { usage } = record
  if (record.counted !== null)
    return [`${head}  count_tokens: ${count(record.counted)}`, faultOf(record)].join('  ').trimEnd()
  if (usage === null) return `${head} ${record.status}`
  const write = usage.write5m + usage.write1h
  const prompt = `read ${count(usage.cacheRead)} wrote ${count(write)} input ${count(usage.input)}`
  const parts = [
    head,
    `${record.messages} msgs`,
    `${prompt} → ${count(usage.output)}`,
    record.stopReason ?? '',
    money(record.cost?.total ?? null),
    faultOf(record),
    compactionOf(record),
    minimumOf(record),
    missOf(record),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

function faultOf({ fault, faultNote }: RequestRecord): string {
  if (fault === null) return ''
  return faultNote === null ? `fault: ${fault}` : `fault: ${fault} (${faultNote})`
}

function compactionOf({ compactions }: RequestRecord): string {
  return compactions.length === 0 ? '' : 'compacted first'
}

/** Where a marker was there, and nothing before any of them was long enough. */
function minimumOf({ cache }: RequestRecord): string {
  if (cache === null || cache.breakpoints.length === 0) return ''
  const isShort = cache.breakpoints.every(({ fate }) => fate === 'below-minimum')
  return isShort ? `not cached: below the minimum of ${cache.minimum} tokens` : ''
}

function missOf({ cache }: RequestRecord): string {
  const miss = cache?.miss
  return miss === null || miss === undefined ? '' : `missed ${count(miss.tokens)}: ${miss.why}`
}

function count(tokens: number): string {
  return tokens < 10_000 ? String(tokens) : `${(tokens / 1_000).toFixed(1)}k`
}

function money(dollars: number | null): string {
  return dollars === null ? '' : `$${dollars.toFixed(4)}`
}

/** A request on one line of a terminal. */
import type { RequestRecord } from './record.ts'

export function lineOf(record: RequestRecord): string {
  const head = `#${record.number} ${record.at.slice(11, 19)} ${record.model ?? record.endpoint}`
  if (record.error !== null) return `${head} ${record.status} ${record.error.type}: ${record.error.message}`
  const { usage } = record
  if (usage === null) return `${head} ${record.status}`
  const write = usage.write5m + usage.write1h
  const prompt = `read ${count(usage.cacheRead)} wrote ${count(write)} input ${count(usage.input)}`
  const parts = [
    head,
    `${record.messages} msgs`,
    `${prompt} → ${count(usage.output)}`,
    record.stopReason ?? '',
    money(record.cost?.total ?? null),
    record.fault === null ? '' : `fault: ${record.fault}`,
    missOf(record),
  ]
  return parts.filter((part) => part !== '').join('  ')
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

/**
 * Compares the calls of a log with the totals that Claude Code logs for the session. Claude Code does not log all its
 * calls: those that write summaries and titles are missing, and their cost is known only from these totals.
 */
import { isCompactBoundary, type SessionRecord } from '@tidemark/core/log/record'
import { type ClaudeCodeTotals, readClaudeCodeTotals } from '@tidemark/wire/readers/claude-code-reader'
import type { LogContents } from '../logs/read-log.ts'
import { type LoggedCall, sumPromptTokens, sumUsage } from './logged-calls.ts'
import type { LoggedCompaction } from './report.ts'

interface HostTotals extends ClaudeCodeTotals {
  /** The newest timestamp before the totals: they include the calls up to this time. */
  readonly at: string
}

/**
 * Returns the largest totals that Claude Code logged for this session; null if there are none. The totals only grow: a
 * resumed session continues with those in the log.
 */
export function findHostTotals({ records, meta }: Pick<LogContents, 'records' | 'meta'>): HostTotals | null {
  let at = ''
  let found: HostTotals | null = null
  for (const { record } of records) {
    if (typeof record.timestamp === 'string' && record.timestamp > at) at = record.timestamp
    const totals = readClaudeCodeTotals(record)
    if (totals === null) continue
    const isOwn = [null, meta.sessionId, meta.copiedFrom?.sessionId].includes(totals.sessionId)
    if (isOwn && totals.costUsd >= (found?.costUsd ?? 0)) found = { ...totals, at }
  }
  return found
}

/**
 * Returns the name under which the totals list a model, which may also tell the window: `claude-opus-5[1m]`. A name
 * that the totals do not list is returned unchanged.
 */
export function findNameInTotals(totals: HostTotals | null, model: string): string {
  return totals?.models.find(({ name }) => toModelId(name) === model)?.name ?? model
}

function toModelId(name: string): string {
  return name.replace(/\[.*\]$/, '')
}

/** What shows that the host made calls which it did not log. */
export interface UnloggedCallEvidence {
  /** The host's own totals of the session; null if the log has none or the session begins with a copy of another. */
  readonly totals: HostTotals | null
  /** Number of compactions whose calls are not in the log. */
  readonly summaries: number
}

/**
 * Returns the host's totals, and the number of its compactions whose model calls are not in the log. Only Claude Code
 * leaves out the calls that write summaries. Compactions copied from another session do not count, nor those that
 * Tidemark made in a copy of the log.
 */
export function findUnloggedCallEvidence(
  log: LogContents,
  calls: readonly LoggedCall[],
  compactions: readonly LoggedCompaction[],
  totals: HostTotals | null,
): UnloggedCallEvidence {
  const copies = calls.filter(({ agent, isCopy, usage }) => agent === null && isCopy && usage !== null).length
  const own = compactions.slice(0, countHostCompactions(log)).filter(({ afterCall }) => afterCall >= copies)
  return { totals: copies > 0 ? null : totals, summaries: own.length }
}

/** Counts the compactions that Claude Code made, in its own log or in a copy of it. */
function countHostCompactions({ format, meta, records }: LogContents): number {
  if ((meta.copiedFrom?.format ?? format) !== 'claude-code') return 0
  const isHosts = ({ seq }: SessionRecord): boolean => format === 'claude-code' || seq === undefined
  return records.filter(({ record }) => isCompactBoundary(record) && isHosts(record)).length
}

/** A call of the log with its known cost in dollars. */
interface CallWithCost {
  readonly call: LoggedCall
  readonly pricedUsd: number
}

export interface UnloggedCost {
  readonly usd: number
  readonly tokens: number
  /** The dollars by model; their sum is `usd`. */
  readonly models: readonly { readonly model: string; readonly usd: number }[]
  /** The time up to which the totals count. */
  readonly at: string
}

/**
 * Returns what the totals of the host have in addition to the logged calls. Null if the totals have fewer prompt tokens
 * than these calls: they then count only a part of the session.
 */
export function measureUnloggedCost(
  totals: HostTotals | null,
  calls: readonly CallWithCost[],
): UnloggedCost | null {
  if (totals === null) return null
  const counted = calls.filter(({ call }) => call.at <= totals.at)
  const logged = sumUsage(counted.map(({ call }) => call))
  const prompt = totals.models.reduce((sum, { promptTokens }) => sum + promptTokens, 0)
  const output = totals.models.reduce((sum, { outputTokens }) => sum + outputTokens, 0)
  if (prompt < sumPromptTokens(logged)) return null
  const usd = totals.costUsd - sumPriced(counted)
  return {
    usd,
    tokens: prompt - sumPromptTokens(logged) + Math.max(0, output - logged.output),
    models: divideByModel(totals, counted, usd),
    at: totals.at,
  }
}

/** Divides the dollars among the models of the totals. The most expensive model also gets what no model accounts for. */
function divideByModel(
  totals: HostTotals,
  counted: readonly CallWithCost[],
  usd: number,
): UnloggedCost['models'] {
  const ids = [
    ...new Set(totals.models.toSorted((a, b) => b.costUsd - a.costUsd).map(({ name }) => toModelId(name))),
  ]
  const models = ids.map((model) => {
    const total = totals.models.filter(({ name }) => toModelId(name) === model)
    const known = counted.filter(({ call }) => call.model === model)
    return { model, usd: total.reduce((sum, { costUsd }) => sum + costUsd, 0) - sumPriced(known) }
  })
  const rest = usd - models.reduce((sum, each) => sum + each.usd, 0)
  return models.map((each, index) => (index === 0 ? { ...each, usd: each.usd + rest } : each))
}

function sumPriced(calls: readonly CallWithCost[]): number {
  return calls.reduce((sum, { pricedUsd }) => sum + pricedUsd, 0)
}

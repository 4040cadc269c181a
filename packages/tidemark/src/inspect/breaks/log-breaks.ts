/** The breaks of a recorded session: those of its main conversation and of its agents', in order of time. */
import type { Catalogue } from '@tidemark/wire'
import type { ReadLog } from '../../reading/read-log.ts'
import type { Call } from '../calls.ts'
import type { CacheReport } from './cache-report.ts'
import { breaksIn } from './conversation-breaks.ts'
import { hourSavesInAll } from './longer-life.ts'

/**
 * `calls`: those of the log and of its agents, each once. Those that an earlier file has too are told again, since
 * the next ones read what they left, and not reported.
 */
export function breaksOf(
  log: Pick<ReadLog, 'records' | 'agents'> & Partial<Pick<ReadLog, 'meta'>>,
  calls: readonly Call[],
  catalogue: Catalogue,
): CacheReport {
  const conversations = [{ agent: null, records: log.records }, ...log.agents]
  const isForked = (log.meta?.forkedFrom ?? null) !== null
  const reports = conversations.map(({ agent, records }) => {
    const own = calls.filter((call) => call.agent === agent)
    return breaksIn({ records, calls: own, catalogue, isForked: agent === null && isForked })
  })
  return {
    cacheBreaks: reports.flatMap(({ cacheBreaks }) => cacheBreaks).sort(earlier),
    clearingCosts: reports.flatMap(({ clearingCosts }) => clearingCosts).sort(earlier),
    hourWouldSave: hourSavesInAll(reports.map(({ hourWouldSave }) => hourWouldSave ?? undefined)),
  }
}

function earlier(one: { readonly at: string }, other: { readonly at: string }): number {
  return Date.parse(one.at) - Date.parse(other.at) || 0
}

/** The breaks of a recorded session: those of its main conversation and of its agents', in order of time. */
import type { Catalogue } from '@tidemark/wire'
import type { ReadLog } from '../../reading/read-log.ts'
import type { Call } from '../calls.ts'
import type { CacheReport } from './cache-report.ts'
import { breaksIn } from './conversation-breaks.ts'

/**
 * `calls`: those of the log and of its agents, each once. Those that an earlier file has too are told again, since
 * the next ones read what they left, and not reported.
 */
export function breaksOf(
  log: Pick<ReadLog, 'records' | 'agents'>,
  calls: readonly Call[],
  catalogue: Catalogue,
): CacheReport {
  const conversations = [{ agent: null, records: log.records }, ...log.agents]
  const reports = conversations.map(({ agent, records }) =>
    breaksIn({ records, calls: calls.filter((call) => call.agent === agent), catalogue }),
  )
  return {
    cacheBreaks: reports.flatMap(({ cacheBreaks }) => cacheBreaks).sort(earlier),
    clearingCosts: reports.flatMap(({ clearingCosts }) => clearingCosts).sort(earlier),
  }
}

function earlier(one: { readonly at: string }, other: { readonly at: string }): number {
  return Date.parse(one.at) - Date.parse(other.at) || 0
}

/** Creates the report that `tidemark inspect` shows for one log. The result depends only on the log and the options. */
import type { SessionRecord } from '@tidemark/core/log/record'
import { redactStrings } from '@tidemark/core/text/redact'
import { type Catalogue, lookUpModel } from '@tidemark/wire/catalogue/catalogue'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import { type LogContents, summarizeUserPrompts } from '../logs/read-log.ts'
import { createCacheReport } from './cache-breaks.ts'
import { createModelEstimators, measureContents } from './context-contents.ts'
import { measureLogContext } from './context-curve.ts'
import { findHostTotals, findNameInTotals, findUnloggedCallEvidence } from './host-totals.ts'
import {
  computeHitRate,
  countToolCalls,
  findMainModel,
  isAnsweredCall,
  listLogCalls,
  sumUsage,
} from './logged-calls.ts'
import type { ReplayedSession } from './logged-requests.ts'
import type { LogDamage, SessionReport } from './report.ts'
import { createRequestLister, withCompactionCosts } from './request-list.ts'
import { computeSpending, type DayFormatter } from './spending.ts'

export interface InspectLogOptions {
  readonly catalogue: Catalogue
  readonly toDay: DayFormatter
  /** Keys of the API calls that earlier log files contain. `inspectLog` adds the calls of the current log to the set. */
  readonly seenCalls: Set<string>
  /**
   * Uuids of the prompts that the user typed and that earlier log files contain. `inspectLog` adds those of the current
   * log to the set. Default: no prompt is in an earlier log file.
   */
  readonly seenPrompts?: Set<string>
}

/**
 * Creates the report of a log, then removes secrets from every text and name in it. Adds the calls and prompts of the
 * log to `options.seenCalls` and `options.seenPrompts`, so that later logs do not count them again.
 */
export function inspectLog(
  log: LogContents,
  { catalogue, toDay, seenCalls, seenPrompts }: InspectLogOptions,
): SessionReport {
  const records: readonly SessionRecord[] = log.records.map(({ record }) => record)
  const identity = describeLog(log)

  // Counts and costs exclude the prompts and API calls that an earlier log file also contains.
  const prompts = summarizeUserPrompts(records, seenPrompts)
  const calls = listLogCalls(log, seenCalls)
  for (const { key } of calls) seenCalls.add(key)
  const ownCalls = calls.filter(({ isCopy }) => !isCopy)
  const countedCalls = ownCalls.filter((call) => isAnsweredCall(call, log.format))
  const usage = sumUsage(countedCalls)

  // The context of the main conversation: its size at each request, and the content that filled it.
  const mainModel = findMainModel(calls)
  const hostTotals = findHostTotals(log)
  const context = measureLogContext(log, calls, {
    mainModel,
    lookUp: (id) => {
      const model = lookUpModel(catalogue, findNameInTotals(hostTotals, id))
      return model.found ? model : null
    },
  })
  const estimates = createModelEstimators(catalogue)
  const contents = measureContents(log.records, estimates.forModel(mainModel).block)

  // Cache breaks of the log, and the cost of all calls.
  let damaged: readonly LogDamage[] = []
  const pricing = { catalogue, format: log.format, estimate: estimates.countResponse, priced: new Map() }
  const lister = createRequestLister(estimates.forModel(mainModel).block, pricing)
  const cacheReport = createCacheReport(log, calls, catalogue, {
    onRequest: lister.take,
    onEnd: (replayed) => {
      damaged = listDamage(log, replayed)
    },
  })
  const requests = lister.list()
  const unlogged = findUnloggedCallEvidence(log, calls, context.compactions, hostTotals)
  const spending = computeSpending(countedCalls, cacheReport, { ...pricing, unlogged }, toDay)

  return redactStrings({
    ...identity,
    apiCalls: countedCalls.length,
    callsWithoutUsage: ownCalls.filter((call) => call.usage === null).length,
    copiedCalls: calls.filter((call) => call.isCopy && isAnsweredCall(call, log.format)).length,
    toolCalls: countToolCalls(ownCalls),
    models: [...new Set(calls.map((call) => call.model))],
    usage,
    hitRate: computeHitRate(usage),
    ...prompts,
    ...withCompactionCosts({ ...context, requests }, calls, pricing),
    ...contents,
    ...spending,
    ...cacheReport,
    damaged,
  })
}

/**
 * Returns the file, session id, times and number of records of a log. If the log could not be read to its end, also
 * returns the reason.
 */
function describeLog({ path, format, records, meta, agents, fault }: LogContents) {
  const { sessionId, cwd, startedAt, endedAt } = meta
  const durationMs =
    startedAt === null || endedAt === null ? Number.NaN : Date.parse(endedAt) - Date.parse(startedAt)
  // One line of the log can contain several records, so distinct lines are counted.
  const countLines = (read: readonly RecordWithLine[]) => new Set(read.map(({ line }) => line)).size
  const broken = agents.find((agent) => typeof agent.fault === 'string')
  return {
    file: path,
    format,
    copiedFrom: meta.copiedFrom?.format ?? null,
    sessionId,
    project: cwd,
    startedAt,
    endedAt,
    durationMs: Number.isNaN(durationMs) ? null : durationMs,
    records: agents.reduce((sum, agent) => sum + countLines(agent.records), countLines(records)),
    brokenOff: fault ?? (broken === undefined ? null : `${broken.path}: ${broken.fault}`),
  }
}

/** Lists damaged lines and broken links between records in line order. Damage in the log files of subagents comes last. */
function listDamage({ damage, agents }: LogContents, replayed: ReplayedSession): readonly LogDamage[] {
  const found: readonly LogDamage[] = [...damage, ...listStructuralDamage(replayed)]
  const own = found.toSorted((one, other) => one.line - other.line)
  return [
    ...own.map(({ kind, line, why }) => ({ kind, line, why })),
    ...agents.flatMap(({ path, damage: theirs }) =>
      theirs.map(({ kind, line, why }) => ({ kind, line, why, file: path })),
    ),
  ]
}

/** Maximum number of broken links between records that are reported. */
const MAX_STRUCTURAL_DAMAGE = 1_000

/** Lists broken links between records: missing parents, repeated uuids, and compaction boundaries that name unknown records. */
function listStructuralDamage({ session, view }: ReplayedSession): readonly LogDamage[] {
  const links = session.damage.toArray()
  const last = links[MAX_STRUCTURAL_DAMAGE - 1]
  if (last === undefined) return [...links, ...view.damage]
  const why = 'what comes behind this was not looked at for missing parents and repeated uuids'
  return [...links.slice(0, MAX_STRUCTURAL_DAMAGE), { kind: 'not-checked', line: last.line, why }]
}

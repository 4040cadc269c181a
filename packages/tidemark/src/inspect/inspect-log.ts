/** From a log that was read to the report of its session. Pure: the same log gives the same report. */
import {
  COMPACTION,
  type Damage,
  emptySession,
  redactAll,
  reduce,
  type SessionRecord,
  viewOf,
} from '@tidemark/core'
import { type Catalogue, type LogFormat, lookUpModel, type ReadRecord } from '@tidemark/wire'
import { promptsIn, type ReadLog } from '../logs/read-session.ts'
import { breaksOf } from './cache-breaks.ts'
import { addUsage, type Call, callsOf, hitRateOf, NO_USAGE, toolCallsIn, usageOf } from './calls.ts'
import { contentsOf, createEstimates, type Estimates, largestItems } from './contents.ts'
import { type Curve, curveOf, windowOf } from './context-curve.ts'
import { estimatorReport } from './estimator-error.ts'
import type { CacheReport, DamagedPlace, SessionReport } from './report.ts'
import {
  agentReports,
  type DayOf,
  moneyLost,
  moneySpent,
  type PricedCall,
  priceLogged,
  spendingTable,
  spentOn,
} from './spending.ts'

export interface InspectRules {
  readonly catalogue: Catalogue
  readonly dayOf: DayOf
  /** Keys of the calls that earlier files have. Those of this log are added. */
  readonly seenCalls: Set<string>
}

export function inspectLog(log: ReadLog, rules: InspectRules): SessionReport {
  const records = recordsOf(log.records)
  const all = allCalls(log, rules.seenCalls)
  for (const { key } of all) rules.seenCalls.add(key)
  const estimates = createEstimates(rules.catalogue)
  const found = breaksOf(log, all, rules.catalogue)
  const { money, ...counted } = countedCalls(all, { log, rules, estimates, found })
  return redactAll({
    ...identityOf(log),
    brokenOff: brokenOffAt(log),
    ...counted,
    ...promptsIn(records),
    ...contextOfLog(curveOf(records, all), all, { log, rules }),
    ...contentOfLog(log, all, estimates),
    estimator: estimatorReport(records, log.format, estimates.forModel),
    ...money,
    ...found,
    damaged: damagedPlaces(log),
  })
}

interface Reading {
  readonly log: ReadLog
  readonly rules: InspectRules
}

function recordsOf(read: readonly ReadRecord[]): readonly SessionRecord[] {
  return read.map(({ record }) => record)
}

/** The main conversation's, then those of side agents. */
function allCalls(log: ReadLog, elsewhere: ReadonlySet<string>): readonly Call[] {
  const calls = new Map(callsOf(recordsOf(log.records), { elsewhere }).map((call) => [call.key, call]))
  for (const { agent, records } of log.agents) {
    for (const call of callsOf(recordsOf(records), { elsewhere, agent }))
      if (!calls.has(call.key)) calls.set(call.key, call)
  }
  return [...calls.values()]
}

function identityOf({ path, format, records, meta, agents }: ReadLog) {
  const { sessionId, cwd, startedAt, endedAt } = meta
  const span =
    startedAt === null || endedAt === null ? Number.NaN : Date.parse(endedAt) - Date.parse(startedAt)
  return {
    file: path,
    format,
    sessionId,
    project: cwd,
    startedAt,
    endedAt,
    durationMs: Number.isNaN(span) ? null : span,
    records: [records, ...agents.map((agent) => agent.records)].reduce((sum, read) => sum + linesIn(read), 0),
  }
}

/** A line may give several records. */
function linesIn(read: readonly ReadRecord[]): number {
  return new Set(read.map(({ line }) => line)).size
}

interface Counting extends Reading {
  readonly estimates: Estimates
  readonly found: CacheReport
}

/** Calls that an earlier file has too are in none of these. */
function countedCalls(all: readonly Call[], { log, rules, estimates, found }: Counting) {
  const own = all.filter(({ isCopy }) => !isCopy)
  const answered = own.filter((call) => isCounted(call, log.format))
  const estimate = ({ model, blocks }: Call): number =>
    blocks.reduce((sum, block) => sum + estimates.forModel(model).estimator.block(block), 0)
  const priced = answered.map((call) =>
    priceLogged(call, { catalogue: rules.catalogue, estimate, format: log.format }),
  )
  const usage = answered.reduce((sum, call) => addUsage(sum, usageOf(call.usage)), NO_USAGE)
  return {
    apiCalls: answered.length,
    callsWithoutUsage: own.filter((call) => call.usage === null).length,
    copiedCalls: all.filter((call) => call.isCopy && isCounted(call, log.format)).length,
    toolCalls: toolCallsIn(own),
    models: [...new Set(all.map(({ model }) => model))],
    usage,
    hitRate: hitRateOf(usage),
    money: { ...moneyOf(priced, found, rules.dayOf), agents: agentReports(priced) },
  }
}

/** Codex counts its calls itself; a response it did not count was broken off. */
function isCounted({ usage }: Call, format: LogFormat): boolean {
  return format !== 'codex' || usage !== null
}

function moneyOf(priced: readonly PricedCall[], found: CacheReport, dayOf: DayOf) {
  const estimated = priced.filter(({ isOutputEstimated }) => isOutputEstimated)
  const money = moneySpent(priced)
  return {
    costUsd: money.spent,
    money: { ...money, ...moneyLost(found, money.spent), spentOnCompaction: spentOn(COMPACTION, priced) },
    outputEstimated: estimated.length > 0,
    outputEstimatedCalls: estimated.length,
    outputTokensEstimated: priced.reduce((sum, { tokens }) => sum + tokens.output, 0),
    spending: spendingTable({ calls: priced, ...found }, dayOf),
  }
}

function contextOfLog(
  { points, compactions, clearings }: Curve,
  all: readonly Call[],
  { log, rules }: Reading,
) {
  const peakContextTokens = points.reduce((most, { tokens }) => Math.max(most, tokens), 0)
  const looked = lookUpModel(rules.catalogue, mainModel(all))
  const window = windowOf({
    format: log.format,
    logged: log.meta.contextWindow,
    model: looked.found ? looked : null,
    compactions,
    peak: peakContextTokens,
  })
  return { peakContextTokens, context: { ...window, points }, compactions, clearings }
}

function contentOfLog(log: ReadLog, all: readonly Call[], estimates: Estimates) {
  const estimate = estimates.forModel(mainModel(all)).estimator.block
  const contents = contentsOf(recordsOf(log.records), estimate)
  return { ...contents, largest: largestItems(log.records, estimate) }
}

/** The one that answered most calls of the main conversation; the newest of those that answered as many. */
function mainModel(all: readonly Call[]): string {
  const counts = new Map<string, number>()
  for (const { model, agent, source } of all)
    if (agent === null && source === null) counts.set(model, (counts.get(model) ?? 0) + 1)
  return [...counts].reduce((most, next) => (next[1] >= most[1] ? next : most), ['unknown', 0] as const)[0]
}

// What was wrong with a log: in its lines, in the order of its records, in what its boundaries name.

/** In the order of lines; the files of side agents come after the session's own. */
export function damagedPlaces({ records, damage, agents }: ReadLog): readonly DamagedPlace[] {
  const own = [...damage, ...structuralDamage(records)].sort((one, other) => one.line - other.line)
  const theirs = agents.flatMap(({ path, damage: found }) =>
    found.map((item) => ({ ...told(item), file: path })),
  )
  return [...own.map(told), ...theirs]
}

/** So many are enough to know a log by. */
const MOST_FOUND = 1_000

function structuralDamage(records: readonly ReadRecord[]): readonly Damage[] {
  let session = emptySession()
  for (const { record, line } of records) {
    session = reduce(session, record, line)
    if (session.damage.length < MOST_FOUND) continue
    const why = 'what comes behind this was not looked at for missing parents and repeated uuids'
    return [...session.damage, { kind: 'missing-parent', line, why }]
  }
  return [...session.damage, ...viewOf(session).damage]
}

function told({ kind, line, why }: Damage): DamagedPlace {
  return { kind, line, why }
}

/** Why the log, or that of one of its agents, could not be read to its end; null where it could. */
export function brokenOffAt({ fault, agents }: ReadLog): string | null {
  const broken = agents.find((agent) => typeof agent.fault === 'string')
  return fault ?? (broken === undefined ? null : `${broken.path}: ${broken.fault}`)
}

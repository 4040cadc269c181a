/**
 * `inspect` on real sessions, held against what is known of them, and law 11 (no stale figure) at every
 * compaction and clearing they hold. Skips where the folder is absent.
 */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildContextView, type ContextView } from '@tidemark/core/context/context-view'
import {
  isKnownRecord,
  isRewriteBoundary,
  type SessionRecord,
  SYNTHETIC_MODEL,
} from '@tidemark/core/log/record'
import { appendRecord, emptySessionLog } from '@tidemark/core/log/session-log'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import {
  createContextMeter,
  measureContextTokens,
  updateContextMeter,
} from '@tidemark/core/tokens/context-meter'
import { createDefaultWeights, createEstimator } from '@tidemark/core/tokens/estimator'
import { calibrateSize, readReportedContextTokens, startCalibration } from '@tidemark/core/tokens/usage'
import { findNamedLogs } from 'tidemark/internal'
import { inspectFiles, readLog, type SessionReport } from 'tidemark/logs'
import { beforeAll, describe, expect, it } from 'vitest'

interface Known {
  readonly file: string
  readonly agent: string
  readonly lines: number
  readonly api_calls: number
  readonly tool_calls: number
  readonly user_messages: number
  readonly models: readonly string[]
  readonly hit_rate: number
  readonly peak_context: number
  readonly input_tokens: number
  readonly cache_read_input_tokens?: number
  readonly cached_input_tokens?: number
  readonly cache_creation_input_tokens?: number
  readonly of_which_1h?: number
  readonly output_tokens_logged: number
  readonly compactions: readonly { readonly trigger?: string; readonly pre_tokens: number }[]
  readonly microcompactions?: readonly { readonly pre_tokens: number; readonly tokens_saved: number }[]
  readonly list_price_usd?: number
}

const folder = fileURLToPath(new URL('../../shared/transcripts/', import.meta.url))
const manifest = `${folder}manifest.json`
const known: readonly Known[] = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')) : []
const paths = known.map(({ file }) => `${folder}${file}`)
const note = known.length === 0 ? ' (skipped: no recorded sessions here)' : ''

/** What the manifest says of a file, in the words of a report. Codex counts what was cached as input; we do not. */
function expected(of: Known) {
  const cacheRead = of.cache_read_input_tokens ?? of.cached_input_tokens ?? 0
  return {
    format: of.agent,
    records: of.lines,
    apiCalls: of.api_calls,
    toolCalls: of.tool_calls,
    userMessages: of.user_messages,
    models: of.models,
    usage: {
      input: of.input_tokens - (of.cached_input_tokens ?? 0),
      cacheRead,
      cacheCreation: of.cache_creation_input_tokens ?? 0,
      output: of.output_tokens_logged,
    },
    hitRate: of.hit_rate,
    peakContextTokens: of.peak_context,
    // Codex does not log who asked for a compaction.
    compactions: of.compactions.map((act) => [act.trigger ?? 'auto', act.pre_tokens]),
    clearings: (of.microcompactions ?? []).map((act) => [act.pre_tokens, act.tokens_saved]),
    writesOfAnHour: of.of_which_1h ?? 0,
  }
}

function found(report: SessionReport) {
  const { format, records, apiCalls, toolCalls, userMessages, models, usage, hitRate, peakContextTokens } =
    report
  return {
    ...{ format, records, apiCalls, toolCalls, userMessages, models, usage, hitRate, peakContextTokens },
    compactions: report.compactions.map((act) => [act.trigger, act.preTokens]),
    clearings: report.clearings.map((act) => [act.preTokens, act.savedTokens]),
    writesOfAnHour: report.money.byClass.write1h.tokens,
  }
}

describe.skipIf(known.length === 0)(`inspect on recorded sessions${note}`, () => {
  let reports: readonly SessionReport[] = []
  let covered = 0
  beforeAll(async () => {
    const { logs } = await findNamedLogs(paths)
    reports = (await inspectFiles(logs, { timeZone: 'UTC' })).sessions
  })
  const reportOf = (of: Known): SessionReport => {
    const report = reports.find(({ file }) => file.endsWith(of.file))
    if (report === undefined) throw new Error(`${of.file} was not read`)
    return report
  }

  it('reads them all', () => {
    expect(reports.map(({ file }) => file).toSorted()).toEqual(paths.toSorted())
  })

  it.each(known)('$file agrees with what is known of it', (of) => {
    expect(found(reportOf(of))).toEqual(expected(of))
  })

  it.each(known.filter((of) => of.list_price_usd !== undefined))('$file costs what it should', (of) => {
    // The figure at hand takes the output as logged; the report prices what was really written.
    const { costUsd, money, usage } = reportOf(of)
    const output = money.byClass.output
    const asLogged = ((output.usd ?? 0) / output.tokens) * usage.output
    expect(Math.abs((costUsd ?? 0) - (output.usd ?? 0) + asLogged - (of.list_price_usd ?? 0))).toBeLessThan(
      0.011,
    )
  })

  it.each(known)('$file: every break re-writes more than 2,000 tokens by its own usage', async (of) => {
    const log = await readLog(`${folder}${of.file}`)
    if (!log.ok) throw new Error(log.message)
    const answers = answersIn(log.records)
    const { cacheBreaks } = reportOf(of)
    for (const { line, tokensRewritten } of cacheBreaks) {
      const index = answers.findIndex((answer) => answer.line === line)
      const [before, now] = [answers[index - 1], answers[index]]
      if (before === undefined || now === undefined)
        throw new Error(`line ${line} is no answer after another`)
      expect(tokensRewritten).toBeGreaterThan(2_000)
      // Paid for anew, and not read though the answer before had it cached.
      expect(now.paidAnew).toBeGreaterThanOrEqual(tokensRewritten)
      expect(before.read + before.paidAnew - now.read).toBeGreaterThanOrEqual(tokensRewritten)
    }
    covered += cacheBreaks.length
  })

  it('has looked at breaks of most files', () => {
    const broken = reports.filter(({ cacheBreaks }) => cacheBreaks.length > 0)
    expect(broken.length * 2).toBeGreaterThan(reports.length)
    expect(covered).toBe(reports.reduce((sum, { cacheBreaks }) => sum + cacheBreaks.length, 0))
  })

  it.each(known)('$file: what was lost to breaks is their sum, and a part of the bill', (of) => {
    const { cacheBreaks, money } = reportOf(of)
    const sum = cacheBreaks.reduce((total, { costUsd }) => total + (costUsd ?? Number.NaN), 0)
    expect(money.lostToBreaks).toBeCloseTo(sum, 5)
    expect(money.shareLostToBreaks).toBeLessThan(1)
  })
})

interface Answer {
  readonly line: number
  readonly read: number
  readonly paidAnew: number
}

/** The responses of a log with their usage, each once and at its first line, counted here by nothing but the log. */
function answersIn(records: readonly { readonly record: SessionRecord; readonly line: number }[]): Answer[] {
  const answers = new Map<string, Answer>()
  for (const { record, line } of records) {
    if (!isMeasured(record) || !isKnownRecord(record) || record.type !== 'assistant') continue
    const { usage } = record
    const { id } = record.message
    const first = answers.get(id)?.line ?? line
    const read = usage?.read ?? 0
    const paidAnew = usage === undefined ? 0 : usage.input + usage.writes.short + usage.writes.long
    answers.set(id, { line: first, read, paidAnew })
  }
  return [...answers.values()]
}

const estimate = DEFAULT_POLICY.estimate
const estimator = createEstimator(createDefaultWeights(estimate))
const calibration = startCalibration(estimator.weights.start)

function measure(view: ContextView) {
  return measureContextTokens(updateContextMeter(createContextMeter(estimator), view), {
    calibration,
    policy: estimate,
    stripsThinking: false,
    prefix: () => 0,
    deleted: 0,
  })
}

function estimated(view: ContextView) {
  const tokens = [...view.entries].reduce((sum, entry) => sum + estimator.entry(entry), 0)
  return { ...calibrateSize(calibration, tokens, estimate), source: 'estimated' }
}

describe.skipIf(known.length === 0)(`law 11 at recorded compactions and clearings${note}`, () => {
  it.each(known)('$file: no figure from before a rewrite is used behind it', async (of) => {
    const log = await readLog(`${folder}${of.file}`)
    if (!log.ok) throw new Error(log.message)
    let session = emptySessionLog()
    let waiting: (SessionRecord & { readonly uuid: string }) | null = null
    const acts = new Set<string>()
    const held = new Set<string>()
    for (const { record } of log.records) {
      session = appendRecord(session, record)
      if (isRewriteBoundary(record)) acts.add(record.uuid)
      waiting = isRewriteBoundary(record) ? record : isMeasured(record) ? null : waiting
      if (waiting === null) continue
      // A boundary counts from its summary on; from there, until a response has measured the new view, all is estimated.
      const view = buildContextView(session)
      if (view.rewrites.at(-1)?.uuid !== waiting.uuid) continue
      expect(measure(view)).toEqual(estimated(view))
      held.add(waiting.uuid)
    }
    expect(acts.size).toBe(of.compactions.length + (of.microcompactions ?? []).length)
    expect(held).toEqual(acts)
  })
})

function isMeasured(record: SessionRecord): boolean {
  if (!isKnownRecord(record) || record.type !== 'assistant') return false
  return record.message.model !== SYNTHETIC_MODEL && readReportedContextTokens(record.usage) > 0
}

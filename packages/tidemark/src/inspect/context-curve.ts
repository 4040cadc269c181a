/**
 * Measures how the context of the main conversation grew and shrank: the size of each request, the compactions and
 * clearings between requests, and the context window.
 */
import { TidemarkError } from '@tidemark/core/errors'
import { isObject } from '@tidemark/core/log/json'
import {
  isClearedByProvider,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isRewriteBoundary,
  isUndoRecord,
  type MicrocompactBoundary,
  type SessionRecord,
} from '@tidemark/core/log/record'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { computeScaledLimits } from '@tidemark/core/policy/scale-policy'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import type { FoundModel } from '@tidemark/wire/catalogue/catalogue'
import type { LogFormat } from '@tidemark/wire/readers/log-reader'
import type { LogContents } from '../logs/read-log.ts'
import { type LoggedCall, toResponseKey } from './logged-calls.ts'
import type {
  ClearingActor,
  ContextCurve,
  ContextPoint,
  LoggedClearing,
  LoggedCompaction,
  SessionReport,
} from './report.ts'

type ContextFields = 'peakContextTokens' | 'context' | 'compactions' | 'clearings'

/**
 * Measures the context of a logged session. `mainModel`: the model with the most calls. `lookUp`: returns a model of the
 * catalogue; null if it does not have the model.
 */
export function measureLogContext(
  { records, format, meta }: Pick<LogContents, 'records' | 'format' | 'meta'>,
  calls: readonly LoggedCall[],
  { mainModel, lookUp }: { readonly mainModel: string; readonly lookUp: (id: string) => FoundModel | null },
): Pick<SessionReport, ContextFields> {
  const { points, compactions, clearings } = readContextHistory(
    records.map(({ record }) => record),
    calls,
  )
  const largest = findLargestRequest(calls)
  const peak = largest.tokens
  // The program that sent the newest request; in a copy, that may be another one than the program that wrote the log.
  const newest = calls.findLast(({ agent, source }) => agent === null && source === null)
  const evidence = { format: newest?.copiedFrom ?? format, logged: meta.contextWindow, compactions }
  const ofMain = detectContextWindow({
    ...evidence,
    model: lookUp(mainModel),
    peak: findLargestRequest(calls.filter(({ model }) => model === mainModel)).tokens,
  })
  // A request that the main model's window cannot hold was sent to another model, whose window is then shown.
  const isHeld = largest.model === mainModel || (ofMain.window !== null && peak <= ofMain.window)
  const window = isHeld ? ofMain : detectContextWindow({ ...evidence, model: lookUp(largest.model), peak })
  return { peakContextTokens: peak, context: { ...window, points }, compactions, clearings }
}

/** Returns the prompt tokens and the model of the largest request of the main conversation. */
function findLargestRequest(calls: readonly LoggedCall[]): {
  readonly model: string
  readonly tokens: number
} {
  return calls
    .filter(({ agent, source }) => agent === null && source === null)
    .map(({ model, usage }) => ({ model, tokens: readReportedContextTokens(usage) }))
    .reduce((most, next) => (next.tokens > most.tokens ? next : most), { model: '', tokens: 0 })
}

interface ContextHistory {
  readonly points: readonly ContextPoint[]
  readonly compactions: readonly LoggedCompaction[]
  readonly clearings: readonly LoggedClearing[]
}

/**
 * Returns the prompt tokens of each request of the main conversation, and the compactions and clearings between
 * requests. Requests without usage are skipped; requests copied from an earlier log file are included.
 */
export function readContextHistory(
  records: Iterable<SessionRecord>,
  calls: readonly LoggedCall[],
): ContextHistory {
  const measured = calls.filter(({ agent, usage }) => agent === null && readReportedContextTokens(usage) > 0)
  const waiting = new Map(measured.map((call) => [call.key, call]))
  const points: ContextPoint[] = []
  const compactions: UnfinishedRewrite<LoggedCompaction>[] = []
  const clearings: UnfinishedRewrite<LoggedClearing>[] = []
  const undos = createUndoTracker()
  for (const record of records) {
    const key = toResponseKey(record)
    const call = key === null ? undefined : waiting.get(key)
    if (call !== undefined) points.push({ at: call.at, tokens: readReportedContextTokens(call.usage) })
    if (key !== null) waiting.delete(key)
    undos.take(record, points.length)
    const { uuid } = record
    const place = { at: toTextOrNull(record.timestamp), afterCall: points.length, uuid }
    // The metadata of a compaction or clearing is checked field by field, because other programs may omit fields that
    // Tidemark always writes.
    if (isCompactBoundary(record)) {
      const { trigger, preTokens, postTokens } = toObjectOrEmpty(record.compactMetadata)
      const size = { preTokens: toCountOrNull(preTokens), postTokens: toCountOrNull(postTokens) }
      compactions.push({ trigger: toTextOrNull(trigger), ...size, ...place })
    } else if (isMicrocompactBoundary(record)) {
      const { trigger, preTokens, tokensSaved, compactedToolIds } = toObjectOrEmpty(
        record.microcompactMetadata,
      )
      clearings.push({
        preTokens: toCountOrNull(preTokens),
        savedTokens: toCountOrNull(tokensSaved),
        trigger: toTextOrNull(trigger),
        results: Array.isArray(compactedToolIds) ? compactedToolIds.length : 0,
        by: findClearingActor(record),
        ...place,
      })
    }
  }
  return {
    points,
    clearings: clearings.map(({ uuid, ...clearing }) => ({
      id: uuid ?? null,
      ...clearing,
      isUndone: undos.undoneAfter(uuid) !== null,
    })),
    compactions: compactions.map(({ uuid, ...compaction }) => {
      const undoneAfter = undos.undoneAfter(uuid)
      // A request that follows an undo has the size from before the compaction again.
      const isSent = undoneAfter === null || undoneAfter > compaction.afterCall
      const postTokens = (isSent ? points[compaction.afterCall]?.tokens : undefined) ?? compaction.postTokens
      return { id: uuid ?? null, ...compaction, postTokens, costUsd: null, isUndone: undoneAfter !== null }
    }),
  }
}

/** A compaction or clearing of which it is not known yet whether a later record undoes it. */
type UnfinishedRewrite<Rewrite> = Omit<Rewrite, 'id' | 'costUsd' | 'isUndone'> & {
  readonly uuid: string | undefined
}

interface UndoTracker {
  /** Takes the records in order. `calls`: number of requests before the record. */
  take(record: SessionRecord, calls: number): void
  /** Returns the number of requests before the undo of a compaction or clearing; null if it was not undone. */
  undoneAfter(uuid: string | undefined): number | null
}

/** Follows the undos of a log. An undo counts only for the newest rewrite in effect, as the engine has it. */
function createUndoTracker(): UndoTracker {
  const inEffect: string[] = []
  const undone = new Map<string, number>()
  return {
    take(record, calls) {
      if (!isKnownRecord(record) || record.type !== 'system') return
      // What the provider cleared cannot be undone.
      const isProviders = isMicrocompactBoundary(record) && isClearedByProvider(record.microcompactMetadata)
      if (isRewriteBoundary(record) && !isProviders) inEffect.push(record.uuid)
      const last = inEffect.at(-1)
      if (!isUndoRecord(record) || last === undefined || record.of !== last) return
      inEffect.pop()
      undone.set(last, calls)
    },
    undoneAfter: (uuid) => undone.get(uuid ?? '') ?? null,
  }
}

/** Returns who made a logged clearing. Only Tidemark logs the way of a clearing. */
export function findClearingActor(record: MicrocompactBoundary): ClearingActor {
  const { way }: { readonly way?: unknown } = toObjectOrEmpty(record.microcompactMetadata)
  if (way === 'native') return 'provider'
  return typeof way === 'string' ? 'tidemark' : 'host'
}

function toObjectOrEmpty(value: unknown): { readonly [field: string]: unknown } {
  return isObject(value) ? value : {}
}

function toTextOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function toCountOrNull(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null
}

export interface WindowEvidence {
  readonly format: LogFormat
  /** The context window that the log records; null if it records none. */
  readonly logged: number | null
  readonly model: FoundModel | null
  readonly compactions: readonly LoggedCompaction[]
  /** Prompt tokens of the largest request. */
  readonly peak: number
}

/** Returns the context window of a logged session, and the number of tokens at which automatic compaction would begin. */
export function detectContextWindow(
  clues: WindowEvidence,
): Pick<ContextCurve, 'window' | 'windowFrom' | 'autoCompact'> {
  const size = detectWindowSize(clues)
  // Tidemark and Claude Code start automatic compaction at the same size. Codex uses another size, so none is reported for it.
  const autoCompact = clues.format === 'codex' ? null : autoCompactThreshold(size.window, clues.model)
  return { ...size, autoCompact }
}

/** The context window that Claude Code uses by default, even for models with a larger one. */
const CLAUDE_CODE_WINDOW = 200_000

/** Prompt tokens from which an automatic compaction of Claude Code fits a window of 200,000. */
const MIN_DEFAULT_COMPACTION = 140_000

function detectWindowSize({
  format,
  logged,
  model,
  compactions,
  peak,
}: WindowEvidence): Pick<ContextCurve, 'window' | 'windowFrom'> {
  // The log records only the newest window. A larger request was sent while the session had another window.
  if (logged !== null) return { window: logged, windowFrom: 'log' }
  const own = model?.model.window ?? null
  // A request larger than the model's standard context window shows that the model's optional long window was used.
  const window = own !== null && peak > own ? (model?.model.longWindow ?? null) : own
  if (window === null || peak > window) return { window: null, windowFrom: null }
  const fitsDefault = ({ trigger, preTokens }: LoggedCompaction): boolean =>
    trigger === 'auto' &&
    preTokens !== null &&
    preTokens >= MIN_DEFAULT_COMPACTION &&
    preTokens <= CLAUDE_CODE_WINDOW
  const isDefault =
    format === 'claude-code' &&
    window === own &&
    window > CLAUDE_CODE_WINDOW &&
    peak <= CLAUDE_CODE_WINDOW &&
    compactions.some(fitsDefault)
  return isDefault
    ? { window: CLAUDE_CODE_WINDOW, windowFrom: 'compactions' }
    : { window, windowFrom: 'catalogue' }
}

function autoCompactThreshold(window: number | null, model: FoundModel | null): number | null {
  if (window === null) return null
  try {
    const scaled = computeScaledLimits(DEFAULT_POLICY, { window, maxOutput: model?.model.maxOutput ?? null })
    return scaled.known ? scaled.lines.autoCompact : null
  } catch (error) {
    // The context window in the log is smaller than the default policy allows.
    if (error instanceof TidemarkError) return null
    throw error
  }
}

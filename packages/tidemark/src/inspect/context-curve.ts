/** How the context of the main conversation grew and shrank: what each request sent, and the rewrites between. */
import {
  type CompactBoundary,
  contextOf,
  DEFAULT_POLICY,
  isCompactBoundary,
  isMicrocompactBoundary,
  isObject,
  type MicrocompactBoundary,
  type SessionRecord,
  scalePolicy,
  TidemarkError,
} from '@tidemark/core'
import type { FoundModel, LogFormat } from '@tidemark/wire'
import { type Call, keyOf } from './calls.ts'
import type { ClearingFound, CompactionFound, ContextCurve, ContextPoint } from './report.ts'

export interface Curve {
  readonly points: readonly ContextPoint[]
  readonly compactions: readonly CompactionFound[]
  readonly clearings: readonly ClearingFound[]
}

/** Calls that another file has too are part of this conversation all the same. */
export function curveOf(records: Iterable<SessionRecord>, calls: readonly Call[]): Curve {
  const waiting = new Map(calls.filter(isMeasured).map((call) => [call.key, call]))
  const points: ContextPoint[] = []
  const compactions: CompactionFound[] = []
  const clearings: ClearingFound[] = []
  for (const record of records) {
    const key = keyOf(record)
    const call = key === null ? undefined : waiting.get(key)
    if (call !== undefined) points.push({ at: call.at, tokens: contextOf(call.usage) })
    if (key !== null) waiting.delete(key)
    if (isCompactBoundary(record)) compactions.push(compactionAt(record, points.length))
    else if (isMicrocompactBoundary(record)) clearings.push(clearingAt(record, points.length))
  }
  return { points, clearings, compactions: compactions.map((act) => ({ ...act, postTokens: after(act) })) }

  function after({ afterCall }: CompactionFound): number | null {
    return points[afterCall]?.tokens ?? null
  }
}

function isMeasured({ agent, usage }: Call): boolean {
  return agent === null && contextOf(usage) > 0
}

function compactionAt(record: CompactBoundary, afterCall: number): CompactionFound {
  const { trigger, preTokens } = fieldsOf(record.compactMetadata)
  return { trigger: text(trigger), preTokens: count(preTokens), postTokens: null, at: at(record), afterCall }
}

function clearingAt(record: MicrocompactBoundary, afterCall: number): ClearingFound {
  const { trigger, preTokens, tokensSaved, compactedToolIds } = fieldsOf(record.microcompactMetadata)
  return {
    preTokens: count(preTokens),
    savedTokens: count(tokensSaved),
    trigger: text(trigger),
    results: Array.isArray(compactedToolIds) ? compactedToolIds.length : 0,
    at: at(record),
    afterCall,
  }
}

/** Another program's line may leave out what ours always has. */
function fieldsOf(metadata: unknown): { readonly [field: string]: unknown } {
  return isObject(metadata) ? metadata : {}
}

function at({ timestamp }: SessionRecord): string | null {
  return text(timestamp)
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function count(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null
}

// How large the window was that a recorded session filled, and where its host would have compacted.

export interface WindowClues {
  readonly format: LogFormat
  /** What the log itself says. */
  readonly logged: number | null
  readonly model: FoundModel | null
  readonly compactions: readonly CompactionFound[]
  readonly peak: number
}

type Window = Pick<ContextCurve, 'window' | 'windowFrom' | 'autoCompact'>

/** Claude Code runs models that could take more with this window, unless it is told otherwise. */
const USUAL_WINDOW = 200_000

export function windowOf(clues: WindowClues): Window {
  const { tokens, from } = sized(clues)
  // The line is that of this engine and of Claude Code; Codex draws its own.
  const autoCompact = clues.format === 'codex' ? null : autoCompactLine(tokens, clues.model)
  return { window: tokens, windowFrom: from, autoCompact }
}

function sized({ logged, model, compactions, peak }: WindowClues): {
  readonly tokens: number | null
  readonly from: ContextCurve['windowFrom']
} {
  if (logged !== null) return { tokens: logged, from: 'log' }
  const own = model?.model.window ?? null
  if (own === null) return { tokens: null, from: null }
  if (peak > own) return longer(model?.model.longWindow ?? null, peak)
  const isShort = own > USUAL_WINDOW && peak <= USUAL_WINDOW && compactions.some(isAtUsualLine)
  return isShort ? { tokens: USUAL_WINDOW, from: 'compactions' } : { tokens: own, from: 'catalogue' }
}

/** More was sent than the window is said to hold: it was another one. */
function longer(window: number | null, peak: number): ReturnType<typeof sized> {
  return window !== null && peak <= window
    ? { tokens: window, from: 'catalogue' }
    : { tokens: null, from: null }
}

function isAtUsualLine({ trigger, preTokens }: CompactionFound): boolean {
  return trigger === 'auto' && preTokens !== null && preTokens <= USUAL_WINDOW
}

function autoCompactLine(window: number | null, model: FoundModel | null): number | null {
  if (window === null) return null
  try {
    const scaled = scalePolicy(DEFAULT_POLICY, { window, maxOutput: model?.model.maxOutput ?? null })
    return scaled.known ? scaled.lines.autoCompact : null
  } catch (error) {
    // A window that no policy works in, whoever wrote it into a log.
    if (error instanceof TidemarkError) return null
    throw error
  }
}

/**
 * Keeps track of the current span, so that spans nest. OpenTelemetry itself does so only if the host has installed a
 * context manager. Failures of telemetry are reported to OpenTelemetry's own diagnostics.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, context, diag, ROOT_CONTEXT, type Span, type Tracer, trace } from '@opentelemetry/api'
import type { MetricInstruments } from './metrics.ts'
import type { ObservedSession } from './telemetry.ts'

/** The means to create spans and metrics of one session. */
export interface SessionInstrumentation {
  readonly session: ObservedSession
  readonly tracer: Tracer
  readonly instruments: MetricInstruments
  /** True if the host asked for the text of the conversation. */
  readonly hasContent: boolean
}

/** The span context of the running operation, its source and its tool calls. */
export interface TraceScope {
  /** The OpenTelemetry context whose span is the parent of new spans. */
  readonly context: Context
  /** Label of the last request that the operation sent, such as `sdk` or `compact`. */
  readonly source: string
  /** The spans of the tool calls that are running, by id of the call. */
  readonly tools: ReadonlyMap<string, RunningTool>
}

export interface RunningTool {
  readonly span: Span
  readonly context: Context
  /** The name of the tool, as metrics have it. */
  readonly name: string
  /** Milliseconds of `performance.now()`. */
  readonly startedAt: number
}

const scopes = new AsyncLocalStorage<TraceScope>()

/** Returns the scope of the running code; undefined outside of all operations. */
export function readTraceScope(): TraceScope | undefined {
  return scopes.getStore()
}

/** Returns the context for a new span: the one that is active in the host's code, otherwise that of the running operation. */
export function findHostOrOperationContext(): Context {
  const active = context.active()
  return active === ROOT_CONTEXT ? (scopes.getStore()?.context ?? active) : active
}

/**
 * Runs `work` so that `readTraceScope` returns this scope in it. If telemetry fails before `work` has begun, `work` runs
 * without a scope.
 */
export function runInTraceScope<Result>(scope: TraceScope, work: () => Result): Result {
  let hasBegun = false
  const begin = (): Result => {
    hasBegun = true
    return work()
  }
  try {
    return scopes.run(scope, () => context.with(scope.context, begin))
  } catch (thrown) {
    if (hasBegun) throw thrown
    reportFailure(thrown)
    return work()
  }
}

/** Adds an event to the span of a context, if it has one. */
export function addSpanEvent(
  at: Context | undefined,
  event: { readonly name: string; readonly attributes: Readonly<Record<string, AttributeValue>> },
): void {
  if (at !== undefined) trace.getSpan(at)?.addEvent(event.name, event.attributes)
}

export type AttributeValue = string | number | boolean | string[]

/** Runs a call of the telemetry API. An exception is reported to OpenTelemetry's diagnostics and goes no further. */
export function runGuarded<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch (thrown) {
    reportFailure(thrown)
    return undefined
  }
}

function reportFailure(thrown: unknown): void {
  try {
    diag.error('tidemark: telemetry failed', thrown)
  } catch {
    // The host's own logger failed; there is nowhere left to report it.
  }
}

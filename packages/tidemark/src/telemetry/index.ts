/**
 * `tidemark/telemetry` reports sessions to OpenTelemetry through its API package `@opentelemetry/api`, which the host
 * installs. It sends nothing itself: the host's providers export the spans and metrics.
 */
import {
  createNoopMeter,
  type MeterProvider,
  metrics,
  ProxyTracerProvider,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import type { TurnEvent } from '@tidemark/core/engine/events'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { toSpanEvent } from './event-attributes.ts'
import { countInMetrics, createInstruments } from './metrics.ts'
import { traceModelCalls } from './model-spans.ts'
import { withOperationSpans } from './operation-spans.ts'
import type { ObservedSession, SessionTelemetry, Telemetry } from './telemetry.ts'
import {
  addSpanEvent,
  readTraceScope,
  runGuarded,
  runInTraceScope,
  type SessionInstrumentation,
} from './trace-scope.ts'

export type { Telemetry } from './telemetry.ts'

export interface OpenTelemetryOptions {
  /** The provider for spans. Default: the provider that the program has registered globally. Null: no spans. */
  readonly tracerProvider?: TracerProvider | null
  /** The provider for metrics. Default: the provider that the program has registered globally. Null: no metrics. */
  readonly meterProvider?: MeterProvider | null
  /**
   * True to add the text of the conversation to the spans: system prompt, messages, inputs and results of tools,
   * messages of errors. Secrets that are recognised are redacted. Default: false.
   */
  readonly content?: boolean
}

const SCOPE_NAME = 'tidemark'

/**
 * Reports sessions to OpenTelemetry. A provider that throws never changes what a session does.
 *
 * @example createTidemark({ model, telemetry: openTelemetry({ tracerProvider, meterProvider }) })
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  const { tracerProvider, meterProvider, content = false } = checkOptions(options)
  const spans = tracerProvider === undefined ? trace.getTracerProvider() : tracerProvider
  const figures = meterProvider === undefined ? metrics.getMeterProvider() : meterProvider
  const tracer = (spans ?? new ProxyTracerProvider()).getTracer(SCOPE_NAME)
  const instruments = createInstruments(figures?.getMeter(SCOPE_NAME) ?? createNoopMeter())
  return {
    observeSession: (session) =>
      createSessionTelemetry({ session, tracer, instruments, hasContent: content }),
  }
}

function checkOptions(options: OpenTelemetryOptions): OpenTelemetryOptions {
  checkOptionNames('openTelemetry', options, ['tracerProvider', 'meterProvider', 'content'])
  const { tracerProvider, meterProvider, content } = options
  if (tracerProvider != null && typeof tracerProvider.getTracer !== 'function')
    throw badOptionError('tracerProvider', 'openTelemetry: tracerProvider has no getTracer(name).')
  if (meterProvider != null && typeof meterProvider.getMeter !== 'function')
    throw badOptionError('meterProvider', 'openTelemetry: meterProvider has no getMeter(name).')
  if (content !== undefined && typeof content !== 'boolean')
    throw badOptionError('content', 'openTelemetry: content must be true or false.')
  return options
}

function createSessionTelemetry(observer: SessionInstrumentation): SessionTelemetry {
  const base = toMetricAttributes(observer.session)
  return {
    traceOperation: (operation, events) => withOperationSpans(observer, operation, events),
    traceModel: (model, traits) => traceModelCalls(observer, model, traits),
    traceTools: (runTool) => (call, signal, report) => {
      const scope = readTraceScope()
      const tool = scope?.tools.get(call.id)
      if (scope === undefined || tool === undefined) return runTool(call, signal, report)
      return runInTraceScope({ ...scope, context: tool.context }, () => runTool(call, signal, report))
    },
    countEvent(event) {
      runGuarded(() => countInMetrics(observer, event as TurnEvent, base))
      // Retries are emitted by the connection during a model call and not as events of an operation, so they are added here.
      if (event.type !== 'retrying') return
      const spanEvent = toSpanEvent(event as TurnEvent)
      if (spanEvent !== null) runGuarded(() => addSpanEvent(readTraceScope()?.context, spanEvent))
    },
  }
}

function toMetricAttributes({ provider, source }: ObservedSession) {
  return { 'gen_ai.provider.name': provider, 'tidemark.source': source }
}

/** Tidemark on the simulator, reported to OpenTelemetry's real SDK with exporters in memory. */
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { SessionEvent } from 'tidemark'
import { type OpenTelemetryOptions, openTelemetry } from 'tidemark/telemetry'
import { createTestTidemark, type TestTidemark, type TestTidemarkOptions } from './test-tidemark.ts'

export interface Observed {
  readonly world: TestTidemark
  readonly tracerProvider: TracerProvider
  readonly events: readonly SessionEvent[]
  /** The spans that have ended, in the order of their ends. */
  readonly spans: () => readonly ReadableSpan[]
  /** The sums and counts of a metric by its attributes. */
  readonly readMetric: (name: string) => Promise<readonly MetricPoint[]>
}

interface MetricPoint {
  readonly attributes: Readonly<Record<string, unknown>>
  readonly value: number
}

export function createObserved(
  options: TestTidemarkOptions = {},
  own: Partial<OpenTelemetryOptions> = {},
): Observed {
  const spanExporter = new InMemorySpanExporter()
  const tracerProvider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter: spanExporter })],
  })
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 3_600_000,
  })
  const meterProvider = new MeterProvider({ readers: [reader] })
  const events: SessionEvent[] = []
  const world = createTestTidemark({
    telemetry: openTelemetry({ tracerProvider, meterProvider, ...own }),
    onEvent: (event) => void events.push(event),
    ...options,
  })
  return {
    world,
    tracerProvider,
    events,
    spans: () => spanExporter.getFinishedSpans(),
    async readMetric(name) {
      metricExporter.reset()
      await meterProvider.forceFlush()
      const all = metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
      const found = all.flatMap(({ metrics }) => metrics).find(({ descriptor }) => descriptor.name === name)
      return (found?.dataPoints ?? []).map(({ attributes, value }) => ({
        attributes,
        value: typeof value === 'number' ? value : (value.sum ?? 0),
      }))
    },
  }
}

export function parentOf(spans: readonly ReadableSpan[], span: ReadableSpan | undefined): string | null {
  const id = span?.parentSpanContext?.spanId
  return spans.find((other) => other.spanContext().spanId === id)?.name ?? null
}

export function named(spans: readonly ReadableSpan[], name: string): readonly ReadableSpan[] {
  return spans.filter((span) => span.name === name)
}

/** A turn of the coder, which calls tools. */
export async function runTurn({ world }: Observed, id = 'observed') {
  const session = await world.tide.open(id)
  const end = await session.run('Fix the sum of orders.', world.tools).outcome
  return { session, end }
}

export const CHAT = 'chat claude-sonnet-5-5'

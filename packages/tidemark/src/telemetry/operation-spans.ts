/**
 * The spans of an operation, created from its events: the turn (`invoke_agent`), its tool calls (`execute_tool NAME`)
 * and compactions (`tidemark.compaction`), each with its parent.
 */

import {
  type Context,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import type { TurnEvent, TurnOutcome } from '@tidemark/core/engine/events'
import type { ToolUseBlock } from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import type { TokenCounts } from '@tidemark/core/log/reply-report'
import { toToolArgumentAttributes, toToolResultAttributes } from './content-attributes.ts'
import { type SpanAttributes, toCompactionAttributes, toSpanEvent } from './event-attributes.ts'
import { toMetricToolName } from './metrics.ts'
import { toUsageAttributes } from './model-spans.ts'
import type { ObservedEvent } from './telemetry.ts'
import {
  addSpanEvent,
  findHostOrOperationContext,
  type RunningTool,
  runGuarded,
  runInTraceScope,
  type SessionInstrumentation,
  type TraceScope,
} from './trace-scope.ts'

/**
 * Returns the operation with spans for what its events report. Its events and result stay the same, also if telemetry
 * fails. `operation`: `run` for a turn, which gets a span of its own.
 */
export function withOperationSpans<Event extends ObservedEvent, End>(
  observer: SessionInstrumentation,
  operation: string,
  events: AsyncGenerator<Event, End>,
): AsyncGenerator<Event, End> {
  const spans = runGuarded(() => createOperationSpans(observer, operation))
  return spans === undefined ? events : followEvents(spans, events)
}

async function* followEvents<Event extends ObservedEvent, End>(
  spans: OperationSpans,
  events: AsyncGenerator<Event, End>,
): AsyncGenerator<Event, End> {
  let isOver = false
  try {
    for (;;) {
      const step = await runInTraceScope(spans.scope, () => events.next())
      isOver = step.done === true
      if (step.done === true) {
        runGuarded(() => spans.end(step.value))
        return step.value
      }
      runGuarded(() => spans.observe(step.value as TurnEvent))
      yield step.value
    }
  } catch (thrown) {
    isOver = true
    runGuarded(() => spans.fail(thrown))
    throw thrown
  } finally {
    if (!isOver) await events.return(undefined as End)
    runGuarded(() => spans.end(null))
  }
}

interface OperationSpans {
  /** The scope in which the next step of the operation runs. */
  readonly scope: TraceScope
  observe(event: TurnEvent): void
  fail(thrown: unknown): void
  /** Ends all spans that are open. `end`: the result of the operation; null if it has none. */
  end(end: unknown): void
}

interface OpenSpan {
  readonly span: Span
  readonly context: Context
  readonly startedAt: number
}

function createOperationSpans(observer: SessionInstrumentation, operation: string): OperationSpans {
  const { session } = observer
  const parent = findHostOrOperationContext()
  const turn = operation === 'run' ? startTurn(observer, parent) : null
  const own = turn?.context ?? parent
  const tools = createToolSpans(observer, own)
  const compaction = createCompactionSpan(observer, own)
  const usage = createUsageTotals()
  let source = session.source
  let errorType: string | null = null
  let isEnded = false
  return {
    get scope() {
      return { context: compaction.context() ?? own, source, tools: tools.running }
    },
    observe(event) {
      if (event.type === 'side-sent') source = event.source
      if (event.type === 'request-sent') source = session.source
      usage.add(event)
      const spanEvent = toSpanEvent(event)
      if (spanEvent !== null) addSpanEvent(compaction.context() ?? own, spanEvent)
      compaction.observe(event)
      tools.observe(event)
      if (event.type !== 'turn-ended' || turn === null) return
      describeTurnEnd(turn.span, event.outcome)
      errorType = event.outcome.ok ? null : event.outcome.reason
    },
    fail(thrown) {
      const type = thrown instanceof Error ? thrown.name : '_OTHER'
      compaction.close(FAILED, type)
      errorType = type
      if (turn !== null) markError(turn.span, type)
    },
    end(end) {
      if (isEnded) return
      isEnded = true
      compaction.close(isObject(end) && end.ok === true ? PREPARED : UNFINISHED)
      tools.abort()
      if (turn === null) return
      turn.span.setAttributes(toUsageAttributes(usage.totals))
      turn.span.end()
      observer.instruments.turnDuration.record(secondsSince(turn.startedAt), {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.provider.name': session.provider,
        ...(errorType === null ? {} : { 'error.type': errorType }),
      })
    },
  }
}

/** Adds up the usage of the calls of a turn, without those that write summaries. */
function createUsageTotals() {
  let totals: TokenCounts = { input: 0, read: 0, writes: { short: 0, long: 0 }, output: 0 }
  return {
    get totals() {
      return totals
    },
    add(event: TurnEvent): void {
      const usage = event.type === 'answered' ? event.reply.usage : undefined
      if (usage === undefined) return
      const { input, read, writes, output } = totals
      totals = {
        input: input + usage.input,
        read: read + usage.read,
        writes: { short: writes.short + usage.writes.short, long: writes.long + usage.writes.long },
        output: output + usage.output,
      }
    },
  }
}

function describeTurnEnd(span: Span, outcome: TurnOutcome): void {
  const model = outcome.state.lastRequest?.front.model
  if (model !== undefined) span.setAttribute('gen_ai.request.model', model)
  span.setAttribute('tidemark.outcome', outcome.ok ? 'ok' : outcome.reason)
  if (!outcome.ok) markError(span, outcome.reason)
}

interface CompactionSpan {
  /** The context of the open span; null if no compaction is running. */
  context(): Context | null
  observe(event: TurnEvent): void
  close(attributes: SpanAttributes, errorType?: string): void
}

/**
 * The span of a compaction, from its first phase to its outcome. A prepared summary is committed after the phase `done`,
 * so that phase ends the span only if the outcome is known.
 */
function createCompactionSpan(observer: SessionInstrumentation, parent: Context): CompactionSpan {
  let open: (OpenSpan & { hasOutcome: boolean; isDone: boolean }) | null = null
  const begin = () => {
    open ??= { ...startSpan(observer, 'tidemark.compaction', {}, parent), hasOutcome: false, isDone: false }
    return open
  }
  const close = (attributes: SpanAttributes, errorType?: string): void => {
    if (open !== null) endSpan(open.span, attributes, errorType)
    open = null
  }
  return {
    context: () => open?.context ?? null,
    close,
    observe(event) {
      if (event.type === 'phase' && COMPACTION_PHASES.has(event.phase)) begin()
      else if (event.type === 'compact') {
        const begun = begin()
        begun.span.setAttributes(toCompactionAttributes(event.compaction))
        begun.hasOutcome = true
      } else if (event.type === 'compact-failed') {
        const { trigger, cause, refused } = event
        begin().span.setAttributes({
          'tidemark.compaction.trigger': trigger,
          'tidemark.compaction.cause': cause,
        })
        close(FAILED, refused.reason)
      } else if (open !== null) {
        if (event.type === 'phase' && event.phase === 'done') open.isDone = true
        if (open.isDone && open.hasOutcome) close({})
        else if (event.type === 'request-sent') close(UNFINISHED)
      }
    },
  }
}

/** Phases with which a compaction can begin. Session hooks run outside of compactions as well. */
const COMPACTION_PHASES: ReadonlySet<string> = new Set([
  'waiting for the notes',
  'running PreCompact hooks',
  'compacting',
  'bringing back context',
])
const FAILED = { 'tidemark.compaction.outcome': 'failed' }
const PREPARED = { 'tidemark.compaction.outcome': 'prepared' }
const UNFINISHED = { 'tidemark.compaction.outcome': 'unfinished' }

interface ToolSpans {
  readonly running: ReadonlyMap<string, RunningTool>
  observe(event: TurnEvent): void
  /** Ends the spans of calls that were abandoned. */
  abort(): void
}

function createToolSpans(observer: SessionInstrumentation, parent: Context): ToolSpans {
  const running = new Map<string, RunningTool>()
  return {
    running,
    observe(event) {
      if (event.type === 'tool-started') running.set(event.call.id, startTool(observer, event.call, parent))
      if (event.type !== 'tool-ended') return
      const tool = running.get(event.call.id)
      running.delete(event.call.id)
      if (tool === undefined) return
      if (observer.hasContent) tool.span.setAttributes(toToolResultAttributes(event.result))
      endTool(observer, tool, event.result.is_error === true ? 'tool_error' : undefined)
    },
    abort() {
      for (const tool of running.values()) endTool(observer, tool, 'aborted')
      running.clear()
    },
  }
}

function startTurn(observer: SessionInstrumentation, parent: Context): OpenSpan {
  const { source, provider } = observer.session
  const [kind, agent] = source.split(/:(.*)/s)
  const isAgent = kind === 'agent' && agent !== undefined && agent !== ''
  const attributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': provider,
    'tidemark.source': source,
    ...(isAgent ? { 'gen_ai.agent.name': agent } : {}),
  }
  const name = isAgent ? `invoke_agent ${agent}` : 'invoke_agent'
  return startSpan(observer, name, { kind: SpanKind.INTERNAL, attributes }, parent)
}

function startTool(
  observer: SessionInstrumentation,
  { id, name, input }: ToolUseBlock,
  parent: Context,
): RunningTool {
  const attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.call.id': id,
    'gen_ai.tool.type': 'function',
    ...(observer.hasContent ? toToolArgumentAttributes(input) : {}),
  }
  const known = toMetricToolName(observer, name)
  return { ...startSpan(observer, `execute_tool ${known}`, { attributes }, parent), name: known }
}

function endTool({ instruments }: SessionInstrumentation, tool: RunningTool, errorType?: string): void {
  endSpan(tool.span, {}, errorType)
  const failed = errorType === undefined ? {} : { 'error.type': errorType }
  instruments.toolDuration.record(secondsSince(tool.startedAt), {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool.name,
    ...failed,
  })
}

function startSpan(
  observer: SessionInstrumentation,
  name: string,
  options: SpanOptions,
  parent: Context,
): OpenSpan {
  const attributes = { ...options.attributes, 'gen_ai.conversation.id': observer.session.id }
  const span = observer.tracer.startSpan(name, { ...options, attributes }, parent)
  return { span, context: trace.setSpan(parent, span), startedAt: performance.now() }
}

function endSpan(span: Span, attributes: SpanAttributes, errorType: string | undefined): void {
  span.setAttributes(attributes)
  if (errorType !== undefined) markError(span, errorType)
  span.end()
}

/** Marks a span as failed. After an abort, which the caller wanted, only the attribute is set. */
function markError(span: Span, errorType: string): void {
  span.setAttribute('error.type', errorType)
  if (errorType !== 'aborted') span.setStatus({ code: SpanStatusCode.ERROR })
}

function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1000
}

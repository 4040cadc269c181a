/** A span and metrics for each call of a model: `chat MODEL`, as the GenAI conventions describe it. */
import {
  type Context,
  type Attributes as OtelAttributes,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import type { Model, ModelStreamInput } from '@tidemark/core/engine/ports'
import type { ReplyEvent } from '@tidemark/core/engine/reply'
import { readStopReason } from '@tidemark/core/log/block'
import type { TokenCounts } from '@tidemark/core/log/reply-report'
import { countPromptTokens } from '@tidemark/core/tokens/usage'
import { toReplyAttributes, toRequestAttributes } from './content-attributes.ts'
import type { ModelTraits } from './telemetry.ts'
import {
  findHostOrOperationContext,
  readTraceScope,
  runGuarded,
  runInTraceScope,
  type SessionInstrumentation,
} from './trace-scope.ts'

/** Returns the model with a span for each call. Calls and events are unchanged. */
export function traceModelCalls(observer: SessionInstrumentation, model: Model, traits: ModelTraits): Model {
  return {
    stream(call, signal) {
      const open = runGuarded(() => startCall(observer, call, traits))
      const stream = (): AsyncIterable<ReplyEvent> => model.stream(call, signal)
      return open === undefined ? stream() : followCall(observer, open, stream)
    },
  }
}

interface OpenCall {
  readonly span: Span
  readonly context: Context
  readonly startedAt: number
  /** Attributes of the metrics. */
  readonly base: OtelAttributes
  firstChunkAt: number | null
  isEnded: boolean
}

function startCall(
  observer: SessionInstrumentation,
  call: ModelStreamInput,
  { provider, readOutputLimit }: ModelTraits,
): OpenCall {
  const { model } = call.payload
  const limit = readOutputLimit(call.payload)
  const base = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': model,
  }
  const source = readTraceScope()?.source ?? observer.session.source
  const attributes = {
    ...base,
    'gen_ai.conversation.id': observer.session.id,
    'gen_ai.request.stream': true,
    'tidemark.source': source,
    ...(limit === null ? {} : { 'gen_ai.request.max_tokens': limit }),
    ...(observer.hasContent ? toRequestAttributes(call) : {}),
  }
  const parent = findHostOrOperationContext()
  const span = observer.tracer.startSpan(`chat ${model}`, { kind: SpanKind.CLIENT, attributes }, parent)
  return {
    span,
    context: trace.setSpan(parent, span),
    startedAt: performance.now(),
    base,
    firstChunkAt: null,
    isEnded: false,
  }
}

/**
 * Passes on the events of a call, each awaited in the context of the span, and ends the span with the last of them. Not a
 * generator, so that a caller can stop a call that gives no more events.
 */
function followCall(
  observer: SessionInstrumentation,
  open: OpenCall,
  start: () => AsyncIterable<ReplyEvent>,
): AsyncIterable<ReplyEvent> {
  const scope = {
    source: observer.session.source,
    tools: new Map(),
    ...readTraceScope(),
    context: open.context,
  }
  const end = (type: string): void => {
    runGuarded(() => endCall(observer, open, { 'error.type': type }))
  }
  const follow = (events: AsyncIterator<ReplyEvent>): AsyncIterator<ReplyEvent> => ({
    async next() {
      try {
        const step = await runInTraceScope(scope, () => events.next())
        if (step.done === true) end('incomplete')
        else runGuarded(() => observeReply(observer, open, step.value))
        return step
      } catch (thrown) {
        end(thrown instanceof Error ? thrown.name : '_OTHER')
        throw thrown
      }
    },
    async return() {
      end('aborted')
      return (await events.return?.()) ?? { done: true, value: undefined }
    },
  })
  return {
    [Symbol.asyncIterator]: () => follow(runInTraceScope(scope, () => start()[Symbol.asyncIterator]())),
  }
}

function observeReply(observer: SessionInstrumentation, open: OpenCall, event: ReplyEvent): void {
  if (event.type !== 'reply-ended' && event.type !== 'reply-failed') {
    if (event.type !== 'reply-alive' && event.type !== 'reply-lost') open.firstChunkAt ??= performance.now()
    return
  }
  const { reply } = event
  if (reply !== null) {
    const { usage } = reply
    const { id, model } = reply.message
    const stopWord = readStopReason(reply.message)
    open.span.setAttributes({
      'gen_ai.response.id': id,
      'gen_ai.response.model': model,
      ...(stopWord === null ? {} : { 'gen_ai.response.finish_reasons': [stopWord] }),
      ...toUsageAttributes(usage),
      ...(observer.hasContent ? toReplyAttributes(reply) : {}),
    })
    countUsage(observer, { ...open.base, 'gen_ai.response.model': model }, usage)
  }
  if (event.type === 'reply-ended') endCall(observer, open, null)
  else {
    const { kind, status, message } = event.failure
    if (status !== undefined) open.span.setAttribute('http.response.status_code', status)
    endCall(observer, open, { 'error.type': kind }, message)
  }
}

/** Ends the span once. `error` has the kind of the failure; null if there was none. */
function endCall(
  observer: SessionInstrumentation,
  open: OpenCall,
  error: { readonly 'error.type': string } | null,
  message = '',
): void {
  if (open.isEnded) return
  open.isEnded = true
  const seconds = (performance.now() - open.startedAt) / 1000
  if (open.firstChunkAt !== null) {
    const toFirst = (open.firstChunkAt - open.startedAt) / 1000
    open.span.setAttribute('gen_ai.response.time_to_first_chunk', toFirst)
    runGuarded(() => observer.instruments.firstChunk.record(toFirst, open.base))
  }
  if (error !== null) {
    open.span.setAttributes(error)
    const shown = observer.hasContent && message !== '' ? { message } : {}
    // The caller wanted the abort, so it is not an error.
    if (error['error.type'] !== 'aborted') open.span.setStatus({ code: SpanStatusCode.ERROR, ...shown })
  }
  open.span.end()
  observer.instruments.callDuration.record(seconds, { ...open.base, ...error })
}

export function toUsageAttributes(usage: TokenCounts | undefined): OtelAttributes {
  if (usage === undefined) return {}
  return {
    // The conventions include cached tokens in the input tokens.
    'gen_ai.usage.input_tokens': countPromptTokens(usage),
    'gen_ai.usage.output_tokens': usage.output,
    'gen_ai.usage.cache_read.input_tokens': usage.read,
    'gen_ai.usage.cache_creation.input_tokens': usage.writes.short + usage.writes.long,
  }
}

function countUsage(
  { instruments }: SessionInstrumentation,
  attributes: OtelAttributes,
  usage: TokenCounts | undefined,
): void {
  if (usage === undefined) return
  const counts = { input: countPromptTokens(usage), output: usage.output }
  for (const [type, tokens] of Object.entries(counts))
    runGuarded(() => instruments.tokenUsage.record(tokens, { ...attributes, 'gen_ai.token.type': type }))
}

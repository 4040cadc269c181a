/** The response object of the Responses API, with its usage. */
import { isObject } from '../../protocol/messages-request.ts'
import { readCacheOptions } from '../cache/breakpoint-cache.ts'
import type { PromptCacheDiagnosis } from '../cache/prompt-cache-diagnostics.ts'
import type { OpenaiTokenSplit } from '../cache/prompt-units.ts'
import { type OpenaiError, toErrorFields } from '../openai-error.ts'
import type { OpenaiModel } from '../openai-models.ts'
import type { JsonFields } from '../openai-shape.ts'
import type { ResponsesBody } from '../validation/responses-shape.ts'

export interface ResponseBodyInput {
  readonly id: string
  /** In milliseconds since 1970. */
  readonly createdAt: number
  /** In milliseconds since 1970. */
  readonly completedAt: number
  readonly body: ResponsesBody
  readonly model: OpenaiModel
  readonly diagnosis: PromptCacheDiagnosis | null
}

/** Creates the fields that do not depend on the generated output. */
function createHead({ id, createdAt, body, model }: ResponseBodyInput): JsonFields {
  const reasoning = isObject(body.reasoning) ? body.reasoning : {}
  const text = isObject(body.text) ? body.text : {}
  const defaultEffort = model.efforts.includes('medium') ? 'medium' : (model.efforts[0] ?? null)
  return {
    id,
    object: 'response',
    created_at: Math.floor(createdAt / 1_000),
    access_programs: null,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    model: model.id,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    presence_penalty: 0,
    frequency_penalty: 0,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    prompt_cache_retention: body.prompt_cache_retention ?? null,
    ...(model.hasBreakpoints ? { prompt_cache_options: describeCacheOptions(body) } : {}),
    reasoning: { effort: reasoning.effort ?? defaultEffort, summary: reasoning.summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: readServiceTier(body),
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { format: text.format ?? { type: 'text' }, verbosity: text.verbosity ?? 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    user: body.user ?? null,
    metadata: body.metadata ?? {},
  }
}

function describeCacheOptions(body: ResponsesBody): JsonFields {
  const options = isObject(body.prompt_cache_options) ? body.prompt_cache_options : {}
  const compared = options.comparison_response_id
  return { ...readCacheOptions(body), ...(compared == null ? {} : { comparison_response_id: compared }) }
}

/** Returns the tier that serves a request. `fast` is another name of `priority`. */
export function readServiceTier(body: JsonFields): string {
  const { service_tier: tier } = body
  if (typeof tier !== 'string' || tier === 'auto') return 'default'
  return tier === 'fast' ? 'priority' : tier
}

/** Creates the response object before any output was generated. */
export function createPendingResponse(info: ResponseBodyInput): JsonFields {
  return { ...createHead(info), status: 'in_progress', completed_at: null, output: [], usage: null }
}

interface FinishedResponse {
  readonly output: readonly JsonFields[]
  readonly usage: JsonFields
  /** Why the output is incomplete; null if it is complete. */
  readonly incomplete: 'max_output_tokens' | 'content_filter' | null
}

export function createFinishedResponse(
  info: ResponseBodyInput,
  { output, usage, incomplete }: FinishedResponse,
): JsonFields {
  const isDone = incomplete === null
  return {
    ...createHead(info),
    ...(info.diagnosis === null ? {} : { prompt_cache_diagnostics: info.diagnosis }),
    status: isDone ? 'completed' : 'incomplete',
    completed_at: isDone ? Math.floor(info.completedAt / 1_000) : null,
    incomplete_details: isDone ? null : { reason: incomplete },
    output,
    usage,
  }
}

/** Creates the response of a stream that fails. */
export function createFailedResponse(info: ResponseBodyInput, error: OpenaiError): JsonFields {
  return {
    ...createHead(info),
    status: 'failed',
    completed_at: null,
    output: [],
    usage: null,
    error: toErrorFields(error),
  }
}

/** Creates the usage of a response. Cached and written tokens are part of `input_tokens`. */
export function createResponseUsage(split: OpenaiTokenSplit, output: number, reasoning: number): JsonFields {
  const { read, write30m, write12h, input } = split
  const total = read + write30m + write12h + input
  const written = { ttl_30m_tokens: write30m, ttl_12h_tokens: write12h }
  return {
    input_tokens: total,
    input_tokens_details: {
      cached_tokens: read,
      cache_write_tokens: write30m + write12h,
      // The field is optional. Version 0.20 of the Agents SDK rejects a response that has it, so it is sent only if needed.
      ...(write12h === 0 ? {} : { cache_write_tokens_details: written }),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: total + output,
  }
}

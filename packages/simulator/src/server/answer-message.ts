/**
 * Creates the response to an ordinary request: reads the prompt cache, calls the script that plays the model, signs
 * thinking and computes usage.
 */
import type { Reply as WireReply } from '@tidemark/core/engine/reply'
import { countDeletedTokens } from '../context/context-edits.ts'
import { signThinking } from '../context/signatures.ts'
import type { Fault } from '../faults/fault.ts'
import type { CacheDiagnosis } from '../prompt-cache/cache-diagnostics.ts'
import type { PromptTokenSplit } from '../prompt-cache/prompt.ts'
import { applyRequestToCache, type CacheResult } from '../prompt-cache/prompt-cache.ts'
import { BETA_NAMES, type Block, isThinkingBlock, type JsonObject } from '../protocol/messages-request.ts'
import type { Reply, ReplyDelays } from '../scripts/script.ts'
import { listContextEdits } from '../validation/context-edit-rules.ts'
import type { RequestHeaders } from './accounts.ts'
import { callScript, type ModelOutput } from './call-script.ts'
import type { PreparedRequest } from './prepare-prompt.ts'
import type { SimulatorState } from './simulator-state.ts'

export interface ResponseContext {
  /** Id of the response. */
  readonly id: string
  readonly headers: RequestHeaders
  /** Number of the request in the request log. */
  readonly number: number
  /** Time at which the request started, in milliseconds since 1970. */
  readonly now: number
  readonly diagnosis: CacheDiagnosis
}

export interface ModelResponse {
  readonly reply: WireReply
  readonly usage: JsonObject
  readonly split: PromptTokenSplit
  /** Tokens of the summaries that a threshold compaction made before the answer. `split` does not include them. */
  readonly summaries: readonly ModelCallTokens[]
  readonly outputTokens: number
  readonly cache: CacheResult
  readonly stopReason: string
  readonly delays: ReplyDelays
  readonly fault: Fault | null
  /** Writes the cache entries of the response, which later requests can then read. Called when its first byte is sent. */
  commit(): void
}

/** Finds what a prompt reads from the cache, refreshes those entries, and determines what `commit` of the result will write. */
export function applyPromptToCache(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
): CacheResult {
  const { prompt, key, model, deletions } = prepared
  return applyRequestToCache(state.store, {
    prompt,
    key,
    minimum: model.cacheMinimum,
    now: call.now,
    request: call.number,
    deleted: deletions.references,
  })
}

const NO_OUTPUT: ModelOutput = {
  blocks: [],
  cutInputs: [],
  stopReason: 'max_tokens',
  stopSequence: null,
  tokens: 0,
  thinkingTokens: 0,
}

/** Answers a request with `max_tokens: 0`: writes the prompt to the cache without calling the script. */
export function answerCacheWarming(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
): ModelResponse {
  const cache = applyPromptToCache(state, prepared, call)
  return finishResponse(state, prepared, call, {
    reply: { blocks: [] },
    output: NO_OUTPUT,
    cache,
    ...NO_SUMMARY,
  })
}

/**
 * Calls the script and creates the response. If a compaction came first, `before` has its token counts, and the
 * compaction block to put at the start of the response.
 */
export async function answerMessage(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
  before: { readonly compactions: readonly ModelCallTokens[]; readonly front: readonly Block[] } = NO_SUMMARY,
): Promise<ModelResponse> {
  const cache = applyPromptToCache(state, prepared, call)
  const { shown, prompt } = prepared
  const question = { kind: 'message', instructions: null, pieces: shown, prompt, added: 0 } as const
  const { reply, output } = await callScript(state, prepared, question, call)
  return finishResponse(state, prepared, call, { reply, output, cache, ...before })
}

const NO_SUMMARY = { compactions: [], front: [] }

interface GeneratedResponse {
  readonly reply: Reply
  readonly output: ModelOutput
  readonly cache: CacheResult
  readonly compactions: readonly ModelCallTokens[]
  /** Compaction blocks to put before the blocks that the script generated. */
  readonly front: readonly Block[]
}

function finishResponse(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
  finished: GeneratedResponse,
): ModelResponse {
  const { reply, output, cache, compactions, front } = finished
  const { split, deleted } = subtractDeletedTokens(state, prepared, cache)
  return createModelResponse(prepared, call, reply, {
    content: [...front, ...signNewThinking(state, prepared, call, output.blocks)],
    stopReason: output.stopReason,
    stopSequence: output.stopSequence,
    cutInputs: output.cutInputs.map(({ index, text }) => ({ index: index + front.length, text })),
    usage: buildUsage(
      prepared,
      compactions,
      { split, outputTokens: output.tokens },
      output.thinkingTokens,
      deleted,
    ),
    split,
    summaries: compactions,
    outputTokens: output.tokens,
    cache,
  })
}

function signNewThinking(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
  blocks: readonly Block[],
): readonly Block[] {
  if (!blocks.some(isThinkingBlock)) return blocks
  const { body, model, scope, boundPrefix, compaction, lastThinking } = prepared
  const prefix = boundPrefix()
  state.tracker.remember(prefix.end)
  const display = body.thinking?.display ?? model.displayDefault
  return signThinking(
    {
      blocks,
      prefix: { system: prefix.system, tools: prefix.tools, messages: prefix.end.chain },
      model: model.id,
      organization: scope.organization,
      response: call.id,
      previous: lastThinking,
      compactionId: compaction?.signature?.id ?? null,
      display: display === 'omitted' ? 'omitted' : 'summarized',
    },
    state.signer,
    state.ids,
  )
}

/**
 * Subtracts the tokens of deleted tool results from the tokens read from the cache. `deleted` is the number
 * subtracted; null if the `cache_edits` extension is off.
 */
export function subtractDeletedTokens(
  state: SimulatorState,
  { deletions, prompt, shown }: PreparedRequest,
  { hit, split }: CacheResult,
): { readonly split: PromptTokenSplit; readonly deleted: number | null } {
  if (!state.settings.cachedClearing) return { split, deleted: null }
  const read = hit === null ? 0 : hit.position - prompt.starts.messages + 1
  const deleted = countDeletedTokens({ ...deletions, pieces: shown }, Math.max(0, read), ({ block }) =>
    state.countTokens(block),
  )
  return { split: { ...split, read: split.read - deleted }, deleted }
}

interface ReplyInput
  extends Pick<ModelResponse, 'usage' | 'split' | 'summaries' | 'outputTokens' | 'cache' | 'stopReason'> {
  readonly content: readonly Block[]
  readonly stopSequence: string | null
  readonly cutInputs: ModelOutput['cutInputs']
}

/** Creates the response message. Its delays and its fault come from the script's reply. */
export function createModelResponse(
  prepared: PreparedRequest,
  call: ResponseContext,
  scripted: Reply,
  { content, stopSequence, cutInputs, ...input }: ReplyInput,
): ModelResponse {
  const { body, features, appliedEdits, transformations } = prepared
  const managed = features.betas.has(BETA_NAMES.contextManagement) || listContextEdits(body).length > 0
  const message: JsonObject = {
    id: call.id,
    type: 'message',
    role: 'assistant',
    model: body.model,
    stop_reason: input.stopReason,
    stop_sequence: stopSequence,
    stop_details: scripted.stopDetails ?? null,
    container: null,
    usage: input.usage,
    diagnostics: asJson(call.diagnosis),
    ...(managed
      ? {
          context_management:
            listContextEdits(body).length > 0 ? { applied_edits: asJson(appliedEdits) } : null,
        }
      : {}),
    ...(features.betas.has(BETA_NAMES.thinkingBinding)
      ? { input_transformations: asJson(transformations) }
      : {}),
  }
  return {
    ...input,
    reply: {
      // The cast is safe because the message has all fields of a response. The target type declares only some of
      // them.
      message: { ...message, content } as unknown as WireReply['message'],
      rawBlocks: [],
      cutInputs,
      unfinished: [],
      others: [],
    },
    delays: scripted.delays ?? {},
    fault: scripted.fault ?? null,
    commit: () => input.cache.commit(),
  }
}

/** Casts a value that is known to be JSON. */
function asJson(value: unknown): JsonObject {
  return value as JsonObject
}

// Helpers that compute the `usage` of a response.

/** The tokens of one model call: prompt tokens by price class, and output tokens. */
export interface ModelCallTokens {
  readonly split: PromptTokenSplit
  readonly outputTokens: number
}

const NO_TOKENS: PromptTokenSplit = { read: 0, write5m: 0, write1h: 0, input: 0 }

function buildUsage(
  { body, features: { betas } }: PreparedRequest,
  compactions: readonly ModelCallTokens[],
  answer: ModelCallTokens,
  thinkingTokens: number,
  deleted: number | null,
): JsonObject {
  const listed = betas.has(BETA_NAMES.thresholdCompaction) || betas.has(BETA_NAMES.onDemandCompaction)
  const iterations = [
    ...compactions.map((each) => ({ type: 'compaction', ...toUsageFields(each) })),
    { type: 'message', model: body.model, ...toUsageFields(answer) },
  ]
  return {
    ...toUsageFields(answer),
    output_tokens_details: { thinking_tokens: thinkingTokens },
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: 'global',
    speed: body.speed ?? 'standard',
    ...(deleted === null ? {} : { cache_deleted_input_tokens: deleted }),
    ...(listed ? { iterations } : {}),
  }
}

/**
 * Computes the usage of a response that contains only a summary. Its tokens are listed in `usage.iterations`; the
 * totals are 0.
 */
export function buildCompactionUsage(prepared: PreparedRequest, summary: ModelCallTokens): JsonObject {
  const none = buildUsage(prepared, [], { split: NO_TOKENS, outputTokens: 0 }, 0, null)
  return { ...none, iterations: [{ type: 'compaction', ...toUsageFields(summary) }] }
}

function toUsageFields({ split, outputTokens }: ModelCallTokens): JsonObject {
  return {
    input_tokens: split.input,
    cache_creation_input_tokens: split.write5m + split.write1h,
    cache_read_input_tokens: split.read,
    cache_creation: {
      ephemeral_5m_input_tokens: split.write5m,
      ephemeral_1h_input_tokens: split.write1h,
    },
    output_tokens: outputTokens,
  }
}

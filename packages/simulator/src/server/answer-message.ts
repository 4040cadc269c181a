/** The response to an ordinary request: cache read, generated blocks, signatures and usage. */
import type { Reply as WireReply } from '@tidemark/core'
import { deletedTokens } from '../context/context-edits.ts'
import { sealThinking } from '../context/signatures.ts'
import type { Fault } from '../faults/fault.ts'
import type { Diagnosis } from '../prompt-cache/diagnostics.ts'
import type { CacheSplit } from '../prompt-cache/prompt.ts'
import { type CacheOutcome, consult } from '../prompt-cache/prompt-cache.ts'
import { BETA, type Block, isThinking, type JsonObject } from '../protocol/api.ts'
import type { Delays, Reply } from '../scripts/script.ts'
import { editsOf } from '../validation/edit-rules.ts'
import type { Headers } from './accounts.ts'
import { askScript, type Output } from './model-output.ts'
import type { Prepared } from './prepare-prompt.ts'
import type { World } from './simulator-state.ts'

export interface Call {
  readonly id: string
  readonly headers: Headers
  readonly number: number
  /** The start of the request. */
  readonly now: number
  readonly diagnosis: Diagnosis
}

export interface MadeResponse {
  readonly reply: WireReply
  readonly usage: JsonObject
  readonly split: CacheSplit
  /** Summaries made before the answer; `split` does not include them. */
  readonly summaries: readonly Iteration[]
  readonly outputTokens: number
  readonly cache: CacheOutcome
  readonly stopReason: string
  readonly delays: Delays
  readonly fault: Fault | null
  /** Makes what it wrote to the cache visible. */
  commit(): void
}

function consulted(state: World, prepared: Prepared, call: Call): CacheOutcome {
  const { prompt, key, model, deletions } = prepared
  return consult(state.store, {
    prompt,
    key,
    minimum: model.cacheMinimum,
    now: call.now,
    request: call.number,
    deleted: deletions.references,
  })
}

const NOTHING: Output = {
  blocks: [],
  cutInputs: [],
  stopReason: 'max_tokens',
  stopSequence: null,
  tokens: 0,
  thinkingTokens: 0,
}

/** `max_tokens: 0`: the prompt is written to the cache and the script is not called. */
export function warm(state: World, prepared: Prepared, call: Call): MadeResponse {
  const cache = consulted(state, prepared, call)
  return finish(state, prepared, call, { reply: { blocks: [] }, output: NOTHING, cache, ...NO_SUMMARY })
}

/** `before`: summaries made before the answer, and the blocks they put in front of it. */
export async function answerMessage(
  state: World,
  prepared: Prepared,
  call: Call,
  before: { readonly compactions: readonly Iteration[]; readonly front: readonly Block[] } = NO_SUMMARY,
): Promise<MadeResponse> {
  const cache = consulted(state, prepared, call)
  const { shown: pieces, prompt } = prepared
  const question = { kind: 'message', instructions: null, pieces, prompt, added: 0 } as const
  const { reply, output } = await askScript(state, prepared, question, call)
  return finish(state, prepared, call, { reply, output, cache, ...before })
}

const NO_SUMMARY = { compactions: [], front: [] }

interface Finished {
  readonly reply: Reply
  readonly output: Output
  readonly cache: CacheOutcome
  readonly compactions: readonly Iteration[]
  /** Blocks before those that the script generated. */
  readonly front: readonly Block[]
}

function finish(state: World, prepared: Prepared, call: Call, finished: Finished): MadeResponse {
  const { reply, output, cache, compactions, front } = finished
  const { split, deleted } = afterDeletions(state, prepared, cache)
  return replyWith(prepared, call, reply, {
    content: [...front, ...sealed(state, prepared, call, output.blocks)],
    stopReason: output.stopReason,
    stopSequence: output.stopSequence,
    cutInputs: output.cutInputs.map(({ index, text }) => ({ index: index + front.length, text })),
    usage: usageOf(
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

function sealed(state: World, prepared: Prepared, call: Call, blocks: readonly Block[]): readonly Block[] {
  if (!blocks.some(isThinking)) return blocks
  const { body, model, scope, boundPrefix, compaction, lastThinking } = prepared
  const prefix = boundPrefix()
  state.tracker.remember(prefix.end)
  const display = body.thinking?.display ?? model.displayDefault
  return sealThinking(
    {
      blocks,
      mark: { system: prefix.system, tools: prefix.tools, messages: prefix.end.chain },
      model: model.id,
      organization: scope.organization,
      response: call.id,
      previous: lastThinking,
      behind: compaction?.signed?.id ?? null,
      display: display === 'omitted' ? 'omitted' : 'summarized',
    },
    state.signer,
    state.ids,
  )
}

/** Deletions affect only what was read from the cache. `deleted` is null if the extension is off. */
function afterDeletions(
  state: World,
  { deletions, prompt, shown }: Prepared,
  { hit, split }: CacheOutcome,
): { readonly split: CacheSplit; readonly deleted: number | null } {
  if (!state.settings.cachedClearing) return { split, deleted: null }
  const read = hit === null ? 0 : hit.position - prompt.starts.messages + 1
  const deleted = deletedTokens({ ...deletions, pieces: shown }, Math.max(0, read), ({ block }) =>
    state.countTokens(block),
  )
  return { split: { ...split, read: split.read - deleted }, deleted }
}

interface MessageInput
  extends Pick<MadeResponse, 'usage' | 'split' | 'summaries' | 'outputTokens' | 'cache' | 'stopReason'> {
  readonly content: readonly Block[]
  readonly stopSequence: string | null
  readonly cutInputs: Output['cutInputs']
}

/** The response message, with the delays and the fault of the script's reply. */
export function replyWith(
  prepared: Prepared,
  call: Call,
  scripted: Reply,
  { content, stopSequence, cutInputs, ...input }: MessageInput,
): MadeResponse {
  const { body, features, applied, transformations } = prepared
  const managed = features.betas.has(BETA.contextManagement) || editsOf(body).length > 0
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
    diagnostics: plain(call.diagnosis),
    ...(managed
      ? { context_management: editsOf(body).length > 0 ? { applied_edits: plain(applied) } : null }
      : {}),
    ...(features.betas.has(BETA.thinkingBinding) ? { input_transformations: plain(transformations) } : {}),
  }
  return {
    ...input,
    reply: {
      // The message has all fields of a response; the type only names those that the engine reads.
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

/** For values that are JSON by construction. */
function plain(value: unknown): JsonObject {
  return value as JsonObject
}

// `usage` of a response.

/** One call of the model: the tokens of its prompt and of its output. */
export interface Iteration {
  readonly split: CacheSplit
  readonly outputTokens: number
}

const NO_TOKENS: CacheSplit = { read: 0, write5m: 0, write1h: 0, input: 0 }

function usageOf(
  { body, features: { betas } }: Prepared,
  compactions: readonly Iteration[],
  answer: Iteration,
  thinkingTokens: number,
  deleted: number | null,
): JsonObject {
  const listed = betas.has(BETA.thresholdCompaction) || betas.has(BETA.onDemandCompaction)
  const iterations = [
    ...compactions.map((each) => ({ type: 'compaction', ...figures(each) })),
    { type: 'message', model: body.model, ...figures(answer) },
  ]
  return {
    ...figures(answer),
    output_tokens_details: { thinking_tokens: thinkingTokens },
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: 'global',
    speed: body.speed ?? 'standard',
    ...(deleted === null ? {} : { cache_deleted_input_tokens: deleted }),
    ...(listed ? { iterations } : {}),
  }
}

/** Usage of a response that is only a summary: the totals exclude it. */
export function compactionUsage(prepared: Prepared, summary: Iteration): JsonObject {
  const none = usageOf(prepared, [], { split: NO_TOKENS, outputTokens: 0 }, 0, null)
  return { ...none, iterations: [{ type: 'compaction', ...figures(summary) }] }
}

function figures({ split, outputTokens }: Iteration): JsonObject {
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

/** The answer to an ordinary request: what the cache did, what the model said, signed and counted. */
import type { Reply as WireReply } from '@tidemark/core'
import { deletedTokens } from '../context/context-edits.ts'
import { sealThinking } from '../context/signatures.ts'
import type { Fault } from '../faults/fault.ts'
import type { Diagnosis } from '../prompt-cache/diagnostics.ts'
import type { CacheSplit } from '../prompt-cache/prompt.ts'
import { type CacheOutcome, consult } from '../prompt-cache/prompt-cache.ts'
import { BETA, type Block, type JsonObject } from '../protocol/api.ts'
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
  /** Summaries made on the way, which `split` leaves out. */
  readonly summaries: readonly Iteration[]
  readonly outputTokens: number
  readonly cache: CacheOutcome
  readonly stopReason: string
  readonly delays: Delays
  readonly fault: Fault | null
  /** What it wrote to the cache becomes visible. */
  commit(): void
}

export function consulted(world: World, prepared: Prepared, call: Call): CacheOutcome {
  const { prompt, key, model, deletions } = prepared
  return consult(world.store, {
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

/** `max_tokens: 0`: the prompt goes into the cache and nobody is asked anything. */
export function warm(world: World, prepared: Prepared, call: Call): MadeResponse {
  const cache = consulted(world, prepared, call)
  return finish(world, prepared, call, {
    reply: { blocks: [] },
    output: NOTHING,
    cache,
    compactions: [],
    front: [],
  })
}

export async function answerMessage(
  world: World,
  prepared: Prepared,
  call: Call,
  before: { readonly compactions: readonly Iteration[]; readonly front: readonly Block[] } = NO_SUMMARY,
): Promise<MadeResponse> {
  const cache = consulted(world, prepared, call)
  const { shown: pieces, prompt } = prepared
  const question = { kind: 'message', instructions: null, pieces, prompt, added: 0 } as const
  const { headers, number } = call
  const { reply, output } = await askScript(world, prepared, { question, headers, number })
  return finish(world, prepared, call, { reply, output, cache, ...before })
}

const NO_SUMMARY = { compactions: [], front: [] }

interface Finished {
  readonly reply: Reply
  readonly output: Output
  readonly cache: CacheOutcome
  readonly compactions: readonly Iteration[]
  /** Blocks that stand before what the model said. */
  readonly front: readonly Block[]
}

function finish(world: World, prepared: Prepared, call: Call, made: Finished): MadeResponse {
  const { body, gate } = prepared
  const { reply, output, cache, compactions, front } = made
  const { split, deleted } = afterDeletions(world, prepared, cache)
  const usage = usageOf({
    split,
    outputTokens: output.tokens,
    thinkingTokens: output.thinkingTokens,
    model: body.model,
    betas: gate.betas,
    speed: body.speed ?? 'standard',
    deleted,
    compactions,
  })
  const blocks = sealed(world, prepared, call, output.blocks)
  return {
    reply: replyWith(prepared, {
      id: call.id,
      content: [...front, ...blocks],
      stopReason: output.stopReason,
      stopSequence: output.stopSequence,
      stopDetails: reply.stopDetails ?? null,
      usage,
      diagnosis: call.diagnosis,
      cutInputs: output.cutInputs.map(({ index, text }) => ({ index: index + front.length, text })),
    }),
    usage,
    split,
    summaries: compactions,
    outputTokens: output.tokens,
    cache,
    stopReason: output.stopReason,
    delays: reply.delays ?? {},
    fault: reply.fault ?? null,
    commit: () => cache.commit(),
  }
}

function sealed(world: World, prepared: Prepared, call: Call, blocks: readonly Block[]): readonly Block[] {
  if (!blocks.some(({ type }) => type === 'thinking' || type === 'redacted_thinking')) return blocks
  const { body, model, scope, walk: walked, compaction, lastThinking } = prepared
  const walk = walked()
  world.walker.remember(walk.end)
  const display = body.thinking?.display ?? model.displayDefault
  return sealThinking(
    {
      blocks,
      mark: { system: walk.system, tools: walk.tools, messages: walk.end.chain },
      model: model.id,
      organization: scope.organization,
      response: call.id,
      previous: lastThinking,
      behind: compaction?.seal?.id ?? null,
      display: display === 'omitted' ? 'omitted' : 'summarized',
    },
    world.sealer,
    world.ids,
  )
}

/** Deletions take effect in what was read from the cache, and nowhere else. */
function afterDeletions(
  world: World,
  { deletions, prompt, shown }: Prepared,
  { hit, split }: CacheOutcome,
): { readonly split: CacheSplit; readonly deleted: number | null } {
  if (!world.settings.cachedClearing) return { split, deleted: null }
  const read = hit === null ? 0 : hit.position - prompt.starts.messages + 1
  const deleted = deletedTokens({ ...deletions, pieces: shown }, Math.max(0, read), ({ block }) =>
    world.costOf(block),
  )
  return { split: { ...split, read: split.read - deleted }, deleted }
}

// The message of a response, and the reply the codec turns into bytes.

export interface MessageInput {
  readonly id: string
  readonly content: readonly Block[]
  readonly stopReason: string
  readonly stopSequence: string | null
  readonly stopDetails: JsonObject | null
  readonly usage: JsonObject
  readonly diagnosis: Diagnosis
  readonly cutInputs: Output['cutInputs']
}

export function replyWith(prepared: Prepared, input: MessageInput): WireReply {
  const { body, gate, applied, transformations } = prepared
  const managed = gate.betas.has(BETA.contextManagement) || editsOf(body).length > 0
  const message: JsonObject = {
    id: input.id,
    type: 'message',
    role: 'assistant',
    model: body.model,
    stop_reason: input.stopReason,
    stop_sequence: input.stopSequence,
    stop_details: input.stopDetails,
    container: null,
    usage: input.usage,
    diagnostics: plain(input.diagnosis),
    ...(managed
      ? { context_management: editsOf(body).length > 0 ? { applied_edits: plain(applied) } : null }
      : {}),
    ...(gate.betas.has(BETA.thinkingBinding) ? { input_transformations: plain(transformations) } : {}),
  }
  return {
    // The fields above are what a message has; the type only names those the engine reads.
    message: { ...message, content: input.content } as unknown as WireReply['message'],
    rawBlocks: [],
    cutInputs: input.cutInputs,
    unfinished: [],
    others: [],
  }
}

/** Values of our own that are JSON by construction. */
function plain(value: unknown): JsonObject {
  return value as JsonObject
}

// The figures of a response, in the provider's fields.

export interface UsageInput {
  readonly split: CacheSplit
  readonly outputTokens: number
  readonly thinkingTokens: number
  readonly model: string
  readonly betas: ReadonlySet<string>
  readonly speed: string | null
  /** Tokens deleted from the cached prefix; null where the extension is off. */
  readonly deleted: number | null
  /** Summaries made on the way to the answer. */
  readonly compactions: readonly Iteration[]
}

export interface Iteration {
  readonly split: CacheSplit
  readonly outputTokens: number
}

export const NO_TOKENS: CacheSplit = { read: 0, write5m: 0, write1h: 0, input: 0 }

export function usageOf(input: UsageInput): JsonObject {
  const { split, outputTokens, betas } = input
  const counted = { split, outputTokens }
  const listed = betas.has(BETA.thresholdCompaction) || betas.has(BETA.onDemandCompaction)
  const iterations = [
    ...input.compactions.map((each) => ({ type: 'compaction', ...figures(each) })),
    { type: 'message', model: input.model, ...figures(counted) },
  ]
  return {
    ...figures(counted),
    output_tokens_details: { thinking_tokens: input.thinkingTokens },
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: 'global',
    speed: input.speed,
    ...(input.deleted === null ? {} : { cache_deleted_input_tokens: input.deleted }),
    ...(listed ? { iterations } : {}),
  }
}

/** Only a summary was made: the totals exclude it. */
export function compactionUsage(input: Omit<UsageInput, 'split' | 'outputTokens' | 'deleted'>): JsonObject {
  const none = usageOf({ ...input, split: NO_TOKENS, outputTokens: 0, deleted: null })
  const iterations = input.compactions.map((each) => ({ type: 'compaction', ...figures(each) }))
  return { ...none, output_tokens_details: { thinking_tokens: 0 }, iterations }
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

/** The answer to an ordinary request: what the cache did, what the model said, signed and counted. */
import type { Reply as WireReply } from '@tidemark/core'
import type { Block, JsonObject } from '../api.ts'
import type { Diagnosis } from '../cache/diagnostics.ts'
import { type CacheOutcome, consult } from '../cache/prompt-cache.ts'
import type { CacheSplit } from '../cache/split.ts'
import { deletedTokens } from '../context/cached-clearing.ts'
import { sealThinking } from '../context/sealing.ts'
import type { Fault } from '../faults/fault.ts'
import type { Delays, Reply } from '../script/script.ts'
import type { Headers } from './account.ts'
import { askScript } from './ask-script.ts'
import { replyWith } from './message.ts'
import type { Output } from './output.ts'
import type { Prepared } from './prepare.ts'
import { type Iteration, usageOf } from './usage.ts'
import type { World } from './world.ts'

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

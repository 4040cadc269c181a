/** The provider's compactions: a request that is one, and one that happens on the way to an answer. */

import type { CompactionSeal } from '../context/signatures.ts'
import { cacheKey } from '../prompt-cache/cache-key.ts'
import { buildPrompt, type CacheSplit } from '../prompt-cache/prompt.ts'
import { type CacheOutcome, consult } from '../prompt-cache/prompt-cache.ts'
import { type Block, isObject, type Piece, textField } from '../protocol/api.ts'
import { digest } from '../protocol/clock-and-ids.ts'
import { textTokens } from '../protocol/tokenizer.ts'
import { editsOf, MIN_COMPACT_TRIGGER } from '../validation/edit-rules.ts'
import type { Headers } from './accounts.ts'
import {
  answerMessage,
  type Call,
  compactionUsage,
  type Iteration,
  type MadeResponse,
  replyWith,
} from './answer-message.ts'
import { type Asked, askScript } from './model-output.ts'
import type { Prepared } from './prepare-prompt.ts'
import type { World } from './simulator-state.ts'

export async function compactOnDemand(world: World, prepared: Prepared, call: Call): Promise<MadeResponse> {
  const instructions = isObject(prepared.body.compaction)
    ? textOf(prepared.body.compaction.instructions)
    : null
  const summary = await summarize(world, prepared, { ...call, instructions })
  const content = summary.text === null ? [] : [signedBlock(world, prepared, summary.text)]
  return summarized(world, prepared, call, { summary, content })
}

function summarized(
  _world: World,
  prepared: Prepared,
  call: Call,
  { summary, content }: { readonly summary: Summary; readonly content: readonly Block[] },
): MadeResponse {
  const { body, gate } = prepared
  const usage = compactionUsage({
    thinkingTokens: 0,
    model: body.model,
    betas: gate.betas,
    speed: body.speed ?? 'standard',
    compactions: [summary.iteration],
  })
  const { reply } = summary.asked
  return {
    reply: replyWith(prepared, {
      id: call.id,
      content,
      stopReason: summary.stopReason,
      stopSequence: null,
      stopDetails: reply.stopDetails ?? null,
      usage,
      diagnosis: call.diagnosis,
      cutInputs: [],
    }),
    usage,
    split: summary.iteration.split,
    summaries: [],
    outputTokens: summary.iteration.outputTokens,
    cache: summary.cache,
    stopReason: summary.stopReason,
    delays: reply.delays ?? {},
    fault: reply.fault ?? null,
    commit: () => summary.cache.commit(),
  }
}

const DEFAULT_TRIGGER = 150_000

function thresholdEdit({ body }: Prepared): Readonly<Record<string, unknown>> | undefined {
  return editsOf(body).find((edit) => edit.type === 'compact_20260112')
}

export function isOverThreshold(prepared: Prepared): boolean {
  const edit = thresholdEdit(prepared)
  if (edit === undefined) return false
  const asked = isObject(edit.trigger) ? Number(edit.trigger.value) : DEFAULT_TRIGGER
  return prepared.tokens >= Math.max(MIN_COMPACT_TRIGGER, asked)
}

/** A summary on the way: it stands in front of the answer, or alone where the request wants to look at it first. */
export async function compactFirst(world: World, prepared: Prepared, call: Call): Promise<MadeResponse> {
  const edit = thresholdEdit(prepared)
  const summary = await summarize(world, prepared, { ...call, instructions: textOf(edit?.instructions) })
  const block: Block = { type: 'compaction', content: summary.text, encrypted_content: null }
  if (edit?.pause_after_compaction === true)
    return summarized(world, prepared, call, {
      summary: { ...summary, stopReason: 'compaction' },
      content: [block],
    })
  const before = { compactions: [summary.iteration], front: [block] }
  const shown = summary.text === null ? prepared : withSummary(world, prepared, block)
  const made = await answerMessage(world, shown, call, before)
  return {
    ...made,
    commit() {
      summary.cache.commit()
      made.commit()
    },
  }
}

function withSummary(world: World, prepared: Prepared, block: Block): Prepared {
  const { body, scope, model, gate } = prepared
  const pieces: readonly Piece[] = [{ role: 'assistant', message: body.messages.length, index: 0, block }]
  const prompt = buildPrompt(world.tree, { body, pieces, markers: prepared.markers })
  const settings = world.settings.cacheKey
  const key = cacheKey({ scope, model, body, pieces, betas: gate.betas, settings })
  const { walk } = prepared
  const end = world.walker.restart(block)
  return { ...prepared, shown: pieces, prompt, key, walk: () => ({ ...walk(), end, behindAll: end }) }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

// The provider's own summaries: one call of the model over the whole conversation, then a block in its place.

/** Used unless the request gives instructions of its own, which replace it. */
export const SUMMARY_PROMPT =
  'Summarise the conversation so far so that the work can go on from the summary alone: the task, the decisions, the state of things, what was learnt and what comes next. Answer with text only, inside <summary></summary> tags.'

export interface Summary {
  /** Null where the call brought no summary. */
  readonly text: string | null
  readonly stopReason: string
  readonly iteration: Iteration
  readonly asked: Asked
  readonly cache: CacheOutcome
}

export interface SummaryCall {
  readonly instructions: string | null
  readonly headers: Headers
  readonly number: number
  readonly now: number
}

export async function summarize(world: World, prepared: Prepared, call: SummaryCall): Promise<Summary> {
  const custom = call.instructions?.trim() ? call.instructions : null
  const instructions = custom ?? SUMMARY_PROMPT
  const added = textTokens(instructions)
  const { prompt, key, shown, model } = prepared
  const question = { kind: 'compaction', instructions, pieces: shown, prompt, added } as const
  const { headers, number, now } = call
  const cache = consult(world.store, { prompt, key, minimum: model.cacheMinimum, now, request: number })
  const asked = await askScript(world, prepared, { question, headers, number })
  const { output } = asked
  const written = output.blocks
    .filter((block) => block.type === 'text')
    .map((block) => textField(block, 'text'))
  const finished = output.stopReason === 'end_turn' && written.join('').trim() !== ''
  return {
    text: finished ? summaryIn(written.join('\n'), custom === null) : null,
    stopReason: finished ? 'compaction' : output.stopReason,
    iteration: { split: withInput(cache.split, added), outputTokens: output.tokens },
    asked,
    cache,
  }
}

function withInput(split: CacheSplit, added: number): CacheSplit {
  return { ...split, input: split.input + added }
}

/** The provider's own prompt asks for tags; what other prompts ask for is theirs. */
function summaryIn(text: string, tagged: boolean): string {
  const inside = tagged ? text.match(/<summary>([\s\S]*?)<\/summary>/)?.[1] : undefined
  return (inside ?? text).trim()
}

/** The signed block of an on-demand compaction. */
export function signedBlock(world: World, prepared: Prepared, summary: string): Block {
  const { model, scope, walk: walked, compaction, sent } = prepared
  const walk = walked()
  const before = compaction?.seal
  world.walker.remember(walk.behindAll)
  const seal: CompactionSeal = {
    kind: 'compaction',
    id: world.ids.next('cmp'),
    organization: scope.organization,
    content: digest(summary),
    toolChanges: digest(JSON.stringify([])),
    preserves: model.binding === 'prefix',
    system: walk.system,
    tools: walk.tools,
    messages: walk.behindAll.chain,
    lastRole: lastRole(sent),
    replaced: before === null || before === undefined ? [] : [before.id, ...before.replaced],
  }
  return { type: 'compaction', content: summary, signature: world.sealer.seal(seal) }
}

function lastRole(sent: Prepared['sent']): string {
  return sent.findLast((piece) => piece.role !== 'system')?.role ?? 'user'
}

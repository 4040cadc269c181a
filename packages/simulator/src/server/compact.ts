/** The provider's compactions: a request that is one, and one that happens on the way to an answer. */
import type { Block } from '../api.ts'
import { isObject } from '../api.ts'
import { cacheKey } from '../cache/key.ts'
import { buildPrompt } from '../cache/prompt.ts'
import type { Piece } from '../context/piece.ts'
import { editsOf, MIN_COMPACT_TRIGGER } from '../validation/edit-rules.ts'
import { answerMessage, type Call, type MadeResponse } from './answer-message.ts'
import { replyWith } from './message.ts'
import type { Prepared } from './prepare.ts'
import { type Summary, signedBlock, summarize } from './summarize.ts'
import { compactionUsage } from './usage.ts'
import type { World } from './world.ts'

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

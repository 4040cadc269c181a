/** The provider's compactions: on demand, as a request of its own, and at a token threshold, before an answer. */

import type { CompactionSeal } from '../context/signatures.ts'
import { buildPrompt } from '../prompt-cache/prompt.ts'
import { type CacheOutcome, consult } from '../prompt-cache/prompt-cache.ts'
import { type Block, isObject, type Piece, textField } from '../protocol/api.ts'
import { digest } from '../protocol/clock-and-ids.ts'
import { textTokens } from '../protocol/tokenizer.ts'
import type { Reply } from '../scripts/script.ts'
import { editsOf, MIN_COMPACT_TRIGGER } from '../validation/edit-rules.ts'
import {
  answerMessage,
  type Call,
  compactionUsage,
  type Iteration,
  type MadeResponse,
  replyWith,
} from './answer-message.ts'
import { askScript } from './model-output.ts'
import { keyOf, type Prepared } from './prepare-prompt.ts'
import type { World } from './simulator-state.ts'

/** A response whose only block is the signed summary; it has no block if the script wrote no summary. */
export async function compactOnDemand(state: World, prepared: Prepared, call: Call): Promise<MadeResponse> {
  const summary = await summarize(state, prepared, call, prepared.body.compaction?.instructions)
  const content = summary.text === null ? [] : [signedBlock(state, prepared, summary.text)]
  return summarized(prepared, call, summary, content)
}

function summarized(
  prepared: Prepared,
  call: Call,
  { iteration, reply, cache, stopReason }: Summary,
  content: readonly Block[],
): MadeResponse {
  return replyWith(prepared, call, reply, {
    content,
    stopReason,
    stopSequence: null,
    cutInputs: [],
    usage: compactionUsage(prepared, iteration),
    ...iteration,
    summaries: [],
    cache,
  })
}

const DEFAULT_TRIGGER = 150_000

function thresholdEdit({ body }: Prepared): Readonly<Record<string, unknown>> | undefined {
  return editsOf(body).find((edit) => edit.type === 'compact_20260112')
}

export function isOverThreshold(prepared: Prepared): boolean {
  const edit = thresholdEdit(prepared)
  if (edit === undefined) return false
  const trigger = isObject(edit.trigger) ? Number(edit.trigger.value) : DEFAULT_TRIGGER
  return prepared.tokens >= Math.max(MIN_COMPACT_TRIGGER, trigger)
}

/** A summary before the answer, or alone with `pause_after_compaction`. */
export async function compactFirst(state: World, prepared: Prepared, call: Call): Promise<MadeResponse> {
  const edit = thresholdEdit(prepared)
  const summary = await summarize(state, prepared, call, edit?.instructions)
  const block: Block = { type: 'compaction', content: summary.text, encrypted_content: null }
  if (edit?.pause_after_compaction === true)
    return summarized(prepared, call, { ...summary, stopReason: 'compaction' }, [block])
  const before = { compactions: [summary.iteration], front: [block] }
  const shown = summary.text === null ? prepared : withSummary(state, prepared, block)
  const response = await answerMessage(state, shown, call, before)
  return {
    ...response,
    commit() {
      summary.cache.commit()
      response.commit()
    },
  }
}

/** The conversation replaced by the summary. */
function withSummary(state: World, prepared: Prepared, block: Block): Prepared {
  const { body } = prepared
  const pieces: readonly Piece[] = [{ role: 'assistant', message: body.messages.length, index: 0, block }]
  const prompt = buildPrompt(state.tree, { body, pieces, markers: prepared.markers })
  const key = keyOf(state, prepared, pieces)
  const { boundPrefix } = prepared
  const end = state.tracker.restart(block)
  return {
    ...prepared,
    shown: pieces,
    prompt,
    key,
    boundPrefix: () => ({ ...boundPrefix(), end, afterAll: end }),
  }
}

// One call of the script over the whole conversation, which yields the summary.

/** The default prompt; instructions of the request replace it. */
export const SUMMARY_PROMPT =
  'Summarise the conversation so far so that the work can go on from the summary alone: the task, the decisions, the state of things, what was learnt and what comes next. Answer with text only, inside <summary></summary> tags.'

interface Summary {
  /** Null if the script wrote no complete summary. */
  readonly text: string | null
  readonly stopReason: string
  readonly iteration: Iteration
  readonly reply: Reply
  readonly cache: CacheOutcome
}

async function summarize(
  state: World,
  prepared: Prepared,
  { headers, number, now }: Call,
  requested: unknown,
): Promise<Summary> {
  const custom = typeof requested === 'string' && requested.trim() !== '' ? requested : null
  const instructions = custom ?? SUMMARY_PROMPT
  const added = textTokens(instructions)
  const { prompt, key, shown, model } = prepared
  const question = { kind: 'compaction', instructions, pieces: shown, prompt, added } as const
  const cache = consult(state.store, { prompt, key, minimum: model.cacheMinimum, now, request: number })
  const { reply, output } = await askScript(state, prepared, question, { headers, number })
  const written = output.blocks
    .filter((block) => block.type === 'text')
    .map((block) => textField(block, 'text'))
  const finished = output.stopReason === 'end_turn' && written.join('').trim() !== ''
  return {
    text: finished ? summaryIn(written.join('\n'), custom === null) : null,
    stopReason: finished ? 'compaction' : output.stopReason,
    iteration: {
      split: { ...cache.split, input: cache.split.input + added },
      outputTokens: output.tokens,
    },
    reply,
    cache,
  }
}

/** The default prompt asks for tags. With custom instructions the whole text is the summary. */
function summaryIn(text: string, tagged: boolean): string {
  const inside = tagged ? text.match(/<summary>([\s\S]*?)<\/summary>/)?.[1] : undefined
  return (inside ?? text).trim()
}

/** The signed block of an on-demand compaction. */
function signedBlock(state: World, prepared: Prepared, summary: string): Block {
  const { model, scope, boundPrefix, compaction, sent } = prepared
  const prefix = boundPrefix()
  const before = compaction?.signed
  state.tracker.remember(prefix.afterAll)
  const signed: CompactionSeal = {
    kind: 'compaction',
    id: state.ids.next('cmp'),
    organization: scope.organization,
    content: digest(summary),
    toolChanges: digest(JSON.stringify([])),
    preserves: model.binding === 'prefix',
    system: prefix.system,
    tools: prefix.tools,
    messages: prefix.afterAll.chain,
    lastRole: lastRole(sent),
    replaced: before === null || before === undefined ? [] : [before.id, ...before.replaced],
  }
  return { type: 'compaction', content: summary, signature: state.signer.sign(signed) }
}

function lastRole(sent: Prepared['sent']): string {
  return sent.findLast((piece) => piece.role !== 'system')?.role ?? 'user'
}

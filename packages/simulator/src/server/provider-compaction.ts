/**
 * The provider's two kinds of compaction: on demand, as a request of its own, and at a token threshold, before an
 * answer.
 */

import type { CompactionSignature } from '../context/signatures.ts'
import { buildPrompt } from '../prompt-cache/prompt.ts'
import type { CacheResult } from '../prompt-cache/prompt-cache.ts'
import { hashText } from '../protocol/clock-and-ids.ts'
import { type Block, isObject, type RequestBlock, readTextField } from '../protocol/messages-request.ts'
import { countTextTokens } from '../protocol/tokenizer.ts'
import type { Reply } from '../scripts/script.ts'
import { listContextEdits, MIN_COMPACT_TRIGGER } from '../validation/context-edit-rules.ts'
import {
  answerMessage,
  applyPromptToCache,
  buildCompactionUsage,
  createModelResponse,
  type ModelCallTokens,
  type ModelResponse,
  type ResponseContext,
  subtractDeletedTokens,
} from './answer-message.ts'
import { callScript } from './call-script.ts'
import { buildRequestCacheKey, type PreparedRequest } from './prepare-prompt.ts'
import type { SimulatorState } from './simulator-state.ts'

/**
 * Answers an on-demand compaction request. The response contains one signed compaction block, or no block if the
 * script wrote no complete summary.
 */
export async function compactOnDemand(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
): Promise<ModelResponse> {
  const summary = await runSummaryCall(state, prepared, call, prepared.body.compaction?.instructions)
  const content = summary.text === null ? [] : [createSignedBlock(state, prepared, summary.text)]
  return createSummaryResponse(prepared, call, summary, content)
}

function createSummaryResponse(
  prepared: PreparedRequest,
  call: ResponseContext,
  { iteration, reply, cache, stopReason }: SummaryCallResult,
  content: readonly Block[],
): ModelResponse {
  return createModelResponse(prepared, call, reply, {
    content,
    stopReason,
    stopSequence: null,
    cutInputs: [],
    usage: buildCompactionUsage(prepared, iteration),
    ...iteration,
    summaries: [],
    cache,
  })
}

const DEFAULT_COMPACT_TRIGGER = 150_000

function findThresholdEdit({ body }: PreparedRequest): Readonly<Record<string, unknown>> | undefined {
  return listContextEdits(body).find((edit) => edit.type === 'compact_20260112')
}

/** Returns false if the request has no `compact_20260112` edit. */
export function hasReachedCompactThreshold(prepared: PreparedRequest): boolean {
  const edit = findThresholdEdit(prepared)
  if (edit === undefined) return false
  const trigger = isObject(edit.trigger) ? Number(edit.trigger.value) : DEFAULT_COMPACT_TRIGGER
  return prepared.tokens >= Math.max(MIN_COMPACT_TRIGGER, trigger)
}

/**
 * Handles a request that reached the compaction threshold: summarizes the conversation, then answers from the
 * summary. With `pause_after_compaction` the response contains only the summary.
 */
export async function compactThenAnswer(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
): Promise<ModelResponse> {
  const edit = findThresholdEdit(prepared)
  const summary = await runSummaryCall(state, prepared, call, edit?.instructions)
  const block: Block = { type: 'compaction', content: summary.text, encrypted_content: null }
  if (edit?.pause_after_compaction === true)
    return createSummaryResponse(prepared, call, { ...summary, stopReason: 'compaction' }, [block])
  const before = { compactions: [summary.iteration], front: [block] }
  const shown = summary.text === null ? prepared : replaceBySummary(state, prepared, block)
  const response = await answerMessage(state, shown, call, before)
  return {
    ...response,
    commit() {
      summary.cache.commit()
      response.commit()
    },
  }
}

/** Replaces the whole conversation by the compaction block that contains the summary. */
function replaceBySummary(state: SimulatorState, prepared: PreparedRequest, block: Block): PreparedRequest {
  const { body } = prepared
  const pieces: readonly RequestBlock[] = [
    { role: 'assistant', message: body.messages.length, index: 0, block },
  ]
  const prompt = buildPrompt(state.tree, { body, pieces, markers: prepared.markers })
  const key = buildRequestCacheKey(state, prepared, pieces)
  const { boundPrefix } = prepared
  const end = state.tracker.startAfter(block)
  return {
    ...prepared,
    shown: pieces,
    prompt,
    key,
    deletions: { pieces, references: new Set() },
    boundPrefix: () => ({ ...boundPrefix(), end, afterAll: end }),
  }
}

// The summary call: the script gets the whole conversation and returns a summary.

/** Default summary prompt of a compaction. Custom instructions in the request replace it. */
export const PROVIDER_SUMMARY_PROMPT =
  'Summarise the conversation so far so that the work can go on from the summary alone: the task, the decisions, the state of things, what was learnt and what comes next. Answer with text only, inside <summary></summary> tags.'

interface SummaryCallResult {
  /** Text of the summary; null if the script wrote no text or stopped early. */
  readonly text: string | null
  readonly stopReason: string
  readonly iteration: ModelCallTokens
  readonly reply: Reply
  readonly cache: CacheResult
}

async function runSummaryCall(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
  requested: unknown,
): Promise<SummaryCallResult> {
  const custom = typeof requested === 'string' && requested.trim() !== '' ? requested : null
  const instructions = custom ?? PROVIDER_SUMMARY_PROMPT
  const added = countTextTokens(instructions)
  const { prompt, shown } = prepared
  const question = { kind: 'compaction', instructions, pieces: shown, prompt, added } as const
  const cache = applyPromptToCache(state, prepared, call)
  const { split } = subtractDeletedTokens(state, prepared, cache)
  const { reply, output } = await callScript(state, prepared, question, call)
  const written = output.blocks
    .filter((block) => block.type === 'text')
    .map((block) => readTextField(block, 'text'))
  const finished = output.stopReason === 'end_turn' && written.join('').trim() !== ''
  return {
    text: finished ? extractSummary(written.join('\n'), custom === null) : null,
    stopReason: finished ? 'compaction' : output.stopReason,
    iteration: {
      split: { ...split, input: split.input + added },
      outputTokens: output.tokens,
    },
    reply,
    cache,
  }
}

/**
 * Extracts the summary from the script's text. `tagged`: the prompt asked for `<summary>` tags, as the default one
 * does; without tags in the text, the whole text is the summary.
 */
export function extractSummary(text: string, tagged: boolean): string {
  const inside = tagged ? text.match(/<summary>([\s\S]*?)<\/summary>/)?.[1] : undefined
  return (inside ?? text).trim()
}

/** Creates the signed compaction block of an on-demand compaction. */
function createSignedBlock(state: SimulatorState, prepared: PreparedRequest, summary: string): Block {
  const { model, scope, boundPrefix, compaction, sent } = prepared
  const prefix = boundPrefix()
  const before = compaction?.signature
  state.tracker.remember(prefix.afterAll)
  const signed: CompactionSignature = {
    kind: 'compaction',
    id: state.ids.next('cmp'),
    organization: scope.organization,
    content: hashText(summary),
    toolChanges: hashText(JSON.stringify([])),
    preserves: model.binding === 'prefix',
    system: prefix.system,
    tools: prefix.tools,
    messages: prefix.afterAll.chain,
    lastRole: findLastRole(sent),
    replaced: before === null || before === undefined ? [] : [before.id, ...before.replaced],
  }
  return { type: 'compaction', content: summary, signature: state.signer.sign(signed) }
}

function findLastRole(sent: PreparedRequest['sent']): string {
  return sent.findLast((piece) => piece.role !== 'system')?.role ?? 'user'
}

/**
 * Turns a valid request into the prompt that the model sees: applies compaction blocks, thinking binding, turn-scoped
 * messages and context edits. `/v1/messages` and `/v1/messages/count_tokens` both use it.
 */

import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import { type FoundCompactionBlock, findCompactionBlock } from '../context/compaction-block.ts'
import {
  type AppliedEdit,
  applyContextEdits,
  type ContextEditResult,
  dropExpiredSystemMessages,
  type ExtractedCacheEdits,
  extractCacheEdits,
} from '../context/context-edits.ts'
import {
  checkNewestThinking,
  enforceThinkingBinding,
  type ThinkingBindingResult,
  type ThinkingTransformation,
} from '../context/thinking-binding.ts'
import type { ThinkingPrefixes } from '../context/thinking-prefix.ts'
import { type Account, buildCacheKey, type CacheKey } from '../prompt-cache/cache-key.ts'
import { buildPrompt, buildPromptInSteps, countPromptTokens, type Prompt } from '../prompt-cache/prompt.ts'
import { type ApiError, type ApiResult, createInvalidRequestError, toRejection } from '../protocol/answer.ts'
import type { CacheMarkers } from '../protocol/cache-markers.ts'
import {
  type Block,
  listMessageBlocks,
  type MessagesBody,
  type RequestBlock,
} from '../protocol/messages-request.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import { TURN_OVERHEAD_TOKENS } from '../protocol/tokenizer.ts'
import { CHARACTERS_PER_BLOCK } from '../validation/rule.ts'
import type { ApiFeatures } from '../validation/shape.ts'
import type { SimulatorState } from './simulator-state.ts'

interface ValidRequest {
  readonly body: MessagesBody
  readonly features: ApiFeatures
  readonly model: SimulatedModel
  readonly scope: Account
  readonly markers: CacheMarkers
}

export interface PreparedRequest extends ValidRequest {
  /** The conversation as the client sent it. */
  readonly sent: readonly RequestBlock[]
  /** The conversation as the model sees it. */
  readonly shown: readonly RequestBlock[]
  readonly prompt: Prompt
  /**
   * The prompt before blocks were dropped or edited. It is built only if the request asks for diagnostics; otherwise
   * it equals `prompt`.
   */
  readonly sentPrompt: Prompt
  readonly key: CacheKey
  readonly tokens: number
  /** Tokens of the prompt before context edits. */
  readonly originalTokens: number
  readonly appliedEdits: readonly AppliedEdit[]
  readonly transformations: readonly ThinkingTransformation[]
  readonly deletions: ExtractedCacheEdits
  readonly compaction: FoundCompactionBlock | null
  readonly boundPrefix: () => ThinkingPrefixes
  /**
   * Id of the last thinking block of the conversation; null if there is none. The signature of new thinking will
   * contain this id.
   */
  readonly lastThinking: string | null
}

/**
 * Prepares the prompt of a valid request. Fails if a compaction or thinking block is not accepted, or if the prompt
 * is too long for the context window.
 */
export function* prepareRequest(
  state: SimulatorState,
  request: ValidRequest,
): WorkInSteps<ApiResult<{ prepared: PreparedRequest }>> {
  const { body, features, model } = request
  const deletions = extractCacheEdits(listMessageBlocks(body.messages))
  if (!deletions.ok) return deletions
  const weight = deletions.pieces.length * CHARACTERS_PER_BLOCK
  yield weight
  const sent = deletions.pieces
  const compaction = findCompactionBlock({ body, pieces: sent, betas: features.betas }, state.signer)
  if (!compaction.ok) return compaction
  const { found } = compaction
  const boundPrefix = createLazyPrefix(state, request, sent, found)
  const binding = bindThinking(state, request, { sent, found, boundPrefix })
  if (!binding.ok) return binding
  yield weight
  const kept = dropExpiredSystemMessages(dropBeforeThresholdBlock(binding.pieces, sent, found), body.messages)
  const edited = editConversation(state, request, kept)
  yield weight
  const { markers } = request
  const prompt = yield* buildPromptInSteps(state.tree, { body, pieces: edited.pieces, markers })
  const tokens = countPromptTokens(prompt)
  const overflow = findOverflowError(model, tokens, body.max_tokens)
  if (overflow !== null) return toRejection(overflow)
  const { transformations, last } = binding
  return {
    ok: true,
    prepared: {
      ...request,
      sent,
      shown: edited.pieces,
      prompt,
      sentPrompt:
        edited.pieces === sent || body.diagnostics == null
          ? prompt
          : yield* buildPromptInSteps(state.tree, { body, pieces: sent, markers: NO_MARKERS }),
      key: buildRequestCacheKey(state, request, edited.pieces),
      tokens,
      originalTokens: edited.originalTokens ?? tokens,
      appliedEdits: edited.applied,
      transformations,
      deletions,
      compaction: found,
      boundPrefix,
      lastThinking: last,
    },
  }
}

/**
 * Returns a function that computes the prefix that thinking is bound to. It runs only when needed, because most
 * requests have no thinking and no signed compaction block.
 */
function createLazyPrefix(
  state: SimulatorState,
  { body }: ValidRequest,
  sent: readonly RequestBlock[],
  found: FoundCompactionBlock | null,
): () => ThinkingPrefixes {
  const signed = found?.signature ?? null
  let prefix: ThinkingPrefixes | null = null
  return () => {
    prefix ??= state.tracker.track(body, sent, signed === null ? null : { signed, at: 0 })
    return prefix
  }
}

function bindThinking(
  state: SimulatorState,
  { body, features, model, scope }: ValidRequest,
  {
    sent,
    found,
    boundPrefix,
  }: {
    readonly sent: readonly RequestBlock[]
    readonly found: FoundCompactionBlock | null
    readonly boundPrefix: () => ThinkingPrefixes
  },
): ThinkingBindingResult {
  const signed = found?.signature ?? null
  const compactionIds = signed === null ? [null] : [null, signed.id, ...signed.replaced]
  const { organization } = scope
  const input = { body, pieces: sent, boundPrefix, model, organization, betas: features.betas, compactionIds }
  const { signer, tracker, settings } = state
  const ports = { signer, tracker, models: settings.models, settings: settings.binding }
  const outcome = enforceThinkingBinding(input, ports)
  const modified = outcome.ok ? checkNewestThinking(input, ports) : null
  return modified === null ? outcome : toRejection(modified)
}

/**
 * Drops all blocks before the compaction block of a threshold compaction, because the model sees the summary instead.
 */
function dropBeforeThresholdBlock(
  pieces: readonly RequestBlock[],
  sent: readonly RequestBlock[],
  found: FoundCompactionBlock | null,
): readonly RequestBlock[] {
  const block = found?.signature === null ? sent[found.at]?.block : undefined
  if (block === undefined) return pieces
  return pieces.slice(pieces.findIndex((piece) => piece.block === block))
}

function editConversation(
  state: SimulatorState,
  { body, model }: ValidRequest,
  pieces: readonly RequestBlock[],
): ContextEditResult & { readonly originalTokens: number | null } {
  const frontTokens = body.context_management == null ? 0 : countFrontTokens(state, body)
  const { countTokens } = state
  const measure = (all: readonly RequestBlock[]): number =>
    frontTokens + countConversationTokens(all, countTokens)
  const placeholder = state.settings.clearedPlaceholder
  const edited = applyContextEdits({
    body,
    pieces,
    model,
    placeholder,
    measure,
    countTokens: ({ block }) => countTokens(block),
  })
  return { ...edited, originalTokens: edited.applied.length === 0 ? null : measure(pieces) }
}

const NO_MARKERS: CacheMarkers = { explicit: [], automatic: null }

function countFrontTokens(state: SimulatorState, body: MessagesBody): number {
  return countPromptTokens(buildPrompt(state.tree, { body, pieces: [], markers: NO_MARKERS }))
}

function countConversationTokens(
  pieces: readonly RequestBlock[],
  countTokens: (block: Block) => number,
): number {
  let tokens = 0
  let role: string | null = null
  for (const piece of pieces) {
    tokens += countTokens(piece.block) + (piece.role === role ? 0 : TURN_OVERHEAD_TOKENS)
    role = piece.role
  }
  return tokens
}

export function buildRequestCacheKey(
  state: SimulatorState,
  { scope, model, body, features }: ValidRequest,
  pieces: readonly RequestBlock[],
): CacheKey {
  return buildCacheKey({
    scope,
    model,
    body,
    pieces,
    betas: features.betas,
    settings: state.settings.cacheKey,
  })
}

/**
 * Returns an error if the prompt exceeds the context window, or, on some models, if the prompt plus `max_tokens`
 * does. Otherwise null. Clients parse the messages of these errors.
 */
function findOverflowError(
  model: SimulatedModel,
  tokens: number,
  maxTokens: number | undefined,
): ApiError | null {
  const { window } = model
  if (tokens > window)
    return createInvalidRequestError(`prompt is too long: ${tokens} tokens > ${window} maximum`)
  if (model.overflow === 'stop' || maxTokens === undefined || tokens + maxTokens <= window) return null
  return createInvalidRequestError(
    `input length and \`max_tokens\` exceed context limit: ${tokens} + ${maxTokens} > ${window}, decrease input length or \`max_tokens\` and try again`,
  )
}

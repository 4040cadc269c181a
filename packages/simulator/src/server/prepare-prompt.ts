/**
 * From a valid request to the prompt that the model sees: compaction blocks, thinking binding, turn-scoped messages,
 * context edits. The same for `/v1/messages` and `/v1/messages/count_tokens`.
 */

import { type FoundCompaction, readCompaction } from '../context/compaction-block.ts'
import {
  type AppliedEdit,
  applyEdits,
  type CacheDeletions,
  type Edited,
  readDeletions,
  withoutCleared,
} from '../context/context-edits.ts'
import {
  type BindingOutcome,
  checkBinding,
  checkNewestResponse,
  type Transformation,
} from '../context/thinking-binding.ts'
import type { Walk } from '../context/thinking-prefix.ts'
import { type CacheKey, cacheKey, type Scope } from '../prompt-cache/cache-key.ts'
import { buildPrompt, type Prompt, totalTokens } from '../prompt-cache/prompt.ts'
import { type ApiResult, invalid, type Refusal, reject } from '../protocol/answer.ts'
import { type Block, type MessagesBody, type Piece, piecesOf } from '../protocol/api.ts'
import type { Markers } from '../protocol/cache-markers.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import { TURN_TOKENS } from '../protocol/tokenizer.ts'
import type { Gate } from '../validation/shape.ts'
import type { World } from './simulator-state.ts'

interface ValidRequest {
  readonly body: MessagesBody
  readonly features: Gate
  readonly model: SimulatedModel
  readonly scope: Scope
  readonly markers: Markers
}

export interface Prepared extends ValidRequest {
  /** The conversation as the client sent it. */
  readonly sent: readonly Piece[]
  /** The conversation as the model sees it. */
  readonly shown: readonly Piece[]
  readonly prompt: Prompt
  /** The prompt of the conversation as sent, if the request asks for a diagnosis; otherwise `prompt`. */
  readonly sentPrompt: Prompt
  readonly key: CacheKey
  readonly tokens: number
  /** Tokens of the prompt before edits. */
  readonly originalTokens: number
  readonly applied: readonly AppliedEdit[]
  readonly transformations: readonly Transformation[]
  readonly deletions: CacheDeletions
  readonly compaction: FoundCompaction | null
  readonly boundPrefix: () => Walk
  /** Id of the last thinking block, which new thinking follows. */
  readonly lastThinking: string | null
}

/** Fails if a compaction or thinking block is not accepted, or if the prompt is too long for the window. */
export function prepare(state: World, request: ValidRequest): ApiResult<{ prepared: Prepared }> {
  const { body, features, model } = request
  const deletions = readDeletions(piecesOf(body.messages))
  if (!deletions.ok) return deletions
  const sent = deletions.pieces
  const compaction = readCompaction({ body, pieces: sent, betas: features.betas }, state.signer)
  if (!compaction.ok) return compaction
  const { found } = compaction
  const boundPrefix = walkOnce(state, request, sent, found)
  const binding = bind(state, request, { sent, found, boundPrefix })
  if (!binding.ok) return binding
  const kept = withoutCleared(afterThreshold(binding.pieces, sent, found), body.messages)
  const edited = edit(state, request, kept)
  const prompt = buildPrompt(state.tree, { body, pieces: edited.pieces, markers: request.markers })
  const tokens = totalTokens(prompt)
  const overflow = overflowOf(model, tokens, body.max_tokens)
  if (overflow !== null) return reject(overflow)
  const { transformations, last: lastThinking } = binding
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
          : buildPrompt(state.tree, { body, pieces: sent, markers: NO_MARKERS }),
      key: keyOf(state, request, edited.pieces),
      tokens,
      originalTokens: edited.originalTokens ?? tokens,
      applied: edited.applied,
      transformations,
      deletions,
      compaction: found,
      boundPrefix,
      lastThinking,
    },
  }
}

/** Lazy, because most requests have no thinking and no signed block. */
function walkOnce(
  state: World,
  { body }: ValidRequest,
  sent: readonly Piece[],
  found: FoundCompaction | null,
): () => Walk {
  const signed = found?.signed ?? null
  let prefix: Walk | null = null
  return () => {
    prefix ??= state.tracker.track(body, sent, signed === null ? null : { signed, at: 0 })
    return prefix
  }
}

function bind(
  state: World,
  { body, features, model, scope }: ValidRequest,
  {
    sent,
    found,
    boundPrefix,
  }: {
    readonly sent: readonly Piece[]
    readonly found: FoundCompaction | null
    readonly boundPrefix: () => Walk
  },
): BindingOutcome {
  const signed = found?.signed ?? null
  const compactionIds = signed === null ? [null] : [null, signed.id, ...signed.replaced]
  const { organization } = scope
  const input = { body, pieces: sent, boundPrefix, model, organization, betas: features.betas, compactionIds }
  const { signer, tracker, settings } = state
  const ports = { signer, tracker, models: settings.models, settings: settings.binding }
  const outcome = checkBinding(input, ports)
  const modified = outcome.ok ? checkNewestResponse(input, ports) : null
  return modified === null ? outcome : reject(modified)
}

/** The model does not see what comes before the block of a threshold compaction. */
function afterThreshold(
  pieces: readonly Piece[],
  sent: readonly Piece[],
  found: FoundCompaction | null,
): readonly Piece[] {
  const block = found?.signed === null ? sent[found.at]?.block : undefined
  if (block === undefined) return pieces
  return pieces.slice(pieces.findIndex((piece) => piece.block === block))
}

function edit(
  state: World,
  { body, model }: ValidRequest,
  pieces: readonly Piece[],
): Edited & { readonly originalTokens: number | null } {
  const frontTokens = body.context_management == null ? 0 : frontOf(state, body)
  const { countTokens } = state
  const measure = (all: readonly Piece[]): number => frontTokens + conversationTokens(all, countTokens)
  const placeholder = state.settings.clearedPlaceholder
  const edited = applyEdits({
    body,
    pieces,
    model,
    placeholder,
    measure,
    countTokens: ({ block }) => countTokens(block),
  })
  return { ...edited, originalTokens: edited.applied.length === 0 ? null : measure(pieces) }
}

const NO_MARKERS: Markers = { explicit: [], automatic: null }

function frontOf(state: World, body: MessagesBody): number {
  return totalTokens(buildPrompt(state.tree, { body, pieces: [], markers: NO_MARKERS }))
}

function conversationTokens(pieces: readonly Piece[], countTokens: (block: Block) => number): number {
  let tokens = 0
  let role: string | null = null
  for (const piece of pieces) {
    tokens += countTokens(piece.block) + (piece.role === role ? 0 : TURN_TOKENS)
    role = piece.role
  }
  return tokens
}

export function keyOf(
  state: World,
  { scope, model, body, features }: ValidRequest,
  pieces: readonly Piece[],
): CacheKey {
  return cacheKey({ scope, model, body, pieces, betas: features.betas, settings: state.settings.cacheKey })
}

/** The error for a prompt that exceeds the window. Clients parse these texts. */
function overflowOf(model: SimulatedModel, tokens: number, maxTokens: number | undefined): Refusal | null {
  const { window } = model
  if (tokens > window) return invalid(`prompt is too long: ${tokens} tokens > ${window} maximum`)
  if (model.overflow === 'stop' || maxTokens === undefined || tokens + maxTokens <= window) return null
  return invalid(
    `input length and \`max_tokens\` exceed context limit: ${tokens} + ${maxTokens} > ${window}, decrease input length or \`max_tokens\` and try again`,
  )
}

/**
 * From a valid request to the prompt its model is shown: compaction blocks, binding, turn-scoped messages,
 * edits. Everything after this is the same whether tokens are only counted or an answer is made.
 */

import { type FoundCompaction, readCompaction } from '../context/compaction-block.ts'
import {
  type AppliedEdit,
  applyEdits,
  type CacheDeletions,
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
import { invalid, type Refusal } from '../protocol/answer.ts'
import { type Block, type MessagesBody, type Piece, piecesOf } from '../protocol/api.ts'
import type { Markers } from '../protocol/cache-markers.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import { TURN_TOKENS } from '../protocol/tokenizer.ts'
import type { Gate } from '../validation/shape.ts'
import type { World } from './simulator-state.ts'

export interface ValidRequest {
  readonly body: MessagesBody
  readonly gate: Gate
  readonly model: SimulatedModel
  readonly scope: Scope
  readonly markers: Markers
}

export interface Prepared extends ValidRequest {
  /** The conversation as the client sent it, and as the model is shown it. */
  readonly sent: readonly Piece[]
  readonly shown: readonly Piece[]
  readonly prompt: Prompt
  /** Of the conversation as sent, where the request asks for a diagnosis; else the same. */
  readonly sentPrompt: Prompt
  readonly key: CacheKey
  readonly tokens: number
  /** What the prompt came to before edits. */
  readonly originalTokens: number
  readonly applied: readonly AppliedEdit[]
  readonly transformations: readonly Transformation[]
  readonly deletions: CacheDeletions
  readonly compaction: FoundCompaction | null
  readonly walk: () => Walk
  /** The thinking that the next would follow. */
  readonly lastThinking: string | null
}

export type Preparation =
  | { readonly ok: true; readonly prepared: Prepared }
  | { readonly ok: false; readonly refusal: Refusal }

export function prepare(world: World, request: ValidRequest): Preparation {
  const { body, gate, model } = request
  const deletions = readDeletions(piecesOf(body.messages))
  if (!deletions.ok) return deletions
  const sent = deletions.pieces
  const compaction = readCompaction({ body, pieces: sent, betas: gate.betas }, world.sealer)
  if (!compaction.ok) return compaction
  const { found } = compaction
  const walk = walkOnce(world, request, { sent, found })
  const binding = bind(world, request, { sent, found, walk })
  if (!binding.ok) return binding
  const kept = withoutCleared(afterThreshold(binding.pieces, sent, found), body.messages)
  const edited = edit(world, request, kept)
  const prompt = buildPrompt(world.tree, { body, pieces: edited.pieces, markers: request.markers })
  const tokens = totalTokens(prompt)
  const overflow = overflowOf(model, tokens, body.max_tokens)
  if (overflow !== null) return { ok: false, refusal: overflow }
  const { transformations, last: lastThinking } = binding
  return {
    ok: true,
    prepared: {
      ...request,
      sent,
      shown: edited.pieces,
      prompt,
      sentPrompt: edited.pieces === sent ? prompt : promptAsSent(world, body, { sent, prompt }),
      key: keyOf(world, request, edited.pieces),
      tokens,
      originalTokens: edited.originalTokens ?? tokens,
      applied: edited.applied,
      transformations,
      deletions,
      compaction: found,
      walk,
      lastThinking,
    },
  }
}

interface Conversation {
  readonly sent: readonly Piece[]
  readonly found: FoundCompaction | null
}

function walkOnce(world: World, { body }: ValidRequest, { sent, found }: Conversation): () => Walk {
  const seal = found?.seal ?? null
  let walk: Walk | null = null
  return () => {
    walk ??= world.walker.walk(body, sent, seal === null ? null : { seal, at: 0 })
    return walk
  }
}

function bind(
  world: World,
  { body, gate, model, scope }: ValidRequest,
  { sent, found, walk }: Conversation & { readonly walk: () => Walk },
): BindingOutcome {
  const seal = found?.seal ?? null
  const behind = seal === null ? [null] : [null, seal.id, ...seal.replaced]
  const { organization } = scope
  const input = { body, pieces: sent, walk, model, organization, betas: gate.betas, behind }
  const { sealer, walker, settings } = world
  const ports = { sealer, walker, models: settings.models, settings: settings.binding }
  const outcome = checkBinding(input, ports)
  const modified = outcome.ok ? checkNewestResponse(input, ports) : null
  return modified === null ? outcome : { ok: false, refusal: modified }
}

/** A summary by threshold follows what it summarises; all of that is gone for the model. */
function afterThreshold(
  pieces: readonly Piece[],
  sent: readonly Piece[],
  found: FoundCompaction | null,
): readonly Piece[] {
  const block = found?.seal === null ? sent[found.at]?.block : undefined
  if (block === undefined) return pieces
  return pieces.slice(pieces.findIndex((piece) => piece.block === block))
}

interface EditedConversation {
  readonly pieces: readonly Piece[]
  readonly applied: readonly AppliedEdit[]
  readonly originalTokens: number | null
}

function edit(world: World, { body, model }: ValidRequest, pieces: readonly Piece[]): EditedConversation {
  const frontTokens = body.context_management == null ? 0 : frontOf(world, body)
  const { costOf } = world
  const measure = (all: readonly Piece[]): number => frontTokens + conversationTokens(all, costOf)
  const placeholder = world.settings.clearedPlaceholder
  const edited = applyEdits({
    body,
    pieces,
    model,
    placeholder,
    measure,
    costOf: ({ block }) => costOf(block),
  })
  return { ...edited, originalTokens: edited.applied.length === 0 ? null : measure(pieces) }
}

const NO_MARKERS: Markers = { explicit: [], automatic: null }

function frontOf(world: World, body: MessagesBody): number {
  return totalTokens(buildPrompt(world.tree, { body, pieces: [], markers: NO_MARKERS }))
}

function conversationTokens(pieces: readonly Piece[], costOf: (block: Block) => number): number {
  let tokens = 0
  let role: string | null = null
  for (const piece of pieces) {
    tokens += costOf(piece.block) + (piece.role === role ? 0 : TURN_TOKENS)
    role = piece.role
  }
  return tokens
}

/** Only a request that asks for a diagnosis is compared as it was sent. */
function promptAsSent(
  world: World,
  body: MessagesBody,
  { sent, prompt }: { readonly sent: readonly Piece[]; readonly prompt: Prompt },
): Prompt {
  if (body.diagnostics == null) return prompt
  return buildPrompt(world.tree, { body, pieces: sent, markers: NO_MARKERS })
}

function keyOf(world: World, { scope, model, body, gate }: ValidRequest, pieces: readonly Piece[]): CacheKey {
  return cacheKey({ scope, model, body, pieces, betas: gate.betas, settings: world.settings.cacheKey })
}

// A prompt too large for the window, in the words clients parse.

export function overflowOf(
  model: SimulatedModel,
  tokens: number,
  maxTokens: number | undefined,
): Refusal | null {
  const { window } = model
  if (tokens > window) return invalid(`prompt is too long: ${tokens} tokens > ${window} maximum`)
  if (model.overflow === 'stop' || maxTokens === undefined || tokens + maxTokens <= window) return null
  return invalid(
    `input length and \`max_tokens\` exceed context limit: ${tokens} + ${maxTokens} > ${window}, decrease input length or \`max_tokens\` and try again`,
  )
}

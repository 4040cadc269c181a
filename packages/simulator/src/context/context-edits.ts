/**
 * Edits the conversation before the model sees it: applies `context_management`, drops the thinking of earlier turns,
 * and drops system messages that apply to one turn only. Also reads `cache_edits`, an undocumented extension that
 * deletes tool results from the cached prefix.
 */

import { type ApiResult, createInvalidRequestError, toRejection } from '../protocol/answer.ts'
import {
  formatBlockPath,
  isObject,
  isThinkingBlock,
  type MessageParam,
  type MessagesBody,
  type RequestBlock,
  readTextField,
} from '../protocol/messages-request.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import { listContextEdits } from '../validation/context-edit-rules.ts'

export type AppliedEdit =
  | {
      readonly type: 'clear_tool_uses_20250919'
      readonly cleared_tool_uses: number
      readonly cleared_input_tokens: number
    }
  | {
      readonly type: 'clear_thinking_20251015'
      readonly cleared_thinking_turns: number
      readonly cleared_input_tokens: number
    }

export interface ContextEditResult {
  readonly pieces: readonly RequestBlock[]
  readonly applied: readonly AppliedEdit[]
}

interface EditInput {
  readonly body: MessagesBody
  readonly pieces: readonly RequestBlock[]
  readonly model: SimulatedModel
  readonly placeholder: string
  /** Counts the tokens of the whole prompt: `tools`, `system` and these message blocks. */
  readonly measure: (pieces: readonly RequestBlock[]) => number
  readonly countTokens: (piece: RequestBlock) => number
}

/**
 * Applies the edits of `context_management` in order, except compaction. On models that drop the thinking of earlier
 * turns by default, that happens first, unless the request has a `clear_thinking_20251015` edit. `applied` lists only
 * edits that cleared something.
 */
export function applyContextEdits(input: EditInput): ContextEditResult {
  const edits = listContextEdits(input.body)
  const managed = edits.some((edit) => edit.type === 'clear_thinking_20251015')
  const strips = !input.model.keepsThinking && !managed
  let pieces = strips ? dropEarlierThinking(input.pieces) : input.pieces
  const applied: AppliedEdit[] = []
  for (const edit of edits) {
    const done =
      edit.type === 'clear_thinking_20251015'
        ? applyThinkingEdit(edit, pieces, input)
        : edit.type === 'clear_tool_uses_20250919'
          ? applyToolEdit(edit, pieces, input)
          : null
    if (done === null) continue
    pieces = done.pieces
    applied.push(done.applied)
  }
  return { pieces, applied }
}

interface AppliedEditResult {
  readonly pieces: readonly RequestBlock[]
  readonly applied: AppliedEdit
}

type Edit = Readonly<Record<string, unknown>>

function applyThinkingEdit(
  edit: Edit,
  pieces: readonly RequestBlock[],
  input: EditInput,
): AppliedEditResult | null {
  const byDefault = input.model.keepsThinking ? 'all' : 1
  const keep = isKeepAllValue(edit.keep) ? 'all' : (readAmount(edit.keep) ?? byDefault)
  const cleared = clearThinking(pieces, keep)
  if (cleared.turns === 0) return null
  const tokens = input.measure(pieces) - input.measure(cleared.pieces)
  return {
    pieces: cleared.pieces,
    applied: {
      type: 'clear_thinking_20251015',
      cleared_thinking_turns: cleared.turns,
      cleared_input_tokens: tokens,
    },
  }
}

// The thinking of earlier turns is removed by the model's default, or by the edit `clear_thinking_20251015`, which
// overrides the default.

/**
 * Drops thinking blocks that come before the last user prompt. Thinking after that prompt belongs to the current turn
 * and stays.
 */
export function dropEarlierThinking(pieces: readonly RequestBlock[]): readonly RequestBlock[] {
  const prompt = findLastPrompt(pieces)
  if (!pieces.some((piece, index) => index < prompt && isThinkingBlock(piece.block))) return pieces
  return pieces.filter((piece, index) => index >= prompt || !isThinkingBlock(piece.block))
}

/** Returns the index of the last user block that is not a tool result; -1 if there is none. */
function findLastPrompt(pieces: readonly RequestBlock[]): number {
  return pieces.findLastIndex(({ role, block }) => role === 'user' && block.type !== 'tool_result')
}

/** Checks whether `keep` of `clear_thinking_20251015` is `all`, written as a string or as `{type: "all"}`. */
export function isKeepAllValue(keep: unknown): boolean {
  return keep === 'all' || (isObject(keep) && keep.type === 'all')
}

/**
 * Removes thinking, except in the newest `keep` turns that contain thinking. In the result, `turns` is the number of
 * turns whose thinking was removed.
 */
function clearThinking(
  pieces: readonly RequestBlock[],
  keep: 'all' | number,
): { readonly pieces: readonly RequestBlock[]; readonly turns: number } {
  if (keep === 'all') return { pieces, turns: 0 }
  const turnOf = numberTurns(pieces)
  const thinking = new Set<number>()
  for (const [index, piece] of pieces.entries())
    if (isThinkingBlock(piece.block)) thinking.add(turnOf[index] ?? 0)
  const cleared = new Set([...thinking].slice(0, Math.max(0, thinking.size - keep)))
  if (cleared.size === 0) return { pieces, turns: 0 }
  return {
    pieces: pieces.filter(
      (piece, index) => !isThinkingBlock(piece.block) || !cleared.has(turnOf[index] ?? 0),
    ),
    turns: cleared.size,
  }
}

/** Returns for each block the number of the turn it belongs to. A new turn begins where the role changes. */
function numberTurns(pieces: readonly RequestBlock[]): readonly number[] {
  let turn = 0
  let role: string | null = null
  return pieces.map((piece) => {
    if (piece.role !== role) turn += 1
    role = piece.role
    return turn
  })
}

// The edit `clear_tool_uses_20250919`, which clears old tool results.

const DEFAULT_CLEAR_TRIGGER = 100_000
const DEFAULT_KEPT_TOOL_USES = 3

function readAmount(amount: unknown): number | undefined {
  return isObject(amount) && typeof amount.value === 'number' ? amount.value : undefined
}

/**
 * Clears the oldest tool results, and their inputs if the edit asks for it. Returns null, and clears nothing, if the
 * trigger is not exceeded, if nothing can be cleared, or if that would be fewer than `clear_at_least` tokens.
 */
function applyToolEdit(
  edit: Edit,
  pieces: readonly RequestBlock[],
  input: EditInput,
): AppliedEditResult | null {
  const { trigger, exclude_tools: exclude } = edit
  const calls = pieces.filter(({ block }) => block.type === 'tool_use')
  const countsCalls = isObject(trigger) && trigger.type === 'tool_uses'
  const reached = countsCalls ? calls.length : input.measure(pieces)
  if (reached <= (readAmount(trigger) ?? DEFAULT_CLEAR_TRIGGER)) return null
  const excluded = new Set<unknown>(Array.isArray(exclude) ? exclude : [])
  const old = calls.slice(0, Math.max(0, calls.length - (readAmount(edit.keep) ?? DEFAULT_KEPT_TOOL_USES)))
  const names = new Map(
    old
      .map(({ block }) => [readTextField(block, 'id'), readTextField(block, 'name')] as const)
      .filter(([, name]) => !excluded.has(name)),
  )
  const changed = pieces.map((piece) => clearToolBlock(piece, edit, names, input))
  const cleared = new Set<string>()
  let tokens = 0
  for (const [index, piece] of changed.entries()) {
    const original = pieces[index]
    if (original === undefined || original === piece) continue
    tokens += input.countTokens(original) - input.countTokens(piece)
    cleared.add(readTextField(original.block, original.block.type === 'tool_use' ? 'id' : 'tool_use_id'))
  }
  if (cleared.size === 0 || tokens < (readAmount(edit.clear_at_least) ?? 0)) return null
  return {
    pieces: changed,
    applied: {
      type: 'clear_tool_uses_20250919',
      cleared_tool_uses: cleared.size,
      cleared_input_tokens: tokens,
    },
  }
}

/**
 * Replaces the content of a tool result by the placeholder text, or empties the input of a tool call if the edit asks
 * for it. `names`: tool names by id of the calls to clear. A tool result that would not become smaller is kept.
 */
function clearToolBlock(
  piece: RequestBlock,
  { clear_tool_inputs: inputs }: Edit,
  names: ReadonlyMap<string, string>,
  { placeholder, countTokens }: EditInput,
): RequestBlock {
  const { block } = piece
  if (block.type === 'tool_result' && names.has(readTextField(block, 'tool_use_id'))) {
    const empty = { ...piece, block: { ...block, content: placeholder } }
    return countTokens(empty) < countTokens(piece) ? empty : piece
  }
  const name = block.type === 'tool_use' ? names.get(readTextField(block, 'id')) : undefined
  const clearsInput = name !== undefined && (Array.isArray(inputs) ? inputs.includes(name) : inputs === true)
  return clearsInput ? { ...piece, block: { ...block, input: {} } } : piece
}

/** Drops system messages that have `clear_at: next_user_message` and are followed by a user message. */
export function dropExpiredSystemMessages(
  pieces: readonly RequestBlock[],
  messages: readonly MessageParam[],
): readonly RequestBlock[] {
  if (!messages.some((message) => message.clear_at === 'next_user_message')) return pieces
  const lastUser = messages.findLastIndex((message) => message.role === 'user')
  return pieces.filter(
    ({ message }) => messages[message]?.clear_at !== 'next_user_message' || message > lastUser,
  )
}

// The `cache_edits` extension is undocumented and off by default. A `cache_edits` block deletes tool results from the
// cached prefix by their `cache_reference`. The messages and the cache key do not change.

export interface ExtractedCacheEdits {
  /** The conversation without its `cache_edits` blocks. */
  readonly pieces: readonly RequestBlock[]
  /** The `cache_reference` values of the tool results to delete. */
  readonly references: ReadonlySet<string>
}

/**
 * Removes the `cache_edits` blocks from the conversation, and lists the tool results that they delete. Returns an error
 * if one of them deletes a `cache_reference` that does not occur in the conversation.
 */
export function extractCacheEdits(pieces: readonly RequestBlock[]): ApiResult<ExtractedCacheEdits> {
  const edits = pieces.filter(({ block }) => block.type === 'cache_edits')
  if (edits.length === 0) return { ok: true, pieces, references: new Set() }
  const known = new Set(pieces.map(({ block }) => readTextField(block, 'cache_reference')))
  const references = new Set<string>()
  for (const piece of edits) {
    for (const reference of listCacheReferences(piece)) {
      if (!known.has(reference))
        return toRejection(
          createInvalidRequestError(
            `${formatBlockPath(piece)}: no \`tool_result\` with cache_reference \`${reference}\` was found`,
          ),
        )
      references.add(reference)
    }
  }
  return { ok: true, pieces: pieces.filter(({ block }) => block.type !== 'cache_edits'), references }
}

function listCacheReferences({ block }: RequestBlock): readonly string[] {
  const edits: unknown = block.edits
  if (!Array.isArray(edits)) return []
  return edits.flatMap((edit) =>
    isObject(edit) && typeof edit.cache_reference === 'string' ? [edit.cache_reference] : [],
  )
}

/**
 * Counts the tokens of deleted tool results among the first `count` message blocks. `count`: number of blocks that were
 * read from the cache.
 */
export function countDeletedTokens(
  deletions: ExtractedCacheEdits,
  count: number,
  countTokens: (piece: RequestBlock) => number,
): number {
  let tokens = 0
  for (const piece of deletions.pieces.slice(0, count))
    if (deletions.references.has(readTextField(piece.block, 'cache_reference'))) tokens += countTokens(piece)
  return tokens
}

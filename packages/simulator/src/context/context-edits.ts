/** `context_management`: the edits of a request, in order, and what each of them cleared. */

import { invalid, type Refusal } from '../protocol/answer.ts'
import {
  isObject,
  isThinking,
  type MessageParam,
  type MessagesBody,
  type Piece,
  pathOf,
  textField,
} from '../protocol/api.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import { editsOf } from '../validation/edit-rules.ts'

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

export interface Edited {
  readonly pieces: readonly Piece[]
  readonly applied: readonly AppliedEdit[]
}

export interface EditInput {
  readonly body: MessagesBody
  readonly pieces: readonly Piece[]
  readonly model: SimulatedModel
  readonly placeholder: string
  /** Tokens of the whole prompt with these messages. */
  readonly measure: (pieces: readonly Piece[]) => number
  readonly costOf: (piece: Piece) => number
}

export function applyEdits(input: EditInput): Edited {
  const edits = editsOf(input.body)
  const managed = edits.some((edit) => edit.type === 'clear_thinking_20251015')
  const strips = !input.model.keepsThinking && !managed
  let pieces = strips ? stripFinished(input.pieces) : input.pieces
  const applied: AppliedEdit[] = []
  for (const edit of edits) {
    const done =
      edit.type === 'clear_thinking_20251015'
        ? thinkingEdit(edit, pieces, input)
        : edit.type === 'clear_tool_uses_20250919'
          ? toolEdit(edit, pieces, input)
          : null
    if (done === null) continue
    pieces = done.pieces
    applied.push(done.applied)
  }
  return { pieces, applied }
}

interface Done {
  readonly pieces: readonly Piece[]
  readonly applied: AppliedEdit
}

type Edit = Readonly<Record<string, unknown>>

function thinkingEdit(edit: Edit, pieces: readonly Piece[], input: EditInput): Done | null {
  const keep = keepOf(edit.keep, input.model.keepsThinking ? 'all' : 1)
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

function toolEdit(edit: Edit, pieces: readonly Piece[], input: EditInput): Done | null {
  const inputTokens = input.measure(pieces)
  const clearing = toolClearingOf(edit, input.placeholder)
  const cleared = clearToolUses(pieces, clearing, { inputTokens, costOf: input.costOf })
  if (cleared.toolUses === 0) return null
  return {
    pieces: cleared.pieces,
    applied: {
      type: 'clear_tool_uses_20250919',
      cleared_tool_uses: cleared.toolUses,
      cleared_input_tokens: cleared.tokens,
    },
  }
}

// Which thinking of earlier turns stays in the prompt: by the model's rule, or by the edit that overrides it.

export type KeepThinking = 'all' | number

export interface ThinkingCleared {
  readonly pieces: readonly Piece[]
  /** Turns that lost their thinking. */
  readonly turns: number
}

/** Thinking of finished turns goes when the person speaks again; in the middle of a turn it stays. */
export function stripFinished(pieces: readonly Piece[]): readonly Piece[] {
  const prompt = lastPrompt(pieces)
  if (!pieces.some((piece, index) => index < prompt && isThinking(piece.block))) return pieces
  return pieces.filter((piece, index) => index >= prompt || !isThinking(piece.block))
}

/** Where the last turn of the person begins that is more than results of tools. */
function lastPrompt(pieces: readonly Piece[]): number {
  return pieces.findLastIndex(({ role, block }) => role === 'user' && block.type !== 'tool_result')
}

export function keepOf(keep: unknown, byDefault: KeepThinking): KeepThinking {
  if (keep === 'all' || (isObject(keep) && keep.type === 'all')) return 'all'
  return isObject(keep) && typeof keep.value === 'number' ? keep.value : byDefault
}

/** Keeps the thinking of the newest turns that have any. */
export function clearThinking(pieces: readonly Piece[], keep: KeepThinking): ThinkingCleared {
  if (keep === 'all') return { pieces, turns: 0 }
  const turnOf = turnNumbers(pieces)
  const thinking = new Set<number>()
  for (const [index, piece] of pieces.entries()) if (isThinking(piece.block)) thinking.add(turnOf[index] ?? 0)
  const cleared = new Set([...thinking].slice(0, Math.max(0, thinking.size - keep)))
  if (cleared.size === 0) return { pieces, turns: 0 }
  return {
    pieces: pieces.filter((piece, index) => !isThinking(piece.block) || !cleared.has(turnOf[index] ?? 0)),
    turns: cleared.size,
  }
}

/** The number of the turn each piece belongs to: a turn ends where the role changes. */
function turnNumbers(pieces: readonly Piece[]): readonly number[] {
  let turn = 0
  let role: string | null = null
  return pieces.map((piece) => {
    if (piece.role !== role) turn += 1
    role = piece.role
    return turn
  })
}

// `clear_tool_uses_20250919`: the oldest results make room, the newest stay, and a clearing too small is not done.

export interface ToolClearing {
  readonly trigger: { readonly type: 'input_tokens' | 'tool_uses'; readonly value: number }
  readonly keep: number
  readonly clearAtLeast: number
  readonly exclude: ReadonlySet<string>
  /** Tools whose inputs go too; all of them for true. */
  readonly inputs: boolean | ReadonlySet<string>
  /** What stands where a result was. */
  readonly placeholder: string
}

const DEFAULT_TRIGGER = { type: 'input_tokens', value: 100_000 } as const
const DEFAULT_KEEP = 3

export function toolClearingOf(edit: Readonly<Record<string, unknown>>, placeholder: string): ToolClearing {
  const { trigger, keep, clear_at_least: atLeast, exclude_tools: exclude, clear_tool_inputs: inputs } = edit
  return {
    trigger: isTrigger(trigger) ? trigger : DEFAULT_TRIGGER,
    keep: amountOf(keep) ?? DEFAULT_KEEP,
    clearAtLeast: amountOf(atLeast) ?? 0,
    exclude: new Set(Array.isArray(exclude) ? exclude : []),
    inputs: Array.isArray(inputs) ? new Set(inputs) : inputs === true,
    placeholder,
  }
}

function isTrigger(value: unknown): value is ToolClearing['trigger'] {
  return isObject(value) && typeof value.value === 'number'
}

function amountOf(amount: unknown): number | undefined {
  return isObject(amount) && typeof amount.value === 'number' ? amount.value : undefined
}

export interface ToolsCleared {
  readonly pieces: readonly Piece[]
  readonly toolUses: number
  readonly tokens: number
}

export interface Measure {
  /** Tokens of the prompt as it stands. */
  readonly inputTokens: number
  readonly costOf: (piece: Piece) => number
}

export function clearToolUses(
  pieces: readonly Piece[],
  clearing: ToolClearing,
  measure: Measure,
): ToolsCleared {
  const unchanged = { pieces, toolUses: 0, tokens: 0 }
  const calls = pieces.filter(({ block }) => block.type === 'tool_use')
  const reached = clearing.trigger.type === 'tool_uses' ? calls.length : measure.inputTokens
  if (reached <= clearing.trigger.value) return unchanged
  const old = calls.slice(0, Math.max(0, calls.length - clearing.keep))
  const cleared = new Map(
    old
      .filter(({ block }) => !clearing.exclude.has(textField(block, 'name')))
      .map(({ block }) => [textField(block, 'id'), textField(block, 'name')]),
  )
  const changed = pieces.map((piece) => clearPiece(piece, clearing, { cleared, costOf: measure.costOf }))
  return countCleared(pieces, changed, { measure, least: clearing.clearAtLeast }) ?? unchanged
}

interface Clearing {
  readonly cleared: ReadonlyMap<string, string>
  readonly costOf: (piece: Piece) => number
}

function clearPiece(piece: Piece, clearing: ToolClearing, { cleared, costOf }: Clearing): Piece {
  const { block } = piece
  if (block.type === 'tool_result' && cleared.has(textField(block, 'tool_use_id'))) {
    const empty = { ...piece, block: { ...block, content: clearing.placeholder } }
    return costOf(empty) < costOf(piece) ? empty : piece
  }
  const name = block.type === 'tool_use' ? cleared.get(textField(block, 'id')) : undefined
  if (name === undefined || !clearsInput(clearing.inputs, name)) return piece
  return { ...piece, block: { ...block, input: {} } }
}

function clearsInput(inputs: ToolClearing['inputs'], name: string): boolean {
  return typeof inputs === 'boolean' ? inputs : inputs.has(name)
}

function countCleared(
  before: readonly Piece[],
  after: readonly Piece[],
  { measure, least }: { readonly measure: Measure; readonly least: number },
): ToolsCleared | null {
  const touched = new Set<string>()
  let tokens = 0
  for (const [index, piece] of after.entries()) {
    const was = before[index]
    if (was === undefined || was === piece) continue
    tokens += measure.costOf(was) - measure.costOf(piece)
    touched.add(textField(was.block, was.block.type === 'tool_use' ? 'id' : 'tool_use_id'))
  }
  if (touched.size === 0 || tokens < least) return null
  return { pieces: after, toolUses: touched.size, tokens }
}

// System messages for one turn only: in the request for ever, before the model until the person speaks again.

export function withoutCleared(
  pieces: readonly Piece[],
  messages: readonly MessageParam[],
): readonly Piece[] {
  if (!messages.some((message) => message.clear_at === 'next_user_message')) return pieces
  const lastUser = messages.findLastIndex((message) => message.role === 'user')
  return pieces.filter(
    ({ message }) => messages[message]?.clear_at !== 'next_user_message' || message > lastUser,
  )
}

// An extension, off unless asked for: deleting results from the cached prefix without touching the messages.
// Undocumented at the provider. A `cache_edits` block names results by their `cache_reference`; a deletion
// takes effect where the result is read from the cache, and the prefix stays what it was to the key.

export interface CacheDeletions {
  /** The conversation without the blocks that ask for deletions. */
  readonly pieces: readonly Piece[]
  /** References to delete. */
  readonly references: ReadonlySet<string>
}

export type DeletionOutcome =
  | ({ readonly ok: true } & CacheDeletions)
  | { readonly ok: false; readonly refusal: Refusal }

export function readDeletions(pieces: readonly Piece[]): DeletionOutcome {
  const asking = pieces.filter(({ block }) => block.type === 'cache_edits')
  if (asking.length === 0) return { ok: true, pieces, references: new Set() }
  const known = new Set(pieces.map(({ block }) => textField(block, 'cache_reference')))
  const references = new Set<string>()
  for (const piece of asking) {
    for (const reference of referencesOf(piece)) {
      if (!known.has(reference))
        return {
          ok: false,
          refusal: invalid(
            `${pathOf(piece)}: no \`tool_result\` with cache_reference \`${reference}\` was found`,
          ),
        }
      references.add(reference)
    }
  }
  return { ok: true, pieces: pieces.filter(({ block }) => block.type !== 'cache_edits'), references }
}

function referencesOf({ block }: Piece): readonly string[] {
  const edits: unknown = block.edits
  if (!Array.isArray(edits)) return []
  return edits.flatMap((edit) =>
    isObject(edit) && typeof edit.cache_reference === 'string' ? [edit.cache_reference] : [],
  )
}

/** Tokens that leave the prefix: those of deleted results among the first `count` pieces, which were read. */
export function deletedTokens(
  deletions: CacheDeletions,
  count: number,
  costOf: (piece: Piece) => number,
): number {
  let tokens = 0
  for (const piece of deletions.pieces.slice(0, count))
    if (deletions.references.has(textField(piece.block, 'cache_reference'))) tokens += costOf(piece)
  return tokens
}

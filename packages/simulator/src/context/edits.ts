/** `context_management`: the edits of a request, in order, and what each of them cleared. */
import type { MessagesBody } from '../api.ts'
import type { SimulatedModel } from '../models.ts'
import { editsOf } from '../validation/edit-rules.ts'
import type { Piece } from './piece.ts'
import { clearThinking, keepOf, stripFinished } from './thinking-turns.ts'
import { clearToolUses, toolClearingOf } from './tool-clearing.ts'

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

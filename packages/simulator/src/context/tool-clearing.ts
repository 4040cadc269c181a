/** `clear_tool_uses_20250919`: the oldest results make room, the newest stay, and a clearing too small is not done. */
import { isObject, textField } from '../api.ts'
import type { Piece } from './piece.ts'

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

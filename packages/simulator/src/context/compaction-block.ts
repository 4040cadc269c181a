/** Compaction blocks sent back: the signed one stands first and alone, a threshold's wherever it came. */

import { coded, invalid, type Refusal } from '../protocol/answer.ts'
import { BETA, type Block, type MessagesBody, type Piece, textField } from '../protocol/api.ts'
import { digest } from '../protocol/clock-and-ids.ts'
import { editsOf } from '../validation/edit-rules.ts'
import type { CompactionSeal, Sealer } from './signatures.ts'

export interface FoundCompaction {
  /** Index among the pieces; everything before a threshold's block is no longer part of the conversation. */
  readonly at: number
  /** Null for the block of a threshold, which nobody signed. */
  readonly seal: CompactionSeal | null
}

export type CompactionOutcome =
  | { readonly ok: true; readonly found: FoundCompaction | null }
  | { readonly ok: false; readonly refusal: Refusal }

export interface CompactionInput {
  readonly body: MessagesBody
  readonly pieces: readonly Piece[]
  readonly betas: ReadonlySet<string>
}

export function readCompaction(input: CompactionInput, sealer: Sealer): CompactionOutcome {
  const blocks = input.pieces.flatMap((piece, at) => (isSummary(piece.block) ? [{ piece, at }] : []))
  const signed = blocks.find(({ piece }) => isSigned(piece.block))
  if (signed === undefined) return readThreshold(input, blocks.at(-1)?.at)
  if (blocks.length > 1)
    return refuse(
      'compaction_block_ambiguous',
      '`messages` holds more than one `compaction` block with content. Send only the newest.',
    )
  if (signed.at !== 0 || signed.piece.role === 'system')
    return refuse(
      'compaction_block_misplaced',
      'The `compaction` block must be the first block of the conversation. Remove the messages it summarizes.',
    )
  return readSigned(input, signed.piece.block, sealer)
}

/** A block without content is a summary that failed: sent back, it does nothing. */
function isSummary(block: Block): boolean {
  return block.type === 'compaction' && typeof block.content === 'string'
}

function isSigned(block: Block): boolean {
  return typeof block.signature === 'string'
}

function readThreshold({ body, betas }: CompactionInput, at: number | undefined): CompactionOutcome {
  if (at === undefined) return { ok: true, found: null }
  const hasEdit = editsOf(body).some((edit) => edit.type === 'compact_20260112')
  if (!hasEdit && !betas.has(BETA.thresholdCompaction)) {
    // A block of the on-demand kind whose signature was lost on the way.
    return refuse('compaction_signature_invalid', 'The `compaction` block has no `signature`.')
  }
  return { ok: true, found: { at, seal: null } }
}

function readSigned(input: CompactionInput, block: Block, sealer: Sealer): CompactionOutcome {
  const seal = sealer.open(textField(block, 'signature'))
  if (seal?.kind !== 'compaction')
    return refuse('compaction_signature_invalid', 'The `compaction` block `signature` does not verify.')
  if (seal.content !== digest(textField(block, 'content')))
    return refuse(
      'compaction_content_mismatch',
      '`compaction` block `content` does not match its `signature`',
    )
  if (seal.toolChanges !== digest(JSON.stringify(block.tool_changes ?? [])))
    return refuse(
      'compaction_tool_changes_mismatch',
      '`compaction` block `tool_changes` differs from what was returned with the block',
    )
  const clash = clashOf(input)
  return clash ?? { ok: true, found: { at: 0, seal } }
}

function clashOf({ body, betas }: CompactionInput): CompactionOutcome | null {
  if (!betas.has(BETA.onDemandCompaction))
    return {
      ok: false,
      refusal: invalid(
        "messages.0.content.0: Input tag 'compaction' found using 'type' does not match any of the expected tags",
      ),
    }
  if (editsOf(body).some((edit) => edit.type === 'compact_20260112'))
    return {
      ok: false,
      refusal: invalid('`compact_20260112` cannot be combined with a signed `compaction` block'),
    }
  const budget: unknown = body.output_config?.task_budget
  const remaining =
    typeof budget === 'object' && budget !== null && 'remaining' in budget && budget.remaining != null
  return remaining
    ? {
        ok: false,
        refusal: invalid('output_config.task_budget.remaining: not permitted with a `compaction` block'),
      }
    : null
}

function refuse(code: string, message: string): CompactionOutcome {
  return { ok: false, refusal: coded(code, message) }
}

/**
 * Checks of compaction blocks that a client sends back. The signed block of an on-demand compaction must be the first
 * and only one; the block of a threshold compaction may stand anywhere.
 */

import { type ApiResult, coded, invalid, type Refusal, reject } from '../protocol/answer.ts'
import { BETA, type Block, isObject, type MessagesBody, type Piece, textField } from '../protocol/api.ts'
import { digest } from '../protocol/clock-and-ids.ts'
import { editsOf } from '../validation/edit-rules.ts'
import type { CompactionSeal, Sealer } from './signatures.ts'

export interface FoundCompaction {
  /** Index among the request's blocks. Blocks before a threshold block are no longer part of the conversation. */
  readonly at: number
  /** Null for the block of a threshold compaction, which has no signature. */
  readonly signed: CompactionSeal | null
}

type CompactionOutcome = ApiResult<{ found: FoundCompaction | null }>

interface CompactionInput {
  readonly body: MessagesBody
  readonly pieces: readonly Piece[]
  readonly betas: ReadonlySet<string>
}

/** The compaction block that replaces earlier messages, or null. Fails if it is misplaced, altered or not permitted. */
export function readCompaction(input: CompactionInput, signer: Sealer): CompactionOutcome {
  const blocks = input.pieces.flatMap((piece, at) => (isSummary(piece.block) ? [{ piece, at }] : []))
  const newest = blocks.find(({ piece }) => typeof piece.block.signature === 'string')
  if (newest === undefined) return readThreshold(input, blocks.at(-1)?.at)
  if (blocks.length > 1)
    return refuse(
      'compaction_block_ambiguous',
      '`messages` holds more than one `compaction` block with content. Send only the newest.',
    )
  if (newest.at !== 0 || newest.piece.role === 'system')
    return refuse(
      'compaction_block_misplaced',
      'The `compaction` block must be the first block of the conversation. Remove the messages it summarizes.',
    )
  return readSigned(input, newest.piece.block, signer)
}

/** A block without content is a summary that failed; it is ignored. */
function isSummary(block: Block): boolean {
  return block.type === 'compaction' && typeof block.content === 'string'
}

function readThreshold({ body, betas }: CompactionInput, at: number | undefined): CompactionOutcome {
  if (at === undefined) return { ok: true, found: null }
  const hasEdit = editsOf(body).some((edit) => edit.type === 'compact_20260112')
  if (!hasEdit && !betas.has(BETA.thresholdCompaction)) {
    // An on-demand block whose signature was lost.
    return refuse('compaction_signature_invalid', 'The `compaction` block has no `signature`.')
  }
  return { ok: true, found: { at, signed: null } }
}

function readSigned(input: CompactionInput, block: Block, signer: Sealer): CompactionOutcome {
  const signed = signer.verify(textField(block, 'signature'))
  if (signed?.kind !== 'compaction')
    return refuse('compaction_signature_invalid', 'The `compaction` block `signature` does not verify.')
  if (signed.content !== digest(textField(block, 'content')))
    return refuse(
      'compaction_content_mismatch',
      '`compaction` block `content` does not match its `signature`',
    )
  if (signed.toolChanges !== digest(JSON.stringify(block.tool_changes ?? [])))
    return refuse(
      'compaction_tool_changes_mismatch',
      '`compaction` block `tool_changes` differs from what was returned with the block',
    )
  const clash = clashOf(input)
  return clash === null ? { ok: true, found: { at: 0, signed } } : reject(clash)
}

function clashOf({ body, betas }: CompactionInput): Refusal | null {
  if (!betas.has(BETA.onDemandCompaction))
    return invalid(
      "messages.0.content.0: Input tag 'compaction' found using 'type' does not match any of the expected tags",
    )
  if (editsOf(body).some((edit) => edit.type === 'compact_20260112'))
    return invalid('`compact_20260112` cannot be combined with a signed `compaction` block')
  const budget: unknown = body.output_config?.task_budget
  return isObject(budget) && budget.remaining != null
    ? invalid('output_config.task_budget.remaining: not permitted with a `compaction` block')
    : null
}

function refuse(code: string, message: string): CompactionOutcome {
  return reject(coded(code, message))
}

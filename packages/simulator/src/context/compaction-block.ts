/**
 * Checks the compaction blocks that a client sends back. A block of an on-demand compaction is signed; it must be the
 * first block of the conversation and the only compaction block. A block of a threshold compaction is unsigned and
 * may be anywhere.
 */

import {
  type ApiError,
  type ApiResult,
  createInvalidRequestError,
  createRequestErrorWithCode,
  toRejection,
} from '../protocol/answer.ts'
import { hashText } from '../protocol/clock-and-ids.ts'
import {
  BETA_NAMES,
  type Block,
  isObject,
  type MessagesBody,
  type RequestBlock,
  readTextField,
} from '../protocol/messages-request.ts'
import { listContextEdits } from '../validation/context-edit-rules.ts'
import type { CompactionSignature, Signer } from './signatures.ts'

/** The compaction block of a request whose summary replaces earlier messages. */
export interface FoundCompactionBlock {
  /**
   * Index of the compaction block in the list of all message blocks of the request. If the block has no signature,
   * all blocks before it are ignored.
   */
  readonly at: number
  /**
   * Decoded signature of the compaction block; null for the block of a threshold compaction, which has no signature.
   */
  readonly signature: CompactionSignature | null
}

type CompactionResult = ApiResult<{ found: FoundCompactionBlock | null }>

interface CompactionInput {
  readonly body: MessagesBody
  readonly pieces: readonly RequestBlock[]
  readonly betas: ReadonlySet<string>
}

/**
 * Finds the compaction block whose summary replaces earlier messages. `found` is null if the request has no such
 * block. Returns an error if the block is misplaced, was altered, or is not permitted.
 */
export function findCompactionBlock(input: CompactionInput, signer: Signer): CompactionResult {
  const blocks = input.pieces.flatMap((piece, at) => (isCompletedSummary(piece.block) ? [{ piece, at }] : []))
  const newest = blocks.find(({ piece }) => typeof piece.block.signature === 'string')
  if (newest === undefined) return readThresholdBlock(input, blocks.at(-1)?.at)
  if (blocks.length > 1)
    return rejectWithCode(
      'compaction_block_ambiguous',
      '`messages` holds more than one `compaction` block with content. Send only the newest.',
    )
  if (newest.at !== 0 || newest.piece.role === 'system')
    return rejectWithCode(
      'compaction_block_misplaced',
      'The `compaction` block must be the first block of the conversation. Remove the messages it summarizes.',
    )
  return readSignedBlock(input, newest.piece.block, signer)
}

/**
 * Checks whether a block is a compaction block with a summary. A compaction block without `content` comes from a
 * failed compaction and is ignored.
 */
function isCompletedSummary(block: Block): boolean {
  return block.type === 'compaction' && typeof block.content === 'string'
}

function readThresholdBlock({ body, betas }: CompactionInput, at: number | undefined): CompactionResult {
  if (at === undefined) return { ok: true, found: null }
  const hasEdit = listContextEdits(body).some((edit) => edit.type === 'compact_20260112')
  if (!hasEdit && !betas.has(BETA_NAMES.thresholdCompaction)) {
    // Only threshold compaction creates blocks without a signature, and this request does not use it. The signature
    // must have been removed from the block.
    return rejectWithCode('compaction_signature_invalid', 'The `compaction` block has no `signature`.')
  }
  return { ok: true, found: { at, signature: null } }
}

function readSignedBlock(input: CompactionInput, block: Block, signer: Signer): CompactionResult {
  const signed = signer.verify(readTextField(block, 'signature'))
  if (signed?.kind !== 'compaction')
    return rejectWithCode(
      'compaction_signature_invalid',
      'The `compaction` block `signature` does not verify.',
    )
  if (signed.content !== hashText(readTextField(block, 'content')))
    return rejectWithCode(
      'compaction_content_mismatch',
      '`compaction` block `content` does not match its `signature`',
    )
  if (signed.toolChanges !== hashText(JSON.stringify(block.tool_changes ?? [])))
    return rejectWithCode(
      'compaction_tool_changes_mismatch',
      '`compaction` block `tool_changes` differs from what was returned with the block',
    )
  const clash = findCompactionConflict(input)
  return clash === null ? { ok: true, found: { at: 0, signature: signed } } : toRejection(clash)
}

function findCompactionConflict({ body, betas }: CompactionInput): ApiError | null {
  if (!betas.has(BETA_NAMES.onDemandCompaction))
    return createInvalidRequestError(
      "messages.0.content.0: Input tag 'compaction' found using 'type' does not match any of the expected tags",
    )
  if (listContextEdits(body).some((edit) => edit.type === 'compact_20260112'))
    return createInvalidRequestError('`compact_20260112` cannot be combined with a signed `compaction` block')
  const budget: unknown = body.output_config?.task_budget
  return isObject(budget) && budget.remaining != null
    ? createInvalidRequestError(
        'output_config.task_budget.remaining: not permitted with a `compaction` block',
      )
    : null
}

function rejectWithCode(code: string, message: string): CompactionResult {
  return toRejection(createRequestErrorWithCode(code, message))
}

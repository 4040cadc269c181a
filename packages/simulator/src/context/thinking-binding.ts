/**
 * Checks the thinking blocks that a client sends back: the signature, whether the requested model may read the block,
 * and whether the prefix before the block is unchanged. Depending on account and request, a failed check rejects the
 * request, drops the block, or is only reported.
 */

import { type ApiError, type ApiResult, createInvalidRequestError, toRejection } from '../protocol/answer.ts'
import { hashText } from '../protocol/clock-and-ids.ts'
import {
  BETA_NAMES,
  type Block,
  formatBlockPath,
  isObject,
  isThinkingBlock,
  type MessagesBody,
  type RequestBlock,
  readTextField,
} from '../protocol/messages-request.ts'
import { canReadThinking, type ModelTable, type SimulatedModel } from '../protocol/models.ts'
import type { Signer, ThinkingSignature } from './signatures.ts'
import { describePrefixChange, type ThinkingPrefixes, type ThinkingPrefixTracker } from './thinking-prefix.ts'

export interface ThinkingBindingSettings {
  /**
   * True if a changed prefix before a thinking block is an error by default. False imitates older accounts: it is an
   * error only if the request sets `prefix_mismatch_behavior: "error"`.
   */
  readonly enforced: boolean
  /**
   * How to handle a request that edits the thinking text of the newest response. The documentation calls this an
   * error, but the real API has been seen to accept it.
   */
  readonly editedText: 'error' | 'allow'
  /** How to handle thinking signatures that this simulator did not create, such as those of a recorded session. */
  readonly foreignSignatures: 'error' | 'allow'
}

interface BindingInput {
  readonly body: MessagesBody
  readonly pieces: readonly RequestBlock[]
  /**
   * Computes the prefix before each thinking block. It is a function because most requests have no thinking to check.
   */
  readonly boundPrefix: () => ThinkingPrefixes
  readonly model: SimulatedModel
  readonly organization: string
  readonly betas: ReadonlySet<string>
  /**
   * Compaction ids that a thinking block may refer to: the compaction block at the start of the request, the blocks
   * it replaced, and null for thinking created before any compaction.
   */
  readonly compactionIds: readonly (string | null)[]
}

/** A failed check of a thinking block, as the response reports it: the block was dropped, or allowed nevertheless. */
export interface ThinkingTransformation {
  readonly type: 'thinking_dropped' | 'thinking_mismatch_allowed'
  readonly path: string
  readonly reason: BindingReason
}

type BindingReason = 'organization_binding_mismatch' | 'model_binding_mismatch' | 'prefix_binding_mismatch'

export type ThinkingBindingResult = ApiResult<{
  /** The conversation without the dropped thinking blocks. */
  pieces: readonly RequestBlock[]
  transformations: readonly ThinkingTransformation[]
  /**
   * Id of the last valid thinking block of the request; null if there is none. The signature of the next thinking
   * block will contain this id.
   */
  last: string | null
}>

interface BindingContext {
  readonly signer: Signer
  readonly tracker: ThinkingPrefixTracker
  readonly models: ModelTable
  readonly settings: ThinkingBindingSettings
}

/** Checks every thinking block. Returns the conversation without the dropped ones, or the error of the first that is rejected. */
export function enforceThinkingBinding(input: BindingInput, ports: BindingContext): ThinkingBindingResult {
  const { pieces } = input
  const mode = chooseMismatchMode(input, ports.settings)
  const kept: RequestBlock[] = []
  const transformations: ThinkingTransformation[] = []
  let last: string | null = null
  for (const [index, piece] of pieces.entries()) {
    if (!isThinkingBlock(piece.block)) {
      kept.push(piece)
      continue
    }
    const signed = readThinkingSignature(piece.block, ports.signer)
    if (signed === null && ports.settings.foreignSignatures === 'error')
      return toRejection(invalidSignatureError(piece))
    const reason = signed === null ? null : findBindingMismatch({ signed, index, last }, input, ports)
    if (reason === 'prefix_binding_mismatch' && mode === 'error' && signed !== null)
      return toRejection(prefixMismatchError(piece, { signed, index, last }, input, ports.tracker))
    const dropped = reason !== null && (reason !== 'prefix_binding_mismatch' || mode === 'drop')
    if (reason !== null)
      transformations.push({
        type: dropped ? 'thinking_dropped' : 'thinking_mismatch_allowed',
        path: formatBlockPath(piece),
        reason,
      })
    if (!dropped) kept.push(piece)
    if (signed !== null && !(dropped && reason === 'prefix_binding_mismatch')) last = signed.id
  }
  return { ok: true, pieces: kept.length === pieces.length ? pieces : kept, transformations, last }
}

/** Returns the decoded signature of a thinking block; null if the signature is not valid. */
export function readThinkingSignature(block: Block, signer: Signer): ThinkingSignature | null {
  const text = readTextField(block, block.type === 'thinking' ? 'signature' : 'data')
  const signed = signer.verify(text)
  return signed?.kind === 'thinking' ? signed : null
}

function chooseMismatchMode(
  { body }: BindingInput,
  settings: ThinkingBindingSettings,
): 'error' | 'drop' | 'allow' {
  const binding: unknown = body.thinking?.block_binding
  const behavior = isObject(binding) ? binding.prefix_mismatch_behavior : undefined
  if (behavior === 'drop_block') return 'drop'
  return behavior === 'error' || settings.enforced ? 'error' : 'allow'
}

interface SignedThinking {
  readonly signed: ThinkingSignature
  readonly index: number
  readonly last: string | null
}

/**
 * Returns the first mismatch between a thinking block and the request: organization, then model, then prefix. Null if
 * all three match.
 */
function findBindingMismatch(
  checked: SignedThinking,
  input: BindingInput,
  ports: BindingContext,
): BindingReason | null {
  const { signed } = checked
  const { model, organization } = input
  if (model.accountBound && signed.organization !== organization) return 'organization_binding_mismatch'
  const author = ports.models.find(signed.model)
  if (author !== undefined && !canReadThinking(model, author)) return 'model_binding_mismatch'
  if (model.binding !== 'prefix') return null
  return isPrefixUnchanged(checked, input) ? null : 'prefix_binding_mismatch'
}

function isPrefixUnchanged(
  { signed, index, last }: SignedThinking,
  { boundPrefix, compactionIds }: BindingInput,
): boolean {
  const prefix = boundPrefix()
  return (
    signed.system === prefix.system &&
    signed.tools === prefix.tools &&
    signed.messages === prefix.before[index]?.chain &&
    compactionIds.includes(signed.behind) &&
    (last === null || last === signed.previous)
  )
}

function invalidSignatureError(piece: RequestBlock): ApiError {
  const field = piece.block.type === 'thinking' ? 'signature' : 'data'
  return createInvalidRequestError(
    `${formatBlockPath(piece)}: Invalid \`${field}\` in \`${piece.block.type}\` block`,
  )
}

function prefixMismatchError(
  piece: RequestBlock,
  { signed, index }: SignedThinking,
  input: BindingInput,
  tracker: ThinkingPrefixTracker,
): ApiError {
  const header = input.betas.has(BETA_NAMES.thinkingBinding)
    ? []
    : [`That setting requires the \`${BETA_NAMES.thinkingBinding}\` value in the \`anthropic-beta\` header.`]
  const changed = describePrefixChange(
    { signed, index, boundPrefix: input.boundPrefix(), pieces: input.pieces },
    tracker,
  )
  const sentences = [
    `${invalidSignatureError(piece).message}. The block is bound to a different conversation.`,
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
    ...header,
    ...(changed === null ? [] : [changed]),
  ]
  return createInvalidRequestError(sentences.join(' '))
}

/**
 * Returns an error if thinking blocks of the newest response were edited or are partly missing. Thinking of older
 * responses is not checked here.
 */
export function checkNewestThinking(input: BindingInput, ports: BindingContext): ApiError | null {
  if (ports.settings.editedText === 'allow') return null
  const newest = findNewestThinking(input.pieces, ports.signer)
  for (const { piece, signed } of newest) {
    const shown = piece.block.type === 'thinking' ? readTextField(piece.block, 'thinking') : ''
    if (hashText(shown) !== signed.shown || newest.length < signed.of)
      return createInvalidRequestError(
        `${formatBlockPath(piece)}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`,
      )
  }
  return null
}

interface SignedBlock {
  readonly piece: RequestBlock
  readonly signed: ThinkingSignature
}

/** Returns those thinking blocks of the newest response that the request still contains. */
function findNewestThinking(pieces: readonly RequestBlock[], signer: Signer): readonly SignedBlock[] {
  const end = pieces.findLastIndex((piece) => piece.role === 'assistant')
  const start = pieces.findLastIndex((piece, index) => index < end && piece.role !== 'assistant')
  const found: SignedBlock[] = []
  for (const piece of pieces.slice(start + 1, end + 1)) {
    const signed = isThinkingBlock(piece.block) ? readThinkingSignature(piece.block, signer) : null
    if (signed !== null) found.push({ piece, signed })
  }
  const response = found.at(-1)?.signed.response
  return found.filter(({ signed }) => signed.response === response)
}

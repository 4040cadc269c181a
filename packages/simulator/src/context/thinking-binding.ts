/**
 * Checks of thinking blocks that a client sends back: the signature, whether this model may read the block, and
 * whether the prefix before it is unchanged. Depending on account and request, a failed check rejects the request,
 * drops the block, or lets it pass.
 */

import { type ApiResult, invalid, type Refusal, reject } from '../protocol/answer.ts'
import {
  BETA,
  type Block,
  isObject,
  isThinking,
  type MessagesBody,
  type Piece,
  pathOf,
  textField,
} from '../protocol/api.ts'
import { digest } from '../protocol/clock-and-ids.ts'
import { canRead, type ModelTable, type SimulatedModel } from '../protocol/models.ts'
import type { Sealer, ThinkingSeal } from './signatures.ts'
import { changeSentence, type PrefixWalker, type Walk } from './thinking-prefix.ts'

export interface BindingSettings {
  /** Reject thinking after a changed prefix. For older accounts the provider does so only if the request sets it. */
  readonly enforced: boolean
  /** Thinking of the newest response whose visible text was edited. The documentation says error; it has been seen to pass. */
  readonly editedText: 'error' | 'allow'
  /** Signatures that this simulator did not write, such as those of a recorded session. */
  readonly foreignSignatures: 'error' | 'allow'
}

interface BindingInput {
  readonly body: MessagesBody
  readonly pieces: readonly Piece[]
  /** Lazy, because most requests have no thinking to check. */
  readonly boundPrefix: () => Walk
  readonly model: SimulatedModel
  readonly organization: string
  readonly betas: ReadonlySet<string>
  /** Ids of the compaction block that the request begins with and of those it replaced, and null. */
  readonly compactionIds: readonly (string | null)[]
}

export interface Transformation {
  readonly type: 'thinking_dropped' | 'thinking_mismatch_allowed'
  readonly path: string
  readonly reason: BindingReason
}

type BindingReason = 'organization_binding_mismatch' | 'model_binding_mismatch' | 'prefix_binding_mismatch'

export type BindingOutcome = ApiResult<{
  /** The conversation without the dropped blocks. */
  pieces: readonly Piece[]
  transformations: readonly Transformation[]
  /** Id of the last valid thinking block, which new thinking follows. */
  last: string | null
}>

interface BindingPorts {
  readonly signer: Sealer
  readonly tracker: PrefixWalker
  readonly models: ModelTable
  readonly settings: BindingSettings
}

/** Checks every thinking block of the conversation. Fails with the first block that is not allowed to pass. */
export function checkBinding(input: BindingInput, ports: BindingPorts): BindingOutcome {
  const { pieces } = input
  const mode = modeOf(input, ports.settings)
  const kept: Piece[] = []
  const transformations: Transformation[] = []
  let last: string | null = null
  for (const [index, piece] of pieces.entries()) {
    if (!isThinking(piece.block)) {
      kept.push(piece)
      continue
    }
    const signed = openSeal(piece.block, ports.signer)
    if (signed === null && ports.settings.foreignSignatures === 'error') return reject(badSignature(piece))
    const reason = signed === null ? null : reasonAgainst({ signed, index, last }, input, ports)
    if (reason === 'prefix_binding_mismatch' && mode === 'error' && signed !== null)
      return reject(mismatch(piece, { signed, index, last }, input, ports.tracker))
    const dropped = reason !== null && (reason !== 'prefix_binding_mismatch' || mode === 'drop')
    if (reason !== null)
      transformations.push({
        type: dropped ? 'thinking_dropped' : 'thinking_mismatch_allowed',
        path: pathOf(piece),
        reason,
      })
    if (!dropped) kept.push(piece)
    if (signed !== null && !(dropped && reason === 'prefix_binding_mismatch')) last = signed.id
  }
  return { ok: true, pieces: kept.length === pieces.length ? pieces : kept, transformations, last }
}

/** The signed content of a thinking block; null if the signature is not valid. */
export function openSeal(block: Block, signer: Sealer): ThinkingSeal | null {
  const text = textField(block, block.type === 'thinking' ? 'signature' : 'data')
  const signed = signer.verify(text)
  return signed?.kind === 'thinking' ? signed : null
}

function modeOf({ body }: BindingInput, settings: BindingSettings): 'error' | 'drop' | 'allow' {
  const binding: unknown = body.thinking?.block_binding
  const behavior = isObject(binding) ? binding.prefix_mismatch_behavior : undefined
  if (behavior === 'drop_block') return 'drop'
  return behavior === 'error' || settings.enforced ? 'error' : 'allow'
}

interface Checked {
  readonly signed: ThinkingSeal
  readonly index: number
  readonly last: string | null
}

/** The first check that fails, in the order of the provider. */
function reasonAgainst(checked: Checked, input: BindingInput, ports: BindingPorts): BindingReason | null {
  const { signed } = checked
  const { model, organization } = input
  if (model.accountBound && signed.organization !== organization) return 'organization_binding_mismatch'
  const author = ports.models.find(signed.model)
  if (author !== undefined && !canRead(model, author)) return 'model_binding_mismatch'
  if (model.binding !== 'prefix') return null
  return isUnchanged(checked, input) ? null : 'prefix_binding_mismatch'
}

function isUnchanged(
  { signed, index, last }: Checked,
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

function badSignature(piece: Piece): Refusal {
  const field = piece.block.type === 'thinking' ? 'signature' : 'data'
  return invalid(`${pathOf(piece)}: Invalid \`${field}\` in \`${piece.block.type}\` block`)
}

function mismatch(
  piece: Piece,
  { signed, index }: Checked,
  input: BindingInput,
  tracker: PrefixWalker,
): Refusal {
  const header = input.betas.has(BETA.thinkingBinding)
    ? []
    : [`That setting requires the \`${BETA.thinkingBinding}\` value in the \`anthropic-beta\` header.`]
  const changed = changeSentence(
    { signed, index, prefix: input.boundPrefix(), pieces: input.pieces },
    tracker,
  )
  const sentences = [
    `${badSignature(piece).message}. The block is bound to a different conversation.`,
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
    ...header,
    ...(changed === null ? [] : [changed]),
  ]
  return invalid(sentences.join(' '))
}

/** The thinking of the newest response must come back complete and unedited. Older responses may lose theirs. */
export function checkNewestResponse(input: BindingInput, ports: BindingPorts): Refusal | null {
  if (ports.settings.editedText === 'allow') return null
  const newest = newestThinking(input.pieces, ports.signer)
  for (const { piece, signed } of newest) {
    const shown = piece.block.type === 'thinking' ? textField(piece.block, 'thinking') : ''
    if (digest(shown) !== signed.shown || newest.length < signed.of)
      return invalid(
        `${pathOf(piece)}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`,
      )
  }
  return null
}

interface SealedPiece {
  readonly piece: Piece
  readonly signed: ThinkingSeal
}

/** The remaining thinking blocks of the newest response. */
function newestThinking(pieces: readonly Piece[], signer: Sealer): readonly SealedPiece[] {
  const end = pieces.findLastIndex((piece) => piece.role === 'assistant')
  const start = pieces.findLastIndex((piece, index) => index < end && piece.role !== 'assistant')
  const found: SealedPiece[] = []
  for (const piece of pieces.slice(start + 1, end + 1)) {
    const signed = isThinking(piece.block) ? openSeal(piece.block, signer) : null
    if (signed !== null) found.push({ piece, signed })
  }
  const response = found.at(-1)?.signed.response
  return found.filter(({ signed }) => signed.response === response)
}

/**
 * Thinking sent back: was it written here, may this model read it, and is everything before it still what it
 * was? Depending on account and request a block that fails is an error, is dropped, or is let through.
 */

import { invalid, type Refusal } from '../protocol/answer.ts'
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
import { canRead, type ModelTable, type SimulatedModel } from '../protocol/models.ts'
import { type Sealer, type ThinkingSeal, textMark } from './signatures.ts'
import { changeSentence, type PrefixWalker, type Walk } from './thinking-prefix.ts'

export interface BindingSettings {
  /** Accounts from before the check was made the rule see it only where the request asks. */
  readonly enforced: boolean
  /** Thinking whose shown text was edited in the newest response: the pages say error, some have seen it pass. */
  readonly editedText: 'error' | 'allow'
  /** Signatures that this simulator did not write, such as those of a recorded session. */
  readonly foreignSignatures: 'error' | 'allow'
}

export interface BindingInput {
  readonly body: MessagesBody
  readonly pieces: readonly Piece[]
  /** Worked out only where there is thinking to check. */
  readonly walk: () => Walk
  readonly model: SimulatedModel
  readonly organization: string
  readonly betas: ReadonlySet<string>
  /** The compaction block the request begins with and those it replaced. */
  readonly behind: readonly (string | null)[]
}

export interface Transformation {
  readonly type: 'thinking_dropped' | 'thinking_mismatch_allowed'
  readonly path: string
  readonly reason: BindingReason
}

export type BindingReason =
  | 'organization_binding_mismatch'
  | 'model_binding_mismatch'
  | 'prefix_binding_mismatch'

export type BindingOutcome =
  | { readonly ok: false; readonly refusal: Refusal }
  | {
      readonly ok: true
      readonly pieces: readonly Piece[]
      readonly transformations: readonly Transformation[]
      /** The thinking that a new block would follow. */
      readonly last: string | null
    }

export interface BindingPorts {
  readonly sealer: Sealer
  readonly walker: PrefixWalker
  readonly models: ModelTable
  readonly settings: BindingSettings
}

type Mode = 'error' | 'drop' | 'allow'

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
    const seal = openSeal(piece.block, ports.sealer)
    if (seal === null && ports.settings.foreignSignatures === 'error')
      return { ok: false, refusal: badSignature(piece) }
    const reason = seal === null ? null : reasonAgainst({ seal, index, last }, input, ports)
    if (reason === 'prefix_binding_mismatch' && mode === 'error' && seal !== null)
      return { ok: false, refusal: mismatch({ piece, seal, index, last }, input, ports) }
    const dropped = reason !== null && (reason !== 'prefix_binding_mismatch' || mode === 'drop')
    if (reason !== null)
      transformations.push({
        type: dropped ? 'thinking_dropped' : 'thinking_mismatch_allowed',
        path: pathOf(piece),
        reason,
      })
    if (!dropped) kept.push(piece)
    if (seal !== null && !(dropped && reason === 'prefix_binding_mismatch')) last = seal.id
  }
  return { ok: true, pieces: kept.length === pieces.length ? pieces : kept, transformations, last }
}

export function openSeal(block: Block, sealer: Sealer): ThinkingSeal | null {
  const text = textField(block, block.type === 'thinking' ? 'signature' : 'data')
  const seal = sealer.open(text)
  return seal?.kind === 'thinking' ? seal : null
}

function modeOf({ body }: BindingInput, settings: BindingSettings): Mode {
  const binding: unknown = body.thinking?.block_binding
  const asked = isObject(binding) ? binding.prefix_mismatch_behavior : undefined
  if (asked === 'drop_block') return 'drop'
  return asked === 'error' || settings.enforced ? 'error' : 'allow'
}

interface Checked {
  readonly seal: ThinkingSeal
  readonly index: number
  readonly last: string | null
}

/** The first check it fails, in the provider's order. */
function reasonAgainst(checked: Checked, input: BindingInput, ports: BindingPorts): BindingReason | null {
  const { seal } = checked
  const { model, organization } = input
  if (model.accountBound && seal.organization !== organization) return 'organization_binding_mismatch'
  const author = ports.models.find(seal.model)
  if (author !== undefined && !canRead(model, author)) return 'model_binding_mismatch'
  if (model.binding !== 'prefix') return null
  return isUnchanged(checked, input) ? null : 'prefix_binding_mismatch'
}

function isUnchanged({ seal, index, last }: Checked, { walk: walked, behind }: BindingInput): boolean {
  const walk = walked()
  return (
    seal.system === walk.system &&
    seal.tools === walk.tools &&
    seal.messages === walk.before[index]?.chain &&
    behind.includes(seal.behind) &&
    (last === null || last === seal.previous)
  )
}

function badSignature(piece: Piece): Refusal {
  const field = piece.block.type === 'thinking' ? 'signature' : 'data'
  return invalid(`${pathOf(piece)}: Invalid \`${field}\` in \`${piece.block.type}\` block`)
}

function mismatch(
  checked: Checked & { readonly piece: Piece },
  input: BindingInput,
  ports: BindingPorts,
): Refusal {
  const { piece } = checked
  const header = input.betas.has(BETA.thinkingBinding)
    ? []
    : [`That setting requires the \`${BETA.thinkingBinding}\` value in the \`anthropic-beta\` header.`]
  const changed = changeSentence({ ...checked, walk: input.walk(), pieces: input.pieces }, ports.walker)
  const sentences = [
    `${badSignature(piece).message}. The block is bound to a different conversation.`,
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
    ...header,
    ...(changed === null ? [] : [changed]),
  ]
  return invalid(sentences.join(' '))
}

/**
 * The newest response must come back as it was: its thinking whole and with the text it had. Older ones may
 * lose theirs.
 */
export function checkNewestResponse(input: BindingInput, ports: BindingPorts): Refusal | null {
  if (ports.settings.editedText === 'allow') return null
  const newest = newestThinking(input.pieces, ports.sealer)
  for (const { piece, seal } of newest) {
    const shown = piece.block.type === 'thinking' ? textField(piece.block, 'thinking') : ''
    if (textMark(shown) !== seal.shown || newest.length < seal.of)
      return invalid(
        `${pathOf(piece)}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`,
      )
  }
  return null
}

interface SealedPiece {
  readonly piece: Piece
  readonly seal: ThinkingSeal
}

/** The thinking of the newest response in the conversation, as far as it is still there. */
function newestThinking(pieces: readonly Piece[], sealer: Sealer): readonly SealedPiece[] {
  const end = pieces.findLastIndex((piece) => piece.role === 'assistant')
  const start = pieces.findLastIndex((piece, index) => index < end && piece.role !== 'assistant')
  const found: SealedPiece[] = []
  for (const piece of pieces.slice(start + 1, end + 1)) {
    const seal = isThinking(piece.block) ? openSeal(piece.block, sealer) : null
    if (seal !== null) found.push({ piece, seal })
  }
  const response = found.at(-1)?.seal.response
  return found.filter(({ seal }) => seal.response === response)
}

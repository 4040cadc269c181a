/**
 * An extension, off unless asked for: deleting results from the cached prefix without touching the messages.
 * Undocumented at the provider. A `cache_edits` block names results by their `cache_reference`; a deletion
 * takes effect where the result is read from the cache, and the prefix stays what it was to the key.
 */
import { isObject, textField } from '../api.ts'
import { invalid, type Refusal } from '../refusal.ts'
import { type Piece, pathOf } from './piece.ts'

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

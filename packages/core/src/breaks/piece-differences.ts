/** Tools and sections: which came, which went, which say something else, which stand elsewhere. */
import type { Difference } from './reason.ts'
import type { SentPiece } from './sent.ts'

export function toolDifferences(
  before: readonly SentPiece[],
  after: readonly SentPiece[],
): readonly Difference[] {
  const { added, removed, moved, reworded } = pieceChanges(before, after)
  return [
    ...(added.length > 0 ? [{ kind: 'tools-added', names: added } as const] : []),
    ...(removed.length > 0 ? [{ kind: 'tools-removed', names: removed } as const] : []),
    ...reworded.map((change) => ({ kind: 'tool-changed', ...change }) as const),
    ...(moved.length > 0 ? [{ kind: 'tools-reordered', names: moved } as const] : []),
  ]
}

export function sectionDifferences(
  before: readonly SentPiece[],
  after: readonly SentPiece[],
): readonly Difference[] {
  const { added, removed, moved, reworded } = pieceChanges(before, after)
  return [
    ...reworded.map((change) => ({ kind: 'section-changed', ...change }) as const),
    ...(added.length > 0 ? [{ kind: 'sections-added', names: added } as const] : []),
    ...(removed.length > 0 ? [{ kind: 'sections-removed', names: removed } as const] : []),
    ...(moved.length > 0 ? [{ kind: 'sections-reordered', names: moved } as const] : []),
  ]
}

interface PieceChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Those that stand elsewhere, among the ones there are in both. */
  readonly moved: readonly string[]
  readonly reworded: readonly { readonly name: string; readonly characters: number }[]
}

const UNCHANGED: PieceChanges = { added: [], removed: [], moved: [], reworded: [] }

function pieceChanges(before: readonly SentPiece[], after: readonly SentPiece[]): PieceChanges {
  if (before === after) return UNCHANGED
  const was = new Map(before.map(({ name, text }) => [name, text]))
  const is = new Map(after.map(({ name, text }) => [name, text]))
  const stood = [...was.keys()].filter((name) => is.has(name))
  const stands = [...is.keys()].filter((name) => was.has(name))
  return {
    added: [...is.keys()].filter((name) => !was.has(name)),
    removed: [...was.keys()].filter((name) => !is.has(name)),
    moved: stands.filter((name, index) => stood[index] !== name),
    reworded: stands.flatMap((name) => rewording(name, was.get(name) ?? '', is.get(name) ?? '')),
  }
}

function rewording(name: string, was: string, is: string): PieceChanges['reworded'] {
  return was === is ? [] : [{ name, characters: is.length - was.length }]
}

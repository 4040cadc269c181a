/**
 * What a summary is put together from when it has to fit: pieces with a rank, each in full or in short. The lowest
 * rank goes in first, and what does not fit at all is counted, not hidden.
 */
import type { Estimator } from '../tokens/estimator.ts'

export interface Piece {
  /** 1 to 9: where it stands. */
  readonly section: number
  /** 0 first. Pieces of one rank are taken in the order given. */
  readonly rank: number
  /** Where it stands within its section, whatever the order it was taken in. */
  readonly order: number
  readonly full: string
  readonly short: string | null
  /** Pieces of one group share a cap. */
  readonly group: string
  /** How it is named where it is left out altogether. */
  readonly id: string | null
}

export interface Room {
  readonly total: number
  /** Tokens by group; a group that is not named has no cap of its own. */
  readonly caps: ReadonlyMap<string, number>
  readonly estimate: Pick<Estimator, 'text'>
}

export interface Fitted {
  /** In the order they stand. */
  readonly placed: readonly { readonly section: number; readonly text: string }[]
  readonly leftOut: readonly Piece[]
  readonly tokens: number
}

/** Rank by rank: first every piece in short, so that none is lost for the length of another, then in full while room lasts. */
export function fitPieces(pieces: readonly Piece[], room: Room): Fitted {
  const fill: Fill = { room, spent: new Map(), placed: new Map(), tokens: 0 }
  const ranks = [...new Set(pieces.map(({ rank }) => rank))].toSorted((one, other) => one - other)
  for (const rank of ranks) {
    const own = pieces.filter((piece) => piece.rank === rank)
    for (const piece of own) put(fill, piece, piece.short ?? piece.full)
    for (const piece of own) if (piece.short !== null) put(fill, piece, piece.full)
  }
  const leftOut = pieces.filter((piece) => !fill.placed.has(piece))
  return { placed: inPlace(fill.placed), leftOut, tokens: fill.tokens }
}

interface Fill {
  readonly room: Room
  readonly spent: Map<string, number>
  readonly placed: Map<Piece, string>
  tokens: number
}

/** In the place of what stands there of the piece, if anything does. */
function put(fill: Fill, piece: Piece, text: string): void {
  const { room, spent, placed } = fill
  const before = placed.get(piece)
  const cost = room.estimate.text(text) - (before === undefined ? 0 : room.estimate.text(before))
  if (cost > Math.min(room.total - fill.tokens, leftIn(piece.group, spent, room))) return
  fill.tokens += cost
  spent.set(piece.group, (spent.get(piece.group) ?? 0) + cost)
  placed.set(piece, text)
}

function leftIn(group: string, spent: ReadonlyMap<string, number>, room: Room): number {
  return (room.caps.get(group) ?? Number.POSITIVE_INFINITY) - (spent.get(group) ?? 0)
}

function inPlace(placed: ReadonlyMap<Piece, string>): Fitted['placed'] {
  return [...placed]
    .toSorted(([one], [other]) => one.section - other.section || one.order - other.order)
    .map(([{ section }, text]) => ({ section, text }))
}

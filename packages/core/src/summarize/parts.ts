/**
 * A conversation in parts, each sized to the window of the summariser: summarised one by one, then together. What
 * fits into no part is handed back for the local extractor to cover.
 */
import type { Entry } from '../view/entry.ts'
import { roundsOfEntries } from './head-drop.ts'

export interface PartRoom {
  /** Tokens of input and output together that the summariser can take, the prompt aside. */
  readonly tokens: number
  /** Tokens that a summary may take at most. */
  readonly outputTokens: number
  readonly tokensOf: (entry: Entry) => number
}

export interface Parts {
  readonly parts: readonly (readonly Entry[])[]
  /** Rounds too large for any part, and the oldest ones where there would be too many parts. */
  readonly covered: readonly Entry[]
  /** Tokens that the summary of one part may take, so that all of them fit together. */
  readonly outputTokens: number
}

/** Parts at most: beyond that the oldest are covered without a model. */
export const MOST_PARTS = 8
/** A summary of a part below this says nothing. */
const LEAST_OUTPUT = 400

/** Null where the window is too small for even two parts to be put together. */
export function splitParts(entries: readonly Entry[], room: PartRoom): Parts | null {
  const most = Math.min(MOST_PARTS, Math.floor(room.tokens / LEAST_OUTPUT) - 2)
  if (most < 2) return null
  const outputTokens = Math.min(room.outputTokens, Math.floor(room.tokens / (most + 2)))
  const each = room.tokens - outputTokens
  const { groups, tooLarge } = grouped(roundsOfEntries(entries), each, room.tokensOf)
  const shown = groups.slice(-most)
  if (shown.length === 0) return null
  const inParts = new Set(shown.flat())
  const covered =
    tooLarge.length + groups.length > shown.length ? entries.filter((entry) => !inParts.has(entry)) : []
  return { parts: shown, covered, outputTokens }
}

interface Grouped {
  readonly groups: readonly (readonly Entry[])[]
  readonly tooLarge: readonly (readonly Entry[])[]
}

/** As many whole rounds as fit. One that is too large ends a group: what comes after it is another part. */
function grouped(
  rounds: readonly (readonly Entry[])[],
  each: number,
  tokensOf: (entry: Entry) => number,
): Grouped {
  const groups: Entry[][] = []
  const tooLarge: (readonly Entry[])[] = []
  let used = Number.POSITIVE_INFINITY
  for (const round of rounds) {
    const tokens = round.reduce((sum, entry) => sum + tokensOf(entry), 0)
    if (tokens > each) {
      tooLarge.push(round)
      used = Number.POSITIVE_INFINITY
    } else if (used + tokens > each) {
      groups.push([...round])
      used = tokens
    } else {
      groups.at(-1)?.push(...round)
      used += tokens
    }
  }
  return { groups, tooLarge }
}

/**
 * A prompt that was too long, made shorter from its head: whole rounds go, oldest first. What goes was shown to no
 * summariser, so it is handed back for the local extractor to cover.
 */
import type { KnownRecord } from '../conversation/record.ts'
import { roundsOf } from '../conversation/round.ts'
import type { HeadDropPolicy } from '../policy/groups/compact-policy.ts'
import type { Entry } from '../view/entry.ts'
import { isShown } from '../view/parts.ts'

/** Stands in front where the rest would begin with the model. */
export const TRUNCATION_MARKER = '[earlier conversation truncated for compaction retry]'

export interface HeadDropContext {
  /** Tokens that are too many, where the provider said so. */
  readonly over: number | null
  readonly tokensOf: (entry: Entry) => number
  readonly policy: Pick<HeadDropPolicy, 'percentOfRounds' | 'minimumRounds'>
}

export interface HeadDrop {
  readonly rest: readonly Entry[]
  readonly dropped: readonly Entry[]
}

/** Null where nothing would be left. At least one round goes, so that no retry is what failed. */
export function dropHead(entries: readonly Entry[], context: HeadDropContext): HeadDrop | null {
  const rounds = roundsOfEntries(withoutMarker(entries))
  const count = roundsToDrop(rounds, context)
  const rest = rounds.slice(count).flat()
  if (!rest.some(isShown)) return null
  return { rest, dropped: rounds.slice(0, count).flat() }
}

function roundsToDrop(rounds: readonly (readonly Entry[])[], context: HeadDropContext): number {
  const { over, tokensOf, policy } = context
  if (over === null || over <= 0)
    return Math.max(policy.minimumRounds, Math.floor((rounds.length * policy.percentOfRounds) / 100))
  let left = over
  const covered = rounds.findIndex((round) => {
    left -= round.reduce((sum, entry) => sum + tokensOf(entry), 0)
    return left <= 0
  })
  return covered === -1 ? rounds.length : covered + 1
}

/** Entries between two neighbouring cuts, each group with something said in it. */
export function roundsOfEntries(entries: readonly Entry[]): readonly (readonly Entry[])[] {
  let at = 0
  return roundsOf(entries.map((entry) => entry.record))
    .filter((round) => round.length > 0)
    .map((round) => {
      at += round.length
      return entries.slice(at - round.length, at)
    })
}

/** Without the marker of an earlier retry: left in, it would be a round of its own and all that is dropped. */
export function withoutMarker(entries: readonly Entry[]): readonly Entry[] {
  const first = entries[0]
  return first !== undefined && isMarker(first.record) ? entries.slice(1) : entries
}

/** With `text` in front, where the model would speak first. */
export function withMarker(entries: readonly Entry[], text: string): readonly Entry[] {
  const first = entries.find(isShown)
  if (first?.record.type !== 'assistant') return entries
  return [{ record: metaRecord('truncation-marker', text), index: -1 }, ...entries]
}

function isMarker(record: KnownRecord): boolean {
  return record.type === 'user' && record.isMeta === true && record.message.content === TRUNCATION_MARKER
}

/** A record that is only ever sent, never stored. */
export function metaRecord(uuid: string, text: string): KnownRecord {
  return {
    type: 'user',
    uuid,
    parentUuid: null,
    timestamp: '',
    sessionId: '',
    isMeta: true,
    message: { role: 'user', content: text },
  }
}

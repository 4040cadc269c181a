/**
 * The most likely reason for a read that was too small: what changed in the request, else time, else the reach of
 * the markers, else the provider. Its own word, where it gives one, decides between changes.
 */
import type { Counted } from '../prompt/count.ts'
import { lastMarked, reaches } from './entries.ts'
import type { Expectation } from './expected.ts'
import type { ProviderWord } from './provider-word.ts'
import { type Circumstance, type Difference, type Reason, zoneOf } from './reason.ts'
import type { SentRequest } from './sent.ts'
import type { Answered } from './watch.ts'

export interface Miss {
  readonly sent: SentRequest
  readonly against: Answered
  readonly expectation: Expectation
  /** All that changed, the earliest in the cache key first. */
  readonly differences: readonly Difference[]
  readonly read: number
  readonly word: ProviderWord | null
  /** The messages of `sent`. */
  readonly counted: Counted
  readonly lookBack: number
  /** How far below a figure a read may lie and still be taken for it. */
  readonly toleranceTokens: number
}

export interface Explanation {
  readonly reason: Reason
  /** What else changed, and may have had a part in it. */
  readonly also: readonly Difference[]
}

export function explain(miss: Miss): Explanation {
  const { differences, word } = miss
  const able = differences.filter((difference) => explains(difference, miss))
  const named = able.find((difference) => zoneOf(difference) === word?.zone)
  const reason = named ?? able[0] ?? circumstanceOf(miss)
  return { reason, also: differences.filter((difference) => difference !== reason) }
}

/**
 * A message that changed leaves what stands in front of it: where that was not read either, it was something else.
 * And nobody misses the marks on tools and system prompt while one on the messages finds all there is.
 */
function explains(difference: Difference, miss: Miss): boolean {
  if (difference.kind.startsWith('message-'))
    return miss.read >= miss.expectation.floor - miss.toleranceTokens
  const isPrefixBare = difference.kind === 'markers-removed' && difference.zone === 'prefix'
  const last = lastMarked(miss.against.sent)
  return !isPrefixBare || last.message < 0 || !reaches(miss, last)
}

function circumstanceOf(miss: Miss): Circumstance {
  const { against, word, lookBack } = miss
  const lapsed = lapseOf(miss)
  if (lapsed !== null) return lapsed
  if (!reaches(miss, lastMarked(against.sent))) return { kind: 'look-back-outrun', lookBack }
  if (word !== null && word.isVague !== true) return { kind: 'told-by-provider', zone: word.zone }
  return { kind: 'evicted' }
}

/** The pause that outlasted what was kept; null where it lives. */
export function lapseOf({ sent, against }: Pick<Miss, 'sent' | 'against'>): Circumstance | null {
  const marker = against.sent.markers.at(-1)
  const gapMs = sent.at - against.usedAt
  if (marker === undefined || gapMs < marker.seconds * 1000) return null
  return { kind: 'expired', ttl: marker.ttl, gapMs }
}

/** The same reasons without secrets: of a value that changed only what `redact` leaves of it. */
export function redacted({ reason, also }: Explanation, redact: (text: string) => string): Explanation {
  const clean = (value: string | null): string | null => (value === null ? null : redact(value))
  const plain = <R extends Reason>(given: R): R =>
    'before' in given && 'name' in given
      ? { ...given, before: clean(given.before), after: clean(given.after) }
      : given
  return { reason: plain(reason), also: also.map(plain) }
}

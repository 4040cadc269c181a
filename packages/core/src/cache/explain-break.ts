/**
 * The most likely reason for a read that was too small: what changed in the request, else time, else the reach of
 * the markers, else the provider. Its own word, where it gives one, decides between changes.
 */
import type { Counted } from '../request/block-index.ts'
import {
  type Circumstance,
  countText,
  type Difference,
  dollarsText,
  factOf,
  type OwnAct,
  type ProviderWord,
  type Reason,
  zoneOf,
} from './cache-break.ts'
import { lastMarked, reaches } from './cache-model.ts'
import type { Answered, Expectation } from './cache-monitor.ts'
import type { SentRequest } from './sent-request.ts'

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

// What can be done about it, in a sentence, for each reason: only what is certain to help.

const KEEP_PARAMETERS = 'Keep it the same for the session, or change it right after a compaction.'
const KEEP_TOOLS = 'Connect tools before the first prompt, or let late ones come with the next epoch.'
const KEEP_SECTIONS = 'Append what changes as a delta; the system prompt takes it over with the next epoch.'
const KEEP_MARKERS = 'Ask for the same lifetime and scope throughout a session.'
const KEEP_MESSAGES = 'Leave what was sent as it is: add to the end, or clear in batches.'

const HOUR_MS = 3_600_000

/** An hour's life is named only where it would have outlasted the pause; whether it pays is for the gaps to say. */
export function adviceFor(reason: Reason): string {
  const isOutlasted = reason.kind === 'expired' && reason.ttl === '5m' && reason.gapMs < HOUR_MS
  return isOutlasted ? LONGER_LIFE : ADVICE[reason.kind]
}

const LONGER_LIFE =
  'An hour would have outlasted the pause, at dearer writes: cache.ttl "auto" weighs that by the gaps of the session.'

const ADVICE: Readonly<Record<Reason['kind'], string>> = {
  'model-changed': 'Each model has a cache of its own: switch right after a compaction.',
  'speed-changed': KEEP_PARAMETERS,
  'effort-changed': KEEP_PARAMETERS,
  'thinking-changed': KEEP_PARAMETERS,
  'tool-choice-changed': 'Deny tools locally; tool_choice alone misses the cache of all messages.',
  'betas-changed': KEEP_PARAMETERS,
  'parameter-changed': KEEP_PARAMETERS,
  'tools-added': KEEP_TOOLS,
  'tools-removed': 'Deny a tool locally and leave its definition where it is.',
  'tools-reordered': 'Send the tools in a fixed order.',
  'tool-changed':
    'Hold definitions fixed for the epoch; a server that rewrites its schema breaks the cache each time.',
  'sections-added': KEEP_SECTIONS,
  'sections-removed': KEEP_SECTIONS,
  'sections-reordered': 'Send the sections in a fixed order.',
  'section-changed': KEEP_SECTIONS,
  'marker-ttl-changed': KEEP_MARKERS,
  'marker-scope-changed': KEEP_MARKERS,
  'markers-removed': 'Mark the request again, or switch caching off for the whole session.',
  'image-added': 'Where images are to come, one at the start costs less than one late.',
  'image-removed': 'Leave one image in place until the next compaction.',
  'message-changed': KEEP_MESSAGES,
  'message-removed': KEEP_MESSAGES,
  'message-inserted': KEEP_MESSAGES,
  expired: 'After such a pause all is written again: clear or compact before the next prompt.',
  'look-back-outrun': 'A lagging marker keeps such turns within reach.',
  'told-by-provider': 'Look at what stands between us and the provider: a gateway, a proxy, another client.',
  evicted: 'Nothing to do here; where it happens often, ask the provider.',
}

// One line a person can act on: what happened, what it cost, what to do.

export interface Cost {
  readonly tokens: number
  readonly dollars: number | null
}

export function breakSentence(reason: Reason, cost: Cost, ours: OwnAct | null): string {
  const fact = factOf(reason)
  return ours === null
    ? `Cache broke: ${fact}; ${costOf(cost)}. ${adviceFor(reason)}`
    : `Cache broke, and this break was ours (${ours.act}): ${fact}; ${costOf(cost)}${payback(ours)}.`
}

export function actSentence(ours: OwnAct, cost: Cost): string {
  return `This was ours: ${ours.act}; ${costOf(cost)}${payback(ours)}.`
}

function costOf({ tokens, dollars }: Cost): string {
  const price = dollars === null ? 'price not known' : dollarsText(dollars)
  return `${countText(tokens)} tokens processed again (${price})`
}

function payback({ breakEvenTurns }: OwnAct): string {
  if (breakEvenTurns === null) return ''
  return `, pays back in ${breakEvenTurns} ${breakEvenTurns === 1 ? 'call' : 'calls'}`
}

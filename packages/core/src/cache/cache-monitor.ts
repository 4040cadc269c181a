/**
 * What is remembered between calls, for each query source: the last request that was answered and what it left in
 * the cache, the request under way, and what the engine has announced. A value; the number of sources is bounded.
 */

import type { Prices } from '../cost/prices.ts'
import { type Block, isThinking } from '../log/block.ts'
import type { Usage } from '../log/record.ts'
import type { BreaksPolicy } from '../policy/policy.ts'
import type { Profile } from '../policy/provider-profile.ts'
import { blocksIn, type Counted, messageAt, messageCount } from '../request/block-index.ts'
import { type AssembledRequest, messageHolding } from '../request/build-request.ts'
import type { Place } from '../request/cache-markers.ts'
import { type FrontPart, toolName } from '../request/prefix.ts'
import { partsOfBlock } from '../tokens/estimator.ts'
import {
  type ActPaid,
  type Announcement,
  type BreakEvent,
  type CacheFigures,
  isReset,
  type MessageDifference,
  type PricedAnnouncement,
  type ProviderWord,
} from './cache-break.ts'
import { type CachedEntry, lastMarked, readableEntry } from './cache-model.ts'
import { messageDifference, type Redact } from './request-diff.ts'
import { isBefore, type Place as PlaceParting, partingOf, type SentRequest } from './sent-request.ts'

export interface CacheWatch {
  /** By source; the one used last comes last. */
  readonly sources: ReadonlyMap<string, Watched>
}

export interface Watched {
  readonly last: Answered | null
  readonly pending: Pending | null
  /** Since the last request was sent. */
  readonly announced: readonly PricedAnnouncement[]
}

/** A request that was answered. */
export interface Answered {
  readonly sent: SentRequest
  /** Tokens it left in the cache. */
  readonly cached: number
  /** When it, or a fork of it, was last read. */
  readonly usedAt: number
  readonly entries: readonly CachedEntry[]
  readonly counted: Counted
}

/** A request under way. */
export interface Pending {
  readonly sent: SentRequest
  /** What it is compared with: as things stood when it was sent, whatever happens meanwhile. */
  readonly against: Answered | null
  readonly announced: readonly PricedAnnouncement[]
  /** The source began anew while it was under way, so it is nothing to compare the next one with. */
  readonly isOutdated: boolean
}

export const UNWATCHED: Watched = { last: null, pending: null, announced: [] }

export function emptyCacheWatch(): CacheWatch {
  return { sources: new Map() }
}

/**
 * Before a call: remembers the request as it is sent. A request that is sent again takes the place of the one
 * that was not answered. Models whose reads say nothing are not watched.
 */
export function takeSnapshot(watch: CacheWatch, sent: SentRequest, policy: BreaksPolicy): CacheWatch {
  const key = watchKey(sent.source)
  const own = watch.sources.get(key) ?? UNWATCHED
  if (policy.excludedModels.some((pattern) => matchesPattern(sent.parameters.model, pattern)))
    return own.pending === null ? watch : withWatched(watch, key, { ...own, pending: null })
  const parent = parentKey(sent.source, sent.forkOf)
  const of = parent === null ? own : (watch.sources.get(parent) ?? UNWATCHED)
  const against = of.last
  const announced = parent === null ? [...(own.pending?.announced ?? []), ...own.announced] : unsentEdits(of)
  const pending = { sent, against, announced, isOutdated: false }
  return bounded(withWatched(watch, key, { ...own, pending, announced: [] }), policy.sources)
}

/**
 * Deletions that a parent has not sent yet go out with a fork of it too, and stay announced for the parent. All else
 * is in what the parent sent, and was paid for there: what was announced to the fork's own name since is no news.
 */
function unsentEdits({ announced }: Watched): readonly PricedAnnouncement[] {
  return announced.filter(({ kind }) => kind === 'cache-edits')
}

/** What is about to be done to the next request of a source. */
export function announceAct(watch: CacheWatch, source: string, announcement: Announcement): CacheWatch {
  const key = watchKey(source)
  const own = watch.sources.get(key) ?? UNWATCHED
  if (!isReset(announcement))
    return withWatched(watch, key, { ...own, announced: [...own.announced, announcement] })
  const pending = own.pending === null ? null : { ...own.pending, isOutdated: true, announced: [] }
  return withWatched(watch, key, { last: null, pending, announced: [] })
}

/** As the one used last. */
export function withWatched(watch: CacheWatch, key: string, watched: Watched): CacheWatch {
  const sources = new Map(watch.sources)
  sources.delete(key)
  return { sources: sources.set(key, watched) }
}

function bounded(watch: CacheWatch, most: number): CacheWatch {
  if (watch.sources.size <= most) return watch
  return { sources: new Map([...watch.sources].slice(-most)) }
}

// Which query sources share a state, and which names a pattern means.

/** The main thread goes by several names; a summary call reads its cache. */
export function watchKey(source: string): string {
  const isMain = source === '' || source === 'sdk' || source.startsWith(MAIN)
  return isMain ? MAIN : source
}

const MAIN = 'repl_main_thread'

/** Whose cache the request reads, where that is not its own. */
export function parentKey(source: string, forkOf: string | undefined): string | null {
  if (forkOf !== undefined) return watchKey(forkOf)
  return source === 'compact' ? MAIN : null
}

/** `*` stands for anything; upper and lower case are the same. */
export function matchesPattern(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.toLowerCase().split('*')
  const text = name.toLowerCase()
  if (!text.startsWith(first)) return false
  const last = rest.pop()
  if (last === undefined) return text === first
  let from = first.length
  for (const part of rest) {
    const found = text.indexOf(part, from)
    if (found === -1) return false
    from = found + part.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}

// What stands at a place of a request, and whose it is: for those who explain a change to people.

export type PlaceSource =
  | { readonly kind: 'tool'; readonly name: string }
  | { readonly kind: 'sections'; readonly part: FrontPart; readonly names: readonly string[] }
  /** Null for what no record said: a message of a fork's own. */
  | { readonly kind: 'record'; readonly uuid: string | null }

/** Null where the request has no such place. */
export function sourceOf({ front, messages }: AssembledRequest, place: Place): PlaceSource | null {
  if (place.zone === 'messages') {
    const message = messageAt(messages, place.index)
    return message === undefined ? null : { kind: 'record', uuid: message.origins[place.block] ?? null }
  }
  if (place.zone === 'tools') {
    const tool = front.tools[place.index]
    return tool === undefined ? null : { kind: 'tool', name: toolName(tool) }
  }
  const block = front.system[place.index]
  return block === undefined ? null : { kind: 'sections', part: block.part, names: block.sections }
}

// What a comparison is given and what it gives.

export interface CacheAnswer {
  /** Of the request that was answered. */
  readonly source: string
  /** Null where the response has none: then nothing is learnt. */
  readonly usage: Usage | null
  readonly word?: ProviderWord | null
  /** The provider says that it cleared something from the request by itself. */
  readonly isEdited?: boolean
}

export interface BreakRules {
  readonly policy: BreaksPolicy
  readonly profile: Pick<Profile, 'cache' | 'thinking'>
  /** Of the model that was asked; null where they are not known. */
  readonly prices: Prices | null
  /** Takes secrets out of what an event quotes of a request; without it, values are told as they were sent. */
  readonly redact?: Redact
}

export type CacheOutcome =
  /** There is nothing to compare with. */
  | { readonly kind: 'first' }
  | { readonly kind: 'read'; readonly expected: number; readonly read: number }
  /** An announced act was paid for: no break. */
  | { readonly kind: 'ours'; readonly act: ActPaid }
  /** `diff`: what changed, as text for a file; `redact` takes secrets out of it. */
  | { readonly kind: 'broke'; readonly event: BreakEvent; readonly diff: (redact: Redact) => string }
  | { readonly kind: 'not-judged'; readonly why: Unjudged }

/** No snapshot (or an excluded model); a response without usage; the provider rewrote the request by itself, or does not say what it deleted. */
export type Unjudged = 'not-watched' | 'no-usage' | 'edited-by-provider' | 'deletion-not-told'

// What should be read: what the last call left behind, as far as this request repeats it.

export interface ReadingRules {
  /** Positions a marker looks back. */
  readonly lookBack: number
  /** The provider leaves out the thinking of finished turns, and with it their tokens. */
  readonly stripsFinishedTurns: boolean
}

export interface Expectation {
  readonly tokens: number
  /** Where the request stops repeating the last one within what was cached; null where it repeats it all. */
  readonly parting: PlaceParting | null
  /** What became of the messages there; null where they are as they were, or were taken back by a rewind. */
  readonly change: MessageDifference | null
  /** What can still be read in front of the parting, for certain. */
  readonly floor: number
}

export interface ExpectationQuestion {
  readonly pending: Pending
  readonly against: Answered
  /** The messages of what is pending. */
  readonly counted: Counted
  readonly rules: ReadingRules
}

export function expectationOf({ pending, against, counted, rules }: ExpectationQuestion): Expectation {
  const { sent, announced } = pending
  const isClearing = announced.some(({ kind }) => kind === 'clearing')
  const found = partingOf(against.sent.messages, sent.messages)
  if (found === null || isBefore(lastMarked(against.sent), found)) {
    // Announced, and not in the messages: it is the provider that clears, and nobody knows where.
    const tokens = isClearing ? 0 : whole(against, counted, rules)
    return { tokens, parting: null, change: null, floor: 0 }
  }
  const floor =
    readableEntry({ entries: against.entries, sent, counted, lookBack: rules.lookBack, limit: found })
      ?.tokens ?? 0
  const change = messageDifference({ before: against.sent, after: sent, place: found })
  const tokens = change === null || isClearing ? floor : whole(against, counted, rules)
  return { tokens, parting: found, change, floor }
}

/** Less what the provider was asked to delete, and says it did; null where it does not say. */
export function withoutDeleted(
  expected: number,
  announced: readonly PricedAnnouncement[],
  { deleted }: CacheFigures,
): number | null {
  const edits = announced.find((announcement) => announcement.kind === 'cache-edits')
  if (edits === undefined) return expected
  return deleted === null ? null : Math.max(0, expected - Math.max(0, deleted - edits.deletedBefore))
}

/** Counted while the request was made: where nothing is left out, nothing has to be looked for. */
function whole(against: Answered, counted: Counted, { stripsFinishedTurns }: ReadingRules): number {
  const isOver = stripsFinishedTurns && counted.end.prompt > against.counted.end.prompt
  return Math.max(0, against.cached - (isOver ? thinkingTokens(against.counted) : 0))
}

/** Seen on real sessions, a little high: better to expect too little than to see a break where there is none. */
const TEXT_PER_TOKEN = 3
const CIPHER_PER_TOKEN = 4.9

/** The thinking of the turn that the request went on with: what stands behind the newest end of one. */
function thinkingTokens(counted: Counted): number {
  let tokens = 0
  const { messages, end } = counted
  for (let index = messageHolding(counted, end.prompt + 1); index < messageCount(messages); index += 1) {
    const message = messageAt(messages, index)
    const blocks = message === undefined ? [] : blocksIn(message)
    for (const block of blocks) if (isThinking(block)) tokens += thoughtTokens(block)
  }
  return Math.ceil(tokens)
}

/** A signature grows with all that was thought, shown or not. */
function thoughtTokens(block: Block): number {
  const { texts, cipher } = partsOfBlock(block, 'json')
  const characters = texts.reduce((sum, text) => sum + text.length, 0)
  return Math.max(characters / TEXT_PER_TOKEN, cipher / CIPHER_PER_TOKEN)
}

/** After a call: was the cache read as it should have been, and if not, why, and what did it cost? */
import { type Counted, countMessages } from '../prompt/count.ts'
import { type CachedEntry, withEntry } from './entries.ts'
import { type CacheFigures, figuresOf } from './figures.ts'
import { type Judged, judge } from './judge.ts'
import type { BreakRules, CacheAnswer, CacheOutcome } from './outcome.ts'
import { isBefore } from './parting.ts'
import { zoneOf } from './reason.ts'
import { parentKey, watchKey } from './sources.ts'
import { type Answered, type CacheWatch, type Pending, UNWATCHED, withWatched } from './watch.ts'

export interface Compared {
  readonly watch: CacheWatch
  readonly outcome: CacheOutcome
}

export function compareAnswer(watch: CacheWatch, answer: CacheAnswer, rules: BreakRules): Compared {
  const key = watchKey(answer.source)
  const own = watch.sources.get(key) ?? UNWATCHED
  const { pending } = own
  if (pending === null) return { watch, outcome: { kind: 'not-judged', why: 'not-watched' } }
  if (answer.usage === null) return { watch, outcome: { kind: 'not-judged', why: 'no-usage' } }
  const figures = figuresOf(answer.usage)
  const { sent, against } = pending
  const counted = countMessages(sent.messages, rules.profile.cache.collapsesToolRuns, against?.counted)
  const judged = judge({ pending, answer, usage: answer.usage, figures, counted, rules })
  const { outcome } = judged
  const parent = parentKey(sent.source, sent.forkOf)
  if (parent !== null) {
    const settled = withWatched(watch, key, { ...own, pending: null })
    return { watch: outcome.kind === 'read' ? refreshed(settled, parent, pending) : settled, outcome }
  }
  const last = pending.isOutdated ? null : answered(pending, { ...judged, ...figures, counted })
  return { watch: withWatched(watch, key, { ...own, last, pending: null }), outcome }
}

/** A fork leaves nothing behind for its parent, but what it read lives longer. */
function refreshed(watch: CacheWatch, parent: string, { sent, against }: Pending): CacheWatch {
  const watched = watch.sources.get(parent)
  if (watched?.last == null || watched.last !== against) return watch
  const usedAt = Math.max(watched.last.usedAt, sent.at)
  return { sources: new Map(watch.sources).set(parent, { ...watched, last: { ...watched.last, usedAt } }) }
}

interface Learnt extends Judged, CacheFigures {
  readonly counted: Counted
}

function answered({ sent, against }: Pending, learnt: Learnt): Answered {
  const { cached, counted } = learnt
  const entries = withEntry(entriesKept(against, learnt), sent, cached)
  return { sent, cached, usedAt: sent.at, entries, counted }
}

/** Entries that are still a beginning of the conversation, in the same cache and counted alike. */
function entriesKept(
  against: Answered | null,
  { parting, differences, isEdited }: Judged,
): readonly CachedEntry[] {
  if (against === null || isEdited || differences.some(isElsewhere)) return []
  if (parting === null) return against.entries
  return against.entries.filter(({ place }) => isBefore(place, parting))
}

function isElsewhere(difference: Judged['differences'][number]): boolean {
  const zone = zoneOf(difference)
  return zone !== null && zone !== 'messages'
}

/**
 * Results that a later one made worthless: a file read again in full or overwritten, a command repeated, a
 * failure made good. Only a newer result that is whole and no failure does that.
 */
import { List } from '../conversation/list.ts'
import { Trie } from '../conversation/trie.ts'
import type { CallFacts } from './tool-call.ts'

export type SupersedeReason = 'read-again' | 'overwritten' | 'repeated' | 'made-good'

export interface Superseded {
  /** The call whose result took its place. */
  readonly by: string
  readonly why: SupersedeReason
}

export interface Supersession {
  /** By call. */
  readonly superseded: Trie<Superseded>
  /** Calls that a later one may still make worthless, under each of the keys by which it would. */
  readonly open: Trie<List<Answered>>
}

export interface Answered extends CallFacts {
  readonly id: string
  /** Tool and input, so that the same call made twice is known. */
  readonly sameness: string
  readonly isError: boolean
  /** All that was asked for: not a failure, not cut, not a word that the file is as it was. */
  readonly isComplete: boolean
}

export const NOTHING_SUPERSEDED: Supersession = { superseded: Trie.empty(), open: Trie.empty() }

const NONE: List<Answered> = List.of()

export function supersede(state: Supersession, newer: Answered): Supersession {
  let next = state
  if (newer.isComplete && !newer.isError) {
    for (const key of closedBy(newer)) next = closed(next, key, newer)
  }
  let { open } = next
  for (const key of keysOf(newer)) open = open.set(key, (open.get(key) ?? NONE).push(newer))
  return { ...next, open }
}

function closed({ superseded, open }: Supersession, key: string, newer: Answered): Supersession {
  const older = open.get(key) ?? NONE
  let marked = superseded
  for (const call of older) {
    if (!marked.has(call.id)) marked = marked.set(call.id, { by: newer.id, why: reasonFor(call, newer) })
  }
  return { superseded: marked, open: older.length === 0 ? open : open.set(key, NONE) }
}

function reasonFor(older: Answered, newer: Answered): SupersedeReason {
  if (older.isError) return 'made-good'
  if (newer.concern === 'write') return 'overwritten'
  return newer.concern === 'read' ? 'read-again' : 'repeated'
}

const key = (...parts: readonly string[]): string => parts.join('\n')

/** Where a call waits for the one that makes it worthless. */
function keysOf({ concern, path, range, sameness, isError }: Answered): readonly string[] {
  if (path === null || concern === 'other') return [key('same', sameness)]
  const kind = concern === 'read' ? 'read' : 'edit'
  const failed = isError ? [key('failed', kind, path)] : []
  return [key(kind, path), ...(range === null ? [] : [key('range', path, range)]), ...failed]
}

/** An edit leaves earlier reads their worth: the rest of the file is still as it was. */
function closedBy({ concern, path, range, sameness }: Answered): readonly string[] {
  if (path === null || concern === 'other') return [key('same', sameness)]
  switch (concern) {
    case 'read':
      return [range === null ? key('read', path) : key('range', path, range), key('failed', 'read', path)]
    case 'write':
      return [key('read', path), key('edit', path)]
    case 'edit':
      return [key('failed', 'edit', path)]
  }
}

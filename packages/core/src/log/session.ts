/**
 * A session: the fold of its log. It knows where each record stands and which branch counts, and nothing
 * about what a model is shown; that is the view's. `reduce` is total, and its cost does not grow with the log,
 * a rewind aside, which works the branch out anew.
 */

import { List } from './append-list.ts'
import type { Damage } from './batch.ts'
import { isToolUse } from './block.ts'
import {
  extendBranch,
  findParent,
  OUTSIDE,
  onBranch,
  ownerOf,
  placeOf,
  ROOT,
  recordAt,
  type Tree,
} from './branches.ts'
import { IndexMap } from './persistent-map.ts'
import { isKnown, isPrompt, type KnownRecord, type SessionRecord, type SystemRecord } from './record.ts'

export interface Session extends Tree {
  /** Indices of the records on the branch of the newest prompt, in order. */
  readonly branch: List<number>
  /** Index of the newest record of the conversation, or ROOT. */
  readonly tip: number
  /** uuids of pinned records; the newest word on each counts, on whatever branch it was said. */
  readonly pins: readonly string[]
  /** Parents named before they came, and by whom first: how a cycle is known. */
  readonly awaited: IndexMap
  readonly damage: List<Damage>
}

export function emptySession(): Session {
  return {
    records: List.of(),
    parents: List.of(),
    owners: List.of(),
    uuids: IndexMap.empty(),
    responses: IndexMap.empty(),
    calls: IndexMap.empty(),
    branch: List.of(),
    prompt: ROOT,
    tip: ROOT,
    pins: [],
    awaited: IndexMap.empty(),
    damage: List.of(),
  }
}

export function sessionOf(records: Iterable<SessionRecord>): Session {
  let session = emptySession()
  for (const record of records) session = reduce(session, record)
  return session
}

/**
 * Every record of the branch, whatever has been compacted since: what facts are read off. Up to the record `before`,
 * which is not part of it; all of it where that is not on the branch or not given.
 */
export function historyOf({ branch, records }: Session, before?: string): readonly KnownRecord[] {
  const history: KnownRecord[] = []
  for (const index of branch) {
    const record = records.at(index)
    if (record === undefined || !isKnown(record)) continue
    if (record.uuid === before) break
    history.push(record)
  }
  return history
}

type Placed = SessionRecord & { readonly uuid: string }

/** `line` is where the record stood in its file, for the report of damage. */
export function reduce(session: Session, record: SessionRecord, line?: number): Session {
  const at = line ?? session.records.length + 1
  if (!isOfConversation(record)) return placed(session, record, OUTSIDE)
  const twin = placeOf(session, record.uuid)
  if (twin === undefined) return joined(session, record, at)
  const noted = withDamage(session, [duplicate(record.uuid, at)])
  return sameSaid(recordAt(session, twin), record)
    ? placed(noted, record, OUTSIDE)
    : joined(noted, record, at)
}

/** A line of this conversation: not a subagent's, not one without identity. */
function isOfConversation(record: SessionRecord): record is Placed {
  return typeof record.uuid === 'string' && record.isSidechain !== true
}

function joined(session: Session, record: Placed, line: number): Session {
  const index = session.records.length
  const found = findParent(session, record, line)
  const tree = indexed(placed(withDamage(session, found.damage), record, found.parent), record, index)
  const next = {
    ...tree,
    tip: index,
    prompt: isPrompt(record) ? index : session.prompt,
    pins: pinsAfter(session.pins, record),
    awaited: found.awaits === null ? session.awaited : session.awaited.add(found.awaits, index),
  }
  return { ...next, branch: extendBranch(session.branch, next, index, session.prompt) }
}

function placed(session: Session, record: SessionRecord, parent: number): Session {
  const own = parent !== OUTSIDE && isPrompt(record)
  return {
    ...session,
    records: session.records.push(record),
    parents: session.parents.push(parent),
    owners: session.owners.push(own ? session.records.length : turnOf(session, parent)),
  }
}

/** What follows the branch belongs to the turn that is open, wherever on the branch it hangs; the rest to its parent's. */
function turnOf(session: Session, parent: number): number {
  return parent === ROOT || onBranch(session.branch, parent) ? session.prompt : ownerOf(session, parent)
}

function indexed(session: Session, record: Placed, index: number): Session {
  const uuids = session.uuids.add(record.uuid, index)
  if (!isKnown(record) || record.type !== 'assistant') return { ...session, uuids }
  const { id, content } = record.message
  let { calls } = session
  if (typeof content !== 'string')
    for (const block of content) if (isToolUse(block)) calls = calls.add(block.id, index)
  return { ...session, uuids, calls, responses: session.responses.add(id, index) }
}

function withDamage(session: Session, items: readonly Damage[]): Session {
  if (items.length === 0) return session
  let { damage } = session
  for (const item of items) damage = damage.push(item)
  return { ...session, damage }
}

function duplicate(uuid: string, line: number): Damage {
  return { kind: 'duplicate-uuid', line, uuid, why: `the uuid ${uuid} was there before` }
}

/** Two lines with one uuid: a copy says the same and is left out, anything else keeps its place. */
function sameSaid(one: SessionRecord, other: SessionRecord): boolean {
  return JSON.stringify(said(one)) === JSON.stringify(said(other))
}

function said(record: SessionRecord): unknown {
  const { type, message, attachment, subtype, content } = record as SessionRecord & {
    readonly [field: string]: unknown
  }
  return [type, message, attachment, subtype, content]
}

function pinsAfter(pins: readonly string[], record: SessionRecord): readonly string[] {
  const { subtype, pin } = record as SystemRecord
  if (record.type !== 'system' || subtype !== 'pin' || pin === undefined) return pins
  const others = pins.filter((uuid) => uuid !== pin.target)
  return pin.pinned ? [...others, pin.target] : others
}

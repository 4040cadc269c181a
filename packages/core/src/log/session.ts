/**
 * A session: the fold of its log. It knows where each record stands and which branch counts, and nothing
 * about what a model is shown; that is the view's. `reduce` is total, and its cost does not grow with the log,
 * a rewind aside, which works the branch out anew.
 */

import type { Damage } from './batch.ts'
import { isToolResult, isToolUse } from './block.ts'
import { IndexMap, List } from './persistent-collections.ts'
import {
  isCompactBoundary,
  isKnown,
  isPrompt,
  type KnownRecord,
  type SessionRecord,
  type SystemRecord,
} from './record.ts'

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

// The shape of a log: who follows whom. What branches are found in, and what a session is built on.

/** The parent of a record that is no part of the conversation: a subagent's line, one without identity, a copy. */
export const OUTSIDE = -2
/** The parent of a record that follows nothing. */
export const ROOT = -1

export interface Tree {
  readonly records: List<SessionRecord>
  /** For each record the index of its parent, or ROOT, or OUTSIDE. */
  readonly parents: List<number>
  /**
   * For each record the index of the prompt whose turn it belongs to, or ROOT before the first: the one that was
   * open when the record joined the conversation, also where it hangs further up.
   */
  readonly owners: List<number>
  readonly uuids: IndexMap
  /** `message.id` → the first record of that response. */
  readonly responses: IndexMap
  /** Tool call id → the record that holds the call. */
  readonly calls: IndexMap
  /** Index of the newest prompt, or ROOT. */
  readonly prompt: number
}

function parentOf(tree: Tree, index: number): number {
  return tree.parents.at(index) ?? ROOT
}

export function ownerOf(tree: Tree, index: number): number {
  return index < 0 ? ROOT : (tree.owners.at(index) ?? ROOT)
}

export function recordAt(tree: Tree, index: number): SessionRecord {
  const record = tree.records.at(index)
  if (record === undefined) throw new RangeError(`no record at ${index} of ${tree.records.length}`)
  return record
}

/** Where the record with this uuid stands, if it is there. */
export function placeOf(tree: Tree, uuid: string): number | undefined {
  return tree.uuids.get(uuid)
}

// Which records are on the branch that counts: that of the newest prompt.
//
// Branches part at a prompt and nowhere else. Everything that belongs to a turn stays with it, also what
// hangs beside the chain of parents (the results of parallel calls do); what a prompt abandons is what
// follows its parent and leads to another response, prompt, compaction or act of ours.

/** The branch of `tree`, whose newest record is at `index`, given the branch without that record. */
export function extendBranch(
  branch: List<number>,
  tree: Tree,
  index: number,
  lastPrompt: number,
): List<number> {
  if (tree.prompt !== index) return joins(tree, index, branch) ? branch.push(index) : branch
  return goesOn(branch, tree, lastPrompt) ? branch.push(index) : branchOf(tree)
}

/** The same from scratch. */
export function branchOf(tree: Tree): List<number> {
  const prompts = promptChain(tree)
  const cut = new Set([...prompts].flatMap((prompt) => abandonedBy(tree, prompt)))
  let branch = List.of<number>()
  for (let index = 0; index < tree.records.length; index += 1) {
    if (parentOf(tree, index) === OUTSIDE || cut.has(index)) continue
    const there = isPrompt(recordAt(tree, index)) ? prompts.has(index) : joins(tree, index, branch)
    if (there) branch = branch.push(index)
  }
  return branch
}

/** The newest prompt and those it follows from. */
function promptChain(tree: Tree): Set<number> {
  const chain = new Set<number>()
  for (let prompt = tree.prompt; prompt !== ROOT; prompt = ownerOf(tree, parentOf(tree, prompt)))
    chain.add(prompt)
  return chain
}

/** The newest prompt goes on where the conversation stood: nothing is abandoned, nothing taken up again. */
function goesOn(branch: List<number>, tree: Tree, lastPrompt: number): boolean {
  const parent = parentOf(tree, tree.prompt)
  if (parent === ROOT) return branch.length === 0
  if (ownerOf(tree, parent) !== lastPrompt || !onBranch(branch, parent)) return false
  return abandonedBy(tree, tree.prompt).length === 0
}

/** A record that is no prompt is on the branch with its turn and its parent, or with its response or tool call. */
function joins(tree: Tree, index: number, branch: List<number>): boolean {
  const [parent, owner] = [parentOf(tree, index), ownerOf(tree, index)]
  const follows = parent === ROOT || onBranch(branch, parent)
  if (follows && (owner === ROOT || onBranch(branch, owner))) return true
  return kinOf(tree, index).some((kin) => onBranch(branch, kin))
}

/** Where the other records of the same response begin, or where the tool calls answered stand. */
function kinOf(tree: Tree, index: number): readonly number[] {
  const record = recordAt(tree, index)
  if (!isKnown(record)) return []
  if (record.type === 'assistant') return present(tree.responses.get(record.message.id), index)
  if (record.type !== 'user' || typeof record.message.content === 'string') return []
  const results = record.message.content.filter(isToolResult)
  return results.flatMap((block) => present(tree.calls.get(block.tool_use_id), index))
}

function present(place: number | undefined, before: number): readonly number[] {
  return place === undefined || place >= before ? [] : [place]
}

/**
 * What lies between a prompt and its parent and is abandoned by it: each response, prompt and compaction
 * below the parent, with what leads there and what follows from it. Kin of what stands before is not.
 */
function abandonedBy(tree: Tree, prompt: number): readonly number[] {
  const fork = parentOf(tree, prompt)
  const below = new Set<number>([fork])
  const abandoned = new Set<number>()
  for (let index = fork + 1; index < prompt; index += 1) {
    const parent = parentOf(tree, index)
    if (!below.has(parent)) continue
    below.add(index)
    if (belongsBefore(tree, index, fork)) continue
    if (abandoned.has(parent) || leadsAway(tree, index)) abandoned.add(index)
  }
  for (const index of [...abandoned]) for (const step of stepsUp(tree, index, fork)) abandoned.add(step)
  return [...abandoned]
}

/** The records between the fork and `index` that do not belong to what stands before the fork. */
function stepsUp(tree: Tree, index: number, fork: number): readonly number[] {
  const steps: number[] = []
  for (let up = parentOf(tree, index); up > fork && !belongsBefore(tree, up, fork); up = parentOf(tree, up)) {
    steps.push(up)
  }
  return steps
}

/** One of the records of a response that had begun by `fork`, or the answer to one of its calls. */
function belongsBefore(tree: Tree, index: number, fork: number): boolean {
  return kinOf(tree, index).some((kin) => responseStart(tree, kin) <= fork)
}

function responseStart(tree: Tree, index: number): number {
  const record = recordAt(tree, index)
  if (!isKnown(record) || record.type !== 'assistant') return index
  return tree.responses.get(record.message.id) ?? index
}

function leadsAway(tree: Tree, index: number): boolean {
  const record = recordAt(tree, index)
  return record.type === 'assistant' || isPrompt(record) || isCompactBoundary(record) || isOwnAct(record)
}

/** We link every record to the one before it, so what we did after the fork was done on the other branch. Other programs hang their notices anywhere. */
function isOwnAct(record: SessionRecord): boolean {
  const subtype = record.type === 'system' ? ((record as SystemRecord).subtype ?? '') : ''
  return record.seq !== undefined && OWN_ACTS.has(subtype)
}

const OWN_ACTS = new Set(['microcompact_boundary', 'compact_undone', 'clear_undone', 'epoch', 'delta'])

/** The branch is in rising order. */
export function onBranch(branch: List<number>, index: number): boolean {
  let low = 0
  let high = branch.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const found = branch.at(middle) ?? ROOT
    if (found === index) return true
    if (found < index) low = middle + 1
    else high = middle - 1
  }
  return false
}

// Finds what a record follows. A parent that is missing or cyclic is damage; the record then follows the one before it.

interface FoundParent {
  readonly parent: number
  /** A parent named before it came. */
  readonly awaits: string | null
  readonly damage: readonly Damage[]
}

interface Growing extends Tree {
  readonly tip: number
  readonly awaited: IndexMap
}

export function findParent(
  tree: Growing,
  record: SessionRecord & { readonly uuid: string },
  line: number,
): FoundParent {
  const boundary = isCompactBoundary(record)
  const named = record.parentUuid ?? (boundary ? record.logicalParentUuid : null) ?? null
  const found = named === null ? undefined : placeOf(tree, named)
  if (found !== undefined)
    return { parent: found, awaits: null, damage: cycle(tree, record.uuid, found, line) }
  if (named === null && record.parentUuid === undefined && !boundary) return unlinked(tree, record.uuid, line)
  if (named === null) return { parent: boundary ? tree.tip : ROOT, awaits: null, damage: [] }
  // A boundary may name a record that was not carried over: it then stands behind the line before, undamaged.
  if (boundary) return { parent: tree.tip, awaits: null, damage: [] }
  return {
    parent: tree.tip,
    awaits: named,
    damage: [missing(record.uuid, named, line)],
  }
}

/** Null says that a record follows nothing. Saying nothing is not the same: it then follows the line before. */
function unlinked(tree: Growing, uuid: string, line: number): FoundParent {
  const damage: Damage = {
    kind: 'missing-parent',
    line,
    uuid,
    why: `the record ${uuid} does not say what it follows`,
  }
  return { parent: tree.tip, awaits: null, damage: tree.tip === ROOT ? [] : [damage] }
}

function missing(uuid: string, named: string, line: number): Damage {
  if (uuid === named)
    return { kind: 'cyclic-parent', line, uuid, why: `the record ${uuid} is its own parent` }
  return {
    kind: 'missing-parent',
    line,
    uuid,
    why: `the parent ${named} of ${uuid} is not in the log before it`,
  }
}

function cycle(tree: Growing, uuid: string, parent: number, line: number): readonly Damage[] {
  const waiting = tree.awaited.get(uuid)
  if (waiting === undefined) return []
  for (let at = parent; at >= 0; at = parentOf(tree, at)) {
    if (at === waiting)
      return [{ kind: 'cyclic-parent', line, uuid, why: `${uuid} is among its own forebears` }]
  }
  return []
}

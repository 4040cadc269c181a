/**
 * A session: the fold of its log. It knows the parent of every record and which branch is active; what the model is
 * shown is the context's business. `appendRecord` accepts every record, and its cost does not grow with the log,
 * except for a rewind, which computes the branch from scratch.
 */
import type { Damage } from './batch.ts'
import { isToolResult, isToolUse } from './block.ts'
import { List, Trie } from './persistent-collections.ts'
import {
  isCompactBoundary,
  isKnown,
  isPrompt,
  type KnownRecord,
  type SessionRecord,
  type SystemRecord,
} from './record.ts'

/** The parent of a record that is not part of the conversation: a subagent's line, one without uuid, a copy. */
const OUTSIDE = -2
/** The parent of a record that follows nothing. */
export const ROOT = -1

export interface Session {
  readonly records: List<SessionRecord>
  /** For each record the index of its parent, or ROOT, or OUTSIDE. */
  readonly parents: List<number>
  /**
   * For each record the index of the prompt whose turn it belongs to, or ROOT before the first prompt: the turn that
   * was open when the record was appended, even if its parent is further up.
   */
  readonly owners: List<number>
  readonly uuids: Trie<number>
  /** `message.id` → index of the first record of that response. */
  readonly responses: Trie<number>
  /** Tool call id → index of the record with the call. */
  readonly calls: Trie<number>
  /** Indexes of the records on the active branch (the newest prompt's), ascending. */
  readonly branch: List<number>
  /** Index of the newest prompt, or ROOT. */
  readonly prompt: number
  /** Index of the newest record of the conversation, or ROOT. */
  readonly tip: number
  /** uuids of pinned records; the newest `pin` record for each decides, on any branch. */
  readonly pins: readonly string[]
  /** Parents named before they were appended, and the first record that named them: used to detect cycles. */
  readonly awaited: Trie<number>
  readonly damage: List<Damage>
}

export function emptySession(): Session {
  return {
    records: List.of(),
    parents: List.of(),
    owners: List.of(),
    uuids: Trie.empty(),
    responses: Trie.empty(),
    calls: Trie.empty(),
    branch: List.of(),
    prompt: ROOT,
    tip: ROOT,
    pins: [],
    awaited: Trie.empty(),
    damage: List.of(),
  }
}

export function sessionOf(records: Iterable<SessionRecord>): Session {
  let session = emptySession()
  for (const record of records) session = reduce(session, record)
  return session
}

/**
 * Every record of the active branch, including those that compactions have removed from the context. Stops before
 * the record `before` if that is given and on the branch.
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

export function recordAt({ records }: Session, index: number): SessionRecord {
  const record = records.at(index)
  if (record === undefined) throw new RangeError(`no record at ${index} of ${records.length}`)
  return record
}

/** Index of the record with this uuid. */
export function placeOf(session: Session, uuid: string): number | undefined {
  return session.uuids.get(uuid)
}

/** The session with one more record. `line`: its line in the file, for damage reports. */
export function reduce(session: Session, record: SessionRecord, line?: number): Session {
  const at = line ?? session.records.length + 1
  if (!isOfConversation(record)) return placed(session, record, OUTSIDE)
  const { uuid } = record
  const twin = placeOf(session, uuid)
  if (twin === undefined) return joined(session, record, at)
  const why = `the uuid ${uuid} was there before`
  const damaged = withDamage(session, [{ kind: 'duplicate-uuid', line: at, uuid, why }])
  // A copy of the earlier record is left out; a record with other content keeps its place.
  return contentKey(recordAt(session, twin)) === contentKey(record)
    ? placed(damaged, record, OUTSIDE)
    : joined(damaged, record, at)
}

type ConversationRecord = SessionRecord & { readonly uuid: string }

/** False for a subagent's line and for one without uuid. */
function isOfConversation(record: SessionRecord): record is ConversationRecord {
  return typeof record.uuid === 'string' && record.isSidechain !== true
}

function contentKey(record: SessionRecord): string {
  const { type, message, attachment, subtype, content } = record as SessionRecord & {
    readonly [field: string]: unknown
  }
  return JSON.stringify([type, message, attachment, subtype, content])
}

function joined(session: Session, record: ConversationRecord, line: number): Session {
  const index = session.records.length
  const found = findParent(session, record, line)
  const tree = indexed(placed(withDamage(session, found.damage), record, found.parent), record, index)
  const next: Session = {
    ...tree,
    tip: index,
    prompt: isPrompt(record) ? index : session.prompt,
    pins: pinsAfter(session.pins, record),
    awaited: found.awaits === null ? session.awaited : session.awaited.add(found.awaits, index),
  }
  return { ...next, branch: extendBranch(next, index, session.prompt) }
}

function placed(session: Session, record: SessionRecord, parent: number): Session {
  const isPromptHere = parent !== OUTSIDE && isPrompt(record)
  return {
    ...session,
    records: session.records.push(record),
    parents: session.parents.push(parent),
    owners: session.owners.push(isPromptHere ? session.records.length : turnOf(session, parent)),
  }
}

/** A record that follows the active branch belongs to the open turn, others to their parent's turn. */
function turnOf(session: Session, parent: number): number {
  return parent === ROOT || onBranch(session.branch, parent) ? session.prompt : ownerOf(session, parent)
}

function indexed(session: Session, record: ConversationRecord, index: number): Session {
  const uuids = session.uuids.add(record.uuid, index)
  if (!isKnown(record) || record.type !== 'assistant') return { ...session, uuids }
  const { id, content } = record.message
  let { calls } = session
  if (typeof content !== 'string')
    for (const block of content) if (isToolUse(block)) calls = calls.add(block.id, index)
  return { ...session, uuids, calls, responses: session.responses.add(id, index) }
}

function withDamage(session: Session, items: readonly Damage[]): Session {
  let { damage } = session
  for (const item of items) damage = damage.push(item)
  return { ...session, damage }
}

function pinsAfter(pins: readonly string[], record: SessionRecord): readonly string[] {
  const { subtype, pin } = record as SystemRecord
  if (record.type !== 'system' || subtype !== 'pin' || pin === undefined) return pins
  const others = pins.filter((uuid) => uuid !== pin.target)
  return pin.pinned ? [...others, pin.target] : others
}

// The parent of a record. If it is missing or cyclic, that is damage, and the record follows the one before it.

interface FoundParent {
  readonly parent: number
  /** A parent that was named and has not been appended yet. */
  readonly awaits: string | null
  readonly damage: readonly Damage[]
}

function findParent(session: Session, record: ConversationRecord, line: number): FoundParent {
  const { uuid, parentUuid } = record
  const isBoundary = isCompactBoundary(record)
  const named = parentUuid ?? (isBoundary ? record.logicalParentUuid : null) ?? null
  const found = named === null ? undefined : placeOf(session, named)
  if (found !== undefined) return { parent: found, awaits: null, damage: cycle(session, uuid, found, line) }
  const { tip } = session
  // A boundary may name a record that was not copied into this file: it then follows the line before, undamaged.
  if (isBoundary) return { parent: tip, awaits: null, damage: [] }
  // Null means that the record follows nothing. A missing field does not: the record then follows the line before.
  if (parentUuid === null) return { parent: ROOT, awaits: null, damage: [] }
  if (named === null) {
    const why = `the record ${uuid} does not say what it follows`
    const damage: readonly Damage[] = tip === ROOT ? [] : [{ kind: 'missing-parent', line, uuid, why }]
    return { parent: tip, awaits: null, damage }
  }
  const damage: Damage =
    uuid === named
      ? { kind: 'cyclic-parent', line, uuid, why: `the record ${uuid} is its own parent` }
      : {
          kind: 'missing-parent',
          line,
          uuid,
          why: `the parent ${named} of ${uuid} is not in the log before it`,
        }
  return { parent: tip, awaits: named, damage: [damage] }
}

function cycle(session: Session, uuid: string, parent: number, line: number): readonly Damage[] {
  const waiting = session.awaited.get(uuid)
  if (waiting === undefined) return []
  for (let at = parent; at >= 0; at = parentOf(session, at)) {
    if (at === waiting)
      return [{ kind: 'cyclic-parent', line, uuid, why: `${uuid} is among its own forebears` }]
  }
  return []
}

function parentOf(session: Session, index: number): number {
  return session.parents.at(index) ?? ROOT
}

function ownerOf(session: Session, index: number): number {
  return index < 0 ? ROOT : (session.owners.at(index) ?? ROOT)
}

// The active branch: that of the newest prompt.
//
// Branches fork only at a prompt. All records of a turn stay with it, including those beside the chain of parents
// (results of parallel calls). A prompt abandons the records after its parent that lead to another response, prompt,
// compaction or rewrite.

/** The branch of a session whose newest record is at `index` and whose `branch` is still without that record. */
function extendBranch(session: Session, index: number, lastPrompt: number): List<number> {
  const { branch } = session
  if (session.prompt !== index) return joins(session, index, branch) ? branch.push(index) : branch
  return goesOn(session, lastPrompt) ? branch.push(index) : branchOf(session)
}

/** The active branch, computed from scratch. */
export function branchOf(session: Session): List<number> {
  const prompts = promptChain(session)
  const abandoned = new Set([...prompts].flatMap((prompt) => abandonedBy(session, prompt)))
  let branch = List.of<number>()
  for (let index = 0; index < session.records.length; index += 1) {
    if (parentOf(session, index) === OUTSIDE || abandoned.has(index)) continue
    const isOn = isPrompt(recordAt(session, index)) ? prompts.has(index) : joins(session, index, branch)
    if (isOn) branch = branch.push(index)
  }
  return branch
}

/** The newest prompt and those it follows from. */
function promptChain(session: Session): Set<number> {
  const chain = new Set<number>()
  for (let at = session.prompt; at !== ROOT; at = ownerOf(session, parentOf(session, at))) chain.add(at)
  return chain
}

/** The newest prompt continues the branch: it abandons nothing and returns to nothing abandoned. */
function goesOn(session: Session, lastPrompt: number): boolean {
  const parent = parentOf(session, session.prompt)
  if (parent === ROOT) return session.branch.length === 0
  if (ownerOf(session, parent) !== lastPrompt || !onBranch(session.branch, parent)) return false
  return abandonedBy(session, session.prompt).length === 0
}

/** A record other than a prompt is on the branch if its turn and parent are, or its response or tool call is. */
function joins(session: Session, index: number, branch: List<number>): boolean {
  const [parent, owner] = [parentOf(session, index), ownerOf(session, index)]
  const follows = parent === ROOT || onBranch(branch, parent)
  if (follows && (owner === ROOT || onBranch(branch, owner))) return true
  return kinOf(session, index).some((kin) => onBranch(branch, kin))
}

/** Earlier records this one belongs to: the first record of its response, or those with the calls it answers. */
function kinOf(session: Session, index: number): readonly number[] {
  const record = recordAt(session, index)
  if (!isKnown(record) || (record.type !== 'assistant' && record.type !== 'user')) return []
  const { content } = record.message
  const results = typeof content === 'string' ? [] : content.filter(isToolResult)
  const kin =
    record.type === 'assistant'
      ? [session.responses.get(record.message.id)]
      : results.map((block) => session.calls.get(block.tool_use_id))
  return kin.filter((place) => place !== undefined && place < index) as readonly number[]
}

/**
 * The records between a prompt and its parent that the prompt abandons: each response, prompt and compaction after
 * the parent, with the records that lead to it and follow from it. Records that belong to what stands before the
 * parent are not abandoned.
 */
function abandonedBy(session: Session, prompt: number): readonly number[] {
  const fork = parentOf(session, prompt)
  const below = new Set<number>([fork])
  const abandoned = new Set<number>()
  for (let index = fork + 1; index < prompt; index += 1) {
    const parent = parentOf(session, index)
    if (!below.has(parent)) continue
    below.add(index)
    if (belongsBefore(session, index, fork)) continue
    if (abandoned.has(parent) || leadsAway(recordAt(session, index))) abandoned.add(index)
  }
  for (const index of [...abandoned]) {
    let up = parentOf(session, index)
    for (; up > fork && !belongsBefore(session, up, fork); up = parentOf(session, up)) abandoned.add(up)
  }
  return [...abandoned]
}

/** A record of a response that had begun by `fork`, or a result for one of its calls. */
function belongsBefore(session: Session, index: number, fork: number): boolean {
  return kinOf(session, index).some((kin) => {
    const record = recordAt(session, kin)
    const isResponse = isKnown(record) && record.type === 'assistant'
    return ((isResponse ? session.responses.get(record.message.id) : undefined) ?? kin) <= fork
  })
}

/** Our own rewrites count if we wrote them (`seq`): we link every record to the one before. Other programs do not. */
function leadsAway(record: SessionRecord): boolean {
  if (record.type === 'assistant' || isPrompt(record) || isCompactBoundary(record)) return true
  const { type, seq, subtype = '' } = record as SystemRecord
  return type === 'system' && seq !== undefined && OWN_REWRITES.has(subtype)
}

const OWN_REWRITES = new Set(['microcompact_boundary', 'compact_undone', 'clear_undone', 'epoch', 'delta'])

/** Binary search: the branch is ascending. */
function onBranch(branch: List<number>, index: number): boolean {
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

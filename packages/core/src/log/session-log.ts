/**
 * A session log: all records of one session, the parent of each record, and the active branch. `appendRecord` accepts
 * every record. Its cost does not grow with the length of the log, except for a rewind, which computes the branch
 * again.
 */

import { repairRecordSurrogates } from '../text/truncate-text.ts'
import { isToolResult, isToolUse } from './block.ts'
import type { Damage } from './decode-log.ts'
import { AppendList, PersistentMap } from './persistent-collections.ts'
import {
  canStartBranch,
  isCompactBoundary,
  isKnownRecord,
  type KnownRecord,
  type SessionRecord,
  type SystemRecord,
} from './record.ts'

/** Parent index of a record outside the conversation: a subagent's record, a record without uuid, or a duplicate record. */
const NOT_IN_CONVERSATION = -2
/** Parent index of a record that has no parent. */
export const NO_PARENT = -1

export interface SessionLog {
  readonly records: AppendList<SessionRecord>
  /** For each record: the index of its parent record, `NO_PARENT`, or `NOT_IN_CONVERSATION`. */
  readonly parents: AppendList<number>
  /**
   * For each record: the index of the prompt that began its turn, or `NO_PARENT` before the first prompt. On the active
   * branch, this is the newest prompt at the time the record was appended, even if the record's parent is in an earlier
   * turn.
   */
  readonly turnPrompts: AppendList<number>
  readonly indexByUuid: PersistentMap<number>
  /** Maps the `message.id` of a response to the index of its first record. */
  readonly responseStarts: PersistentMap<number>
  /** Maps the id of a tool call to the index of the record that contains the call. */
  readonly callRecords: PersistentMap<number>
  /** Indexes of the records on the active branch (the branch of the newest prompt), ascending. */
  readonly branch: AppendList<number>
  /** Index of the newest prompt, or `NO_PARENT` if the log has none. */
  readonly newestPrompt: number
  /** Index of the newest conversation record, or `NO_PARENT` if the log has none. */
  readonly newestRecord: number
  /**
   * For each parent uuid that is not in the log yet: the index of the first record that names it as parent. Used to
   * detect cycles.
   */
  readonly awaitedParents: PersistentMap<number>
  readonly damage: AppendList<Damage>
}

export function emptySessionLog(): SessionLog {
  return {
    records: AppendList.of(),
    parents: AppendList.of(),
    turnPrompts: AppendList.of(),
    indexByUuid: PersistentMap.empty(),
    responseStarts: PersistentMap.empty(),
    callRecords: PersistentMap.empty(),
    branch: AppendList.of(),
    newestPrompt: NO_PARENT,
    newestRecord: NO_PARENT,
    awaitedParents: PersistentMap.empty(),
    damage: AppendList.of(),
  }
}

/** Builds the log of a session from all its records, in the order of the file. */
export function buildSessionLog(records: Iterable<SessionRecord>): SessionLog {
  let session = emptySessionLog()
  for (const record of records) session = appendRecord(session, record)
  return session
}

/**
 * Returns every record of the active branch, including records that a compaction removed from the context. If `before`
 * is the uuid of a record on the branch, the list ends just before that record.
 */
export function listBranchRecords({ branch, records }: SessionLog, before?: string): readonly KnownRecord[] {
  const history: KnownRecord[] = []
  for (const index of branch) {
    const record = records.at(index)
    if (record === undefined || !isKnownRecord(record)) continue
    if (record.uuid === before) break
    history.push(record)
  }
  return history
}

/** Returns the record at an index. Throws a `RangeError` if there is none. */
export function requireRecordAt({ records }: SessionLog, index: number): SessionRecord {
  const record = records.at(index)
  if (record === undefined) throw new RangeError(`no record at ${index} of ${records.length}`)
  return record
}

/** Returns the index of the record with this uuid, or undefined if the log has none. */
export function findRecordIndex(session: SessionLog, uuid: string): number | undefined {
  return session.indexByUuid.get(uuid)
}

/**
 * Returns the log with `record` appended, whose lone surrogates are repaired. `line`: its line in the file, for damage
 * reports.
 */
export function appendRecord(session: SessionLog, record: SessionRecord, line?: number): SessionLog {
  return appendRecordAsIs(session, repairRecordSurrogates(record), line)
}

/** As `appendRecord`, but does not look for lone surrogates. For logs that are only read: they are never sent. */
export function appendRecordAsIs(session: SessionLog, record: SessionRecord, line?: number): SessionLog {
  const at = line ?? session.records.length + 1
  if (!isConversationRecord(record)) return storeRecord(session, record, NOT_IN_CONVERSATION)
  const { uuid } = record
  const twin = findRecordIndex(session, uuid)
  if (twin === undefined) return linkRecord(session, record, at)
  const why = `the uuid ${uuid} was there before`
  const damaged = withDamage(session, [{ kind: 'duplicate-uuid', line: at, uuid, why }])
  // The uuid was used before. A record with the same content is a copy and left out of the conversation; a record with
  // other content is kept.
  return toContentKey(requireRecordAt(session, twin)) === toContentKey(record)
    ? storeRecord(damaged, record, NOT_IN_CONVERSATION)
    : linkRecord(damaged, record, at)
}

type ConversationRecord = SessionRecord & { readonly uuid: string }

/** Returns true for a record of the main conversation: it has a uuid and does not belong to a subagent. */
function isConversationRecord(record: SessionRecord): record is ConversationRecord {
  return typeof record.uuid === 'string' && record.isSidechain !== true
}

/** Returns a text that is equal for two records with the same content, whatever their links and times. */
function toContentKey(record: SessionRecord): string {
  const { type, message, attachment, subtype, content } = record as SessionRecord & {
    readonly [field: string]: unknown
  }
  return JSON.stringify([type, message, attachment, subtype, content])
}

function linkRecord(session: SessionLog, record: ConversationRecord, line: number): SessionLog {
  const index = session.records.length
  const found = findParent(session, record, line)
  const tree = indexRecord(
    storeRecord(withDamage(session, found.damage), record, found.parent),
    record,
    index,
  )
  const next: SessionLog = {
    ...tree,
    newestRecord: index,
    newestPrompt: canStartBranch(record) ? index : session.newestPrompt,
    awaitedParents:
      found.awaitedUuid === null
        ? session.awaitedParents
        : session.awaitedParents.setIfAbsent(found.awaitedUuid, index),
  }
  return { ...next, branch: extendBranch(next, index, session.newestPrompt) }
}

function storeRecord(session: SessionLog, record: SessionRecord, parent: number): SessionLog {
  const isPromptHere = parent !== NOT_IN_CONVERSATION && canStartBranch(record)
  return {
    ...session,
    records: session.records.push(record),
    parents: session.parents.push(parent),
    turnPrompts: session.turnPrompts.push(isPromptHere ? session.records.length : findTurn(session, parent)),
  }
}

/**
 * Returns the index of the prompt that began the turn of a new record. This is the newest prompt if the record's parent
 * is on the active branch, otherwise the prompt of the parent's turn.
 */
function findTurn(session: SessionLog, parent: number): number {
  return parent === NO_PARENT || isOnBranch(session.branch, parent)
    ? session.newestPrompt
    : readTurnPrompt(session, parent)
}

function indexRecord(session: SessionLog, record: ConversationRecord, index: number): SessionLog {
  const uuids = session.indexByUuid.setIfAbsent(record.uuid, index)
  if (!isKnownRecord(record) || record.type !== 'assistant') return { ...session, indexByUuid: uuids }
  const { id, content } = record.message
  let { callRecords } = session
  if (typeof content !== 'string')
    for (const block of content) if (isToolUse(block)) callRecords = callRecords.setIfAbsent(block.id, index)
  return {
    ...session,
    indexByUuid: uuids,
    callRecords,
    responseStarts: session.responseStarts.setIfAbsent(id, index),
  }
}

function withDamage(session: SessionLog, items: readonly Damage[]): SessionLog {
  if (items.length === 0) return session
  let { damage } = session
  for (const item of items) damage = damage.push(item)
  return { ...session, damage }
}

// How the parent of a record is found. If the parent that a record names is missing from the log, or is the record
// itself, the newest record becomes its parent and damage is reported.

interface FoundParent {
  readonly parent: number
  /** uuid of the parent that the record names, if that parent is not in the log yet; otherwise null. */
  readonly awaitedUuid: string | null
  readonly damage: readonly Damage[]
}

function findParent(session: SessionLog, record: ConversationRecord, line: number): FoundParent {
  const { uuid, parentUuid } = record
  const isBoundary = isCompactBoundary(record)
  const named = parentUuid ?? (isBoundary ? record.logicalParentUuid : null) ?? null
  const found = named === null ? undefined : findRecordIndex(session, named)
  if (found !== undefined)
    return { parent: found, awaitedUuid: null, damage: detectCycle(session, uuid, found, line) }
  const { newestRecord } = session
  // A compact boundary may name a parent that was not copied into this file. The newest record then becomes its parent,
  // and no damage is reported.
  if (isBoundary) return { parent: newestRecord, awaitedUuid: null, damage: [] }
  // A null `parentUuid` means that the record has no parent. If the field is absent, the newest record becomes the
  // parent.
  if (parentUuid === null) return { parent: NO_PARENT, awaitedUuid: null, damage: [] }
  if (named === null) {
    const why = `the record ${uuid} does not say what it follows`
    const damage: readonly Damage[] =
      newestRecord === NO_PARENT ? [] : [{ kind: 'missing-parent', line, uuid, why }]
    return { parent: newestRecord, awaitedUuid: null, damage }
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
  return { parent: newestRecord, awaitedUuid: named, damage: [damage] }
}

function detectCycle(session: SessionLog, uuid: string, parent: number, line: number): readonly Damage[] {
  const waiting = session.awaitedParents.get(uuid)
  if (waiting === undefined) return []
  for (let at = parent; at >= 0; at = readParent(session, at)) {
    if (at === waiting)
      return [{ kind: 'cyclic-parent', line, uuid, why: `${uuid} is among its own ancestors` }]
  }
  return []
}

function readParent(session: SessionLog, index: number): number {
  return session.parents.at(index) ?? NO_PARENT
}

function readTurnPrompt(session: SessionLog, index: number): number {
  return index < 0 ? NO_PARENT : (session.turnPrompts.at(index) ?? NO_PARENT)
}

// The active branch is the branch of the newest prompt.
//
// Branches fork only at prompts, and at records that move to another branch, which count as prompts here. A new prompt
// may name an older record as its parent (a rewind). It then abandons the responses, prompts, compactions and other
// context changes after that parent, and the records between. All other records of a turn are on the branch of its
// prompt, including results of parallel tool calls.

/** Returns the active branch after the record at `index` was appended. `session.branch` does not contain that record yet. */
function extendBranch(session: SessionLog, index: number, lastPrompt: number): AppendList<number> {
  const { branch } = session
  if (session.newestPrompt !== index) return joinsBranch(session, index, branch) ? branch.push(index) : branch
  return continuesBranch(session, lastPrompt) ? branch.push(index) : computeActiveBranch(session)
}

/** Computes the active branch from all records of the log. */
export function computeActiveBranch(session: SessionLog): AppendList<number> {
  const prompts = collectPromptChain(session)
  const abandoned = new Set([...prompts].flatMap((prompt) => findAbandonedRecords(session, prompt)))
  let branch = AppendList.of<number>()
  for (let index = 0; index < session.records.length; index += 1) {
    if (readParent(session, index) === NOT_IN_CONVERSATION || abandoned.has(index)) continue
    const isOn = canStartBranch(requireRecordAt(session, index))
      ? prompts.has(index)
      : joinsBranch(session, index, branch)
    if (isOn) branch = branch.push(index)
  }
  return branch
}

/** Returns the indexes of the newest prompt and of all prompts before it on its branch. */
function collectPromptChain(session: SessionLog): Set<number> {
  const chain = new Set<number>()
  for (let at = session.newestPrompt; at !== NO_PARENT; at = readTurnPrompt(session, readParent(session, at)))
    chain.add(at)
  return chain
}

/**
 * Returns true if the newest prompt only extends the active branch. Returns false if it abandons records, or goes back
 * to a record that was abandoned.
 */
function continuesBranch(session: SessionLog, lastPrompt: number): boolean {
  const parent = readParent(session, session.newestPrompt)
  if (parent === NO_PARENT) return session.branch.length === 0
  if (readTurnPrompt(session, parent) !== lastPrompt || !isOnBranch(session.branch, parent)) return false
  return findAbandonedRecords(session, session.newestPrompt).length === 0
}

/**
 * Returns true if a record that is not a prompt belongs to `branch`. It does if its parent and its turn's prompt are on
 * the branch, or if an earlier record of its response or its tool call is.
 */
function joinsBranch(session: SessionLog, index: number, branch: AppendList<number>): boolean {
  const [parent, owner] = [readParent(session, index), readTurnPrompt(session, index)]
  const follows = parent === NO_PARENT || isOnBranch(branch, parent)
  if (follows && (owner === NO_PARENT || isOnBranch(branch, owner))) return true
  return findRelatedRecords(session, index).some((kin) => isOnBranch(branch, kin))
}

/**
 * Returns the indexes of earlier records that a record belongs with. For a response record, that is the first record of
 * the response; for tool results, the records with their tool calls.
 */
function findRelatedRecords(session: SessionLog, index: number): readonly number[] {
  const record = requireRecordAt(session, index)
  if (!isKnownRecord(record) || (record.type !== 'assistant' && record.type !== 'user')) return []
  const { content } = record.message
  const results = typeof content === 'string' ? [] : content.filter(isToolResult)
  const kin =
    record.type === 'assistant'
      ? [session.responseStarts.get(record.message.id)]
      : results.map((block) => session.callRecords.get(block.tool_use_id))
  return kin.filter((place) => place !== undefined && place < index) as readonly number[]
}

/**
 * Returns the indexes of the records that a prompt abandons: each response, prompt and context change after the
 * prompt's parent, with the records that lead to it or follow from it. Later records of a response that began before
 * the parent are not abandoned.
 */
function findAbandonedRecords(session: SessionLog, prompt: number): readonly number[] {
  const fork = readParent(session, prompt)
  const below = new Set<number>([fork])
  const abandoned = new Set<number>()
  for (let index = fork + 1; index < prompt; index += 1) {
    const parent = readParent(session, index)
    if (!below.has(parent)) continue
    below.add(index)
    if (belongsBefore(session, index, fork)) continue
    if (abandoned.has(parent) || startsOtherBranch(requireRecordAt(session, index))) abandoned.add(index)
  }
  // The search upwards ends at an abandoned record: what leads to that record is found with the record itself.
  const leads = (up: number) => up > fork && !abandoned.has(up) && !belongsBefore(session, up, fork)
  for (const index of [...abandoned])
    for (let up = readParent(session, index); leads(up); up = readParent(session, up)) abandoned.add(up)
  return [...abandoned]
}

/**
 * Returns true if a record belongs to a response that began at or before the record `fork`, or is a result of one of
 * its tool calls.
 */
function belongsBefore(session: SessionLog, index: number, fork: number): boolean {
  return findRelatedRecords(session, index).some((kin) => {
    const record = requireRecordAt(session, kin)
    const isResponse = isKnownRecord(record) && record.type === 'assistant'
    return ((isResponse ? session.responseStarts.get(record.message.id) : undefined) ?? kin) <= fork
  })
}

/**
 * Returns true for a record that a rewind to an earlier record abandons: a response, a prompt, a compaction, or another
 * context change by Tidemark (with a `seq`). Context changes by other programs do not count, because these programs do
 * not link every record to the one before it.
 */
function startsOtherBranch(record: SessionRecord): boolean {
  if (record.type === 'assistant' || canStartBranch(record) || isCompactBoundary(record)) return true
  const { type, seq, subtype = '' } = record as SystemRecord
  return type === 'system' && seq !== undefined && OWN_REWRITES.has(subtype)
}

const OWN_REWRITES = new Set([
  'microcompact_boundary',
  'compact_undone',
  'clear_undone',
  'reply_dropped',
  'epoch',
  'delta',
])

/** Returns true if the record is on the branch. Uses binary search, because the indexes of a branch are ascending. */
export function isOnBranch(branch: AppendList<number>, index: number): boolean {
  let low = 0
  let high = branch.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const found = branch.at(middle) ?? NO_PARENT
    if (found === index) return true
    if (found < index) low = middle + 1
    else high = middle - 1
  }
  return false
}

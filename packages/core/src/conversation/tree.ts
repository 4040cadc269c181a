/** The shape of a log: who follows whom. What branches are found in, and what a session is built on. */
import type { IndexMap } from './index-map.ts'
import type { List } from './list.ts'
import type { SessionRecord } from './record.ts'

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

export function parentOf(tree: Tree, index: number): number {
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

/** Moves: records with which the conversation goes to another branch of the log, by a rewind or a new conversation. */
import { isPrompt, type SessionRecord, type SystemRecord } from './record.ts'

/** Subtype of a record with which the conversation goes back to an earlier record, its parent. */
export const REWIND_SUBTYPE = 'conversation_rewound'

/** Subtype of a record with which the conversation begins anew; it has no parent. */
export const NEW_CONVERSATION_SUBTYPE = 'conversation_cleared'

/**
 * A record that moves the conversation to another branch. `logicalParentUuid` is the last record of the branch that it
 * leaves; `of` is the earlier move that it undoes, if it does.
 */
export interface BranchSwitch extends SystemRecord {
  readonly subtype: typeof REWIND_SUBTYPE | typeof NEW_CONVERSATION_SUBTYPE
  readonly logicalParentUuid: string | null
  /** True if the engine took back prompts that were too long for a request. An undo without an id passes over it. */
  readonly isWithdrawal?: boolean
}

export function isBranchSwitch(record: SessionRecord): record is BranchSwitch {
  if (record.type !== 'system' || record.isSidechain === true) return false
  const { subtype } = record as SystemRecord
  return subtype === REWIND_SUBTYPE || subtype === NEW_CONVERSATION_SUBTYPE
}

/** Returns true for a record at which a branch can begin: a prompt, or a record that moves to another branch. */
export function startsTurn(record: SessionRecord): boolean {
  return isPrompt(record) || isBranchSwitch(record)
}

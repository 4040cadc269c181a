/**
 * Every number, switch and choice of the engine in one object, by mechanism. Made by `createPolicy`, which
 * checks it; read through `scalePolicy` where a figure depends on the model's window.
 */
import { isObject } from '../conversation/json.ts'
import { type Fields, type FieldTree, pathsOf } from './field.ts'
import { type CachePolicy, cacheFields } from './groups/cache-policy.ts'
import { type ClearPolicy, clearFields } from './groups/clear-policy.ts'
import { type CompactPolicy, compactFields } from './groups/compact-policy.ts'
import {
  type EstimatePolicy,
  estimateFields,
  type RequestPolicy,
  requestFields,
} from './groups/estimate-policy.ts'
import { type HistoryPolicy, historyFields, type SpillPolicy, spillFields } from './groups/history-policy.ts'
import {
  type LadderPolicy,
  ladderFields,
  type SharePolicy,
  shareFields,
  type WindowPolicy,
  windowFields,
} from './groups/ladder-policy.ts'
import {
  type MemoryFilesPolicy,
  memoryFilesFields,
  type NotesPolicy,
  notesFields,
} from './groups/notes-policy.ts'
import {
  type LedgerPolicy,
  ledgerFields,
  type RehydratePolicy,
  rehydrateFields,
} from './groups/rehydrate-policy.ts'
import { type SwitchPolicy, switchFields, type TurnPolicy, turnFields } from './groups/turn-policy.ts'

export interface Policy {
  readonly switches: SwitchPolicy
  readonly window: WindowPolicy
  readonly ladder: LadderPolicy
  readonly shares: SharePolicy
  readonly estimate: EstimatePolicy
  readonly request: RequestPolicy
  readonly clear: ClearPolicy
  readonly compact: CompactPolicy
  readonly rehydrate: RehydratePolicy
  readonly ledger: LedgerPolicy
  readonly spill: SpillPolicy
  readonly history: HistoryPolicy
  readonly notes: NotesPolicy
  readonly memoryFiles: MemoryFilesPolicy
  readonly cache: CachePolicy
  readonly turn: TurnPolicy
}

const fields: Fields<Policy> = {
  switches: switchFields,
  window: windowFields,
  ladder: ladderFields,
  shares: shareFields,
  estimate: estimateFields,
  request: requestFields,
  clear: clearFields,
  compact: compactFields,
  rehydrate: rehydrateFields,
  ledger: ledgerFields,
  spill: spillFields,
  history: historyFields,
  notes: notesFields,
  memoryFiles: memoryFilesFields,
  cache: cacheFields,
  turn: turnFields,
}

/** The tables of all groups: each field's default and what it may hold. */
export const policyFields: FieldTree = fields

/** The path of every field, as in `clear.idle.keep`. */
export const policyPaths: readonly string[] = pathsOf(policyFields)

/** What `policy` holds at `path`; undefined where there is no such field. */
export function policyValue(policy: Policy, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => fieldOf(value, key), policy)
}

function fieldOf(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

/**
 * All settings of the engine, grouped by feature; each group has a file with its types, defaults and checks. `createPolicy`
 * creates a policy; `computeScaledLimits` computes the numbers that depend on the model's context window.
 */
import { isObject } from '../log/json.ts'
import { type CachePolicy, cacheFields } from './cache-policy.ts'
import { type ClearPolicy, clearFields } from './clear-policy.ts'
import {
  type CompactPolicy,
  compactFields,
  type RehydratePolicy,
  rehydrateFields,
  type SummaryFactsPolicy,
  summaryFactsFields,
} from './compact-policy.ts'
import { type MemoryFilesPolicy, memoryFilesFields, type NotesPolicy, notesFields } from './notes-policy.ts'
import { type FieldSpecs, type FieldSpecTree, listFieldPaths } from './policy-fields.ts'
import {
  type DropInPolicy,
  dropInFields,
  type HistoryPolicy,
  historyFields,
  type SpillPolicy,
  type SwitchPolicy,
  spillFields,
  switchFields,
  type TurnPolicy,
  turnFields,
} from './turn-policy.ts'
import {
  type ContentSharePolicy,
  contentShareFields,
  type RequestLimitsPolicy,
  requestLimitFields,
  type ThresholdPolicy,
  type TokenEstimatePolicy,
  thresholdFields,
  tokenEstimateFields,
  type WindowPolicy,
  windowFields,
} from './window-policy.ts'

/** All settings, checked and frozen (`createPolicy`). */
export interface Policy {
  readonly switches: SwitchPolicy
  readonly window: WindowPolicy
  readonly ladder: ThresholdPolicy
  readonly shares: ContentSharePolicy
  readonly estimate: TokenEstimatePolicy
  readonly request: RequestLimitsPolicy
  readonly clear: ClearPolicy
  readonly compact: CompactPolicy
  readonly rehydrate: RehydratePolicy
  readonly ledger: SummaryFactsPolicy
  readonly spill: SpillPolicy
  readonly history: HistoryPolicy
  readonly notes: NotesPolicy
  readonly memoryFiles: MemoryFilesPolicy
  readonly cache: CachePolicy
  readonly turn: TurnPolicy
  readonly dropIn: DropInPolicy
}

const allFields: FieldSpecs<Policy> = {
  switches: switchFields,
  window: windowFields,
  ladder: thresholdFields,
  shares: contentShareFields,
  estimate: tokenEstimateFields,
  request: requestLimitFields,
  clear: clearFields,
  compact: compactFields,
  rehydrate: rehydrateFields,
  ledger: summaryFactsFields,
  spill: spillFields,
  history: historyFields,
  notes: notesFields,
  memoryFiles: memoryFilesFields,
  cache: cacheFields,
  turn: turnFields,
  dropIn: dropInFields,
}

/** Table of every policy field with its default and its check. */
export const policyFields: FieldSpecTree = allFields

/** Dotted path of every policy field, as in `clear.idle.keep`. */
export const policyFieldPaths: readonly string[] = listFieldPaths(policyFields)

/** Returns the value of the policy field at `path`; undefined if there is no such field. */
export function readPolicyValue(policy: Policy, path: string): unknown {
  const step = (value: unknown, key: string): unknown =>
    isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return path.split('.').reduce<unknown>(step, policy)
}

/**
 * What the model knows of its prefix: the current snapshot, and the changes announced since that the context still
 * shows. A delta record holds the change; the records of the same batch are what the model sees. If a compaction removed
 * those from the context, the change counts as not announced and is announced again.
 *
 * Computed along the branch and kept up to date; records of an undone act do not count.
 */

import type { View } from '../context/context-view.ts'
import type { Entry } from '../context/entry.ts'
import { isShown } from '../context/entry.ts'
import { blocksOf } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { List, Trie } from '../log/persistent-collections.ts'
import {
  type Delta,
  type Epoch,
  type EpochSection,
  isKnown,
  isSyntheticError,
  type KnownRecord,
  type UserRecord,
} from '../log/record.ts'
import { recordAt, type Session } from '../log/session.ts'

/** Types of the attachments that announce a delta. Tools that the provider can add itself come as a user record. */
export const SECTION_DELTA = 'section_delta'
export const TOOL_DELTA = 'tool_delta'

export interface StandingEpoch {
  readonly uuid: string
  readonly epoch: Epoch
  /** Those of the snapshot with later changes, which are outside the cache key. */
  readonly parameters: JsonObject
  /** No response since it began, so replacing it costs nothing. */
  readonly isFresh: boolean
}

interface ToldTool {
  /** Null: announced as removed. */
  readonly definition: JsonObject | null
  /** Callable, or only announced for the next snapshot. */
  readonly isInForce: boolean
}

export interface Told {
  readonly standing: StandingEpoch | null
  /** Sections with an announced change in the context, with their newest text (null: removed). */
  readonly sections: ReadonlyMap<string, string | null>
  readonly tools: ReadonlyMap<string, ToldTool>
  /** Delta records of the branch, by batch. */
  readonly deltas: Trie<Delta>
  /** What has been processed. */
  readonly branch: List<number>
  readonly entries: List<Entry>
  readonly undone: View['undone']
}

const NOTHING: Omit<Told, 'branch' | 'entries' | 'undone'> = {
  standing: null,
  sections: new Map(),
  tools: new Map(),
  deltas: Trie.empty(),
}

export function nothingTold(): Told {
  return { ...NOTHING, branch: List.of(), entries: List.of(), undone: [] }
}

/** `told`: the result for an earlier state, continued from there. `view`: the context of `session`. */
export function advanceTold(told: Told, session: Session, view: View): Told {
  const { branch, entries, undone } = view
  const grew = branch.extends(told.branch) && entries.extends(told.entries) && undone === told.undone
  let next: Told = { ...(grew ? told : nothingTold()), undone }
  for (let position = next.branch.length; position < branch.length; position += 1) {
    const record = recordAt(session, branch.at(position) ?? 0)
    if (isKnown(record) && !isUndone(record, undone)) next = noted(next, record)
  }
  for (let index = next.entries.length; index < entries.length; index += 1) {
    next = shown(next, entries.at(index) as Entry)
  }
  return { ...next, branch, entries }
}

function isUndone(record: KnownRecord, undone: View['undone']): boolean {
  return undone.some(
    ({ uuid, batch }) => record.uuid === uuid || (batch !== null && record.batch?.id === batch),
  )
}

function noted(told: Told, record: KnownRecord): Told {
  const { standing } = told
  if (record.type === 'assistant' && !isSyntheticError(record) && standing?.isFresh === true)
    return { ...told, standing: { ...standing, isFresh: false } }
  if (record.type !== 'system') return told
  const epoch = record.subtype === 'epoch' ? readEpoch(record.epoch) : null
  if (epoch !== null) {
    const { parameters } = epoch
    return { ...told, standing: { uuid: record.uuid, epoch, parameters, isFresh: true } }
  }
  return record.subtype === 'delta' && isObject(record.delta) ? changed(told, record, record.delta) : told
}

function changed(told: Told, { batch }: KnownRecord, delta: Delta): Told {
  const deltas = batch === undefined ? told.deltas : told.deltas.set(batch.id, delta)
  const { standing } = told
  if (standing === null || !isObject(delta.parameters)) return { ...told, deltas }
  const parameters = mergeParameters(standing.parameters, delta.parameters)
  return { ...told, deltas, standing: { ...standing, parameters } }
}

/** Null removes a parameter. */
export function mergeParameters(base: JsonObject, changes: JsonObject): JsonObject {
  const merged = Object.entries({ ...base, ...changes })
  return Object.fromEntries(merged.filter(([, value]) => value !== null))
}

/** An announcement that the context shows: from here on the model knows the change. */
function shown(told: Told, entry: Entry): Told {
  const { record } = entry
  const delta = record.type === 'system' ? undefined : told.deltas.get(record.batch?.id ?? '')
  if (delta === undefined || !isShown(entry)) return told
  if (record.type === 'user') return withTools(told, delta, { names: changedTools(record), isInForce: true })
  if (record.type !== 'attachment') return told
  const { type, names } = record.attachment
  const said = Array.isArray(names) ? names : []
  if (type === TOOL_DELTA) return withTools(told, delta, { names: said, isInForce: false })
  return type === SECTION_DELTA ? withSections(told, delta, said) : told
}

function withSections(told: Told, { sections = {} }: Delta, names: readonly unknown[]): Told {
  const now = Object.entries(sections).filter(([name]) => names.includes(name))
  return { ...told, sections: new Map([...told.sections, ...now]) }
}

interface SaidTools {
  readonly names: readonly unknown[]
  readonly isInForce: boolean
}

function withTools(told: Told, { tools = {} }: Delta, { names, isInForce }: SaidTools): Told {
  const now = Object.entries(tools).filter(([name]) => names.includes(name))
  const said = now.map(([name, definition]): [string, ToldTool] => [name, { definition, isInForce }])
  return { ...told, tools: new Map([...told.tools, ...said]) }
}

/** The tools that a message to the provider adds or removes. */
function changedTools({ message }: UserRecord): readonly unknown[] {
  return blocksOf(message.content).flatMap(({ tool }) => {
    if (!isObject(tool)) return []
    return [isObject(tool.definition) ? tool.definition.name : tool.name]
  })
}

/** Checks a snapshot from the log, where decoding only saw an object. Null if invalid: the one before stays current. */
function readEpoch(value: Epoch | undefined): Epoch | null {
  const fields: unknown = value
  if (!isObject(fields) || typeof fields.model !== 'string' || !isObject(fields.parameters)) return null
  const { sections, tools } = fields
  if (!Array.isArray(sections) || !sections.every(isSection)) return null
  return Array.isArray(tools) && tools.every(isTool) ? (value ?? null) : null
}

const PARTS = new Set<unknown>(['static', 'dynamic', 'volatile'])

function isSection(value: unknown): value is EpochSection {
  if (!isObject(value) || !PARTS.has(value.part)) return false
  return typeof value.name === 'string' && typeof value.text === 'string'
}

function isTool(value: unknown): value is JsonObject {
  return isObject(value)
}

/**
 * Computes what the model currently knows of the request prefix (system prompt, tools and parameters). This is the
 * current prefix snapshot, which is frozen, plus later changes that a message in the context announces. A delta record
 * in the log holds each change; other records of the same batch announce it to the model. If a compaction removed the
 * announcement from the context, the change must be announced again.
 *
 * The result is updated as records are added. Records of an undone compaction or clearing do not count.
 */

import {
  type ContextEntry,
  isVisibleToModel,
  SECTION_DELTA_ATTACHMENT,
  TOOL_DELTA_ATTACHMENT,
} from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import { toBlocks } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { AppendList, PersistentMap } from '../log/persistent-collections.ts'
import {
  type CompactBoundary,
  isCompactBoundary,
  isKnownRecord,
  isSyntheticError,
  type KnownRecord,
  type PrefixSnapshot,
  type PrefixUpdate,
  type SnapshotSection,
  type UserRecord,
} from '../log/record.ts'
import { readRecordAt, type SessionLog } from '../log/session-log.ts'

export interface CurrentPrefix {
  readonly uuid: string
  readonly epoch: PrefixSnapshot
  /**
   * Parameters of the prefix snapshot with later changes applied. Only parameters on which the cache does not depend
   * can change after the snapshot was made.
   */
  readonly parameters: JsonObject
  /** True if no response has followed the prefix snapshot yet. Replacing the snapshot then breaks no cache. */
  readonly isFresh: boolean
}

interface AnnouncedTool {
  /** New definition of the tool; null if the tool was removed. */
  readonly definition: JsonObject | null
  /**
   * True if the model can call the tool now. False if the model was only told that it can call the tool after the next
   * compaction.
   */
  readonly isCallable: boolean
}

export interface AnnouncedPrefix {
  readonly current: CurrentPrefix | null
  /**
   * Sections of the system prompt that the context announces as changed, with their newest text. The text is null for a
   * removed section.
   */
  readonly sections: ReadonlyMap<string, string | null>
  readonly tools: ReadonlyMap<string, AnnouncedTool>
  /** Delta records in the log (changes of the prefix), by the id of the batch in which they were appended. */
  readonly deltas: PersistentMap<PrefixUpdate>
  /** The log branch, context entries and undone rewrites from which this state was computed. */
  readonly branch: AppendList<number>
  readonly entries: AppendList<ContextEntry>
  readonly undone: ContextView['undoneRewrites']
}

const NOTHING_ANNOUNCED: Omit<AnnouncedPrefix, 'branch' | 'entries' | 'undone'> = {
  current: null,
  sections: new Map(),
  tools: new Map(),
  deltas: PersistentMap.empty(),
}

export function emptyAnnouncedPrefix(): AnnouncedPrefix {
  return { ...NOTHING_ANNOUNCED, branch: AppendList.of(), entries: AppendList.of(), undone: [] }
}

/**
 * Returns what the model currently knows of the request prefix. `told`: the result for an earlier state of the session,
 * from which the computation continues. `view` must be the context of `session`.
 */
export function updateAnnouncedPrefix(
  told: AnnouncedPrefix,
  session: SessionLog,
  view: ContextView,
): AnnouncedPrefix {
  const { branch, entries, undoneRewrites } = view
  const grew = branch.extends(told.branch) && entries.extends(told.entries) && undoneRewrites === told.undone
  let next: AnnouncedPrefix = { ...(grew ? told : emptyAnnouncedPrefix()), undone: undoneRewrites }
  for (let position = next.branch.length; position < branch.length; position += 1) {
    const record = readRecordAt(session, branch.at(position) ?? 0)
    if (isKnownRecord(record) && !isUndoneRecord(record, undoneRewrites))
      next = applyPrefixRecord(next, record)
  }
  for (let index = next.entries.length; index < entries.length; index += 1) {
    next = applyShownEntry(next, entries.at(index) as ContextEntry)
  }
  return { ...next, branch, entries }
}

function isUndoneRecord(record: KnownRecord, undone: ContextView['undoneRewrites']): boolean {
  return undone.some(
    ({ uuid, batchId }) => record.uuid === uuid || (batchId !== null && record.batch?.id === batchId),
  )
}

function applyPrefixRecord(told: AnnouncedPrefix, record: KnownRecord): AnnouncedPrefix {
  const { current } = told
  if (record.type === 'assistant' && !isSyntheticError(record) && current?.isFresh === true)
    return { ...told, current: { ...current, isFresh: false } }
  if (record.type !== 'system') return told
  const epoch = record.subtype === 'epoch' ? readSnapshot(record.epoch) : null
  if (epoch !== null) {
    const { parameters } = epoch
    return { ...told, current: { uuid: record.uuid, epoch, parameters, isFresh: true } }
  }
  return record.subtype === 'delta' && isObject(record.delta) ? applyDelta(told, record, record.delta) : told
}

function applyDelta(told: AnnouncedPrefix, { batch }: KnownRecord, delta: PrefixUpdate): AnnouncedPrefix {
  const deltas = batch === undefined ? told.deltas : told.deltas.set(batch.id, delta)
  const { current } = told
  if (current === null || !isObject(delta.parameters)) return { ...told, deltas }
  const parameters = applyParameterChanges(current.parameters, delta.parameters)
  return { ...told, deltas, current: { ...current, parameters } }
}

/** Applies changes to request parameters. A value of null removes a parameter. */
export function applyParameterChanges(base: JsonObject, changes: JsonObject): JsonObject {
  const merged = Object.entries({ ...base, ...changes })
  return Object.fromEntries(merged.filter(([, value]) => value !== null))
}

/** Applies a context entry. If the entry announces a change of the prefix, the model knows the change from then on. */
function applyShownEntry(told: AnnouncedPrefix, entry: ContextEntry): AnnouncedPrefix {
  const { record } = entry
  const delta = record.type === 'system' ? undefined : told.deltas.get(record.batch?.id ?? '')
  if (delta === undefined || !isVisibleToModel(entry)) return told
  if (record.type === 'user')
    return withAnnouncedTools(told, delta, { names: listChangedTools(record), isInForce: true })
  if (record.type !== 'attachment') return told
  const { type, names } = record.attachment
  const said = Array.isArray(names) ? names : []
  if (type === TOOL_DELTA_ATTACHMENT)
    return withAnnouncedTools(told, delta, { names: said, isInForce: false })
  return type === SECTION_DELTA_ATTACHMENT ? withAnnouncedSections(told, delta, said) : told
}

function withAnnouncedSections(
  told: AnnouncedPrefix,
  { sections = {} }: PrefixUpdate,
  names: readonly unknown[],
): AnnouncedPrefix {
  const now = Object.entries(sections).filter(([name]) => names.includes(name))
  return { ...told, sections: new Map([...told.sections, ...now]) }
}

function withAnnouncedTools(
  told: AnnouncedPrefix,
  { tools = {} }: PrefixUpdate,
  { names, isInForce }: { readonly names: readonly unknown[]; readonly isInForce: boolean },
): AnnouncedPrefix {
  const now = Object.entries(tools).filter(([name]) => names.includes(name))
  const said = now.map(([name, definition]): [string, AnnouncedTool] => [
    name,
    { definition, isCallable: isInForce },
  ])
  return { ...told, tools: new Map([...told.tools, ...said]) }
}

/** Returns the names of the tools that a mid-conversation system message adds or removes. */
function listChangedTools({ message }: UserRecord): readonly string[] {
  return toBlocks(message.content).flatMap(({ tool }) => {
    const { name } = isObject(tool) ? (isObject(tool.definition) ? tool.definition : tool) : {}
    return typeof name === 'string' ? [name] : []
  })
}

/**
 * Returns the names of the tools that were loaded during the conversation: announced in a message, found by a tool
 * search, or listed by an earlier compaction. Sorted, without tools that were removed again.
 */
export function listDiscoveredTools({ tools, entries }: AnnouncedPrefix): readonly string[] {
  const found = entries
    .toArray()
    .filter(isVisibleOrBoundary)
    .flatMap(({ record }) =>
      isCompactBoundary(record) ? readListedTools(record) : listReferencedTools(record),
    )
  const names = new Set([...found, ...tools.keys()])
  return [...names].filter((name) => tools.get(name)?.definition !== null).sort()
}

function isVisibleOrBoundary(entry: ContextEntry): boolean {
  return isVisibleToModel(entry) || isCompactBoundary(entry.record)
}

/**
 * Returns the names of the tools that a record loads, removes or changes during the conversation: a message or an update
 * that changes tools, or the result of a tool search.
 */
export function listLoadedTools(record: KnownRecord): readonly string[] {
  if (record.type === 'system') return isObject(record.delta?.tools) ? Object.keys(record.delta.tools) : []
  return [...listReferencedTools(record), ...(record.type === 'user' ? listChangedTools(record) : [])]
}

function readListedTools({ compactMetadata }: CompactBoundary): readonly string[] {
  const names: unknown = compactMetadata.preCompactDiscoveredTools
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
}

function listReferencedTools(record: KnownRecord): readonly string[] {
  if (record.type !== 'user' && record.type !== 'assistant') return []
  return toBlocks(record.message.content).flatMap(({ content }) => {
    const items = isObject(content) ? content.tool_references : content
    return Array.isArray(items) ? items.flatMap(readReferencedTool) : []
  })
}

/** Reads a `tool_reference`, by which the result of a tool search loads a tool. Some programs log it with `name`. */
function readReferencedTool(item: unknown): readonly string[] {
  if (!isObject(item) || item.type !== 'tool_reference') return []
  const name = item.tool_name ?? item.name
  return typeof name === 'string' ? [name] : []
}

/**
 * Checks the fields of a prefix snapshot read from the log. Returns null for an invalid snapshot; the previous snapshot
 * then stays in use.
 */
function readSnapshot(value: PrefixSnapshot | undefined): PrefixSnapshot | null {
  const fields: unknown = value
  if (!isObject(fields) || typeof fields.model !== 'string' || !isObject(fields.parameters)) return null
  const { sections, tools } = fields
  if (!Array.isArray(sections) || !sections.every(isSnapshotSection)) return null
  return Array.isArray(tools) && tools.every(isObject) ? (value ?? null) : null
}

const SECTION_PARTS = new Set<unknown>(['static', 'dynamic', 'volatile'])

function isSnapshotSection(value: unknown): value is SnapshotSection {
  if (!isObject(value) || !SECTION_PARTS.has(value.part)) return false
  return typeof value.name === 'string' && typeof value.text === 'string'
}

/** Returns the text of each section as the model knows it: in the prefix snapshot, or as announced since. */
export function listKnownSections(told: AnnouncedPrefix): ReadonlyMap<string, string | null> {
  const texts = (told.current?.epoch.sections ?? []).map(({ name, text }) => [name, text] as const)
  return new Map<string, string | null>([...texts, ...told.sections])
}

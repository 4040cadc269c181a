/**
 * Creates prefix snapshots (`epoch` records): system prompt, tools and parameters of the API request, frozen byte for
 * byte. Later changes are applied in the next snapshot, which starts when the cache breaks anyway, for example at a
 * compaction.
 */

import {
  type ContextEntry,
  isVisibleToModel,
  SECTION_DELTA_ATTACHMENT,
  TOOL_DELTA_ATTACHMENT,
} from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import { type Block, isThinkingBlock, toBlocks } from '../log/block.ts'
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
  type SnapshotTtl,
  type UserRecord,
} from '../log/record.ts'
import { requireRecordAt, type SessionLog } from '../log/session-log.ts'
import type { BetaRule, ProviderProfile } from '../policy/provider-profile.ts'
import {
  ATTRIBUTION_SECTION,
  IDENTITY_SECTION,
  isHostSection,
  PROMPT_SECTION_SEPARATOR,
} from './system-prompt.ts'

/** The system prompt, tools and parameters that the host wants in the next API request. */
export interface DesiredPrefix {
  readonly sections: readonly SnapshotSection[]
  readonly tools: readonly JsonObject[]
  /**
   * Tools that the messages use. They are declared if the host wants no tools at all, because the provider refuses tool
   * calls in a request without tools.
   */
  readonly usedTools?: readonly JsonObject[]
  readonly model: string
  /** All other fields of the API request except messages, in the provider's words, and `betas`. */
  readonly parameters: JsonObject
  /** Cache lifetime to store in a new prefix snapshot. */
  readonly ttl?: SnapshotTtl
  readonly isUserTool?: UserToolPredicate
  /** True if the tools keep the given order. Default: they are sorted. */
  readonly keepsToolOrder?: boolean
  /** True if no beta is added. Default: false. A conversation cached under other betas would be written again. */
  readonly keepsBetas?: boolean
}

/**
 * Creates a prefix snapshot. Unless `keepsBetas` is set, it names the beta features that adding tools later requires, because
 * naming them only then would break the cache.
 */
export function createPrefixSnapshot(present: DesiredPrefix, profile: ProviderProfile): PrefixSnapshot {
  const { sections, model, isUserTool, ttl, keepsToolOrder = false } = present
  const tools = listToolsToDeclare(present)
  const parameters =
    present.keepsBetas === true ? present.parameters : withToolChangeBetas(present.parameters, profile)
  const { window, origin } = profile
  return {
    sections,
    tools: keepsToolOrder ? tools : orderTools(tools, isUserTool),
    model,
    parameters,
    ...(ttl === undefined ? {} : { ttl }),
    ...(window === null ? {} : { window }),
    ...(origin.vendor === null ? {} : { origin }),
  }
}

/** Returns the tools that a prefix snapshot declares: those that the host wants; if it wants none, those in use. */
export function listToolsToDeclare({ tools, usedTools = [] }: DesiredPrefix): readonly JsonObject[] {
  return tools.length === 0 ? usedTools : tools
}

/**
 * Creates the prefix snapshot that replaces `current`. Sections that never change during a session are copied from
 * `current`.
 */
export function createNextPrefixSnapshot(
  current: PrefixSnapshot,
  present: DesiredPrefix,
  profile: ProviderProfile,
): PrefixSnapshot {
  const isConstant = ({ name }: SnapshotSection): boolean => CONSTANT_SECTIONS.has(name)
  const sections = [
    ...current.sections.filter(isConstant),
    ...present.sections.filter((section) => !isConstant(section)),
  ]
  return createPrefixSnapshot({ ...present, sections }, profile)
}

/** Names of the sections that come before all others and never change during a session. */
export const CONSTANT_SECTIONS: ReadonlySet<string> = new Set([ATTRIBUTION_SECTION, IDENTITY_SECTION])

function withToolChangeBetas(parameters: JsonObject, profile: ProviderProfile): JsonObject {
  const needed = profile.capabilities.toolChanges ? listToolChangeBetas(profile) : []
  const given = readBetas(parameters)
  const missing = needed.filter((beta) => !given.includes(beta))
  return missing.length === 0 ? parameters : { ...parameters, betas: [...given, ...missing] }
}

/** Returns the names of the beta features in request parameters. */
export function readBetas({ betas }: JsonObject): readonly string[] {
  return Array.isArray(betas) ? betas.filter((beta) => typeof beta === 'string') : []
}

/** Returns the parameters with the betas that context edits need. */
export function withContextEditBetas(parameters: JsonObject, profile: ProviderProfile): JsonObject {
  const given = readBetas(parameters)
  const missing = missingEditBetas(given, profile).flatMap(({ betas }) => betas.slice(0, 1))
  return missing.length === 0 ? parameters : { ...parameters, betas: [...given, ...new Set(missing)] }
}

/** Returns true if the parameters name all betas that context edits need. */
export function hasContextEditBetas(parameters: JsonObject, profile: ProviderProfile): boolean {
  return missingEditBetas(readBetas(parameters), profile).length === 0
}

function missingEditBetas(
  named: readonly string[],
  { betas, contextEdits }: ProviderProfile,
): readonly BetaRule[] {
  const edits: readonly (string | null)[] = [contextEdits.clearThinking, contextEdits.clearToolUses]
  return betas.filter(
    ({ where, name, betas: any }) =>
      where === 'edit' && edits.includes(name) && !any.some((beta) => named.includes(beta)),
  )
}

const TOOL_CHANGE_BLOCKS = new Set(['tool_addition', 'tool_removal'])

/** Returns all beta features that the provider profile requires for adding or removing tools during a conversation. */
export function listToolChangeBetas({ betas }: ProviderProfile): readonly string[] {
  const isAbout = ({ where, name }: BetaRule): boolean => where === 'block' && TOOL_CHANGE_BLOCKS.has(name)
  return [...new Set(betas.filter(isAbout).flatMap((rule) => rule.betas))]
}

/** The new snapshot, or why the current one stays in use. */
export type CompactionSnapshotResult =
  | { readonly isReplaced: true; readonly epoch: PrefixSnapshot }
  /**
   * The current prefix snapshot stays in use: a new one would invalidate thinking (`bound-thinking`), or would be the
   * same, or the provider has changed. Then the first request to the new provider creates the snapshot.
   */
  | { readonly isReplaced: false; readonly because: 'bound-thinking' | 'unchanged' | 'other-provider' }

/**
 * Creates the prefix snapshot that begins with a compaction, or returns why there is none: the compaction keeps thinking that
 * is valid only with the current prefix, the provider is another one, or nothing would change.
 */
export function createSnapshotForCompaction(
  current: PrefixSnapshot,
  present: DesiredPrefix,
  kept: { readonly records: readonly KnownRecord[]; readonly profile: ProviderProfile },
): CompactionSnapshotResult {
  if (hasBoundThinking(kept.records, kept.profile)) return { isReplaced: false, because: 'bound-thinking' }
  if (hasOtherOrigin(current, kept.profile)) return { isReplaced: false, because: 'other-provider' }
  const epoch = createNextPrefixSnapshot(current, present, kept.profile)
  const same = JSON.stringify(toSentParts(epoch)) === JSON.stringify(toSentParts(current))
  return same ? { isReplaced: false, because: 'unchanged' } : { isReplaced: true, epoch }
}

/** True if the provider or account of the profile cannot read the opaque items of responses to requests with this prefix. */
export function hasOtherOrigin({ origin }: PrefixSnapshot, profile: ProviderProfile): boolean {
  const { vendor, account } = profile.origin
  if ((origin?.vendor ?? null) !== vendor) return true
  return account !== null && origin?.account != null && origin.account !== account
}

function toSentParts({ sections, tools, model, parameters, ttl }: PrefixSnapshot): readonly unknown[] {
  return [sections.map(({ name, part, text }) => [name, part, text]), tools, model, parameters, ttl?.name]
}

/** True if `records` contain thinking that a change of the prefix would make invalid. */
export function hasBoundThinking(records: Iterable<KnownRecord>, { thinking }: ProviderProfile): boolean {
  if (thinking.binding !== 'prefix') return false
  for (const record of records) {
    if (record.type === 'assistant' && toBlocks(record.message.content).some(isThinkingBlock)) return true
  }
  return false
}

// The functions below build the request fields that come before the messages: tools, system prompt and parameters. The
// result stays the same object while nothing changes, so that values derived from it can be reused.

type SystemPromptPart = 'attribution' | 'identity' | 'static' | 'dynamic'

/** A block of the system prompt, with the part of the prompt that it forms and the names of the sections in it. */
interface SystemPromptBlock {
  readonly part: SystemPromptPart
  readonly sections: readonly string[]
  readonly block: Block
}

/** All of a request that comes before its messages. */
export interface RequestPrefix {
  readonly model: string
  readonly parameters: JsonObject
  readonly tools: readonly JsonObject[]
  /** Blocks of the system prompt: at most one for each of its four parts, or those that the host sent. */
  readonly system: readonly SystemPromptBlock[]
  /** Index of the last tool that is the same for all users and not deferred; null if there is none. */
  readonly lastSharedTool: number | null
  /** True if no tool is user-specific, so that the cached prefix can be shared across accounts. */
  readonly isShareable: boolean
  readonly current: CurrentSnapshot
}

const PROMPT_PART_ORDER: readonly SystemPromptPart[] = ['attribution', 'identity', 'static', 'dynamic']

/** Builds the prefix of an API request. Returns `previous`, the prefix of an earlier request, if it is still valid. */
export function buildRequestPrefix(
  standing: CurrentSnapshot,
  options: {
    readonly previous?: RequestPrefix | undefined
    readonly isUserTool?: UserToolPredicate | undefined
  } = {},
): RequestPrefix {
  const { previous, isUserTool = isConnectedTool } = options
  const { epoch, parameters } = standing
  if (previous?.current.epoch === epoch && previous.parameters === parameters) return previous
  const { model, tools, sections } = epoch
  const shared = tools.findLastIndex((tool) => !isUserTool(tool) && isLoadedUpfront(tool))
  return {
    model,
    parameters,
    tools,
    system: PROMPT_PART_ORDER.flatMap((part) => toPromptBlocks(part, sections)),
    lastSharedTool: shared === -1 ? null : shared,
    isShareable: !tools.some(isUserTool),
    current: standing,
  }
}

/** True unless the tool definition has deferred loading: it is then loaded only when the model searches for it. */
export function isLoadedUpfront(tool: JsonObject): boolean {
  return tool.defer_loading !== true
}

function toPromptBlocks(
  part: SystemPromptPart,
  all: readonly SnapshotSection[],
): readonly SystemPromptBlock[] {
  const sections = all.filter((section) => section.text.trim() !== '' && findPromptPart(section) === part)
  const blocks = sections.filter(({ name }) => isHostSection(name))
  if (blocks.length > 0)
    return blocks.map(({ name, text }) => ({ part, sections: [name], block: { type: 'text', text } }))
  if (sections.length === 0) return []
  const text = sections.map((section) => section.text).join(PROMPT_SECTION_SEPARATOR)
  return [{ part, sections: sections.map(({ name }) => name), block: { type: 'text', text } }]
}

function findPromptPart({ name, part }: SnapshotSection): SystemPromptPart {
  if (name === ATTRIBUTION_SECTION) return 'attribution'
  if (name === IDENTITY_SECTION) return 'identity'
  return part === 'static' ? 'static' : 'dynamic'
}

// Tools are sent in a fixed order, because moving a tool breaks the whole cache. They are sorted by name, with
// user-specific tools last.

/** Returns true for a tool from the user's own setup, such as a connected MCP server. */
type UserToolPredicate = (tool: JsonObject) => boolean

const CONNECTED_TOOL_PREFIX = 'mcp__'

const isConnectedTool: UserToolPredicate = (tool) =>
  readToolOrTypeName(tool).startsWith(CONNECTED_TOOL_PREFIX)

/** Sorts tools by name, with the tools of the user's own setup last. */
export function orderTools(
  tools: readonly JsonObject[],
  isUserTool: UserToolPredicate = isConnectedTool,
): readonly JsonObject[] {
  const byName = tools.toSorted((one, other) =>
    compareCodeUnits(readToolOrTypeName(one), readToolOrTypeName(other)),
  )
  return [...byName.filter((tool) => !isUserTool(tool)), ...byName.filter(isUserTool)]
}

/** Returns the name of a tool. Some tools defined by the provider have no name; for them, returns the type. */
export function readToolOrTypeName({ name, type }: JsonObject): string {
  if (typeof name === 'string') return name
  return typeof type === 'string' ? type : ''
}

/** Compares strings by code units, which gives the same order on every machine. */
function compareCodeUnits(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

// Computes what the model currently knows of the request prefix (system prompt, tools and parameters). This is the
// current prefix snapshot, which is frozen, plus later changes that a message in the context announces. A delta record
// in the log holds each change; other records of the same batch announce it to the model. If a compaction removed the
// announcement from the context, the change must be announced again.
//
// The result is updated as records are added. Records of an undone compaction or clearing do not count.

/** The prefix snapshot in use: the newest one in the log that was not undone. */
export interface CurrentSnapshot {
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

/** What the model knows of the prefix: the current snapshot, and changes since then that the context announces. */
export interface KnownPrefix {
  readonly current: CurrentSnapshot | null
  /**
   * Sections of the system prompt that the context announces as changed, with their newest text. The text is null for a
   * removed section.
   */
  readonly sections: ReadonlyMap<string, string | null>
  readonly tools: ReadonlyMap<string, AnnouncedTool>
  /** Delta records in the log (changes of the prefix), by the id of the batch in which they were appended. */
  readonly deltas: PersistentMap<PrefixUpdate>
  /** The branch of the log from which this state was computed. */
  readonly branch: AppendList<number>
  /** The entries of the context at that time. */
  readonly entries: AppendList<ContextEntry>
  /** The rewrites that were undone by then. */
  readonly undone: ContextView['undoneRewrites']
}

const NOTHING_ANNOUNCED: Omit<KnownPrefix, 'branch' | 'entries' | 'undone'> = {
  current: null,
  sections: new Map(),
  tools: new Map(),
  deltas: PersistentMap.empty(),
}

export function emptyKnownPrefix(): KnownPrefix {
  return { ...NOTHING_ANNOUNCED, branch: AppendList.of(), entries: AppendList.of(), undone: [] }
}

/**
 * Returns what the model currently knows of the request prefix. `told`: the result for an earlier state of the session,
 * from which the computation continues. `view` must be the context of `session`.
 */
export function updateKnownPrefix(told: KnownPrefix, session: SessionLog, view: ContextView): KnownPrefix {
  const { branch, entries, undoneRewrites } = view
  const grew = branch.extends(told.branch) && entries.extends(told.entries) && undoneRewrites === told.undone
  let next: KnownPrefix = { ...(grew ? told : emptyKnownPrefix()), undone: undoneRewrites }
  for (let position = next.branch.length; position < branch.length; position += 1) {
    const record = requireRecordAt(session, branch.at(position) ?? 0)
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

function applyPrefixRecord(told: KnownPrefix, record: KnownRecord): KnownPrefix {
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

function applyDelta(told: KnownPrefix, { batch }: KnownRecord, delta: PrefixUpdate): KnownPrefix {
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
function applyShownEntry(told: KnownPrefix, entry: ContextEntry): KnownPrefix {
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
  told: KnownPrefix,
  { sections = {} }: PrefixUpdate,
  names: readonly unknown[],
): KnownPrefix {
  const now = Object.entries(sections).filter(([name]) => names.includes(name))
  return { ...told, sections: new Map([...told.sections, ...now]) }
}

function withAnnouncedTools(
  told: KnownPrefix,
  { tools = {} }: PrefixUpdate,
  { names, isInForce }: { readonly names: readonly unknown[]; readonly isInForce: boolean },
): KnownPrefix {
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
export function listLoadedToolNames({ tools, entries }: KnownPrefix): readonly string[] {
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
export function listChangedToolNames(record: KnownRecord): readonly string[] {
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

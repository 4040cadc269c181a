/**
 * Finds changes of the prefix, and creates the records to append for them. While a prefix snapshot is current, a change
 * is announced at the end of the conversation, which costs no cache. A change that cannot be announced, or that policy
 * wants applied at once, needs a new snapshot, which breaks the cache; the causes are reported.
 */
import { type Block, isThinkingBlock, isToolResult } from '../log/block.ts'
import type { Json, JsonObject } from '../log/json.ts'
import type {
  AttachmentRecord,
  PrefixSnapshot,
  PrefixUpdate,
  RecordBase,
  SystemRecord,
  UserRecord,
} from '../log/record.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import {
  type AnnouncedPrefix,
  type CurrentPrefix,
  SECTION_DELTA_ATTACHMENT,
  TOOL_DELTA_ATTACHMENT,
} from './announced-prefix.ts'
import { countMessages, isSameJson, type MessageList, messageAt, toMessageBlocks } from './block-index.ts'
import {
  CONSTANT_SECTIONS,
  createNextPrefixSnapshot,
  type DesiredPrefix,
  findCacheLevel,
  listToolChangeBetas,
  readBetas,
  readToolOrTypeName,
} from './prefix-snapshot.ts'
import { RESERVED_NAME_PREFIX } from './system-prompt.ts'

export interface PrefixUpdateRules {
  readonly profile: ProviderProfile
  /**
   * Policy for changed sections: announce them as a delta until the next prefix snapshot, or start a new snapshot at
   * once.
   */
  readonly volatile: 'delta' | 'inline'
  /**
   * Policy for new tools that the provider cannot add in mid-conversation: announce them, or start a new snapshot,
   * which breaks the cache.
   */
  readonly lateTools: 'announce' | 'define'
  /** False if tools must not be added in mid-conversation even though the provider supports it. */
  readonly addsTools?: boolean
  /** True if thinking blocks in the context are bound to the current prefix and would become invalid with a new one. */
  readonly isBound: boolean
  /** True if announcing a change now would end an unfinished turn or break the cache (`mustDelayUpdate`). */
  readonly holds: boolean
}

export type PrefixChangeCause =
  | { readonly kind: 'model'; readonly from: string; readonly to: string }
  | { readonly kind: 'parameters' | 'sections' | 'tools'; readonly names: readonly string[] }

export type PrefixChange =
  | { readonly kind: 'none' }
  /** Records to append in one batch before the next API request. The prefix snapshot stays current. */
  | { readonly kind: 'delta'; readonly delta: PrefixUpdate; readonly records: readonly RecordBody[] }
  /**
   * A new prefix snapshot to append, after which the prefix must be compared again. It breaks the cache unless no
   * response used the old snapshot.
   */
  | {
      readonly kind: 'epoch'
      readonly epoch: PrefixSnapshot
      readonly records: readonly RecordBody[]
      readonly causes: readonly PrefixChangeCause[]
      readonly breaksCache: boolean
    }

interface ActivePrefix extends AnnouncedPrefix {
  readonly current: CurrentPrefix
}

export function diffPrefix(
  told: ActivePrefix,
  present: DesiredPrefix,
  rules: PrefixUpdateRules,
): PrefixChange {
  const difference = comparePrefix(told, present, rules.profile)
  const causes = findSnapshotCauses(difference, told.current, rules)
  if (causes.length > 0) return toSnapshotChange(told.current, present, { causes, profile: rules.profile })
  return toDeltaChange(difference, told.current, rules)
}

function toSnapshotChange(
  { epoch: current, isFresh }: CurrentPrefix,
  present: DesiredPrefix,
  { causes, profile }: { readonly causes: readonly PrefixChangeCause[]; readonly profile: ProviderProfile },
): PrefixChange {
  const epoch = createNextPrefixSnapshot(current, present, profile)
  return { kind: 'epoch', epoch, records: [createSnapshotRecord(epoch)], causes, breaksCache: !isFresh }
}

/** Returns the reasons why a new prefix snapshot is needed now; empty if announcements suffice. */
function findSnapshotCauses(
  difference: PrefixDifference,
  standing: CurrentPrefix,
  rules: PrefixUpdateRules,
): readonly PrefixChangeCause[] {
  const { model, cacheKeyParameters, sections, tools } = difference
  const mayRewrite = standing.isFresh || !rules.isBound
  const isInline = mayRewrite && (standing.isFresh || rules.volatile === 'inline')
  const defines = rules.lateTools === 'define' && !canChangeTools(standing, rules)
  const isDefined = mayRewrite && (standing.isFresh || defines)
  return [
    ...(model === null ? [] : [{ kind: 'model' as const, ...model }]),
    ...toNamedCause('parameters', cacheKeyParameters),
    ...toNamedCause('sections', isInline ? listOutdatedSections(sections, standing.epoch) : []),
    ...toNamedCause('tools', isDefined ? listOutdatedTools(tools, standing.epoch) : []),
  ]
}

/** Returns the changed sections whose text in the snapshot is outdated. For other sections an announcement suffices. */
function listOutdatedSections(
  changed: PrefixDifference['sections'],
  { sections }: PrefixSnapshot,
): readonly string[] {
  const said = new Map(sections.map(({ name, text }) => [name, text]))
  return Object.keys(changed).filter((name) => (said.get(name) ?? null) !== changed[name])
}

function listOutdatedTools(changed: PrefixDifference['tools'], { tools }: PrefixSnapshot): readonly string[] {
  const said = new Map(tools.map((tool) => [readToolOrTypeName(tool), JSON.stringify(tool)]))
  return Object.keys(changed).filter((name) => {
    const tool = changed[name] ?? null
    return (said.get(name) ?? null) !== (tool === null ? null : JSON.stringify(tool))
  })
}

function toNamedCause(
  kind: 'parameters' | 'sections' | 'tools',
  names: readonly string[],
): readonly PrefixChangeCause[] {
  return names.length === 0 ? [] : [{ kind, names }]
}

function toDeltaChange(
  difference: PrefixDifference,
  standing: CurrentPrefix,
  rules: PrefixUpdateRules,
): PrefixChange {
  const { uncachedParameters } = difference
  const { sections, tools } = rules.holds ? { sections: {}, tools: {} } : difference
  const delta: PrefixUpdate = {
    ...(isEmpty(sections) ? {} : { sections }),
    ...(isEmpty(tools) ? {} : { tools }),
    ...(isEmpty(uncachedParameters) ? {} : { parameters: uncachedParameters }),
  }
  if (isEmpty(delta)) return { kind: 'none' }
  const records: readonly RecordBody[] = [
    { type: 'system', subtype: 'delta', isMeta: true, delta },
    ...sectionUpdateRecords(sections),
    ...listToolRecords(tools, standing, rules),
  ]
  return { kind: 'delta', delta, records }
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0
}

/** True if the provider supports tool changes, and the betas needed have been named since the snapshot began. */
function canChangeTools(
  { parameters }: CurrentPrefix,
  { profile, addsTools = true }: PrefixUpdateRules,
): boolean {
  if (!addsTools || !profile.capabilities.toolChanges) return false
  const named = readBetas(parameters)
  return listToolChangeBetas(profile).every((beta) => named.includes(beta))
}

/**
 * Returns the records that announce or make tool changes. The instruction to the provider comes last, because no user
 * content may follow it before the response.
 */
function listToolRecords(
  tools: PrefixDifference['tools'],
  standing: CurrentPrefix,
  rules: PrefixUpdateRules,
): readonly RecordBody[] {
  const declared = new Map(standing.epoch.tools.map((tool) => [readToolOrTypeName(tool), tool]))
  const blocks = new Map<string, Block>()
  if (canChangeTools(standing, rules)) {
    for (const [name, tool] of Object.entries(tools)) {
      const block = toToolChangeBlock(name, tool, declared.get(name))
      if (block !== null) blocks.set(name, block)
    }
  }
  const announced = Object.fromEntries(Object.entries(tools).filter(([name]) => !blocks.has(name)))
  return [
    ...createToolUpdateRecords(announced, new Set(declared.keys())),
    ...createToolChangeRecords([...blocks.values()]),
  ]
}

/**
 * Returns the block that tells the provider to change a tool. Null if the change can only be announced: redefining a
 * declared tool, or removing an undeclared one.
 */
function toToolChangeBlock(
  name: string,
  tool: JsonObject | null,
  declared: JsonObject | undefined,
): Block | null {
  const reference = { type: 'tool_reference', name }
  if (tool === null) return declared === undefined ? null : { type: 'tool_removal', tool: reference }
  if (declared === undefined)
    return { type: 'tool_addition', tool: { type: 'tool_definition', definition: tool } }
  return isSameJson(declared, tool) ? { type: 'tool_addition', tool: reference } : null
}

// The functions below compare the prefix that the host wants with the prefix that the model knows.

/** The changes from the prefix that the model knows to the one the host wants. Null as a value means removed. */
export interface PrefixDifference {
  readonly sections: Readonly<Record<string, string | null>>
  readonly tools: Readonly<Record<string, JsonObject | null>>
  /** Changed parameters that are outside the cache key. */
  readonly uncachedParameters: JsonObject
  /** Names of the changed parameters that are part of the cache key. */
  readonly cacheKeyParameters: readonly string[]
  readonly model: { readonly from: string; readonly to: string } | null
}

function comparePrefix(
  told: ActivePrefix,
  present: DesiredPrefix,
  profile: ProviderProfile,
): PrefixDifference {
  const { epoch, parameters } = told.current
  const changed = listChangedParameters(withoutOwnBetas(parameters, present, profile), present.parameters)
  return {
    sections: diffSections(told, present),
    tools: diffTools(told, present),
    uncachedParameters: Object.fromEntries(changed.filter(([name]) => findCacheLevel(name) === null)),
    cacheKeyParameters: changed.map(([name]) => name).filter((name) => findCacheLevel(name) !== null),
    model: epoch.model === present.model ? null : { from: epoch.model, to: present.model },
  }
}

/** Removes the betas that the snapshot added by itself, so that they do not count as a change. */
function withoutOwnBetas(
  parameters: JsonObject,
  present: DesiredPrefix,
  profile: ProviderProfile,
): JsonObject {
  const given = readBetas(present.parameters)
  const own = listToolChangeBetas(profile).filter((beta) => !given.includes(beta))
  const betas = readBetas(parameters).filter((beta) => !own.includes(beta))
  const { betas: _, ...rest } = parameters
  return betas.length === 0 && present.parameters.betas === undefined ? rest : { ...parameters, betas }
}

function diffSections(told: AnnouncedPrefix, present: DesiredPrefix): PrefixDifference['sections'] {
  const before = new Map<string, string | null>(
    (told.current?.epoch.sections ?? []).map(({ name, text }) => [name, text]),
  )
  for (const [name, text] of told.sections) before.set(name, text)
  const now = new Map(present.sections.map(({ name, text }) => [name, text]))
  const names = [...new Set([...before.keys(), ...now.keys()])].filter((name) => !CONSTANT_SECTIONS.has(name))
  const changed = names.filter((name) => (before.get(name) ?? null) !== (now.get(name) ?? null))
  return Object.fromEntries(changed.map((name) => [name, now.get(name) ?? null]))
}

function diffTools(told: AnnouncedPrefix, present: DesiredPrefix): PrefixDifference['tools'] {
  const before = new Map<string, JsonObject | null>(
    (told.current?.epoch.tools ?? []).map((tool) => [readToolOrTypeName(tool), tool]),
  )
  for (const [name, { definition }] of told.tools) before.set(name, definition)
  const now = new Map(present.tools.map((tool) => [readToolOrTypeName(tool), tool]))
  const names = [...new Set([...before.keys(), ...now.keys()])].sort()
  const changed = names.filter((name) => !isSameJson(before.get(name) ?? null, now.get(name) ?? null))
  return Object.fromEntries(changed.map((name) => [name, now.get(name) ?? null]))
}

function listChangedParameters(before: JsonObject, now: JsonObject): readonly (readonly [string, Json])[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])]
  return names.flatMap((name) =>
    isSameJson(before[name] ?? null, now[name] ?? null) ? [] : [[name, now[name] ?? null] as const],
  )
}

/**
 * True if announcing a change must wait: after an unfinished assistant turn it would end the turn. If the provider
 * strips the thinking of finished turns, text after the tool results of a turn with thinking would also break the
 * cache.
 */
export function mustDelayUpdate(messages: MessageList, profile: ProviderProfile): boolean {
  const last = countMessages(messages) - 1
  const message = messageAt(messages, last)
  if (message === undefined) return false
  if (message.message.role === 'assistant') return true
  if (!profile.thinking.stripsFinishedTurns || !toMessageBlocks(message).every(isToolResult)) return false
  return hasThinkingSincePrompt(messages, last)
}

function hasThinkingSincePrompt(messages: MessageList, from: number): boolean {
  for (let index = from; index >= 0; index -= 1) {
    const message = messageAt(messages, index)
    if (message === undefined) continue
    if (message.message.role === 'assistant' && toMessageBlocks(message).some(isThinkingBlock)) return true
    if (message.message.role === 'user' && !toMessageBlocks(message).every(isToolResult)) return false
  }
  return false
}

// The functions below create the records that announce a change. Their texts depend only on the change.

type RecordLinks = Exclude<keyof RecordBase, 'isMeta'>

/** A record before it is appended to the log: the caller adds uuid, parent, timestamp and session id. */
export type RecordBody =
  | Omit<SystemRecord, RecordLinks>
  | Omit<AttachmentRecord, RecordLinks>
  | Omit<UserRecord, RecordLinks>

export function createSnapshotRecord(epoch: PrefixSnapshot): RecordBody {
  return { type: 'system', subtype: 'epoch', isMeta: true, epoch }
}

function sectionUpdateRecords(sections: Readonly<Record<string, string | null>>): readonly RecordBody[] {
  const entries = Object.entries(sections)
  if (entries.length === 0) return []
  const content = entries.map(([name, text]) => formatSectionUpdate(name, text)).join('\n\n')
  const attachment = { type: SECTION_DELTA_ATTACHMENT, names: entries.map(([name]) => name), content }
  return [{ type: 'attachment', isMeta: true, attachment }]
}

function formatSectionUpdate(name: string, text: string | null): string {
  const what = name.startsWith(RESERVED_NAME_PREFIX) ? 'The system prompt' : `Its section "${name}"`
  return text === null ? `${what} no longer applies.` : `${what} now reads:\n${text}`
}

/** Creates the attachment that announces tool changes to the model. `declared`: names of the tools in the snapshot. */
export function createToolUpdateRecords(
  tools: Readonly<Record<string, JsonObject | null>>,
  declared: ReadonlySet<string>,
): readonly RecordBody[] {
  const entries = Object.entries(tools)
  if (entries.length === 0) return []
  const content = entries.map(([name, tool]) => formatToolUpdate(name, tool, declared)).join('\n')
  const attachment = { type: TOOL_DELTA_ATTACHMENT, names: entries.map(([name]) => name), content }
  return [{ type: 'attachment', isMeta: true, attachment }]
}

function formatToolUpdate(name: string, tool: JsonObject | null, declared: ReadonlySet<string>): string {
  if (tool === null) return `${name}: can no longer be called.`
  const said = typeof tool.description === 'string' ? ` ${tool.description}` : ''
  if (!declared.has(name)) return `${name}: will be there to call after the next compaction.${said}`
  return `${name}: is now defined as ${JSON.stringify(tool)}`
}

/**
 * Creates the system message that tells the provider to add or remove tools from this point on. It must be the last
 * message before the API request.
 */
export function createToolChangeRecords(blocks: readonly Block[]): readonly RecordBody[] {
  if (blocks.length === 0) return []
  return [{ type: 'user', isMeta: true, message: { role: 'system', content: blocks } }]
}

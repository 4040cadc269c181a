/**
 * Finds changes of the request prefix (system prompt, tools, parameters) and creates the log records for them. Normally
 * a change is announced in a message at the end of the conversation, which keeps the cache. A change that cannot be
 * announced, or that policy wants applied at once, needs a new prefix snapshot, which breaks the cache. The causes are
 * then reported.
 */
import { SECTION_DELTA_ATTACHMENT, TOOL_DELTA_ATTACHMENT } from '../context/context-entry.ts'
import type { Block } from '../log/block.ts'
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
import { isSameJson } from './block-index.ts'
import {
  CONSTANT_SECTIONS,
  type CurrentSnapshot,
  createNextPrefixSnapshot,
  type DesiredPrefix,
  hasOtherOrigin,
  type KnownPrefix,
  listToolChangeBetas,
  listToolsToDeclare,
  readBetas,
  readToolOrTypeName,
} from './prefix-snapshot.ts'
import { formatSectionUpdate } from './system-prompt.ts'

export interface PrefixUpdateRules {
  readonly profile: ProviderProfile
  /**
   * Policy for changed sections. `delta`: announce the change in a message until the next prefix snapshot. `inline`:
   * start a new snapshot at once.
   */
  readonly volatile: 'delta' | 'inline'
  /**
   * Policy for new tools that the provider cannot add in mid-conversation: announce them, or start a new snapshot,
   * which breaks the cache and makes bound thinking invalid.
   */
  readonly lateTools: 'announce' | 'define'
  /**
   * True if the model can call exactly the tools that a client offers. If such a tool is removed or redefined and the
   * provider cannot change it in mid-conversation, a new snapshot is made. Default: the change is only announced.
   */
  readonly isClientLed?: boolean
  /** True if the context has thinking blocks that a changed prefix would invalidate. */
  readonly isBound: boolean
  /** Ids of the responses whose thinking a new snapshot invalidates. That thinking then leaves the context. */
  readonly boundResponses?: readonly string[]
  /** Ids of the responses with items that the provider cannot read. These items leave the context with the new snapshot. */
  readonly foreignResponses?: readonly string[]
  /** True if nothing of the conversation is cached any more, so that a new snapshot breaks no cache. Default: false. */
  readonly isCold?: boolean
  /** True if announcements must wait: they would interrupt a turn or break the cache (`mustDelayUpdate`). */
  readonly holds: boolean
}

/** Why a new prefix snapshot is needed; shown to the user. */
export type PrefixChangeCause =
  | { readonly kind: 'model'; readonly from: string; readonly to: string }
  | { readonly kind: 'account' }
  | { readonly kind: 'parameters' | 'sections' | 'tools'; readonly names: readonly string[] }

/** What to append to the log before the next request. */
export type PrefixChange =
  | { readonly kind: 'none' }
  /**
   * The change is announced: append these records in one batch before the next API request. The prefix snapshot stays
   * in use.
   */
  | { readonly kind: 'delta'; readonly delta: PrefixUpdate; readonly records: readonly RecordBody[] }
  /**
   * A new prefix snapshot is needed: append it, then compare the prefix again. `breaksCache` is false if no response
   * used the old snapshot.
   */
  | {
      readonly kind: 'epoch'
      readonly epoch: PrefixSnapshot
      readonly records: readonly RecordBody[]
      readonly causes: readonly PrefixChangeCause[]
      readonly breaksCache: boolean
    }

interface ActivePrefix extends KnownPrefix {
  readonly current: CurrentSnapshot
}

/**
 * Compares the prefix that the host wants with the one that the model knows. Returns what to append before the next request:
 * nothing, an announcement of the change, or a new prefix snapshot.
 */
export function planPrefixChange(
  told: ActivePrefix,
  present: DesiredPrefix,
  rules: PrefixUpdateRules,
): PrefixChange {
  const difference = comparePrefix(told, present, rules.profile)
  const causes = findSnapshotCauses(difference, told, { ...rules, present })
  if (causes.length > 0) return toSnapshotChange(told.current, present, { ...rules, causes })
  return toDeltaChange(difference, told, rules)
}

function toSnapshotChange(
  { epoch: current, isFresh }: CurrentSnapshot,
  present: DesiredPrefix,
  rules: PrefixUpdateRules & { readonly causes: readonly PrefixChangeCause[] },
): PrefixChange {
  const { causes, profile, isCold = false, boundResponses = [], foreignResponses = [] } = rules
  const epoch = createNextPrefixSnapshot(current, present, profile)
  const records = [createSnapshotRecord(epoch, boundResponses, foreignResponses)]
  return { kind: 'epoch', epoch, records, causes, breaksCache: !isFresh && !isCold }
}

/** Returns the reasons why a new prefix snapshot is needed now; empty if announcing the changes is enough. */
function findSnapshotCauses(
  difference: PrefixDifference,
  told: ActivePrefix,
  rules: PrefixUpdateRules & { readonly present: DesiredPrefix },
): readonly PrefixChangeCause[] {
  const { model, cacheKeyParameters, sections, isOtherAccount } = difference
  const { current: standing } = told
  const isInline = standing.isFresh || (!rules.isBound && rules.volatile === 'inline')
  const outdated = isInline ? listOutdatedSections(sections, standing.epoch) : []
  return [
    ...(model === null ? [] : [{ kind: 'model' as const, ...model }]),
    ...(isOtherAccount && model === null ? [{ kind: 'account' as const }] : []),
    ...toNamedCause('parameters', cacheKeyParameters),
    ...toNamedCause('sections', rules.isCold === true ? Object.keys(sections) : outdated),
    ...toNamedCause('tools', listToolsToDefine(difference.tools, told, rules)),
  ]
}

/**
 * Returns the tools for which a new prefix snapshot is needed. A tool that the model cannot call otherwise is worth a
 * cache break: a snapshot without tools accepts no tool call, not even of a tool that a message adds.
 */
function listToolsToDefine(
  changed: PrefixDifference['tools'],
  told: ActivePrefix,
  rules: PrefixUpdateRules & { readonly present: DesiredPrefix },
): readonly string[] {
  const { current: standing } = told
  const { epoch, isFresh } = standing
  if (epoch.tools.length === 0) return listToolsToDeclare(rules.present).map(readToolOrTypeName)
  if (isFresh) return listOutdatedTools(changed, epoch, rules.present)
  if (rules.isCold === true || rules.isClientLed === true) {
    const outdated = new Set(listOutdatedTools(changed, epoch, rules.present))
    const blocks =
      rules.isCold === true || rules.holds ? NO_BLOCKS : listToolChangeBlocks(changed, standing, rules)
    return Object.keys(changed).filter(
      (name) => !blocks.has(name) && (outdated.has(name) || told.tools.get(name)?.isCallable === true),
    )
  }
  if (rules.lateTools === 'announce' || canChangeTools(standing, rules)) return []
  const declared = new Set(epoch.tools.map(readToolOrTypeName))
  return Object.keys(changed).filter((name) => changed[name] !== null && !declared.has(name))
}

/**
 * Returns the names of the changed sections whose text differs from the prefix snapshot. Sections that are as in the
 * snapshot again only need an announcement.
 */
function listOutdatedSections(
  changed: PrefixDifference['sections'],
  { sections }: PrefixSnapshot,
): readonly string[] {
  const said = new Map(sections.map(({ name, text }) => [name, text]))
  return Object.keys(changed).filter((name) => (said.get(name) ?? null) !== changed[name])
}

/** Returns the changed tools that a new snapshot would declare otherwise than the current one. */
function listOutdatedTools(
  changed: PrefixDifference['tools'],
  { tools }: PrefixSnapshot,
  present: DesiredPrefix,
): readonly string[] {
  const toTexts = (some: readonly JsonObject[]): ReadonlyMap<string, string> =>
    new Map(some.map((tool) => [readToolOrTypeName(tool), JSON.stringify(tool)]))
  const [before, now] = [toTexts(tools), toTexts(listToolsToDeclare(present))]
  return Object.keys(changed).filter((name) => before.get(name) !== now.get(name))
}

function toNamedCause(
  kind: 'parameters' | 'sections' | 'tools',
  names: readonly string[],
): readonly PrefixChangeCause[] {
  return names.length === 0 ? [] : [{ kind, names }]
}

function toDeltaChange(
  difference: PrefixDifference,
  told: ActivePrefix,
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
    ...sectionUpdateRecords(sections, listKnownSections(told)),
    ...listToolRecords(tools, told.current, rules),
  ]
  return { kind: 'delta', delta, records }
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0
}

/**
 * True if tools can be added or removed during the conversation. The provider must support it, and the API requests
 * must already name the required beta features.
 */
function canChangeTools({ parameters }: CurrentSnapshot, { profile }: PrefixUpdateRules): boolean {
  if (!profile.capabilities.toolChanges) return false
  const named = readBetas(parameters)
  return listToolChangeBetas(profile).every((beta) => named.includes(beta))
}

/**
 * Returns the log records for tool changes: announcements to the model, then instructions to the provider. In a request
 * the instructions come last in either order, because no user content may follow them before the response.
 */
function listToolRecords(
  tools: PrefixDifference['tools'],
  standing: CurrentSnapshot,
  rules: PrefixUpdateRules,
): readonly RecordBody[] {
  const declared = new Set(standing.epoch.tools.map(readToolOrTypeName))
  const blocks = listToolChangeBlocks(tools, standing, rules)
  const announced = Object.fromEntries(Object.entries(tools).filter(([name]) => !blocks.has(name)))
  return [...createToolUpdateRecords(announced, declared), ...createToolChangeRecords([...blocks.values()])]
}

const NO_BLOCKS: ReadonlyMap<string, Block> = new Map()

/** Returns the blocks that tell the provider to change tools, by the name of the tool, for the changes that it can make. */
function listToolChangeBlocks(
  tools: PrefixDifference['tools'],
  standing: CurrentSnapshot,
  rules: PrefixUpdateRules,
): ReadonlyMap<string, Block> {
  if (!canChangeTools(standing, rules)) return NO_BLOCKS
  const declared = new Map(standing.epoch.tools.map((tool) => [readToolOrTypeName(tool), tool]))
  return new Map(
    Object.entries(tools).flatMap(([name, tool]) => {
      const block = toToolChangeBlock(name, tool, declared.get(name))
      return block === null ? [] : [[name, block] as const]
    }),
  )
}

/**
 * Returns the block that tells the provider to add or remove a tool. Returns null if the provider cannot make the
 * change, so that it can only be announced: a declared tool is redefined, or an undeclared tool is removed.
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

/**
 * Differences between the prefix that the model knows and the prefix that the host wants. A null value means that the
 * section, tool or parameter was removed.
 */
interface PrefixDifference {
  readonly sections: Readonly<Record<string, string | null>>
  readonly tools: Readonly<Record<string, JsonObject | null>>
  /** Changed parameters on which the cache does not depend. */
  readonly uncachedParameters: JsonObject
  /** Names of the changed parameters on which the cache depends. */
  readonly cacheKeyParameters: readonly string[]
  readonly model: { readonly from: string; readonly to: string } | null
  /** True if the present provider or account cannot read the opaque items of the snapshot's provider or account. */
  readonly isOtherAccount: boolean
}

function comparePrefix(
  told: ActivePrefix,
  present: DesiredPrefix,
  profile: ProviderProfile,
): PrefixDifference {
  const { epoch, parameters } = told.current
  const { spelling } = profile
  const changed = listChangedParameters(withoutOwnBetas(parameters, present, profile), present.parameters)
  return {
    sections: diffSections(told, present),
    tools: diffTools(told, present),
    uncachedParameters: Object.fromEntries(
      changed.filter(([name]) => spelling.findCacheLevel(name) === null),
    ),
    cacheKeyParameters: changed
      .map(([name]) => name)
      .filter((name) => spelling.findCacheLevel(name) !== null),
    model: epoch.model === present.model ? null : { from: epoch.model, to: present.model },
    // Between providers the model differs too.
    isOtherAccount: profile.origin.vendor !== null && hasOtherOrigin(epoch, profile),
  }
}

/** Removes the beta features that the engine added to the prefix snapshot, so that they do not count as a change. */
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

/** Returns the text of each section as the model knows it: in the prefix snapshot, or as announced since. */
function listKnownSections(told: KnownPrefix): ReadonlyMap<string, string | null> {
  const texts = (told.current?.epoch.sections ?? []).map(({ name, text }) => [name, text] as const)
  return new Map<string, string | null>([...texts, ...told.sections])
}

function diffSections(told: KnownPrefix, present: DesiredPrefix): PrefixDifference['sections'] {
  const before = listKnownSections(told)
  const now = new Map(present.sections.map(({ name, text }) => [name, text]))
  const names = [...new Set([...before.keys(), ...now.keys()])].filter((name) => !CONSTANT_SECTIONS.has(name))
  const changed = names.filter((name) => (before.get(name) ?? null) !== (now.get(name) ?? null))
  return Object.fromEntries(changed.map((name) => [name, now.get(name) ?? null]))
}

function diffTools(told: KnownPrefix, present: DesiredPrefix): PrefixDifference['tools'] {
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

// The functions below create the log records that announce a change. The same change always gives the same text.

type RecordLinks = Exclude<keyof RecordBase, 'isMeta'>

/** A log record without uuid, parent, timestamp and session id, which the caller adds when appending it. */
export type RecordBody =
  | Omit<SystemRecord, RecordLinks>
  | Omit<AttachmentRecord, RecordLinks>
  | Omit<UserRecord, RecordLinks>

/**
 * Creates an `epoch` record. `clearedThinking`: ids of responses whose thinking is not valid with the new prefix and leaves
 * the context. `clearedItems`: ids of responses with items that the provider cannot read.
 */
export function createSnapshotRecord(
  epoch: PrefixSnapshot,
  clearedThinking: readonly string[] = [],
  clearedItems: readonly string[] = [],
): RecordBody {
  const cleared = {
    ...(clearedThinking.length === 0 ? {} : { clearedThinking }),
    ...(clearedItems.length === 0 ? {} : { clearedItems }),
  }
  return { type: 'system', subtype: 'epoch', isMeta: true, epoch, ...cleared }
}

function sectionUpdateRecords(
  sections: Readonly<Record<string, string | null>>,
  known: ReadonlyMap<string, string | null>,
): readonly RecordBody[] {
  const entries = Object.entries(sections)
  if (entries.length === 0) return []
  const content = entries
    .map(([name, text]) => formatSectionUpdate(name, text, known.get(name) ?? ''))
    .join('\n\n')
  const attachment = { type: SECTION_DELTA_ATTACHMENT, names: entries.map(([name]) => name), content }
  return [{ type: 'attachment', isMeta: true, attachment }]
}

/** Creates the attachment that announces tool changes to the model. `declared`: names of the tools in the prefix snapshot. */
function createToolUpdateRecords(
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
 * Creates the system message that tells the provider to add or remove tools from this point of the conversation on. It
 * must be the last message of the API request.
 */
function createToolChangeRecords(blocks: readonly Block[]): readonly RecordBody[] {
  if (blocks.length === 0) return []
  return [{ type: 'user', isMeta: true, message: { role: 'system', content: blocks } }]
}

/**
 * Changes of the prefix, and the records to append for them. While a snapshot is current, a change is announced at the
 * end of the conversation and costs nothing; what cannot wait, or may not by policy, needs a new snapshot and breaks the
 * cache, with the causes reported.
 */
import { type Block, isThinking, isToolResult } from '../log/block.ts'
import type { Json, JsonObject } from '../log/json.ts'
import type { AttachmentRecord, Delta, Epoch, RecordBase, SystemRecord, UserRecord } from '../log/record.ts'
import type { Profile } from '../policy/provider-profile.ts'
import { SECTION_DELTA, type StandingEpoch, TOOL_DELTA, type Told } from './announced-prefix.ts'
import { blocksIn, type MessageList, messageAt, messageCount, sameJson } from './block-index.ts'
import {
  betasIn,
  CONSTANT,
  cacheLevel,
  nextEpoch,
  type Present,
  toolChangeBetas,
  toolName,
} from './prefix.ts'
import { OWN_NAME } from './system-prompt.ts'

export interface ChangeRules {
  readonly profile: Profile
  /** Policy: changed sections are announced as a delta until the next snapshot, or rewritten at once. */
  readonly volatile: 'delta' | 'inline'
  /** Late tools that the provider cannot add: announced, or defined at the price of a break. */
  readonly lateTools: 'announce' | 'define'
  /** False: tools are not added even if the provider supports it. */
  readonly addsTools?: boolean
  /** Thinking in the context is bound to the current prefix. */
  readonly isBound: boolean
  /** An announcement now would break the turn or the cache (`mustHold`). */
  readonly holds: boolean
}

export type ChangeCause =
  | { readonly kind: 'model'; readonly from: string; readonly to: string }
  | { readonly kind: 'parameters' | 'sections' | 'tools'; readonly names: readonly string[] }

export type PrefixChange =
  | { readonly kind: 'none' }
  /** To append in one batch before the request. The prefix stays. */
  | { readonly kind: 'delta'; readonly delta: Delta; readonly records: readonly RecordBody[] }
  /** To append; breaks the cache unless nothing was sent yet. Then compare again. */
  | {
      readonly kind: 'epoch'
      readonly epoch: Epoch
      readonly records: readonly RecordBody[]
      readonly causes: readonly ChangeCause[]
      readonly breaksCache: boolean
    }

interface ToldInEpoch extends Told {
  readonly standing: StandingEpoch
}

export function changesOf(told: ToldInEpoch, present: Present, rules: ChangeRules): PrefixChange {
  const difference = diffPrefix(told, present, rules.profile)
  const causes = findCauses(difference, told.standing, rules)
  if (causes.length > 0) return newEpoch(told.standing, present, { causes, profile: rules.profile })
  return toDelta(difference, told.standing, rules)
}

function newEpoch(
  { epoch: current, isFresh }: StandingEpoch,
  present: Present,
  { causes, profile }: { readonly causes: readonly ChangeCause[]; readonly profile: Profile },
): PrefixChange {
  const epoch = nextEpoch(current, present, profile)
  return { kind: 'epoch', epoch, records: [epochRecord(epoch)], causes, breaksCache: !isFresh }
}

/** Why a new snapshot is needed now. */
function findCauses(
  difference: Difference,
  standing: StandingEpoch,
  rules: ChangeRules,
): readonly ChangeCause[] {
  const { model, keyed, sections, tools } = difference
  const mayRewrite = standing.isFresh || !rules.isBound
  const isInline = mayRewrite && (standing.isFresh || rules.volatile === 'inline')
  const defines = rules.lateTools === 'define' && !canChangeTools(standing, rules)
  const isDefined = mayRewrite && (standing.isFresh || defines)
  return [
    ...(model === null ? [] : [{ kind: 'model' as const, ...model }]),
    ...toCause('parameters', keyed),
    ...toCause('sections', isInline ? sectionsToTake(sections, standing.epoch) : []),
    ...toCause('tools', isDefined ? toolsToTake(tools, standing.epoch) : []),
  ]
}

/** Only sections whose text in the snapshot is outdated: for the others an announcement suffices. */
function sectionsToTake(changed: Difference['sections'], { sections }: Epoch): readonly string[] {
  const said = new Map(sections.map(({ name, text }) => [name, text]))
  return Object.keys(changed).filter((name) => (said.get(name) ?? null) !== changed[name])
}

function toolsToTake(changed: Difference['tools'], { tools }: Epoch): readonly string[] {
  const said = new Map(tools.map((tool) => [toolName(tool), JSON.stringify(tool)]))
  return Object.keys(changed).filter((name) => {
    const tool = changed[name] ?? null
    return (said.get(name) ?? null) !== (tool === null ? null : JSON.stringify(tool))
  })
}

function toCause(
  kind: 'parameters' | 'sections' | 'tools',
  names: readonly string[],
): readonly ChangeCause[] {
  return names.length === 0 ? [] : [{ kind, names }]
}

function toDelta(difference: Difference, standing: StandingEpoch, rules: ChangeRules): PrefixChange {
  const { free } = difference
  const { sections, tools } = rules.holds ? { sections: {}, tools: {} } : difference
  const delta: Delta = {
    ...(isEmpty(sections) ? {} : { sections }),
    ...(isEmpty(tools) ? {} : { tools }),
    ...(isEmpty(free) ? {} : { parameters: free }),
  }
  if (isEmpty(delta)) return { kind: 'none' }
  const records = [deltaRecord(delta), ...sectionWords(sections), ...toolRecords(tools, standing, rules)]
  return { kind: 'delta', delta, records }
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0
}

/** The provider supports tool changes, and the betas for it have been named since the snapshot began. */
function canChangeTools({ parameters }: StandingEpoch, { profile, addsTools = true }: ChangeRules): boolean {
  if (!addsTools || !profile.capabilities.toolChanges) return false
  const named = betasIn(parameters)
  return toolChangeBetas(profile).every((beta) => named.includes(beta))
}

/** The instruction to the provider comes last: no user content may follow it before the response. */
function toolRecords(
  tools: Difference['tools'],
  standing: StandingEpoch,
  rules: ChangeRules,
): readonly RecordBody[] {
  const declared = new Map(standing.epoch.tools.map((tool) => [toolName(tool), tool]))
  const blocks = new Map<string, Block>()
  if (canChangeTools(standing, rules)) {
    for (const [name, tool] of Object.entries(tools)) {
      const block = changeBlock(name, tool, declared.get(name))
      if (block !== null) blocks.set(name, block)
    }
  }
  const announced = Object.fromEntries(Object.entries(tools).filter(([name]) => !blocks.has(name)))
  return [...toolWords(announced, new Set(declared.keys())), ...toolChange([...blocks.values()])]
}

/** Null if the change can only be announced: a declared tool redefined, or an undeclared one removed. */
function changeBlock(name: string, tool: JsonObject | null, declared: JsonObject | undefined): Block | null {
  const reference = { type: 'tool_reference', name }
  if (tool === null) return declared === undefined ? null : { type: 'tool_removal', tool: reference }
  if (declared === undefined)
    return { type: 'tool_addition', tool: { type: 'tool_definition', definition: tool } }
  return sameJson(declared, tool) ? { type: 'tool_addition', tool: reference } : null
}

// The prefix that the host wants, compared with what the model knows.

/** Null: removed. */
export interface Difference {
  readonly sections: Readonly<Record<string, string | null>>
  readonly tools: Readonly<Record<string, JsonObject | null>>
  /** Parameters outside the cache key … */
  readonly free: JsonObject
  /** … and the names of those in it. */
  readonly keyed: readonly string[]
  readonly model: { readonly from: string; readonly to: string } | null
}

function diffPrefix(told: ToldInEpoch, present: Present, profile: Profile): Difference {
  const { epoch, parameters } = told.standing
  const changed = changedKeys(withoutOwnBetas(parameters, present, profile), present.parameters)
  return {
    sections: sectionDifference(told, present),
    tools: toolDifference(told, present),
    free: Object.fromEntries(changed.filter(([name]) => cacheLevel(name) === null)),
    keyed: changed.map(([name]) => name).filter((name) => cacheLevel(name) !== null),
    model: epoch.model === present.model ? null : { from: epoch.model, to: present.model },
  }
}

/** Betas that the snapshot added by itself do not count as a change. */
function withoutOwnBetas(parameters: JsonObject, present: Present, profile: Profile): JsonObject {
  const given = betasIn(present.parameters)
  const own = toolChangeBetas(profile).filter((beta) => !given.includes(beta))
  const betas = betasIn(parameters).filter((beta) => !own.includes(beta))
  const { betas: _, ...rest } = parameters
  return betas.length === 0 && present.parameters.betas === undefined ? rest : { ...parameters, betas }
}

function sectionDifference(told: Told, present: Present): Difference['sections'] {
  const before = new Map<string, string | null>(
    (told.standing?.epoch.sections ?? []).map(({ name, text }) => [name, text]),
  )
  for (const [name, text] of told.sections) before.set(name, text)
  const now = new Map(present.sections.map(({ name, text }) => [name, text]))
  const names = [...new Set([...before.keys(), ...now.keys()])].filter((name) => !CONSTANT.has(name))
  const changed = names.filter((name) => (before.get(name) ?? null) !== (now.get(name) ?? null))
  return Object.fromEntries(changed.map((name) => [name, now.get(name) ?? null]))
}

function toolDifference(told: Told, present: Present): Difference['tools'] {
  const before = new Map<string, JsonObject | null>(
    (told.standing?.epoch.tools ?? []).map((tool) => [toolName(tool), tool]),
  )
  for (const [name, { definition }] of told.tools) before.set(name, definition)
  const now = new Map(present.tools.map((tool) => [toolName(tool), tool]))
  const names = [...new Set([...before.keys(), ...now.keys()])].sort()
  const changed = names.filter((name) => !sameJson(before.get(name) ?? null, now.get(name) ?? null))
  return Object.fromEntries(changed.map((name) => [name, now.get(name) ?? null]))
}

function changedKeys(before: JsonObject, now: JsonObject): readonly (readonly [string, Json])[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])]
  return names.flatMap((name) =>
    sameJson(before[name] ?? null, now[name] ?? null) ? [] : [[name, now[name] ?? null] as const],
  )
}

/**
 * Announcements must wait: after an unfinished assistant turn they would end it. And if the model strips the thinking of
 * finished turns, text beside the tool results of a turn with thinking would finish it and break the cache.
 */
export function mustHold(messages: MessageList, profile: Profile): boolean {
  const last = messageCount(messages) - 1
  const message = messageAt(messages, last)
  if (message === undefined) return false
  if (message.message.role === 'assistant') return true
  if (!profile.thinking.stripsFinishedTurns || !blocksIn(message).every(isToolResult)) return false
  return thinksSincePrompt(messages, last)
}

function thinksSincePrompt(messages: MessageList, from: number): boolean {
  for (let index = from; index >= 0; index -= 1) {
    const message = messageAt(messages, index)
    if (message === undefined) continue
    if (message.message.role === 'assistant' && blocksIn(message).some(isThinking)) return true
    if (message.message.role === 'user' && !blocksIn(message).every(isToolResult)) return false
  }
  return false
}

// Records that announce a change. Their texts depend on the change alone.

type Links = Exclude<keyof RecordBase, 'isMeta'>

/** A record without its links to the log: the caller adds uuid, parent, time and session. */
export type RecordBody = Omit<SystemRecord, Links> | Omit<AttachmentRecord, Links> | Omit<UserRecord, Links>

export function epochRecord(epoch: Epoch): RecordBody {
  return { type: 'system', subtype: 'epoch', isMeta: true, epoch }
}

function deltaRecord(delta: Delta): RecordBody {
  return { type: 'system', subtype: 'delta', isMeta: true, delta }
}

function sectionWords(sections: Readonly<Record<string, string | null>>): readonly RecordBody[] {
  const entries = Object.entries(sections)
  if (entries.length === 0) return []
  const content = entries.map(([name, text]) => sectionText(name, text)).join('\n\n')
  const attachment = { type: SECTION_DELTA, names: entries.map(([name]) => name), content }
  return [{ type: 'attachment', isMeta: true, attachment }]
}

function sectionText(name: string, text: string | null): string {
  const what = name.startsWith(OWN_NAME) ? 'The system prompt' : `Its section "${name}"`
  return text === null ? `${what} no longer applies.` : `${what} now reads:\n${text}`
}

/** `declared`: names of the tools in the snapshot. */
export function toolWords(
  tools: Readonly<Record<string, JsonObject | null>>,
  declared: ReadonlySet<string>,
): readonly RecordBody[] {
  const entries = Object.entries(tools)
  if (entries.length === 0) return []
  const content = entries.map(([name, tool]) => toolText(name, tool, declared)).join('\n')
  const attachment = { type: TOOL_DELTA, names: entries.map(([name]) => name), content }
  return [{ type: 'attachment', isMeta: true, attachment }]
}

function toolText(name: string, tool: JsonObject | null, declared: ReadonlySet<string>): string {
  if (tool === null) return `${name}: can no longer be called.`
  const said = typeof tool.description === 'string' ? ` ${tool.description}` : ''
  if (!declared.has(name)) return `${name}: will be there to call after the next compaction.${said}`
  return `${name}: is now defined as ${JSON.stringify(tool)}`
}

/** Tells the provider to add or remove tools from here on. Must be the last message before the request. */
export function toolChange(blocks: readonly Block[]): readonly RecordBody[] {
  if (blocks.length === 0) return []
  return [{ type: 'user', isMeta: true, message: { role: 'system', content: blocks } }]
}

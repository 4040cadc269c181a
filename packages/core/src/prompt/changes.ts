/**
 * What is new about the prefix, and what to append for it. As long as an epoch stands a change is told at the
 * end of the conversation and costs nothing; what cannot wait, or may not by policy, is a new epoch and a break
 * of our own, said with its causes.
 */
import type { Block } from '../conversation/block.ts'
import type { JsonObject } from '../conversation/json.ts'
import type { Delta, Epoch } from '../conversation/record.ts'
import type { Profile } from '../policy/profile.ts'
import { type Difference, differenceOf } from './difference.ts'
import { betasIn, nextEpoch, type Present, toolChangeBetas } from './epoch.ts'
import { deltaRecord, epochRecord, type RecordBody, sectionWords, toolChange, toolWords } from './tell.ts'
import type { StandingEpoch, Told } from './told.ts'
import { toolName } from './tool-order.ts'

export interface ChangeRules {
  readonly profile: Profile
  /** Policy: changed sections wait for the next epoch as a delta, or are rewritten at once. */
  readonly volatile: 'delta' | 'inline'
  /** Tools that come late where the provider cannot add any: announced, or defined at the price of a break. */
  readonly lateTools: 'announce' | 'define'
  /** False: not even where the provider can add them. */
  readonly addsTools?: boolean
  /** Thinking in the view is bound to the prefix as it is. */
  readonly isBound: boolean
  /** Words now would cost more than they say; see `mustHold`. */
  readonly holds: boolean
}

export type ChangeCause =
  | { readonly kind: 'model'; readonly from: string; readonly to: string }
  | { readonly kind: 'parameters' | 'sections' | 'tools'; readonly names: readonly string[] }

export type PrefixChange =
  | { readonly kind: 'none' }
  /** To append in one batch, and then the request. The bytes in front stay. */
  | { readonly kind: 'delta'; readonly delta: Delta; readonly records: readonly RecordBody[] }
  /** To append; the cache is lost from the change on unless nothing was sent yet. Then ask again. */
  | {
      readonly kind: 'epoch'
      readonly epoch: Epoch
      readonly records: readonly RecordBody[]
      readonly causes: readonly ChangeCause[]
      readonly breaksCache: boolean
    }

type ToldInEpoch = Told & { readonly standing: StandingEpoch }

export function changesOf(told: ToldInEpoch, present: Present, rules: ChangeRules): PrefixChange {
  const difference = differenceOf(told, present, rules.profile)
  const causes = causesOf(difference, told.standing, rules)
  if (causes.length > 0) return newEpoch(told.standing, present, { causes, profile: rules.profile })
  return deltaOf(difference, told.standing, rules)
}

function newEpoch(
  { epoch: current, isFresh }: StandingEpoch,
  present: Present,
  { causes, profile }: { readonly causes: readonly ChangeCause[]; readonly profile: Profile },
): PrefixChange {
  const epoch = nextEpoch(current, present, profile)
  return { kind: 'epoch', epoch, records: [epochRecord(epoch)], causes, breaksCache: !isFresh }
}

/** Why the prefix itself must change now. */
function causesOf(
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
    ...causeOf('parameters', keyed),
    ...causeOf('sections', isInline ? sectionsToTake(sections, standing.epoch) : []),
    ...causeOf('tools', isDefined ? toolsToTake(tools, standing.epoch) : []),
  ]
}

/** What a prefix says already, words in the view alone can mend: another prefix would say the same. */
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

function causeOf(
  kind: 'parameters' | 'sections' | 'tools',
  names: readonly string[],
): readonly ChangeCause[] {
  return names.length === 0 ? [] : [{ kind, names }]
}

function deltaOf(difference: Difference, standing: StandingEpoch, rules: ChangeRules): PrefixChange {
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

/** The provider can be told of tools, and every beta it takes has been named since the epoch began. */
function canChangeTools({ parameters }: StandingEpoch, { profile, addsTools = true }: ChangeRules): boolean {
  if (!addsTools || !profile.capabilities.toolChanges) return false
  const named = betasIn(parameters)
  return toolChangeBetas(profile).every((beta) => named.includes(beta))
}

/** The words to the provider come last: nothing of a user's may stand between them and the answer. */
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

/** Null where only words are left: a declared tool defined anew, or one gone that no declaration names. */
function changeBlock(name: string, tool: JsonObject | null, declared: JsonObject | undefined): Block | null {
  const reference = { type: 'tool_reference', name }
  if (tool === null) return declared === undefined ? null : { type: 'tool_removal', tool: reference }
  if (declared === undefined)
    return { type: 'tool_addition', tool: { type: 'tool_definition', definition: tool } }
  const isSame = JSON.stringify(declared) === JSON.stringify(tool)
  return isSame ? { type: 'tool_addition', tool: reference } : null
}

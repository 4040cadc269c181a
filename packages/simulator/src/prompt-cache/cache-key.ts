/**
 * What besides the blocks themselves must match for an entry to be found, level by level: a change on one
 * level loses that level and the ones after it, never the ones before.
 */
import { type Block, isObject, type JsonObject, type MessagesBody, type Piece } from '../protocol/api.ts'
import { markersOf } from '../protocol/cache-markers.ts'
import type { Level, SimulatedModel } from '../protocol/models.ts'

/** Whose cache it is. */
export interface Scope {
  readonly organization: string
  readonly workspace: string
}

/** What the provider's pages leave open about the key. */
export interface KeySettings {
  /** `speed` misses from the system prompt on; some say only its header does. */
  readonly speed: boolean
  /** The format of structured output. */
  readonly outputFormat: boolean
  /** The set of betas, those apart that cannot touch the prompt. */
  readonly betas: boolean
  /** The parameter itself; what its edits clear always shows. */
  readonly contextManagement: boolean
  /** The lifetimes that the markers ask for; what is kept for an hour is then no use to who asks for five minutes. */
  readonly ttl: boolean
}

export const DEFAULT_KEY: KeySettings = {
  speed: true,
  outputFormat: true,
  betas: true,
  contextManagement: false,
  ttl: false,
}

/** One thing that is in the key, by name, so that a miss can say what changed. */
export interface KeyPart {
  readonly level: Level
  readonly name: string
  readonly value: string
}

export interface CacheKey {
  readonly parts: readonly KeyPart[]
  /** All parts up to and including that level. */
  readonly prefix: Readonly<Record<Level, string>>
}

export interface KeyInput {
  readonly scope: Scope
  readonly model: SimulatedModel
  readonly body: MessagesBody
  readonly pieces: readonly Piece[]
  readonly betas: ReadonlySet<string>
  readonly settings: KeySettings
}

const LEVELS: readonly Level[] = ['tools', 'system', 'messages']

export function cacheKey(input: KeyInput): CacheKey {
  const parts = partsOf(input).filter((part) => part.value !== '')
  const upTo = (level: Level): string => {
    const allowed = LEVELS.slice(0, LEVELS.indexOf(level) + 1)
    const kept = parts.filter((part) => allowed.includes(part.level))
    return kept.map((part) => `${part.name}=${part.value}`).join('|')
  }
  return {
    parts,
    prefix: { tools: upTo('tools'), system: upTo('system'), messages: upTo('messages') },
  }
}

function partsOf(input: KeyInput): readonly KeyPart[] {
  const { scope, model, body, settings } = input
  const traits = traitsOf(body, input.pieces)
  const part = (level: Level, name: string, value: string): KeyPart => ({ level, name, value })
  return [
    part('tools', 'organization', scope.organization),
    part('tools', 'workspace', scope.workspace),
    part('tools', 'model', model.id),
    part('tools', 'ttl', settings.ttl ? ttlSetting(body) : ''),
    part('tools', 'first inline tool', traits.onlyInlineTools ? 'yes' : ''),
    part('system', 'speed', settings.speed ? spedUp(body) : ''),
    part('system', 'citations', traits.citations ? 'on' : ''),
    part(model.settingsLevel, 'thinking', thinkingSetting(body, model)),
    part(model.settingsLevel, 'effort', effortSetting(body, model)),
    part('messages', 'tool_choice', toolChoiceSetting(body.tool_choice)),
    part('messages', 'images', traits.images ? 'present' : ''),
    part('messages', 'output format', settings.outputFormat ? formatSetting(body) : ''),
    part('messages', 'betas', settings.betas ? betaSetting(input.betas) : ''),
    part('messages', 'context_management', settings.contextManagement ? editSetting(body) : ''),
  ]
}

/** Only what differs from the default: saying the default is the same as saying nothing. */
function spedUp(body: MessagesBody): string {
  return body.speed === 'fast' ? 'fast' : ''
}

export function thinkingSetting({ thinking }: MessagesBody, model: SimulatedModel): string {
  const type = thinking?.type ?? model.thinkingDefault
  return type === 'enabled' ? `enabled ${String(thinking?.budget_tokens)}` : String(type)
}

export function effortSetting({ output_config }: MessagesBody, model: SimulatedModel): string {
  return String(output_config?.effort ?? model.defaultEffort)
}

export function toolChoiceSetting(choice: JsonObject | null | undefined): string {
  const type = choice?.type ?? 'auto'
  const alone = choice?.disable_parallel_tool_use === true ? ' one at a time' : ''
  const name = type === 'tool' ? ` ${String(choice?.name)}` : ''
  return type === 'auto' && alone === '' ? '' : `${String(type)}${name}${alone}`
}

export function formatSetting({ output_config, output_format }: MessagesBody): string {
  const format = output_config?.format ?? output_format
  return isObject(format) ? JSON.stringify(format) : ''
}

export function editSetting({ context_management }: MessagesBody): string {
  return isObject(context_management) ? JSON.stringify(context_management) : ''
}

/** Five minutes is what a marker asks for that does not say. */
function ttlSetting(body: MessagesBody): string {
  const { explicit, automatic } = markersOf(body)
  const asked = [...explicit, ...(automatic?.marker == null ? [] : [automatic.marker])].map(({ ttl }) => ttl)
  return asked.includes('1h') ? [...new Set(asked)].sort().join(' and ') : ''
}

/** Betas that steer the request and leave the prompt alone; a provider could not key on them and sell them. */
const NEUTRAL = [
  'cache-diagnosis-',
  'compact-',
  'extended-cache-ttl-',
  'fallback-credit-',
  'message-threads-',
  'prompt-caching-',
  'server-side-fallback-',
  'thinking-binding-controls-',
  'token-counting-',
]

export function betaSetting(betas: ReadonlySet<string>): string {
  const kept = [...betas].filter((beta) => !NEUTRAL.some((family) => beta.startsWith(family)))
  return kept.sort().join(',')
}

// Properties of the whole request that change how its beginning is rendered.

export interface Traits {
  readonly images: boolean
  readonly citations: boolean
  /** Tools are defined in the conversation and none in front of it: the first one changes how it begins. */
  readonly onlyInlineTools: boolean
}

export function traitsOf(body: MessagesBody, pieces: readonly Piece[]): Traits {
  const tools = body.tools ?? []
  let images = false
  let citations = tools.some((tool) => isObject(tool.citations) && tool.citations.enabled === true)
  let inline = false
  for (const { block } of pieces) {
    if (PLAIN.has(block.type)) continue
    images ||= holds(block, isImage)
    citations ||= holds(block, cites)
    inline ||= definesTool(block)
  }
  return { images, citations, onlyInlineTools: inline && !tools.some(isOffered) }
}

/** Blocks that can have none of it: nearly all of a long conversation. */
const PLAIN = new Set(['text', 'tool_use', 'thinking'])

export function isOffered(tool: JsonObject): boolean {
  return tool.defer_loading !== true
}

function holds(block: Block, test: (block: Readonly<Record<string, unknown>>) => boolean): boolean {
  if (test(block)) return true
  const inner: unknown = block.type === 'tool_result' ? block.content : undefined
  return Array.isArray(inner) && inner.some((item) => isObject(item) && test(item))
}

function isImage(block: Readonly<Record<string, unknown>>): boolean {
  return block.type === 'image'
}

function cites(block: Readonly<Record<string, unknown>>): boolean {
  return isObject(block.citations) && block.citations.enabled === true
}

function definesTool(block: Block): boolean {
  return block.type === 'tool_addition' && isObject(block.tool) && block.tool.type === 'tool_definition'
}

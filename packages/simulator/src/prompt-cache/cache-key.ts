/**
 * The settings that are part of the cache key besides the blocks, by level: a change at one level loses the cache
 * of that level and of those after it, never of those before.
 */
import { type Block, isObject, type JsonObject, type MessagesBody, type Piece } from '../protocol/api.ts'
import { markersOf } from '../protocol/cache-markers.ts'
import type { Level, SimulatedModel } from '../protocol/models.ts'

/** The owner of cache entries and threads: nothing is shared between workspaces. */
export interface Scope {
  readonly organization: string
  readonly workspace: string
}

export function sameScope(one: Scope, other: Scope): boolean {
  return one.organization === other.organization && one.workspace === other.workspace
}

/** Which settings are part of the key where the provider's documentation leaves it open. */
export interface KeySettings {
  /** `speed`, from the system prompt on. By some accounts only its beta header counts. */
  readonly speed: boolean
  /** The format of structured output. */
  readonly outputFormat: boolean
  /** The set of betas, except those that cannot affect the prompt. */
  readonly betas: boolean
  /** The parameter `context_management`. What its edits clear changes the blocks in any case. */
  readonly contextManagement: boolean
  /** The TTLs of the markers. An entry for an hour is then not found by a request that uses five minutes. */
  readonly ttl: boolean
}

export const DEFAULT_KEY: KeySettings = {
  speed: true,
  outputFormat: true,
  betas: true,
  contextManagement: false,
  ttl: false,
}

/** One setting in the key. It is named so that a cache miss can be explained. */
interface KeyPart {
  readonly level: Level
  readonly name: string
  readonly value: string
}

export interface CacheKey {
  readonly parts: readonly KeyPart[]
  /** For each level, all parts up to and including it. */
  readonly prefix: Readonly<Record<Level, string>>
}

interface KeyInput {
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

/** An empty value is left out of the key: a default that is spelled out is the same as none. */
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
    part('system', 'speed', settings.speed && body.speed === 'fast' ? 'fast' : ''),
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

/** Five minutes is the default TTL of a marker. */
function ttlSetting(body: MessagesBody): string {
  const { explicit, automatic } = markersOf(body)
  const ttls = [...explicit, ...(automatic?.marker == null ? [] : [automatic.marker])].map(({ ttl }) => ttl)
  return ttls.includes('1h') ? [...new Set(ttls)].sort().join(' and ') : ''
}

/** Families of betas that cannot affect the prompt. If they were in the key, using the feature would lose the cache. */
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

/** Properties of the whole request that change how the provider renders the start of the prompt. */
interface Traits {
  readonly images: boolean
  readonly citations: boolean
  /** All tools are defined inside the conversation. The first such tool changes the start of the prompt. */
  readonly onlyInlineTools: boolean
}

function traitsOf(body: MessagesBody, pieces: readonly Piece[]): Traits {
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

/** Types that have none of these properties. Most blocks of a conversation are of these types. */
const PLAIN = new Set(['text', 'tool_use', 'thinking'])

/** Deferred tools are not part of the prompt. */
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

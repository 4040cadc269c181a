/**
 * The settings that are part of the cache key besides the blocks, by level: a change at one level loses the cache
 * of that level and of those after it, never of those before.
 */
import {
  type Block,
  isObject,
  type JsonObject,
  type MessagesBody,
  type RequestBlock,
} from '../protocol/api.ts'
import { findCacheMarkers } from '../protocol/cache-markers.ts'
import type { CacheLevel, SimulatedModel } from '../protocol/models.ts'

/** The owner of cache entries and threads: nothing is shared between workspaces. */
export interface Account {
  readonly organization: string
  readonly workspace: string
}

export function isSameAccount(one: Account, other: Account): boolean {
  return one.organization === other.organization && one.workspace === other.workspace
}

/** Which settings are part of the key where the provider's documentation leaves it open. */
export interface CacheKeySettings {
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

export const DEFAULT_CACHE_KEY_SETTINGS: CacheKeySettings = {
  speed: true,
  outputFormat: true,
  betas: true,
  contextManagement: false,
  ttl: false,
}

/** One setting in the key. It is named so that a cache miss can be explained. */
interface CacheKeyPart {
  readonly level: CacheLevel
  readonly name: string
  readonly value: string
}

export interface CacheKey {
  readonly parts: readonly CacheKeyPart[]
  /** For each level, all parts up to and including it. */
  readonly prefix: Readonly<Record<CacheLevel, string>>
}

interface CacheKeyInput {
  readonly scope: Account
  readonly model: SimulatedModel
  readonly body: MessagesBody
  readonly pieces: readonly RequestBlock[]
  readonly betas: ReadonlySet<string>
  readonly settings: CacheKeySettings
}

const CACHE_LEVELS: readonly CacheLevel[] = ['tools', 'system', 'messages']

export function buildCacheKey(input: CacheKeyInput): CacheKey {
  const parts = listKeyParts(input).filter((part) => part.value !== '')
  const upTo = (level: CacheLevel): string => {
    const allowed = CACHE_LEVELS.slice(0, CACHE_LEVELS.indexOf(level) + 1)
    const kept = parts.filter((part) => allowed.includes(part.level))
    return kept.map((part) => `${part.name}=${part.value}`).join('|')
  }
  return {
    parts,
    prefix: { tools: upTo('tools'), system: upTo('system'), messages: upTo('messages') },
  }
}

/** An empty value is left out of the key: a default that is spelled out is the same as none. */
function listKeyParts(input: CacheKeyInput): readonly CacheKeyPart[] {
  const { scope, model, body, settings } = input
  const traits = findRequestTraits(body, input.pieces)
  const part = (level: CacheLevel, name: string, value: string): CacheKeyPart => ({ level, name, value })
  return [
    part('tools', 'organization', scope.organization),
    part('tools', 'workspace', scope.workspace),
    part('tools', 'model', model.id),
    part('tools', 'ttl', settings.ttl ? formatTtls(body) : ''),
    part('tools', 'first inline tool', traits.onlyInlineTools ? 'yes' : ''),
    part('system', 'speed', settings.speed && body.speed === 'fast' ? 'fast' : ''),
    part('system', 'citations', traits.citations ? 'on' : ''),
    part(model.settingsLevel, 'thinking', formatThinkingSetting(body, model)),
    part(model.settingsLevel, 'effort', formatEffortSetting(body, model)),
    part('messages', 'tool_choice', formatToolChoice(body.tool_choice)),
    part('messages', 'images', traits.images ? 'present' : ''),
    part('messages', 'output format', settings.outputFormat ? formatOutputFormat(body) : ''),
    part('messages', 'betas', settings.betas ? formatPromptBetas(input.betas) : ''),
    part('messages', 'context_management', settings.contextManagement ? formatContextManagement(body) : ''),
  ]
}

export function formatThinkingSetting({ thinking }: MessagesBody, model: SimulatedModel): string {
  const type = thinking?.type ?? model.thinkingDefault
  return type === 'enabled' ? `enabled ${String(thinking?.budget_tokens)}` : String(type)
}

export function formatEffortSetting({ output_config }: MessagesBody, model: SimulatedModel): string {
  return String(output_config?.effort ?? model.defaultEffort)
}

export function formatToolChoice(choice: JsonObject | null | undefined): string {
  const type = choice?.type ?? 'auto'
  const alone = choice?.disable_parallel_tool_use === true ? ' one at a time' : ''
  const name = type === 'tool' ? ` ${String(choice?.name)}` : ''
  return type === 'auto' && alone === '' ? '' : `${String(type)}${name}${alone}`
}

export function formatOutputFormat({ output_config, output_format }: MessagesBody): string {
  const format = output_config?.format ?? output_format
  return isObject(format) ? JSON.stringify(format) : ''
}

export function formatContextManagement({ context_management }: MessagesBody): string {
  return isObject(context_management) ? JSON.stringify(context_management) : ''
}

/** Five minutes is the default TTL of a marker. */
function formatTtls(body: MessagesBody): string {
  const { explicit, automatic } = findCacheMarkers(body)
  const ttls = [...explicit, ...(automatic?.marker == null ? [] : [automatic.marker])].map(({ ttl }) => ttl)
  return ttls.includes('1h') ? [...new Set(ttls)].sort().join(' and ') : ''
}

/** Families of betas that cannot affect the prompt. If they were in the key, using the feature would lose the cache. */
const NEUTRAL_BETA_FAMILIES = [
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

export function formatPromptBetas(betas: ReadonlySet<string>): string {
  const kept = [...betas].filter((beta) => !NEUTRAL_BETA_FAMILIES.some((family) => beta.startsWith(family)))
  return kept.sort().join(',')
}

/** Properties of the whole request that change how the provider renders the start of the prompt. */
interface RequestTraits {
  readonly images: boolean
  readonly citations: boolean
  /** All tools are defined inside the conversation. The first such tool changes the start of the prompt. */
  readonly onlyInlineTools: boolean
}

function findRequestTraits(body: MessagesBody, pieces: readonly RequestBlock[]): RequestTraits {
  const tools = body.tools ?? []
  let images = false
  let citations = tools.some((tool) => isObject(tool.citations) && tool.citations.enabled === true)
  let inline = false
  for (const { block } of pieces) {
    if (PLAIN_BLOCK_TYPES.has(block.type)) continue
    images ||= hasMatchingBlock(block, isImage)
    citations ||= hasMatchingBlock(block, hasCitations)
    inline ||= isInlineToolDefinition(block)
  }
  return { images, citations, onlyInlineTools: inline && !tools.some(isInPrompt) }
}

/** Types that have none of these properties. Most blocks of a conversation are of these types. */
const PLAIN_BLOCK_TYPES = new Set(['text', 'tool_use', 'thinking'])

/** Deferred tools are not part of the prompt. */
export function isInPrompt(tool: JsonObject): boolean {
  return tool.defer_loading !== true
}

function hasMatchingBlock(
  block: Block,
  test: (block: Readonly<Record<string, unknown>>) => boolean,
): boolean {
  if (test(block)) return true
  const inner: unknown = block.type === 'tool_result' ? block.content : undefined
  return Array.isArray(inner) && inner.some((item) => isObject(item) && test(item))
}

function isImage(block: Readonly<Record<string, unknown>>): boolean {
  return block.type === 'image'
}

function hasCitations(block: Readonly<Record<string, unknown>>): boolean {
  return isObject(block.citations) && block.citations.enabled === true
}

function isInlineToolDefinition(block: Block): boolean {
  return block.type === 'tool_addition' && isObject(block.tool) && block.tool.type === 'tool_definition'
}

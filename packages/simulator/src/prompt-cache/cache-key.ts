/**
 * Builds the cache key from request settings such as model, thinking and `tool_choice`. Each setting has a level:
 * `tools`, `system` or `messages`. Changing a setting invalidates cached prefixes of its own level and of later
 * levels.
 */

import { findCacheMarkers } from '../protocol/cache-markers.ts'
import {
  type Block,
  isObject,
  type JsonObject,
  type MessagesBody,
  type RequestBlock,
} from '../protocol/messages-request.ts'
import type { CacheLevel, SimulatedModel } from '../protocol/models.ts'

/** The account that owns cache entries and message threads. Two workspaces share nothing. */
export interface Account {
  readonly organization: string
  readonly workspace: string
}

export function isSameAccount(one: Account, other: Account): boolean {
  return one.organization === other.organization && one.workspace === other.workspace
}

/**
 * Selects the request settings that are part of the cache key, where the provider's documentation does not specify
 * it.
 */
export interface CacheKeyRules {
  /**
   * Include `speed` in the cache key at the `system` level. Some reports say that only the beta header of `speed`
   * counts.
   */
  readonly speed: boolean
  /** Include the format of structured output in the cache key. */
  readonly outputFormat: boolean
  /** Include the set of betas in the cache key, except betas that cannot affect the prompt. */
  readonly betas: boolean
  /**
   * Include the parameter `context_management` in the cache key. Otherwise an edit affects the cache only if it
   * clears blocks.
   */
  readonly contextManagement: boolean
  /**
   * Include the TTLs of cache markers in the cache key. A request with 5-minute markers then cannot read an entry
   * that was written with 1-hour markers.
   */
  readonly ttl: boolean
}

export const DEFAULT_CACHE_KEY_RULES: CacheKeyRules = {
  speed: true,
  outputFormat: true,
  betas: true,
  contextManagement: false,
  ttl: false,
}

/** One setting in the cache key. Its name is used in the explanation of a cache miss. */
interface CacheKeyPart {
  readonly level: CacheLevel
  readonly name: string
  readonly value: string
}

/** What two requests must have in common, besides the prompt, to share cache entries. */
export interface CacheKey {
  readonly parts: readonly CacheKeyPart[]
  /** The text of the cache key for each level. It contains the settings of that level and of earlier levels. */
  readonly prefix: Readonly<Record<CacheLevel, string>>
}

interface CacheKeyInput {
  readonly scope: Account
  readonly model: SimulatedModel
  readonly body: MessagesBody
  readonly pieces: readonly RequestBlock[]
  readonly betas: ReadonlySet<string>
  readonly settings: CacheKeyRules
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

/**
 * Lists the settings in the cache key. A request that states a default value gets the same key as a request that
 * omits it.
 */
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

/** Returns the different TTLs of all cache markers as text; empty if every TTL is five minutes. */
function formatTtls(body: MessagesBody): string {
  const { explicit, automatic } = findCacheMarkers(body)
  const ttls = [...explicit, ...(automatic?.marker == null ? [] : [automatic.marker])].map(({ ttl }) => ttl)
  return ttls.includes('1h') ? [...new Set(ttls)].sort().join(' and ') : ''
}

/**
 * Prefixes of beta names that do not affect the prompt. Such betas are not part of the cache key, so adding one
 * causes no cache miss.
 */
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

/** Properties of the whole request that are part of the cache key. */
interface RequestTraits {
  readonly images: boolean
  readonly citations: boolean
  /**
   * True if tools are defined inside messages and `tools` adds none to the prompt. The first such tool changes the
   * start of the prompt.
   */
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
  return { images, citations, onlyInlineTools: inline && !tools.some(isToolInPrompt) }
}

/** Block types that never contain images, citations or tool definitions. Blocks of these types are not searched. */
const PLAIN_BLOCK_TYPES = new Set(['text', 'tool_use', 'thinking'])

/** Checks whether a tool is part of the prompt: deferred tools are not. */
export function isToolInPrompt(tool: JsonObject): boolean {
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

/** Requests for tests, in few words, and a profile under which every feature is on and every limit is near. */

import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import type { Payload } from '../../src/context/payload.ts'
import type { ProviderProfile, ProviderProfileOverrides } from '../../src/policy/provider-profile.ts'
import type { FindingCode } from '../../src/validate/findings.ts'

export const ALL_BETAS = ['clear-at', 'effort', 'edits', 'binding', 'tool-changes', 'summaries'] as const

export const everything: ProviderProfileOverrides = {
  name: 'everything',
  window: 200_000,
  maxOutput: 8192,
  roles: { consecutive: 'merged', system: 'placed', turnScoped: true, messageEffort: true },
  tools: { forcedChoice: 'allowed' },
  thinking: {
    modes: ['enabled', 'adaptive', 'between_tools', 'disabled'],
    budgetOverBetas: ['interleaved'],
    disabledEfforts: ['low', 'high'],
  },
  cache: { automatic: true, scopes: ['global'] },
  sizes: {
    bodyBytes: 20_000,
    deferredTools: 3,
    messages: 40,
    images: 4,
    imagePixels: 8000,
    manyImages: 2,
    manyImagePixels: 2000,
  },
  contextEdits: { clearThinking: 'clear_thinking', clearToolUses: 'clear_tool_uses', compact: 'compact' },
  compaction: { blocks: true, onDemand: true, beta: 'summaries' },
  capabilities: { cacheEdits: true, cacheDiagnostics: true, toolChanges: true, prewarm: true },
  betas: [
    { where: 'message-field', name: 'clear_at', betas: ['clear-at'] },
    { where: 'message-field', name: 'output_config', betas: ['effort'] },
    { where: 'edit', name: 'clear_tool_uses', betas: ['edits'] },
    { where: 'field', name: 'thinking.block_binding', betas: ['binding'] },
    { where: 'block', name: 'tool_addition', betas: ['tool-changes', 'inline-tools'] },
  ],
  refusedFields: ['temperature', 'output_config.secret'],
  refusedBlocks: [
    { role: 'assistant', type: 'image' },
    { role: 'assistant', type: 'document' },
    { role: 'user', type: 'text', field: 'citations' },
  ],
}

export const fullProfile: ProviderProfile = defineMessagesProfile(everything)

/** The full profile with some groups changed in part. */
export function profileWith(changes: ProviderProfileOverrides): ProviderProfile {
  const groups = Object.entries(changes).map(([name, change]) => {
    const base: unknown = fullProfile[name as keyof ProviderProfile]
    const isGroup = typeof change === 'object' && change !== null && !Array.isArray(change)
    return [name, isGroup ? { ...(base as object), ...change } : change]
  })
  return defineMessagesProfile({ ...fullProfile, ...Object.fromEntries(groups) })
}

/** A request that breaks rules, and exactly the findings it must have: code and path. */
export interface BadRequest {
  readonly why: string
  readonly payload: unknown
  readonly findings: readonly (readonly [FindingCode, string])[]
  readonly profile?: ProviderProfile
}

export interface GoodRequest {
  readonly why: string
  readonly payload: unknown
  readonly profile?: ProviderProfile
}

type Loose = Readonly<Record<string, unknown>>

export const tool = (name: string, more: Loose = {}): Loose => ({
  name,
  input_schema: { type: 'object' },
  ...more,
})

/** A tool that the provider runs. */
export const search: Loose = { type: 'search_1', name: 'web_search' }

export function request(messages: unknown, more: Loose = {}): Loose {
  const tools = [tool('read'), search]
  return { model: 'm', max_tokens: 4096, tools, betas: ALL_BETAS, messages, ...more }
}

/** For calls that the types would not let through. */
export function asPayload(value: unknown): Payload {
  return value as Payload
}

export const user = (content: unknown, more: Loose = {}): Loose => ({ role: 'user', content, ...more })
export const assistant = (content: unknown, more: Loose = {}): Loose => ({
  role: 'assistant',
  content,
  ...more,
})
export const system = (content: unknown, more: Loose = {}): Loose => ({ role: 'system', content, ...more })

export const text = (words = 'words', more: Loose = {}): Loose => ({ type: 'text', text: words, ...more })
export const call = (id: string, more: Loose = {}): Loose => ({
  type: 'tool_use',
  id,
  name: 'read',
  input: {},
  ...more,
})
export const result = (id: string, more: Loose = {}): Loose => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'ok',
  ...more,
})
export const thinking = (more: Loose = {}): Loose => ({
  type: 'thinking',
  thinking: '',
  signature: 'sig',
  ...more,
})
export const serverCall = (id: string, more: Loose = {}): Loose => ({
  type: 'server_tool_use',
  id,
  name: 'web_search',
  input: {},
  ...more,
})
export const serverResult = (id: string, more: Loose = {}): Loose => ({
  type: 'web_search_tool_result',
  tool_use_id: id,
  content: [],
  ...more,
})
export const summary = (more: Loose = {}): Loose => ({
  type: 'compaction',
  content: 'so far',
  signature: 'sig',
  ...more,
})
export const image = (more: Loose = {}): Loose => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
  ...more,
})
export const mark = (ttl?: string): Loose => ({
  cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) },
})

/** A PNG of the given size, as far as its head. */
export function png(width: number, height: number): Loose {
  const bytes = Buffer.alloc(24)
  Buffer.from('\x89PNG\r\n\x1a\n', 'latin1').copy(bytes)
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return image({ source: { type: 'base64', media_type: 'image/png', data: bytes.toString('base64') } })
}

/** Which change loses which level of the cache, one row per change, and what the provider's diagnostics report. */
import type { Simulator, SimulatorOptions } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import {
  assistant,
  HOUR,
  MARK,
  postMessage,
  type RequestSettings,
  readUsageFigures,
  simulate,
  TOOL,
  text,
  tokens,
  user,
} from './ask.ts'

/** Three levels of 600 tokens and more, each with its marker. */
const TOOLS = [{ ...TOOL, description: tokens(600, 'tool') }]
const SYSTEM = [text(tokens(600, 'system'), MARK)]
const MESSAGES = [user(text(tokens(600, 'message'), MARK))]
const REQUEST = { tools: [{ ...TOOLS[0], ...MARK }], system: SYSTEM, messages: MESSAGES }
const LOOK = [{ ...TOOLS[0], ...MARK }]
const LONG = {
  tools: [{ ...TOOLS[0], ...HOUR }],
  system: [text(tokens(600, 'system'), HOUR)],
  messages: [user(text(tokens(600, 'message'), HOUR))],
}

type Kept = 'nothing' | 'tools' | 'system' | 'messages'

interface Row {
  readonly name: string
  readonly before?: object
  readonly after: object
  readonly asked?: RequestSettings
  /** The same for both requests. */
  readonly always?: RequestSettings
  readonly options?: SimulatorOptions
  /** The deepest level that is still read. */
  readonly kept: Kept
  /** The type of `cache_miss_reason`; null if the requests themselves do not differ. */
  readonly reason: string | null
}

const SEARCH = { type: 'web_search_20260318', name: 'web_search' }
const FETCH = { type: 'web_fetch_20260318', name: 'web_fetch' }
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aaaa' } }
const document = (enabled: boolean): object => ({
  type: 'document',
  source: { type: 'text', media_type: 'text/plain', data: 'paper' },
  citations: { enabled },
})
const marked = (...blocks: readonly object[]): readonly object[] => [
  user(text(tokens(600, 'message')), ...blocks.slice(0, -1), { ...blocks.at(-1), ...MARK }),
]
const FORMAT = { format: { type: 'json_schema', schema: { type: 'object' } } }
const EDITS = { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }
const FAST = { betas: ['fast-mode-2026-02-01'] }
const CONTEXT_BETA = { betas: ['context-management-2025-06-27'] }
const ADDED = {
  role: 'system',
  content: [
    { type: 'tool_addition', tool: { type: 'tool_definition', definition: { ...TOOL, name: 'more' } } },
  ],
}

const ROWS: readonly Row[] = [
  { name: 'nothing changed', after: {}, kept: 'messages', reason: null },
  {
    name: 'a tool renamed',
    after: { tools: [{ ...LOOK[0], name: 'peek' }] },
    kept: 'nothing',
    reason: 'tools_changed',
  },
  {
    name: 'a tool described anew',
    after: { tools: [{ ...LOOK[0], description: tokens(600, 'other') }] },
    kept: 'nothing',
    reason: 'tools_changed',
  },
  {
    name: 'a tool with another schema',
    after: { tools: [{ ...LOOK[0], input_schema: { type: 'object', properties: { at: {} } } }] },
    kept: 'nothing',
    reason: 'tools_changed',
  },
  {
    name: 'tools in another order',
    before: { tools: [{ ...TOOL, name: 'first' }, ...LOOK] },
    after: { tools: [...LOOK, { ...TOOL, name: 'first' }] },
    kept: 'nothing',
    reason: 'tools_changed',
  },
  {
    name: 'web search switched on',
    after: { tools: [...LOOK, SEARCH] },
    kept: 'tools',
    reason: 'tools_changed',
  },
  {
    name: 'web fetch switched on',
    after: { tools: [...LOOK, FETCH] },
    kept: 'tools',
    reason: 'tools_changed',
  },
  {
    name: 'web search switched off',
    before: { tools: [...LOOK, SEARCH] },
    after: {},
    kept: 'tools',
    reason: 'tools_changed',
  },
  {
    name: 'citations switched on',
    before: { messages: marked(document(false)) },
    after: { messages: marked(document(true)) },
    kept: 'tools',
    reason: 'messages_changed',
  },
  {
    name: 'the system prompt',
    after: { system: [text(tokens(600, 'else'), MARK)] },
    kept: 'tools',
    reason: 'system_changed',
  },
  { name: 'speed', after: { speed: 'fast' }, always: FAST, kept: 'tools', reason: 'model_changed' },
  {
    name: 'speed, said to be standard',
    after: { speed: 'standard' },
    always: FAST,
    kept: 'messages',
    reason: null,
  },
  { name: 'tool_choice', after: { tool_choice: { type: 'any' } }, kept: 'system', reason: 'unavailable' },
  {
    name: 'tool_choice, said to be auto',
    after: { tool_choice: { type: 'auto' } },
    kept: 'messages',
    reason: null,
  },
  {
    name: 'disable_parallel_tool_use',
    after: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    kept: 'system',
    reason: 'unavailable',
  },
  {
    name: 'an image added at the end',
    after: { messages: [...MESSAGES, assistant('ok'), user(IMAGE)] },
    kept: 'system',
    reason: null,
  },
  {
    name: 'the mode of thinking',
    after: { thinking: { type: 'disabled' } },
    kept: 'system',
    reason: 'unavailable',
  },
  {
    name: 'the default mode of thinking, said',
    after: { thinking: { type: 'adaptive' } },
    kept: 'messages',
    reason: null,
  },
  {
    name: 'what is shown of thinking',
    after: { thinking: { type: 'adaptive', display: 'summarized' } },
    kept: 'messages',
    reason: null,
  },
  {
    name: 'the thinking budget',
    before: {
      model: 'claude-opus-4-6',
      max_tokens: 4_000,
      thinking: { type: 'enabled', budget_tokens: 1_024 },
      system: [text(tokens(4_200), MARK)],
    },
    after: {
      model: 'claude-opus-4-6',
      max_tokens: 4_000,
      thinking: { type: 'enabled', budget_tokens: 2_048 },
      system: [text(tokens(4_200), MARK)],
    },
    kept: 'system',
    reason: 'unavailable',
  },
  { name: 'effort', after: { output_config: { effort: 'low' } }, kept: 'system', reason: 'unavailable' },
  {
    name: 'the default effort, said',
    after: { output_config: { effort: 'high' } },
    kept: 'messages',
    reason: null,
  },
  { name: 'the model', after: { model: 'claude-opus-5-5' }, kept: 'nothing', reason: 'model_changed' },
  {
    name: 'an earlier message',
    after: { messages: [user(text(tokens(600, 'edited'), MARK))] },
    kept: 'system',
    reason: 'messages_changed',
  },
  {
    name: 'a message removed',
    before: { messages: [user('first'), assistant('ok'), ...MESSAGES] },
    after: {},
    kept: 'system',
    reason: 'messages_changed',
  },
  { name: 'output format', after: { output_config: FORMAT }, kept: 'system', reason: 'unavailable' },
  {
    name: 'output format, not keyed',
    after: { output_config: FORMAT },
    options: { cacheKey: { outputFormat: false } },
    kept: 'messages',
    reason: 'unavailable',
  },
  {
    name: 'betas',
    after: {},
    asked: { betas: ['interleaved-thinking-2025-05-14'] },
    kept: 'system',
    reason: 'unavailable',
  },
  {
    name: 'betas, not keyed',
    after: {},
    asked: { betas: ['interleaved-thinking-2025-05-14'] },
    options: { cacheKey: { betas: false } },
    kept: 'messages',
    reason: 'unavailable',
  },
  {
    name: 'a beta that cannot touch the prompt',
    after: {},
    asked: { betas: ['compact-2026-09-04'] },
    kept: 'messages',
    reason: null,
  },
  {
    name: 'context_management',
    before: {},
    after: EDITS,
    asked: CONTEXT_BETA,
    options: { cacheKey: { betas: false } },
    kept: 'messages',
    reason: 'unavailable',
  },
  {
    name: 'context_management, keyed',
    after: EDITS,
    asked: CONTEXT_BETA,
    options: { cacheKey: { betas: false, contextManagement: true } },
    kept: 'system',
    reason: 'unavailable',
  },
  { name: 'the lifetime of the markers', after: LONG, kept: 'messages', reason: null },
  {
    name: 'the lifetime of the markers, keyed',
    after: LONG,
    options: { cacheKey: { ttl: true } },
    kept: 'nothing',
    reason: null,
  },
  {
    name: 'speed, not keyed',
    after: { speed: 'fast' },
    always: FAST,
    options: { cacheKey: { speed: false } },
    kept: 'messages',
    reason: 'model_changed',
  },
  {
    name: 'metadata, max_tokens, stop_sequences',
    after: { metadata: { user_id: 'u' }, max_tokens: 9, stop_sequences: ['END'] },
    kept: 'messages',
    reason: null,
  },
  {
    name: 'markers moved',
    after: { tools: TOOLS, system: [text(tokens(600, 'system'))], messages: MESSAGES },
    kept: 'messages',
    reason: null,
  },
  {
    name: 'a system message appended',
    after: { messages: [...MESSAGES, { role: 'system', content: 'be brief' }] },
    kept: 'messages',
    reason: null,
  },
  {
    name: 'a tool defined in the conversation',
    after: { messages: [...MESSAGES, ADDED] },
    asked: { betas: ['inline-tools-2026-09-15'] },
    options: { cacheKey: { betas: false } },
    kept: 'messages',
    reason: 'unavailable',
  },
  {
    name: 'the first tool of all, defined in the conversation',
    before: { tools: [] },
    after: { tools: [], messages: [...MESSAGES, ADDED] },
    asked: { betas: ['inline-tools-2026-09-15'] },
    options: { cacheKey: { betas: false } },
    kept: 'nothing',
    reason: 'unavailable',
  },
  {
    name: 'a deferred tool declared',
    after: { tools: [...LOOK, { ...TOOL, name: 'later', defer_loading: true }] },
    kept: 'messages',
    reason: null,
  },
]

describe('a change between two requests', () => {
  it.each(ROWS)(
    '$name: keeps $kept, is called $reason',
    async ({ before = {}, after, always, asked = always, options, kept, reason }) => {
      const simulator = simulate(options)
      const diagnostics = (id: string | null): object => ({ diagnostics: { previous_message_id: id } })
      const first = await postMessage(simulator, { ...REQUEST, ...before, ...diagnostics(null) }, always)
      const told = await postMessage(
        simulator,
        { ...REQUEST, ...after, ...diagnostics(first.body.id) },
        asked,
      )
      expect(told.status).toBe(200)
      expect(readUsageFigures(told).read).toBe(tokensUpTo(simulator, kept))
      expect(told.body.diagnostics?.cache_miss_reason.type ?? null).toBe(reason)
    },
  )

  /** Tokens that the first request cached up to that level. */
  function tokensUpTo(simulator: Simulator, kept: Kept): number {
    const breakpoints = simulator.requests[0]?.cache?.breakpoints ?? []
    return breakpoints.findLast(({ path }) => path.startsWith(kept))?.tokens ?? 0
  }
})

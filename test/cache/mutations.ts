/** Ways to lose the cache of a running conversation on the simulator, each with what a person must be told of it. */
import type { CacheBreakReason, RequestDifference } from '@tidemark/core/cache/cache-break-types'
import type { TracedMessage } from '@tidemark/core/context/flatten-context'
import { type Block, toBlocks } from '@tidemark/core/log/block'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import type { PrefixSnapshot } from '@tidemark/core/log/record'
import type { CacheTalk, CacheTalkOptions, Change } from './cache-talk.ts'

export interface Mutation {
  readonly name: string
  readonly reason: CacheBreakReason
  /** What else is seen to have changed with it. */
  readonly also?: readonly RequestDifference[]
  /** How the sentence names what happened. */
  readonly fact: string
  /** What it advises. */
  readonly advice: string
  readonly change?: Change
  /** Done before the request, to the conversation, the clock or the provider. */
  readonly befall?: (talk: CacheTalk) => void | Promise<void>
  /** Done instead to the conversation that loses nothing. */
  readonly otherwise?: (talk: CacheTalk) => void
  readonly options?: CacheTalkOptions
  /** What the provider itself says, where it is asked; null where it sees no difference. */
  readonly word: string | null
}

const KEEP_PARAMETERS = 'Keep it the same for the session, or change it right after a compaction.'
const KEEP_SECTIONS =
  'Append what changes as a message; the system prompt takes it over with the next prefix snapshot.'
const KEEP_MESSAGES = 'Leave what was sent as it is: add to the end, or clear in batches.'

const SEARCH = { name: 'mcp__search', description: 'Searches.', input_schema: { type: 'object' } }
const FAST = 'fast-mode-2026-02-01'
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const IMAGE: Block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }

const KEEP_ALL = { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] }
const KEEP_ALL_TEXT = JSON.stringify(KEEP_ALL)

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a section rewritten in place',
    reason: { kind: 'section-changed', name: 'rules', characters: 9 },
    fact: 'section rules of the system prompt changed (+9 characters)',
    advice: KEEP_SECTIONS,
    change: sections((all) =>
      all.map((each) => (each.name === 'rules' ? { ...each, text: `${each.text} changed.` } : each)),
    ),
    word: 'system_changed',
  },
  {
    name: 'a section added',
    reason: { kind: 'sections-added', names: ['language'] },
    fact: 'sections were added to the system prompt (language)',
    advice: KEEP_SECTIONS,
    change: sections((all) => [...all, { name: 'language', part: 'dynamic', text: 'Speak English.' }]),
    word: 'system_changed',
  },
  {
    name: 'sections in another order',
    reason: { kind: 'sections-reordered', names: ['git', 'environment'] },
    fact: "the order of the system prompt's sections changed (git, environment)",
    advice: 'Send the sections in a fixed order.',
    change: sections((all) => [...all.slice(0, -2), ...all.slice(-2).reverse()]),
    word: 'system_changed',
  },
  {
    name: 'a tool added',
    reason: { kind: 'tools-added', names: ['mcp__search'] },
    fact: 'tools were added (mcp__search)',
    advice: 'Connect tools before the first prompt, or let late ones come with the next prefix snapshot.',
    change: tools((all) => [...all, SEARCH]),
    word: 'tools_changed',
  },
  {
    name: 'a tool removed',
    reason: { kind: 'tools-removed', names: ['TodoWrite'] },
    fact: 'tools were removed (TodoWrite)',
    advice: 'Deny a tool locally and leave its definition where it is.',
    change: tools((all) => all.filter(({ name }) => name !== 'TodoWrite')),
    word: 'tools_changed',
  },
  {
    name: 'tools in another order',
    reason: { kind: 'tools-reordered', names: ['Edit', 'Bash'] },
    fact: 'the order of the tools changed (Edit, Bash)',
    advice: 'Send the tools in a fixed order.',
    change: tools(([first, second, ...rest]) =>
      [second, first, ...rest].filter((tool) => tool !== undefined),
    ),
    word: 'tools_changed',
  },
  {
    name: 'a schema changed under the same name',
    reason: { kind: 'tool-changed', name: 'Grep', characters: 29 },
    fact: 'the definition of tool Grep changed (+29 characters)',
    advice:
      'Keep tool definitions unchanged between prefix snapshots; a server that rewrites its schema breaks the cache each time.',
    change: tools((all) => all.map((tool) => (tool.name === 'Grep' ? strict(tool) : tool))),
    word: 'tools_changed',
  },
  {
    name: 'another model',
    reason: { kind: 'model-changed', before: 'claude-opus-5', after: 'claude-sonnet-5' },
    fact: 'the model changed (claude-opus-5 → claude-sonnet-5)',
    advice: 'Each model has a cache of its own: switch right after a compaction.',
    change: { epoch: (epoch) => ({ ...epoch, model: 'claude-sonnet-5' }) },
    word: 'model_changed',
  },
  {
    name: 'another speed',
    reason: { kind: 'speed-changed', before: null, after: 'fast' },
    fact: 'the speed changed (not set → fast)',
    advice: KEEP_PARAMETERS,
    change: parameters({ speed: 'fast' }),
    options: { parameters: { betas: [FAST] } },
    word: 'model_changed',
  },
  {
    name: 'another effort',
    reason: { kind: 'effort-changed', before: null, after: 'low' },
    fact: 'the effort changed (not set → low)',
    advice: KEEP_PARAMETERS,
    change: parameters({ output_config: { effort: 'low' } }),
    word: 'unavailable',
  },
  {
    name: 'other thinking settings',
    reason: { kind: 'thinking-changed', before: '{"type":"adaptive"}', after: '{"type":"disabled"}' },
    fact: 'the thinking settings changed ({"type":"adaptive"} → {"type":"disabled"})',
    advice: KEEP_PARAMETERS,
    change: parameters({ thinking: { type: 'disabled' } }),
    word: 'unavailable',
  },
  {
    name: 'a beta named',
    reason: { kind: 'betas-changed', added: ['context-1m-2025-08-07'], removed: [] },
    fact: 'the betas changed (+context-1m-2025-08-07)',
    advice: KEEP_PARAMETERS,
    change: { epoch: (epoch) => withBeta(epoch, 'context-1m-2025-08-07') },
    word: 'unavailable',
  },
  {
    name: 'tool_choice',
    reason: { kind: 'tool-choice-changed', before: null, after: '{"type":"none"}' },
    fact: 'tool_choice changed (not set → {"type":"none"})',
    advice: 'Deny tools locally; tool_choice alone misses the cache of all messages.',
    change: parameters({ tool_choice: { type: 'none' } }),
    word: 'unavailable',
  },
  {
    name: 'a format of the output',
    reason: {
      kind: 'parameter-changed',
      name: 'output',
      before: null,
      after: '{"format":{"type":"json_schema","schema":{"type":"object"}}}',
    },
    fact: 'parameter output changed (not set → {"format":{"type":"json_schema","schema":{"type":"object"}}})',
    advice: KEEP_PARAMETERS,
    change: parameters({ output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } }),
    word: 'unavailable',
  },
  {
    name: 'edits of its own asked of the provider, where it caches by them',
    reason: { kind: 'parameter-changed', name: 'context_management', before: null, after: KEEP_ALL_TEXT },
    fact: 'parameter context_management changed (not set → {"edits":[{"type":"clear_thinking_20251015","keep":"all"}]})',
    advice: KEEP_PARAMETERS,
    change: parameters({ context_management: KEEP_ALL }),
    options: {
      parameters: { betas: ['context-management-2025-06-27'] },
      simulator: { cacheKey: { contextManagement: true } },
    },
    word: 'unavailable',
  },
  {
    name: 'the lifetime of the markers, where the provider caches by it',
    reason: { kind: 'marker-ttl-changed', zone: 'system', before: '5m', after: '1h' },
    also: [{ kind: 'marker-ttl-changed', zone: 'messages', before: '5m', after: '1h' }],
    fact: 'the lifetime asked for in system changed (5m → 1h)',
    advice: 'Ask for the same lifetime and scope throughout a session.',
    change: { ttl: '1h' },
    options: { simulator: { cacheKey: { ttl: true } } },
    word: null,
  },
  {
    name: 'a message rewritten by a hook',
    reason: { kind: 'message-changed', index: 4, origin: 'r-9', by: 'hook', characters: 10 },
    fact: 'message 4, record r-9, was rewritten by a hook (+10 characters)',
    advice: KEEP_MESSAGES,
    change: {
      messages: at(4, (message) => withResult(message, (text) => `${text} (checked)`)),
      touched: new Map([[4, 'hook']]),
    },
    word: 'messages_changed',
  },
  {
    name: 'a message rewritten, nobody says by whom',
    reason: { kind: 'message-changed', index: 4, origin: 'r-9', by: 'unknown', characters: 10 },
    fact: 'message 4, record r-9, was rewritten (+10 characters)',
    advice: KEEP_MESSAGES,
    change: { messages: at(4, (message) => withResult(message, (text) => `${text} (checked)`)) },
    word: 'messages_changed',
  },
  {
    name: 'a result cleared without a word',
    reason: { kind: 'message-changed', index: 2, origin: 'r-6', by: 'clearing', characters: -2057 },
    fact: 'message 2, record r-6, was rewritten by a clearing (−2,057 characters)',
    advice: KEEP_MESSAGES,
    befall: ({ told }) => told.clear(told.clearable.slice(1, 2)),
    word: 'messages_changed',
  },
  {
    name: 'the first image',
    reason: { kind: 'image-added', index: 24, origin: 'r-47' },
    fact: 'message 24 brought the first image',
    advice: 'Where images are to come, one at the start costs less than one late.',
    befall: saying([{ type: 'text', text: 'See here.' }, IMAGE]),
    otherwise: saying([{ type: 'text', text: 'See here.' }]),
    word: null,
  },
  {
    name: 'a turn wider than the look-back',
    reason: { kind: 'look-back-outrun', lookBack: 20 },
    fact: 'the turn added more than the 20 positions a marker looks back',
    advice: 'A lagging marker keeps such turns within reach.',
    befall: saying(notes(24)),
    otherwise: saying(notes(2)),
    options: { clears: false },
    word: null,
  },
  {
    name: 'a gap of five minutes',
    reason: { kind: 'expired', ttl: '5m', gapMs: 300_000 },
    fact: '5 min went by since the request before, and an entry lives 5m',
    advice:
      'A 1-hour cache lifetime would have survived the pause, but its writes cost more: cache.ttl "auto" decides by the pauses of the session.',
    befall: (talk) => talk.clock.advance(290_000),
    word: null,
  },
  {
    name: 'a gap of more than five minutes',
    reason: { kind: 'expired', ttl: '5m', gapMs: 310_000 },
    fact: '5 min 10 s went by since the request before, and an entry lives 5m',
    advice:
      'A 1-hour cache lifetime would have survived the pause, but its writes cost more: cache.ttl "auto" decides by the pauses of the session.',
    befall: (talk) => talk.clock.advance(300_000),
    word: null,
  },
  {
    name: 'a gap of more than an hour',
    reason: { kind: 'expired', ttl: '1h', gapMs: 3_610_000 },
    fact: '60 min 10 s went by since the request before, and an entry lives 1h',
    advice: 'After such a pause all is written again: clear or compact before the next prompt.',
    befall: (talk) => talk.clock.advance(3_600_000),
    options: { ttl: '1h' },
    word: null,
  },
  {
    name: 'eviction',
    reason: { kind: 'evicted' },
    fact: 'nothing in the request changed and the entry should still live: it was lost on the side of the provider',
    advice: 'Nothing to do here; where it happens often, ask the provider.',
    befall: (talk) => talk.evict(),
    word: null,
  },
  {
    name: 'eviction, while the betas come in another order',
    reason: { kind: 'evicted' },
    fact: 'nothing in the request changed and the entry should still live: it was lost on the side of the provider',
    advice: 'Nothing to do here; where it happens often, ask the provider.',
    change: { epoch: turnedBetas },
    befall: (talk) => talk.evict(),
    options: { parameters: { betas: ['context-1m-2025-08-07', 'interleaved-thinking-2025-05-14'] } },
    word: null,
  },
]

type Rewrite<Part> = (part: Part) => Part

function sections(change: Rewrite<PrefixSnapshot['sections']>): Change {
  return { epoch: (epoch) => ({ ...epoch, sections: change(epoch.sections) }) }
}

function tools(change: Rewrite<PrefixSnapshot['tools']>): Change {
  return { epoch: (epoch) => ({ ...epoch, tools: change(epoch.tools) }) }
}

function strict(tool: JsonObject): JsonObject {
  const schema = isObject(tool.input_schema) ? tool.input_schema : {}
  return { ...tool, input_schema: { ...schema, additionalProperties: false } }
}

function parameters(more: JsonObject): Change {
  return { epoch: (epoch) => ({ ...epoch, parameters: { ...epoch.parameters, ...more } }) }
}

function withBeta(epoch: PrefixSnapshot, beta: string): PrefixSnapshot {
  const { betas } = epoch.parameters
  return {
    ...epoch,
    parameters: { ...epoch.parameters, betas: [...(Array.isArray(betas) ? betas : []), beta] },
  }
}

export function turnedBetas(epoch: PrefixSnapshot): PrefixSnapshot {
  const { betas } = epoch.parameters
  return {
    ...epoch,
    parameters: { ...epoch.parameters, betas: Array.isArray(betas) ? betas.toReversed() : [] },
  }
}

function at(index: number, change: Rewrite<TracedMessage>): NonNullable<Change['messages']> {
  return (all) => all.map((message, place) => (place === index ? change(message) : message))
}

function withResult({ message, ...rest }: TracedMessage, change: (text: string) => string): TracedMessage {
  const [first, ...others] = toBlocks(message.content)
  return {
    ...rest,
    message: {
      ...message,
      content: [{ ...first, type: 'tool_result', content: change(String(first?.content)) }, ...others],
    },
  }
}

function notes(count: number): readonly Block[] {
  return Array.from({ length: count }, (_, index) => ({ type: 'text', text: `By the way, ${index}.` }))
}

function saying(content: readonly Block[]): (talk: CacheTalk) => void {
  return ({ told }) => {
    told.builder.user(content)
  }
}

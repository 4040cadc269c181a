/** Ways to break a cache, each on a request that would otherwise have read it, with the reason that must be given. */
import type { CacheBreakReason, RequestDifference } from '../../src/cache/cache-break-types.ts'
import type { SentParameters, SentPrefixPiece, SentRequest } from '../../src/cache/sent-request.ts'
import type { TracedMessage } from '../../src/context/flatten-context.ts'
import { type Block, toBlocks } from '../../src/log/block.ts'
import { AppendList } from '../../src/log/persistent-collections.ts'
import type { ProviderCache, ProviderCacheOptions } from '../provider-cache.ts'
import { type Lifetime, ONE_HOUR } from './talk.ts'

export interface Mutation {
  readonly name: string
  readonly reason: CacheBreakReason
  readonly mutate: (sent: SentRequest) => SentRequest
  /** What else is seen to have changed with it. */
  readonly also?: readonly RequestDifference[]
  /** Dollars for a million tokens processed again, where they are not 5-minute writes. */
  readonly rate?: number
  readonly lifetime?: Lifetime
  readonly habits?: ProviderCacheOptions
  /** Done to the provider, not to the request. */
  readonly befall?: (cache: ProviderCache) => void
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a section rewritten in place',
    reason: { kind: 'section-changed', name: 'rules', characters: 9 },
    mutate: system((all) =>
      all.map((piece) => (piece.name === 'rules' ? longer(piece, ' changed.') : piece)),
    ),
  },
  {
    name: 'a section added',
    reason: { kind: 'sections-added', names: ['git'] },
    mutate: system((all) => [...all.slice(0, 1), { name: 'git', text: 'clean' }, ...all.slice(1)]),
  },
  {
    name: 'a section removed',
    reason: { kind: 'sections-removed', names: ['rules'] },
    mutate: system((all) => all.filter(({ name }) => name !== 'rules')),
  },
  {
    name: 'sections in another order',
    reason: { kind: 'sections-reordered', names: ['rules', 'identity'] },
    mutate: system(([first, second, ...rest]) => [second, first, ...rest].flatMap((piece) => piece ?? [])),
  },
  {
    name: 'a tool added',
    reason: { kind: 'tools-added', names: ['mcp__search'] },
    mutate: tools((all) => [...all, { name: 'mcp__search', text: '{"name":"mcp__search"}' }]),
  },
  {
    name: 'a tool removed',
    reason: { kind: 'tools-removed', names: ['Edit'] },
    mutate: tools((all) => all.filter(({ name }) => name !== 'Edit')),
  },
  {
    name: 'tools in another order',
    reason: { kind: 'tools-reordered', names: ['Read', 'Bash'] },
    mutate: tools((all) => all.toReversed()),
  },
  {
    name: 'a schema changed under the same name',
    reason: { kind: 'tool-changed', name: 'Edit', characters: 0 },
    mutate: tools((all) =>
      all.map((piece) =>
        piece.name === 'Edit' ? { ...piece, text: piece.text.replace('words', 'WORDS') } : piece,
      ),
    ),
  },
  {
    name: 'another model',
    reason: { kind: 'model-changed', before: 'model-a', after: 'model-b' },
    mutate: parameters({ model: 'model-b' }),
  },
  {
    name: 'another speed',
    reason: { kind: 'speed-changed', before: null, after: 'fast' },
    mutate: parameters({ speed: 'fast' }),
  },
  {
    name: 'another effort',
    reason: { kind: 'effort-changed', before: 'high', after: 'low' },
    mutate: parameters({ effort: 'low' }),
  },
  {
    name: 'other thinking settings',
    reason: { kind: 'thinking-changed', before: '{"type":"adaptive"}', after: '{"type":"disabled"}' },
    mutate: parameters({ thinking: '{"type":"disabled"}' }),
  },
  {
    name: 'a beta added, another gone',
    reason: { kind: 'betas-changed', added: ['two'], removed: ['one'] },
    mutate: parameters({ betas: ['two'] }),
  },
  {
    name: 'tool_choice',
    reason: { kind: 'tool-choice-changed', before: null, after: '{"type":"none"}' },
    mutate: parameters({ toolChoice: '{"type":"none"}' }),
  },
  {
    name: 'something in the extra body',
    reason: { kind: 'parameter-changed', name: 'output_format', before: null, after: '{"type":"json"}' },
    mutate: parameters({ others: { output_format: '{"type":"json"}' } }),
  },
  {
    name: 'the lifetime of a marker, where the provider caches by it',
    reason: { kind: 'marker-ttl-changed', zone: 'system', before: '5m', after: '1h' },
    also: [{ kind: 'marker-ttl-changed', zone: 'messages', before: '5m', after: '1h' }],
    rate: 4,
    habits: { keysByMarker: true },
    mutate: (sent) => ({ ...sent, markers: sent.markers.map((each) => ({ ...each, ...ONE_HOUR })) }),
  },
  {
    name: 'the scope of a marker, where the provider caches by it',
    reason: { kind: 'marker-scope-changed', zone: 'system', before: null, after: 'global' },
    habits: { keysByMarker: true },
    mutate: (sent) => ({
      ...sent,
      markers: sent.markers.map((each) => (each.zone === 'system' ? { ...each, scope: 'global' } : each)),
    }),
  },
  {
    name: 'no marker on the messages any more',
    reason: { kind: 'markers-removed', zone: 'messages' },
    rate: 2,
    mutate: (sent) => ({ ...sent, markers: sent.markers.filter(({ zone }) => zone !== 'messages') }),
  },
  {
    name: 'a message rewritten by a hook',
    reason: { kind: 'message-changed', index: 4, origin: 'r4', by: 'hook', characters: 5 },
    mutate: touching(
      4,
      'hook',
      message(4, (sent) => withText(sent, 'words', 'many words')),
    ),
  },
  {
    name: 'a message rewritten, nobody says by whom',
    reason: { kind: 'message-changed', index: 4, origin: 'r4', by: 'unknown', characters: 0 },
    mutate: message(4, (sent) => withText(sent, 'words', 'WORDS')),
  },
  {
    name: 'a result cleared without a word',
    reason: { kind: 'message-changed', index: 4, origin: 'r4', by: 'clearing', characters: -4293 },
    mutate: message(4, (sent) => cleared(sent)),
  },
  {
    name: 'a message taken out by the host',
    reason: { kind: 'message-removed', index: 3, origin: 'r3', by: 'host', characters: -138 },
    mutate: touching(
      3,
      'host',
      messages((all) => all.filter((_, index) => index !== 3 && index !== 4)),
    ),
  },
  {
    name: 'a message put between others',
    reason: { kind: 'message-inserted', index: 3, origin: 'note', by: 'unknown', characters: 35 },
    mutate: messages((all) => [...all.slice(0, 3), note('note'), ...all.slice(3)]),
  },
  {
    name: 'the first image',
    reason: { kind: 'image-added', index: 23, origin: 'image' },
    mutate: messages((all) => [...all, image()]),
  },
  {
    name: 'a turn wider than the look-back',
    reason: { kind: 'look-back-outrun', lookBack: 20 },
    mutate: messages((all) => [...all, ...Array.from({ length: 21 }, (_, index) => note(`note-${index}`))]),
  },
  {
    name: 'a gap longer than five minutes',
    reason: { kind: 'expired', ttl: '5m', gapMs: 301_000 },
    mutate: later(300_000),
  },
  {
    name: 'a gap longer than an hour',
    reason: { kind: 'expired', ttl: '1h', gapMs: 3_601_000 },
    rate: 4,
    lifetime: ONE_HOUR,
    mutate: later(3_600_000),
  },
  {
    name: 'eviction',
    reason: { kind: 'evicted' },
    mutate: (sent) => sent,
    befall: (cache) => cache.evict(),
  },
]

function system(
  change: (pieces: readonly SentPrefixPiece[]) => readonly SentPrefixPiece[],
): Mutation['mutate'] {
  return (sent) => ({ ...sent, system: change(sent.system), markers: sent.markers })
}

function tools(
  change: (pieces: readonly SentPrefixPiece[]) => readonly SentPrefixPiece[],
): Mutation['mutate'] {
  return (sent) => ({ ...sent, tools: change(sent.tools) })
}

function parameters(changes: Partial<SentParameters>): Mutation['mutate'] {
  return (sent) => ({ ...sent, parameters: { ...sent.parameters, ...changes } })
}

function later(ms: number): Mutation['mutate'] {
  return (sent) => ({ ...sent, at: sent.at + ms })
}

/** The messages as a list nobody has seen before, as after a rewrite; the tail marker stays at their end. */
export function messages(
  change: (all: readonly TracedMessage[]) => readonly TracedMessage[],
): Mutation['mutate'] {
  return (sent) => {
    const all = change([...sent.messages.frozen, ...sent.messages.tail])
    const last = all.length - 1
    const block = toBlocks(all[last]?.message.content ?? []).length - 1
    const markers = sent.markers.map((each) =>
      each.zone === 'messages' ? { ...each, index: last, block } : each,
    )
    return { ...sent, markers, messages: { frozen: AppendList.of(all), tail: [] } }
  }
}

/** Who did it is told. */
function touching(index: number, hand: 'hook' | 'host', mutate: Mutation['mutate']): Mutation['mutate'] {
  return (sent) => ({ ...mutate(sent), touched: new Map([[index, hand]]) })
}

function message(at: number, change: (sent: TracedMessage) => TracedMessage): Mutation['mutate'] {
  return messages((all) => all.map((each, index) => (index === at ? change(each) : each)))
}

function longer(piece: SentPrefixPiece, more: string): SentPrefixPiece {
  return { ...piece, text: piece.text + more }
}

export function withText(sent: TracedMessage, from: string, to: string): TracedMessage {
  return withBlocks(sent, JSON.parse(JSON.stringify(toBlocks(sent.message.content)).replace(from, to)))
}

function withBlocks(sent: TracedMessage, content: readonly Block[]): TracedMessage {
  return { ...sent, message: { ...sent.message, content } }
}

function cleared(sent: TracedMessage): TracedMessage {
  const blocks = toBlocks(sent.message.content)
  return withBlocks(
    sent,
    blocks.map((block) => ({ ...block, content: '[Old tool result content cleared]' })),
  )
}

function note(origin: string): TracedMessage {
  return { message: { role: 'user', content: [{ type: 'text', text: 'by the way' }] }, origins: [origin] }
}

function image(): TracedMessage {
  const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
  return { message: { role: 'user', content: [{ type: 'image', source }] }, origins: ['image'] }
}

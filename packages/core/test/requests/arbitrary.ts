/** Requests by chance: mostly plausible, often wrong in one of the ways a provider refuses, sometimes no request at all. */
import fc from 'fast-check'
import { badRequests } from './bad.ts'
import { goodRequests } from './good.ts'
import {
  ALL_BETAS,
  call,
  image,
  mark,
  png,
  request,
  result,
  serverCall,
  serverResult,
  summary,
  text,
  thinking,
  tool,
} from './make.ts'

const ids = fc.constantFrom('a', 'b', 'c', 'd.e', '')
const marks = fc.constantFrom({}, {}, {}, mark(), mark('1h'), mark('2h'))

const blocks = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('words', 'more ', '', ' ').map((words) => text(words)) },
  { weight: 4, arbitrary: ids.map((id) => call(id)) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(ids, fc.array(fc.constantFrom(text(), image(), call('z'))))
      .map(([id, content]) => result(id, { content })),
  },
  { weight: 2, arbitrary: ids.map((id) => serverCall(id)) },
  { weight: 2, arbitrary: ids.map((id) => serverResult(id)) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      thinking(),
      thinking({ signature: '' }),
      { type: 'redacted_thinking', data: 'x' },
      summary(),
      summary({ signature: undefined }),
      png(9000, 1),
      png(1, 2001),
      { type: 'cache_edits', edits: [] },
      { type: 'tool_addition', tool: { type: 'tool_reference', name: 'late' } },
      { type: 'unknown' },
    ),
  },
)

const marked = fc.tuple(blocks, marks).map(([block, control]) => ({ ...block, ...control }))

const extras = fc.constantFrom(
  {},
  {},
  {},
  { clear_at: 'next_user_message' },
  { output_config: { effort: 'low' } },
  { id: 'x' },
)

const generated = fc
  .tuple(
    fc.constantFrom('user', 'assistant', 'user', 'assistant', 'system'),
    fc.oneof(fc.constantFrom('words', ''), fc.array(marked, { maxLength: 5 })),
    extras,
  )
  .map(([role, content, more]) => ({ role, content, ...more }))

const rows: readonly { readonly payload: unknown }[] = [...goodRequests, ...badRequests]

function messagesOf(payload: unknown): readonly unknown[] {
  const messages: unknown = (payload as { messages?: unknown } | null)?.messages
  return Array.isArray(messages) ? messages : []
}

const fromRows = fc.constantFrom(
  ...rows.map(({ payload }) => messagesOf(payload)).filter((list) => list.length > 0),
)

/** Up to a few dozen messages: pieces of the tables, and messages made by chance. */
export const someMessages: fc.Arbitrary<readonly unknown[]> = fc
  .array(fc.oneof(fromRows, fc.array(generated, { maxLength: 4 })), { maxLength: 5 })
  .map((pieces) => pieces.flat())

const settings = fc.record(
  {
    betas: fc.subarray([...ALL_BETAS]),
    tools: fc.constantFrom([], [tool('read')], [tool('read', mark()), tool('late')]),
    system: fc.constantFrom('prompt', [text('prompt', mark('1h'))], [text('')]),
    thinking: fc.constantFrom(
      { type: 'enabled', budget_tokens: 1024 },
      { type: 'adaptive' },
      { type: 'disabled' },
      1,
    ),
    tool_choice: fc.constantFrom({ type: 'any' }, { type: 'auto' }, { type: 'tool', name: 'read' }),
    cache_control: fc.constantFrom({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }, {}),
    compaction: fc.constantFrom({ type: 'summarize' }, 'summarize'),
    context_management: fc.constantFrom(
      { edits: [{ type: 'clear_thinking' }] },
      { edits: [{ type: 'compact' }] },
      [],
    ),
    max_tokens: fc.constantFrom(0, 1, 4096, -1),
  },
  { requiredKeys: [] },
)

/** Everything of a request but its messages. */
export const someSettings: fc.Arbitrary<Readonly<Record<string, unknown>>> = settings.map((more) => {
  const { messages: _, ...rest } = request([], more)
  return rest
})

const FIELDS = [
  'model',
  'max_tokens',
  'system',
  'tools',
  'tool_choice',
  'thinking',
  'betas',
  'cache_control',
  'context_management',
  'compaction',
  'output_config',
]
const KEYS = [
  'role',
  'content',
  'type',
  'text',
  'id',
  'tool_use_id',
  'name',
  'input',
  'source',
  'cache_control',
  'ttl',
  'edits',
  'tool',
  'clear_at',
  'signature',
  '__proto__',
]
const WORDS = [
  'user',
  'assistant',
  'system',
  'text',
  'tool_use',
  'tool_result',
  'server_tool_use',
  'x_tool_result',
  'thinking',
  'compaction',
  'image',
  'document',
  'base64',
  'ephemeral',
  'enabled',
]

/** JSON built from the words that requests are made of, put together without sense. */
const { nonsense } = fc.letrec<{ nonsense: unknown }>((tie) => ({
  nonsense: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(...WORDS, '', 0, 1, -1, null, true),
    fc.array(tie('nonsense'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie('nonsense'), { maxKeys: 5 }),
  ),
}))

const nonsenseMessages = fc.array(
  fc.oneof(
    generated,
    fc.tuple(generated, fc.array(nonsense)).map(([message, content]) => ({ ...message, content })),
  ),
)

/** Requests whose messages the engine has made, with any content; and any values in the fields around them. */
export const anyPayload: fc.Arbitrary<unknown> = fc.oneof(
  fc
    .tuple(fc.dictionary(fc.constantFrom(...FIELDS), nonsense, { maxKeys: 12 }), nonsenseMessages)
    .map(([fields, messages]) => ({ ...fields, messages })),
  fc
    .tuple(nonsenseMessages, someSettings, nonsense)
    .map(([messages, rest, tools]) => ({ ...rest, tools, messages })),
)

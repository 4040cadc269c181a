import {
  ALL_BETAS,
  assistant,
  call,
  type GoodRequest,
  mark,
  png,
  profileWith,
  request,
  result,
  summary,
  system,
  text,
  thinking,
  tool,
  user,
} from './make.ts'

const enabled = { thinking: { type: 'enabled', budget_tokens: 1024 } } as const

export const goodFeatures: readonly GoodRequest[] = [
  {
    why: 'a signed summary first, in a message of its own, and the assistant behind it',
    payload: request([assistant([summary(mark())]), assistant([thinking(), call('t')]), user([result('t')])]),
    profile: profileWith({ roles: { consecutive: 'refused' } }),
  },
  {
    why: 'a signed summary first in a user message',
    payload: request([user([summary(), text()]), assistant('a'), user('b')]),
  },
  {
    why: 'a signed summary first in an assistant message',
    payload: request([assistant([summary(), text()]), user('b')]),
  },
  {
    why: 'summaries by threshold, wherever they came',
    payload: request(
      [
        user('a'),
        assistant([summary({ signature: undefined }), text()]),
        user('b'),
        assistant([summary({ signature: null, content: null }), text()]),
        user('c'),
      ],
      { context_management: { edits: [{ type: 'compact' }] } },
    ),
  },
  {
    why: 'going on behind a summary by threshold',
    payload: request([user('a'), assistant([summary({ signature: undefined })])]),
  },
  {
    why: 'a summary on demand behind an answer',
    payload: request([user('a'), assistant('b ')], {
      compaction: { type: 'summarize', instructions: '😀'.repeat(2000) },
    }),
  },
  {
    why: 'instructions are counted in characters',
    payload: request([user('a')], { compaction: { type: 'summarize', instructions: '😀'.repeat(10) } }),
    profile: profileWith({ compaction: { maxInstructionCharacters: 10 } }),
  },
  {
    why: 'a summary on demand while thinking is enabled, behind an answer without any',
    payload: request([user('a'), assistant('b')], { ...enabled, compaction: { type: 'summarize' } }),
  },
  { why: 'fields of a message that are not there', payload: request([user('a', { id: undefined })]) },
  {
    why: 'a summary on demand of a summary',
    payload: request([assistant([summary()]), user('a')], { compaction: { type: 'summarize' } }),
  },
  {
    why: 'every edit',
    payload: request([user('a')], {
      thinking: { type: 'adaptive' },
      context_management: {
        edits: [
          { type: 'clear_thinking', keep: { type: 'thinking_turns', value: 1 } },
          {
            type: 'clear_tool_uses',
            trigger: { type: 'tool_uses', value: 5 },
            keep: { type: 'tool_uses', value: 0 },
            clear_at_least: { type: 'input_tokens', value: 20_000 },
            exclude_tools: ['todo'],
            clear_tool_inputs: ['write'],
          },
          {
            type: 'compact',
            trigger: { type: 'input_tokens', value: 50_000 },
            pause_after_compaction: true,
            instructions: 'short',
          },
        ],
      },
    }),
  },
  {
    why: 'all thinking kept, in both spellings',
    payload: request([user('a')], {
      context_management: { edits: [{ type: 'clear_thinking', keep: 'all' }] },
    }),
    profile: profileWith({ thinking: { whenAbsent: 'adaptive' } }),
  },
  {
    why: 'edits of a kind, kept by type',
    payload: request([user('a')], {
      thinking: { type: 'adaptive' },
      context_management: { edits: [{ type: 'clear_thinking', keep: { type: 'all' } }] },
    }),
  },
  {
    why: 'four markers, longer lifetimes first',
    payload: request(
      [
        user('a'),
        assistant([call('t', mark('5m'))]),
        user([result('t', { content: [text('b')], ...mark() })]),
      ],
      {
        tools: [tool('read', mark('1h'))],
        system: [text('s', { cache_control: { type: 'ephemeral', ttl: '1h', scope: 'global' } })],
      },
    ),
  },
  {
    why: 'three markers and an automatic one',
    payload: request(
      [user([text('a', mark('1h')), text('b', mark('1h')), text('c', mark()), text('d')])],
      mark(),
    ),
  },
  {
    why: 'an automatic marker on a block that has the same',
    payload: request(
      [user([text('a', mark('1h'))]), system('b', { clear_at: 'next_user_message' })],
      mark('1h'),
    ),
  },
  { why: 'an automatic marker on a string', payload: request([user('a')], mark('1h')) },
  {
    why: 'cache edits and references',
    payload: request([
      user('a'),
      assistant([call('t')]),
      user([
        result('t', { cache_reference: 't' }),
        { type: 'cache_edits', edits: [{ type: 'delete', cache_reference: 't' }] },
      ]),
    ]),
  },
  {
    why: 'tools of the provider, a toolset without a name, and choices',
    payload: request([user('a')], {
      tools: [
        tool('read'),
        { type: 'search_1', name: 'search' },
        { type: 'mcp_toolset', mcp_server_name: 'z' },
      ],
      tool_choice: { type: 'tool', name: 'read', disable_parallel_tool_use: true },
    }),
  },
  { why: 'warming the cache', payload: request([user('a')], { max_tokens: 0 }) },
  { why: 'diagnostics', payload: request([user('a')], { diagnostics: { previous_message_id: null } }) },
  {
    why: 'an answer begun',
    payload: request([user('a'), assistant('It is')]),
    profile: profileWith({ roles: { prefill: 'allowed' } }),
  },
  {
    why: 'an empty answer begun',
    payload: request([user('a'), assistant([])]),
    profile: profileWith({ roles: { prefill: 'allowed' } }),
  },
  {
    why: 'the assistant first, where it may be',
    payload: request([assistant('a'), user('b')]),
    profile: profileWith({ roles: { first: 'any' } }),
  },
  {
    why: 'results behind text, where they may be',
    payload: request([user('a'), assistant([call('t')]), user([text(), result('t')])]),
    profile: profileWith({ tools: { resultsFirst: false } }),
  },
  {
    why: 'tools used and none declared, where that is taken',
    payload: request([user('a'), assistant([call('t')]), user([result('t')])], { tools: undefined }),
    profile: profileWith({ tools: { declaredWhenUsed: false } }),
  },
  {
    why: 'turns that end in thinking, where only the last may not',
    payload: request([user('a'), assistant([thinking()]), user('b')]),
    profile: profileWith({ thinking: { closing: 'not-at-end' } }),
  },
  { why: 'large images while they are few', payload: request([user([png(8000, 8000), png(2001, 1)])]) },
  { why: 'an empty system prompt', payload: request([user('a')], { system: '' }) },
  { why: 'betas of other kinds', payload: request([user('a')], { betas: [...ALL_BETAS, 'other'] }) },
  {
    why: 'a tool added under the other beta',
    payload: request(
      [user('a'), system([{ type: 'tool_addition', tool: { type: 'tool_reference', name: 'read' } }])],
      { betas: ['inline-tools'] },
    ),
  },
]

import {
  assistant,
  call,
  type GoodRequest,
  image,
  profileWith,
  request,
  result,
  serverCall,
  serverResult,
  system,
  text,
  thinking,
  tool,
  user,
} from './make.ts'

const effort = { output_config: { effort: 'low' } } as const
const enabled = { thinking: { type: 'enabled', budget_tokens: 1024 } } as const
const paused = assistant([text('looking'), serverCall('s'), serverResult('s')])

export const goodTurns: readonly GoodRequest[] = [
  { why: 'a prompt', payload: request([user('a')]) },
  {
    why: 'fields left out, and null for left out',
    payload: {
      model: 'm',
      max_tokens: 9,
      messages: [user('a')],
      system: null,
      tools: null,
      thinking: null,
      tool_choice: undefined,
      cache_control: null,
      context_management: null,
      compaction: null,
      betas: null,
    },
  },
  {
    why: 'fields and blocks nobody knows',
    payload: request(
      [user([{ type: 'holo', x: [1, { y: null }] }]), assistant([{ type: 'dream' }, text()]), user('b')],
      { speed: 'fast', metadata: { user_id: 'u' } },
    ),
  },
  {
    why: 'documents, images and search results',
    payload: request([
      user([
        {
          type: 'document',
          source: { type: 'text', media_type: 'text/plain', data: 'x' },
          citations: { enabled: true },
        },
        image({ source: { type: 'file', file_id: 'f' } }),
        { type: 'search_result', source: 's', title: 't', content: [] },
        text(),
      ]),
    ]),
  },
  {
    why: 'messages in a row are one turn',
    payload: request([user('a'), user('b'), assistant('c'), assistant('d'), user('e')]),
  },
  {
    why: 'parallel calls, results first, then text',
    payload: request([
      user('a'),
      assistant([thinking(), text(), call('t'), call('u')]),
      user([result('u'), result('t', { content: [text(), image()], is_error: true }), text()]),
    ]),
  },
  {
    why: 'results with no, null, empty and blank content',
    payload: request([
      user('a'),
      assistant([call('a'), call('b'), call('c'), call('d')]),
      user([
        { type: 'tool_result', tool_use_id: 'a' },
        result('b', { content: null }),
        result('c', { content: [] }),
        result('d', { content: '\n' }),
      ]),
    ]),
  },
  {
    why: 'results of a turn in several messages',
    payload: request([
      user('a'),
      assistant([call('t')]),
      assistant([text(), call('u')]),
      user([result('u')]),
      user([result('t')]),
      user('b'),
    ]),
  },
  {
    why: 'a search within the turn',
    payload: request([user('a'), assistant([serverCall('s'), serverResult('s'), text()]), user('b')]),
  },
  {
    why: 'calls of a connected server',
    payload: request([
      user('a'),
      assistant([
        { type: 'mcp_tool_use', id: 'x', name: 'n', server_name: 'z', input: {} },
        { type: 'mcp_tool_result', tool_use_id: 'x', content: [] },
        text(),
      ]),
      user('b'),
    ]),
  },
  { why: 'a paused turn that goes on', payload: request([user('a'), paused]) },
  {
    why: 'a paused turn with a search under way',
    payload: request([user('a'), assistant([text(), serverCall('s')])]),
  },
  {
    why: 'a paused turn, its tools from a connected server',
    payload: request([user('a'), assistant([{ type: 'mcp_tool_use', id: 'x', name: 'n', input: {} }])], {
      tools: [],
      mcp_servers: [{ name: 'z' }],
    }),
  },
  {
    why: 'code under way, which one tool runs under several names',
    payload: request([user('a'), assistant([serverCall('s', { name: 'bash_code_execution' })])], {
      tools: [{ type: 'code_1', name: 'code_execution' }],
    }),
  },
  {
    why: 'no limit to the answer, where none is needed',
    payload: request([user('a')], { max_tokens: undefined }),
    profile: profileWith({ maxOutputRequired: false }),
  },
  {
    why: 'as many deferred tools as there may be',
    payload: request([user('a')], {
      tools: ['read', 'a', 'b', 'c'].map((name, at) => tool(name, { defer_loading: at > 0 })),
    }),
  },
  {
    why: 'a paused turn that went on',
    payload: request([
      user('a'),
      assistant([serverCall('s')]),
      assistant([serverResult('s'), text()]),
      user('b'),
    ]),
  },
  {
    why: 'a search that waits for results',
    payload: request([user('a'), assistant([serverCall('s'), call('t')]), user([result('t')])]),
  },
  {
    why: 'a search that waited for two rounds of results',
    payload: request([
      user('a'),
      assistant([serverCall('s'), call('t')]),
      user([result('t')]),
      assistant([call('u', { caller: {} })]),
      user([result('u')]),
      assistant([serverResult('s'), text()]),
      user('b'),
    ]),
  },
  {
    why: 'thinking with empty text and a signature, and redacted',
    payload: request(
      [
        user('a'),
        assistant([thinking(), { type: 'redacted_thinking', data: 'x' }, call('t')]),
        user([result('t')]),
        assistant([thinking(), text()]),
        user('b'),
      ],
      {
        thinking: {
          type: 'adaptive',
          display: 'omitted',
          block_binding: { prefix_mismatch_behavior: 'drop_block' },
        },
      },
    ),
  },
  {
    why: 'thinking enabled: the turn under way begins with it, later rounds need not',
    payload: request(
      [
        user('a'),
        assistant('b'),
        user('c'),
        assistant([thinking(), call('t')]),
        user([result('t')]),
        assistant([call('u')]),
        user([result('u')]),
      ],
      enabled,
    ),
  },
  {
    why: 'thinking enabled: finished turns need none',
    payload: request(
      [user('a'), assistant([call('t')]), user([result('t')]), assistant('b'), user('c')],
      enabled,
    ),
  },
  {
    why: 'thinking enabled: results with text begin anew',
    payload: request([user('a'), assistant([call('t')]), user([result('t'), text()])], enabled),
  },
  {
    why: 'thinking in the middle of a turn of two messages',
    payload: request([user('a'), assistant([thinking()]), assistant([call('t')]), user([result('t')])]),
  },
  {
    why: 'a budget over max_tokens with its beta',
    payload: request([user('a')], {
      thinking: { type: 'enabled', budget_tokens: 9000 },
      betas: ['interleaved'],
    }),
  },
  {
    why: 'disabled at a low effort',
    payload: request([user('a')], { thinking: { type: 'disabled' }, output_config: { effort: 'low' } }),
  },
  { why: 'thinking between tools', payload: request([user('a')], { thinking: { type: 'between_tools' } }) },
  {
    why: 'unsigned thinking where none is signed',
    payload: request([user('a'), assistant([thinking({ signature: undefined }), text()]), user('b')]),
    profile: profileWith({ thinking: { signed: false } }),
  },
  {
    why: 'system messages behind results, in a row, before the assistant and at the end',
    payload: request([
      user('a'),
      assistant([call('t')]),
      user([result('t')]),
      system('b'),
      system([text(), { type: 'tool_addition', tool: { type: 'tool_reference', name: 'read' } }]),
      assistant('c'),
      user('d'),
      system('e', { clear_at: 'next_user_message' }),
      system('f', { clear_at: 'never', ...effort }),
    ]),
  },
  {
    why: 'a system message behind a paused turn',
    payload: request([user('a'), paused, system('b'), assistant('c'), user('d')]),
  },
  {
    why: 'efforts anywhere',
    payload: request([
      system('', effort),
      user('a'),
      assistant([call('t')]),
      system([], effort),
      user([result('t')]),
      system([], effort),
      assistant('b'),
      system([], effort),
      user('c'),
    ]),
  },
  {
    why: 'a tool added by definition',
    payload: request([user('a'), system([{ type: 'tool_addition', tool: tool('late') }])]),
  },
]

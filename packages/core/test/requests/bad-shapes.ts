import {
  ALL_BETAS,
  assistant,
  type BadRequest,
  call,
  image,
  profileWith,
  request,
  result,
  system,
  text,
  user,
} from './make.ts'

const at = (block: unknown): unknown => request([user([block])])
const bySpeaker = (block: unknown): unknown => request([user('a'), assistant([block, text()]), user('b')])

export const badShapes: readonly BadRequest[] = [
  {
    why: 'no limit to the answer',
    payload: request([user('a')], { max_tokens: undefined }),
    findings: [['max-tokens', 'max_tokens']],
  },
  {
    why: 'content that is no block, though it is not empty',
    payload: request([user([7])]),
    findings: [['block-shape', 'messages.0.content.0']],
  },
  {
    why: 'a result for nothing before good ones',
    payload: request([
      user('a'),
      assistant([call('t'), call('u')]),
      user([{ type: 'tool_result' }, result('t'), result('u')]),
    ]),
    findings: [['block-field', 'messages.2.content.0.tool_use_id']],
  },
  {
    why: 'a string among blocks',
    payload: request([user(['a', text()])]),
    findings: [['block-shape', 'messages.0.content.0']],
  },
  {
    why: 'a block without a type',
    payload: request([user([text(), { text: 'a' }])]),
    findings: [['block-shape', 'messages.0.content.1']],
  },
  {
    why: 'a number inside a result',
    payload: request([user('a'), assistant([call('t')]), user([result('t', { content: [text(), 7] })])]),
    findings: [['block-shape', 'messages.2.content.0.content.1']],
  },
  {
    why: 'text that is no string',
    payload: at({ type: 'text', text: 7 }),
    findings: [['block-field', 'messages.0.content.0.text']],
  },
  {
    why: 'an image without source',
    payload: at({ type: 'image' }),
    findings: [['block-field', 'messages.0.content.0.source']],
  },
  {
    why: 'base64 without data',
    payload: at(image({ source: { type: 'base64', media_type: 'image/png' } })),
    findings: [['block-field', 'messages.0.content.0.source']],
  },
  {
    why: 'a document without source',
    payload: at({ type: 'document' }),
    findings: [['block-field', 'messages.0.content.0.source']],
  },
  {
    why: 'thinking that is no string',
    payload: bySpeaker({ type: 'thinking', signature: 's' }),
    findings: [['block-field', 'messages.1.content.0.thinking']],
  },
  {
    why: 'redacted thinking without data',
    payload: bySpeaker({ type: 'redacted_thinking', data: '' }),
    findings: [['block-field', 'messages.1.content.0.data']],
  },
  {
    why: 'a call with neither id, name nor input',
    payload: bySpeaker({ type: 'tool_use', name: '', input: [] }),
    findings: [
      ['block-field', 'messages.1.content.0.id'],
      ['block-field', 'messages.1.content.0.name'],
      ['block-field', 'messages.1.content.0.input'],
    ],
  },
  {
    why: 'a call of the provider without an id',
    payload: bySpeaker({ type: 'server_tool_use' }),
    findings: [['block-field', 'messages.1.content.0.id']],
  },
  {
    why: 'a result of the provider for nothing',
    payload: bySpeaker({ type: 'web_search_tool_result' }),
    findings: [['block-field', 'messages.1.content.0.tool_use_id']],
  },
  {
    why: 'a result for nothing',
    payload: at({ type: 'tool_result' }),
    findings: [['block-field', 'messages.0.content.0.tool_use_id']],
  },
  {
    why: 'a result with a number in it',
    payload: request([
      user('a'),
      assistant([call('t')]),
      user([result('t', { content: 5, is_error: 'no' })]),
    ]),
    findings: [
      ['block-field', 'messages.2.content.0.content'],
      ['block-field', 'messages.2.content.0.is_error'],
    ],
  },
  {
    why: 'an empty summary',
    payload: at({ type: 'compaction', content: '' }),
    findings: [['block-field', 'messages.0.content.0.content']],
  },
  {
    why: 'a cache edit of nothing',
    payload: at({ type: 'cache_edits', edits: [{ type: 'delete' }] }),
    findings: [['block-field', 'messages.0.content.0.edits']],
  },
  {
    why: 'a tool added without saying which',
    payload: request([user('a'), system([{ type: 'tool_addition' }])]),
    findings: [['block-field', 'messages.1.content.0.tool']],
  },
  {
    why: 'a call by the user',
    payload: at(call('t')),
    findings: [['block-refused', 'messages.0.content.0']],
  },
  {
    why: 'thinking by the user',
    payload: at({ type: 'thinking', thinking: '' }),
    findings: [['block-refused', 'messages.0.content.0']],
  },
  {
    why: 'a result of the provider by the user',
    payload: at({ type: 'mcp_tool_result', tool_use_id: 's' }),
    findings: [['block-refused', 'messages.0.content.0']],
  },
  {
    why: 'a result by the assistant',
    payload: bySpeaker(result('t')),
    findings: [['block-refused', 'messages.1.content.0']],
  },
  {
    why: 'an image by the assistant',
    payload: bySpeaker(image()),
    findings: [['block-refused', 'messages.1.content.0']],
  },
  {
    why: 'citations by the user',
    payload: at(text('a', { citations: [] })),
    findings: [['block-refused', 'messages.0.content.0.citations']],
  },
  {
    why: 'a tool added by the user',
    payload: at({ type: 'tool_addition', tool: {} }),
    findings: [['block-refused', 'messages.0.content.0']],
  },
  {
    why: 'an image in a system message',
    payload: request([user('a'), system([image()])]),
    findings: [['block-refused', 'messages.1.content.0']],
  },
  {
    why: 'an image in the system prompt',
    payload: request([user('a')], { system: [image()] }),
    findings: [['block-refused', 'system.0']],
  },
  {
    why: 'a call inside a result',
    payload: request([user('a'), assistant([call('t')]), user([result('t', { content: [call('x')] })])]),
    findings: [['block-refused', 'messages.2.content.0.content.0']],
  },
  {
    why: 'fields of a response on a message',
    payload: request([
      user('a'),
      assistant('b', { id: 'msg', usage: null }),
      user('c', { cache_control: { type: 'ephemeral' } }),
    ]),
    findings: [
      ['message-field', 'messages.1.id'],
      ['message-field', 'messages.1.usage'],
      ['message-field', 'messages.2.cache_control'],
    ],
  },
  {
    why: 'an effort on a message of the user',
    payload: request([user('a', { output_config: { effort: 'low' } })]),
    findings: [['message-field', 'messages.0.output_config']],
  },
  {
    why: 'clear_at where nobody knows it',
    payload: request([user('a'), system('b', { clear_at: 'never' })]),
    profile: profileWith({ roles: { turnScoped: false } }),
    findings: [['message-field', 'messages.1.clear_at']],
  },
  {
    why: 'half a token',
    payload: request([user('a')], { max_tokens: 0.5 }),
    findings: [['max-tokens', 'max_tokens']],
  },
  {
    why: 'tokens in words',
    payload: request([user('a')], { max_tokens: '10' }),
    findings: [['max-tokens', 'max_tokens']],
  },
  {
    why: 'more tokens than the model writes',
    payload: request([user('a')], { max_tokens: 8193 }),
    findings: [['max-tokens', 'max_tokens']],
  },
  {
    why: 'no tokens where nothing is warmed',
    payload: request([user('a')], { max_tokens: 0 }),
    profile: profileWith({ capabilities: { prewarm: false } }),
    findings: [['max-tokens', 'max_tokens']],
  },
  {
    why: 'warming with all that excludes it',
    payload: request([user('a')], {
      max_tokens: 0,
      stream: true,
      thinking: { type: 'enabled', budget_tokens: 2048 },
      output_config: { format: {} },
      tool_choice: { type: 'any' },
      betas: [...ALL_BETAS, 'interleaved'],
    }),
    findings: [
      ['tool-choice-forced', 'tool_choice.type'],
      ['prewarm-combination', 'stream'],
      ['prewarm-combination', 'thinking.type'],
      ['prewarm-combination', 'output_config.format'],
      ['prewarm-combination', 'tool_choice'],
    ],
  },
  {
    why: 'fields the provider refuses',
    payload: request([user('a')], { temperature: 1, output_config: { secret: true } }),
    findings: [
      ['field-refused', 'temperature'],
      ['field-refused', 'output_config.secret'],
    ],
  },
  {
    why: 'diagnostics where there are none',
    payload: request([user('a')], { diagnostics: { previous_message_id: null } }),
    profile: profileWith({ capabilities: { cacheDiagnostics: false } }),
    findings: [['field-refused', 'diagnostics']],
  },
  {
    why: 'betas in a string',
    payload: request([user('a')], { betas: 'effort' }),
    findings: [['betas-shape', 'betas']],
  },
  {
    why: 'a beta in a number',
    payload: request([user('a')], { betas: [1] }),
    findings: [['betas-shape', 'betas']],
  },
  {
    why: 'a blank system block',
    payload: request([user('a')], { system: [text(' ')] }),
    findings: [['text-blank', 'system.0']],
  },
  {
    why: 'a blank system prompt',
    payload: request([user('a')], { system: '\n' }),
    findings: [['text-blank', 'system']],
  },
  {
    why: 'a field, an edit, a block and a message field without their betas',
    payload: request(
      [
        user('a'),
        system([
          { type: 'tool_addition', tool: { type: 'tool_reference', name: 'read' } },
          { type: 'tool_addition', tool: {} },
        ]),
        assistant('b'),
        user('c'),
        system('d', { clear_at: 'never' }),
        system([], { output_config: { effort: 'low' } }),
      ],
      {
        betas: [],
        thinking: { type: 'adaptive', block_binding: {} },
        context_management: { edits: [{ type: 'clear_thinking' }, { type: 'clear_tool_uses' }] },
      },
    ),
    findings: [
      ['beta-missing', 'messages.4.clear_at'],
      ['beta-missing', 'messages.5.output_config'],
      ['beta-missing', 'context_management.edits.1'],
      ['beta-missing', 'thinking.block_binding'],
      ['beta-missing', 'messages.1.content.0'],
    ],
  },
]

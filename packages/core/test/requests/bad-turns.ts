import {
  assistant,
  type BadRequest,
  call,
  profileWith,
  request,
  result,
  serverCall,
  serverResult,
  summary,
  system,
  text,
  thinking,
  user,
} from './make.ts'

const prefilled = profileWith({ roles: { prefill: 'allowed' } })
const alternating = profileWith({ roles: { consecutive: 'refused' } })
const turnScoped = { clear_at: 'next_user_message' } as const
const effort = { output_config: { effort: 'low' } } as const

export const badTurns: readonly BadRequest[] = [
  { why: 'nobody speaks', payload: request([]), findings: [['messages-empty', 'messages']] },
  {
    why: 'only an effort is set',
    payload: request([system([], effort)]),
    findings: [['messages-empty', 'messages']],
  },
  {
    why: 'an empty user message',
    payload: request([user('a'), assistant('b'), user('')]),
    findings: [['message-empty', 'messages.2']],
  },
  {
    why: 'an empty list from the user',
    payload: request([user([]), assistant('b'), user('c')]),
    findings: [['message-empty', 'messages.0']],
  },
  {
    why: 'an empty assistant message in the middle',
    payload: request([user('a'), assistant([]), user('c')]),
    findings: [['message-empty', 'messages.1']],
  },
  {
    why: 'an empty assistant message before a system message',
    payload: request([user('a'), assistant([]), system([], effort)]),
    profile: prefilled,
    findings: [['message-empty', 'messages.1']],
  },
  {
    why: 'an empty system message',
    payload: request([user('a'), system([])]),
    findings: [['message-empty', 'messages.1']],
  },
  {
    why: 'a blank string',
    payload: request([user(' \n')]),
    findings: [['text-blank', 'messages.0.content']],
  },
  {
    why: 'an empty text block',
    payload: request([user([text(), text('')])]),
    findings: [['text-blank', 'messages.0.content.1']],
  },
  {
    why: 'a blank text inside a result',
    payload: request([user('a'), assistant([call('t')]), user([result('t', { content: [text('\n')] })])]),
    findings: [['text-blank', 'messages.2.content.0.content.0']],
  },
  {
    why: 'the assistant speaks first',
    payload: request([assistant('a'), user('b')]),
    findings: [['first-role', 'messages.0']],
  },
  {
    why: 'the assistant speaks first behind an effort',
    payload: request([system([], effort), assistant('a'), user('b')]),
    findings: [['first-role', 'messages.1']],
  },
  {
    why: 'two user messages in a row',
    payload: request([user('a'), user('b'), assistant('c'), assistant('d'), user('e')]),
    profile: alternating,
    findings: [
      ['role-repeated', 'messages.1'],
      ['role-repeated', 'messages.3'],
    ],
  },
  {
    why: 'an answer begun',
    payload: request([user('a'), assistant('It is')]),
    findings: [['prefill-refused', 'messages.1']],
  },
  {
    why: 'an answer begun with nothing',
    payload: request([user('a'), assistant('')]),
    findings: [['prefill-refused', 'messages.1']],
  },
  {
    why: 'an answer begun before an effort',
    payload: request([user('a'), assistant('It is'), system([], effort)]),
    findings: [['prefill-refused', 'messages.1']],
  },
  {
    why: 'an answer begun behind a finished search',
    payload: request([user('a'), assistant([serverCall('s'), serverResult('s'), text()])]),
    findings: [['prefill-refused', 'messages.1']],
  },
  {
    why: 'an answer begun that ends in a space',
    payload: request([user('a'), assistant('It is ')]),
    profile: prefilled,
    findings: [['trailing-whitespace', 'messages.1']],
  },
  {
    why: 'an answer begun whose last block ends in a line',
    payload: request([user('a'), assistant([text('a '), text('b\n')])]),
    profile: prefilled,
    findings: [['trailing-whitespace', 'messages.1']],
  },
  {
    why: 'a system message where there may be none',
    payload: request([user('a'), system('b')]),
    profile: profileWith({ roles: { system: 'refused' } }),
    findings: [['system-refused', 'messages.1']],
  },
  {
    why: 'a system message first',
    payload: request([system('a'), user('b')]),
    findings: [['system-misplaced', 'messages.0']],
  },
  {
    why: 'a system message behind the assistant',
    payload: request([user('a'), assistant('b'), system('c'), user('d')]),
    findings: [['system-misplaced', 'messages.2']],
  },
  {
    why: 'a system message before the user',
    payload: request([user('a'), system('b'), user('c')]),
    findings: [['system-misplaced', 'messages.1']],
  },
  {
    why: 'a section of two before the user, found once',
    payload: request([user('a'), system([], effort), system('b'), system('c'), user('d')]),
    findings: [['system-misplaced', 'messages.2']],
  },
  {
    why: 'a system message between call and result',
    payload: request([user('a'), assistant([call('t')]), system('b'), user([result('t')])]),
    findings: [['system-misplaced', 'messages.2']],
  },
  {
    why: 'tools changed behind a paused turn',
    payload: request([
      user('a'),
      assistant([serverCall('s'), serverResult('s')]),
      system([text(), { type: 'tool_removal', tool: { type: 'tool_reference', name: 'read' } }]),
    ]),
    findings: [['system-misplaced', 'messages.2.content.1']],
  },
  {
    why: 'clear_at on a user message',
    payload: request([user('a', { clear_at: 'never' })]),
    findings: [['clear-at-role', 'messages.0.clear_at']],
  },
  {
    why: 'tools changed for one turn',
    payload: request([user('a'), system([text(), { type: 'tool_removal', tool: {} }], turnScoped)]),
    findings: [['turn-scoped-content', 'messages.1']],
  },
  {
    why: 'a marker in a message for one turn',
    payload: request([user('a'), system([text('b', { cache_control: { type: 'ephemeral' } })], turnScoped)]),
    findings: [['turn-scoped-marker', 'messages.1.content.0']],
  },
  {
    why: 'a turn that is thinking alone, at the end',
    payload: request([user('a'), assistant([thinking()])]),
    findings: [['thinking-last', 'messages.1']],
  },
  {
    why: 'a turn that ends in thinking and then in nothing',
    payload: request([user('a'), assistant([thinking()]), assistant([])]),
    profile: prefilled,
    findings: [['thinking-last', 'messages.1']],
  },
  {
    why: 'an empty assistant message before an effort and a prompt, found once',
    payload: request([user('a'), assistant([]), system([], effort), user('b')]),
    findings: [['message-empty', 'messages.1']],
  },
  {
    why: 'a turn that ends in thinking, in the middle',
    payload: request([
      user('a'),
      assistant([thinking(), call('t'), { type: 'redacted_thinking', data: 'x' }]),
      user([result('t')]),
    ]),
    findings: [['thinking-last', 'messages.1']],
  },
  {
    why: 'a turn that ends in thinking, at the end, where only that is refused',
    payload: request([user('a'), assistant([thinking()]), user('b'), assistant([thinking()])]),
    profile: profileWith({ thinking: { closing: 'not-at-end' } }),
    findings: [['thinking-last', 'messages.3']],
  },
  {
    why: 'a turn that ends in thinking, where that is a beginning like any other',
    payload: request([user('a'), assistant([thinking()])]),
    profile: profileWith({ thinking: { closing: 'allowed' } }),
    findings: [['prefill-refused', 'messages.1']],
  },
  {
    why: 'a summary by the provider that is not first',
    payload: request([user('a'), assistant([summary(), text()]), user('b')]),
    findings: [['compaction-misplaced', 'messages.1.content.0']],
  },
  {
    why: 'a summary by the provider behind another block',
    payload: request([user([text(), summary()])]),
    findings: [['compaction-misplaced', 'messages.0.content.1']],
  },
  {
    why: 'two signed summaries',
    payload: request([assistant([summary()]), user('a'), assistant([summary(), text()]), user('b')]),
    findings: [['compaction-repeated', 'messages.2.content.0']],
  },
]

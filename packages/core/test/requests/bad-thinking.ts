import {
  assistant,
  type BadRequest,
  call,
  profileWith,
  request,
  result,
  text,
  thinking,
  user,
} from './make.ts'

const plain = (more: Readonly<Record<string, unknown>>): unknown => request([user('a')], more)
const enabled = { thinking: { type: 'enabled', budget_tokens: 1024 } } as const

export const badThinking: readonly BadRequest[] = [
  {
    why: 'thinking in a string',
    payload: plain({ thinking: 'adaptive' }),
    findings: [['thinking-shape', 'thinking']],
  },
  {
    why: 'a mode nobody has',
    payload: plain({ thinking: { type: 'hard' } }),
    findings: [['thinking-mode', 'thinking.type']],
  },
  {
    why: 'a mode this model has not',
    payload: plain({ thinking: { type: 'adaptive' } }),
    profile: profileWith({ thinking: { modes: ['enabled', 'disabled'] } }),
    findings: [['thinking-mode', 'thinking.type']],
  },
  {
    why: 'disabled at too high an effort',
    payload: plain({ thinking: { type: 'disabled' }, output_config: { effort: 'max' } }),
    findings: [['thinking-mode', 'thinking.type']],
  },
  {
    why: 'no budget',
    payload: plain({ thinking: { type: 'enabled' } }),
    findings: [['thinking-budget', 'thinking.budget_tokens']],
  },
  {
    why: 'too small a budget',
    payload: plain({ thinking: { type: 'enabled', budget_tokens: 1023 } }),
    findings: [['thinking-budget', 'thinking.budget_tokens']],
  },
  {
    why: 'a budget as large as the answer',
    payload: plain({ thinking: { type: 'enabled', budget_tokens: 4096 } }),
    findings: [['thinking-budget', 'thinking.budget_tokens']],
  },
  {
    why: 'a budget in another mode',
    payload: plain({ thinking: { type: 'adaptive', budget_tokens: 2048 } }),
    findings: [['thinking-budget', 'thinking.budget_tokens']],
  },
  {
    why: 'a binding nobody knows',
    payload: plain({ thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'ignore' } } }),
    findings: [['thinking-binding', 'thinking.block_binding']],
  },
  {
    why: 'thinking without, and with an empty signature',
    payload: request([
      user('a'),
      assistant([{ type: 'thinking', thinking: 'x' }, thinking({ signature: '' }), text()]),
      user('b'),
    ]),
    findings: [
      ['thinking-signature', 'messages.1.content.0.signature'],
      ['thinking-signature', 'messages.1.content.1.signature'],
    ],
  },
  {
    why: 'a tool turn that does not begin with thinking',
    payload: request(
      [
        user('a'),
        assistant([text(), call('t')]),
        user([result('t')]),
        assistant([thinking(), call('u')]),
        user([result('u')]),
      ],
      enabled,
    ),
    findings: [['thinking-not-first', 'messages.1.content.0']],
  },
  {
    why: 'an answer begun without thinking',
    payload: request([user('a'), assistant('It is')], enabled),
    profile: profileWith({ roles: { prefill: 'allowed' } }),
    findings: [['thinking-not-first', 'messages.1.content']],
  },
]

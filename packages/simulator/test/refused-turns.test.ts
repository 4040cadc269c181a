/** Roles, order of messages and empty content, with the text of each error. */
import { describe } from 'vitest'
import { assistant, call, MARK, result, TOOL, text, user } from './ask.ts'
import { type RejectionRow, testRejections } from './refusals.ts'

const SYSTEM = { role: 'system', content: 'be brief' }
const SCOPED = { ...SYSTEM, clear_at: 'next_user_message' }
const CLEAR_AT = { betas: ['mid-conversation-system-clear-at-2026-08-21'] }
const EFFORT = { betas: ['mid-conversation-output-config-2026-07-01'] }
const PREFILL =
  'This model does not support assistant message prefill. The conversation must end with a user message.'
const EMPTY = 'all messages must have non-empty content except for the optional final assistant message'

const ROLES: readonly RejectionRow[] = [
  { name: 'nobody speaks', body: { messages: [] }, says: 'messages: at least one message is required' },
  {
    name: 'messages of one role in a row',
    body: { messages: [user('x'), user('y'), assistant('a'), assistant('b'), user('z')] },
    says: null,
  },
  {
    name: 'the model speaks first',
    body: { messages: [assistant('x'), user('y')] },
    says: 'messages: first message must use the "user" role',
  },
  {
    name: 'the model speaks first, where that is allowed',
    body: { messages: [assistant('x'), user('y')] },
    options: { rules: { firstRole: 'any' } },
    says: null,
  },
  {
    name: 'an empty message',
    body: { messages: [user('x'), assistant(), user('y')] },
    says: `messages.1: ${EMPTY}`,
  },
  {
    name: 'an empty string',
    body: { messages: [{ role: 'user', content: '' }] },
    says: `messages.0: ${EMPTY}`,
  },
  {
    name: 'an empty text',
    body: { messages: [user('')] },
    says: 'messages: text content blocks must be non-empty',
  },
  {
    name: 'white space',
    body: { messages: [user(' \n')] },
    says: 'messages: text content blocks must contain non-whitespace text',
  },
  {
    name: 'an empty text with a marker',
    body: { messages: [user(text('', MARK))] },
    says: 'messages.0.content.0.text: cache_control cannot be set for empty text blocks',
  },
  { name: 'an answer begun', body: { messages: [user('x'), assistant('y')] }, says: PREFILL },
  {
    name: 'an answer begun, on an older model',
    body: { model: 'claude-haiku-4-5', messages: [user('x'), assistant('y')] },
    says: null,
  },
  {
    name: 'an answer begun with a space at its end',
    body: { model: 'claude-haiku-4-5', messages: [user('x'), assistant('y ')] },
    says: 'messages: final assistant content cannot end with trailing whitespace',
  },
  {
    name: 'an empty answer begun',
    body: { model: 'claude-haiku-4-5', messages: [user('x'), assistant()] },
    says: null,
  },
  {
    name: 'a result in the model’s mouth',
    body: { tools: [TOOL], messages: [user('x'), assistant(result('a')), user('y')] },
    says: 'messages.1.content.0: `tool_result` blocks can only be in `user` messages',
  },
  {
    name: 'a call in a user’s mouth',
    body: { tools: [TOOL], messages: [user(call('a'))] },
    says: 'messages.0.content.0: `tool_use` blocks can only be in `assistant` messages',
  },
]

const SYSTEM_MESSAGES: readonly RejectionRow[] = [
  { name: 'behind a user', body: { messages: [user('x'), SYSTEM] }, says: null },
  {
    name: 'before an answer',
    body: { messages: [user('x'), SYSTEM, assistant('y'), user('z')] },
    says: null,
  },
  {
    name: 'several in a row',
    body: { messages: [user('x'), SYSTEM, SYSTEM, assistant('y'), user('z')] },
    says: null,
  },
  {
    name: 'behind results',
    body: { tools: [TOOL], messages: [user('x'), assistant(call('a')), user(result('a')), SYSTEM] },
    says: null,
  },
  {
    name: 'first',
    body: { messages: [SYSTEM, user('x')] },
    says: "messages.0: role 'system' may not be the first message",
  },
  {
    name: 'behind an answer',
    body: { messages: [user('x'), assistant('y'), SYSTEM, assistant('z'), user('!')] },
    says: /^messages\.2: role 'system' must follow/,
  },
  {
    name: 'before a user',
    body: { messages: [user('x'), SYSTEM, user('y')] },
    says: /^messages\.1: role 'system' must be the last message/,
  },
  {
    name: 'between a call and its result',
    body: { tools: [TOOL], messages: [user('x'), assistant(call('a')), SYSTEM, user(result('a'))] },
    says: /^messages\.2: role 'system' must follow/,
  },
  {
    name: 'on a model without them',
    body: { model: 'claude-sonnet-5', messages: [user('x'), SYSTEM] },
    says: /^messages\.1\.role: role 'system' is not supported/,
  },
  {
    name: 'an effort alone, anywhere',
    body: {
      messages: [
        user('x'),
        assistant('y'),
        { role: 'system', content: [], output_config: { effort: 'low' } },
        user('z'),
      ],
    },
    asked: EFFORT,
    says: null,
  },
  {
    name: "an effort with the beta that Claude Code's first request has",
    body: { messages: [user('x'), { role: 'system', content: 'x', output_config: { effort: 'low' } }] },
    asked: { betas: ['per-turn-control-2026-07-01'] },
    says: null,
  },
  {
    name: 'an effort without its beta',
    body: { messages: [user('x'), { role: 'system', content: 'x', output_config: { effort: 'low' } }] },
    says: 'messages.1.output_config: Extra inputs are not permitted',
  },
  {
    name: 'clear_at without its beta',
    body: { messages: [user('x'), SCOPED] },
    says: 'messages.1.clear_at: Extra inputs are not permitted',
  },
  {
    name: 'clear_at on a user',
    body: { messages: [{ role: 'user', content: 'x', clear_at: 'never' }] },
    asked: CLEAR_AT,
    says: "messages.0.clear_at: clear_at is only permitted on role 'system' messages",
  },
  {
    name: 'clear_at some other time',
    body: { messages: [user('x'), { ...SYSTEM, clear_at: 'tomorrow' }] },
    asked: CLEAR_AT,
    says: "messages.1.clear_at: Input should be 'next_user_message' or 'never'",
  },
  { name: 'a message for one turn', body: { messages: [user('x'), SCOPED] }, asked: CLEAR_AT, says: null },
  {
    name: 'tools in a message for one turn',
    body: { messages: [user('x'), { ...SCOPED, content: [{ type: 'tool_removal', tool: {} }] }] },
    asked: { betas: [...CLEAR_AT.betas, 'inline-tools-2026-09-15'] },
    says: "messages.1: a turn-scoped system message supports text blocks only (clear_at: 'next_user_message')",
  },
  {
    name: 'an effort in a message for one turn',
    body: { messages: [user('x'), { ...SCOPED, output_config: { effort: 'low' } }] },
    asked: { betas: [...CLEAR_AT.betas, ...EFFORT.betas] },
    says: "messages.1: output_config is not permitted on a turn-scoped system message (clear_at: 'next_user_message')",
  },
  {
    name: 'a marker in a message for one turn',
    body: { messages: [user('x'), { ...SCOPED, content: [text('x', MARK)] }] },
    asked: CLEAR_AT,
    says: "messages.1.content.0: cache_control is not permitted on a turn-scoped system message (clear_at: 'next_user_message')",
  },
]

describe('roles and content', () => {
  testRejections(ROLES)
})

describe('system messages in mid-conversation', () => {
  testRejections(SYSTEM_MESSAGES)
})

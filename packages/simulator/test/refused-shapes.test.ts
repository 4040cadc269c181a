/** The shape of a request, field by field, with the text of each error. */
import { describe } from 'vitest'
import { assistant, MARK, TOOL, text, user } from './ask.ts'
import { type RejectionRow, testRejections } from './refusals.ts'

const OLD = { version: '2023-06-01' }

const SHAPE: readonly RejectionRow[] = [
  {
    name: 'a field nobody knows',
    body: { messages: [user('x')], foo: 1 },
    says: 'foo: Extra inputs are not permitted',
  },
  {
    name: 'a field inside a block',
    body: { messages: [user(text('x', { foo: 1 }))] },
    says: 'messages.0.content.0.text.foo: Extra inputs are not permitted',
  },
  { name: 'no model', body: { model: undefined, messages: [user('x')] }, says: 'model: Field required' },
  {
    name: 'no max_tokens',
    body: { max_tokens: undefined, messages: [user('x')] },
    says: 'max_tokens: Field required',
  },
  { name: 'no messages', body: {}, says: 'messages: Field required' },
  {
    name: 'messages that are no list',
    body: { messages: 'x' },
    says: 'messages: Input should be a valid list',
  },
  {
    name: 'a role nobody has',
    body: { messages: [{ role: 'robot', content: 'x' }] },
    says: "messages.0.role: Input should be 'user', 'assistant' or 'system'",
  },
  {
    name: 'a block of no kind',
    body: { messages: [user({ text: 'x' })] },
    says: 'messages.0.content.0.type: Field required',
  },
  {
    name: 'a block of an unknown kind',
    body: { messages: [user({ type: 'song' })] },
    says: /^messages\.0\.content\.0: Input tag 'song' found using 'type' does not match any of the expected tags: 'text', 'image'/,
  },
  {
    name: 'a lifetime there is not',
    body: { messages: [user(text('x', { cache_control: { type: 'ephemeral', ttl: '2h' } }))] },
    says: "messages.0.content.0.text.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
  },
  {
    name: 'a scope on a marker',
    body: {
      system: [text('x', { cache_control: { type: 'ephemeral', scope: 'global' } })],
      messages: [user('x')],
    },
    says: 'system.0.text.cache_control.ephemeral.scope: Extra inputs are not permitted',
  },
  {
    name: 'a marker on thinking',
    body: {
      messages: [
        user('x'),
        assistant({ type: 'thinking', thinking: '', signature: 's', ...MARK }, 'y'),
        user('z'),
      ],
    },
    says: 'messages.1.content.0.thinking.cache_control: Extra inputs are not permitted',
  },
  {
    name: 'a tool without a schema',
    body: { tools: [{ name: 'look' }], messages: [user('x')] },
    says: 'tools.0.custom.input_schema: Field required',
  },
  {
    name: 'a tool with a dot in its name',
    body: { tools: [{ ...TOOL, name: 'a.b' }], messages: [user('x')] },
    says: "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
  },
  {
    name: 'two tools of one name',
    body: { tools: [TOOL, TOOL], messages: [user('x')] },
    says: 'tools: Tool names must be unique.',
  },
  {
    name: 'an image of a strange kind',
    body: {
      messages: [user({ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: '' } })],
    },
    says: "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
  },
  {
    name: 'context_management without its beta',
    body: { messages: [user('x')], context_management: { edits: [] } },
    says: 'context_management: Extra inputs are not permitted',
  },
  {
    name: 'block_binding without its beta',
    body: { messages: [user('x')], thinking: { type: 'adaptive', block_binding: {} } },
    says: 'thinking.adaptive.block_binding: Extra inputs are not permitted',
  },
  {
    name: 'a compaction without its beta',
    body: { messages: [user('x')], compaction: { type: 'summarize' } },
    says: 'compaction: this parameter requires anthropic-beta: compact-2026-09-04',
  },
  {
    name: 'a compaction block without its beta',
    body: { messages: [assistant({ type: 'compaction', content: 'x', signature: 's' }), user('x')] },
    says: /^messages\.0\.content\.0: Input tag 'compaction' found using 'type' does not match any of the expected tags/,
  },
  {
    name: 'a thread without its beta',
    body: { messages: [user('x')], thread: { type: 'create' } },
    says: 'thread: this parameter requires anthropic-beta: message-threads-2026-08-12',
  },
  {
    name: 'temperature in the newer version',
    body: { model: 'claude-haiku-4-5', messages: [user('x')], temperature: 1 },
    says: 'temperature: Extra inputs are not permitted',
  },
  {
    name: 'temperature in the older version',
    body: { model: 'claude-haiku-4-5', messages: [user('x')], temperature: 1 },
    asked: OLD,
    says: null,
  },
  {
    name: 'temperature on a model that has none',
    body: { messages: [user('x')], temperature: 1 },
    asked: OLD,
    says: '`temperature` is deprecated for this model.',
  },
  {
    name: 'a document in the model’s mouth, newer version',
    body: {
      messages: [
        user('x'),
        assistant({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } }),
        user('y'),
      ],
    },
    says: 'messages.1.content.0: `document` blocks can only be in `user` messages',
  },
  {
    name: 'a document in the model’s mouth, older version',
    body: {
      messages: [
        user('x'),
        assistant({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } }),
        user('y'),
      ],
    },
    asked: OLD,
    says: null,
  },
  {
    name: 'citations in a user’s text, newer version',
    body: { messages: [user(text('x', { citations: [] }))] },
    says: 'messages.0.content.0.text.citations: Extra inputs are not permitted',
  },
  {
    name: 'citations in a user’s text, older version',
    body: { messages: [user(text('x', { citations: [] }))] },
    asked: OLD,
    says: null,
  },
]

describe('the shape of a request', () => {
  testRejections(SHAPE)
})

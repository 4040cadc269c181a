/** Tool calls and results that do not match, with the text of each error. */
import { describe } from 'vitest'
import { assistant, call, result, TOOL, user } from './ask.ts'
import { type RejectionRow, testRejections } from './refusals.ts'

const SEARCH = { type: 'web_search_20260318', name: 'web_search' }
const search = (id: string): object => ({
  type: 'server_tool_use',
  id,
  name: 'web_search',
  input: { query: 'x' },
})
const found = (id: string): object => ({ type: 'web_search_tool_result', tool_use_id: id, content: [] })
const unanswered = (index: number, ids: string): string =>
  `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
const unasked = (path: string, id: string): string =>
  `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`

const PAIRS: readonly RejectionRow[] = [
  {
    name: 'a call and its result',
    body: { messages: [user('x'), assistant(call('a')), user(result('a'))] },
    says: null,
  },
  {
    name: 'results first, then text',
    body: { messages: [user('x'), assistant(call('a'), call('b')), user(result('b'), result('a'), 'and?')] },
    says: null,
  },
  {
    name: 'results in two messages',
    body: { messages: [user('x'), assistant(call('a'), call('b')), user(result('a')), user(result('b'))] },
    says: null,
  },
  {
    name: 'a call without its result',
    body: { messages: [user('x'), assistant(call('a')), user('y')] },
    says: unanswered(1, 'a'),
  },
  {
    name: 'two calls without results',
    body: { messages: [user('x'), assistant(call('a'), call('b')), user('y')] },
    says: unanswered(1, 'a, b'),
  },
  {
    name: 'a result behind text',
    body: { messages: [user('x'), assistant(call('a')), user('y', result('a'))] },
    says: unanswered(1, 'a'),
  },
  {
    name: 'a call at the end',
    body: { model: 'claude-haiku-4-5', messages: [user('x'), assistant(call('a'))] },
    says: unanswered(1, 'a'),
  },
  {
    name: 'a result without its call',
    body: { messages: [user('x'), assistant('y'), user('z', result('a'))] },
    says: unasked('messages.2.content.1', 'a'),
  },
  {
    name: 'a result a turn too late',
    body: {
      messages: [user('x'), assistant(call('a')), user(result('a')), assistant('y'), user(result('a'))],
    },
    says: unasked('messages.4.content.0', 'a'),
  },
  {
    name: 'two calls of one id',
    body: { messages: [user('x'), assistant(call('a'), call('a')), user(result('a'))] },
    says: 'messages.1.content.1: `tool_use` ids must be unique',
  },
  {
    name: 'two results for one call',
    body: { messages: [user('x'), assistant(call('a')), user(result('a'), result('a'))] },
    says: 'messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a',
  },
  {
    name: 'calls and no tools',
    body: { tools: [], messages: [user('x'), assistant(call('a')), user(result('a'))] },
    says: 'Requests which include `tool_use` or `tool_result` blocks must define tools',
  },
]

const SERVER_PAIRS: readonly RejectionRow[] = [
  {
    name: 'a call and its result',
    body: { messages: [user('x'), assistant(search('s'), found('s'), 'y'), user('z')] },
    says: null,
  },
  { name: 'a paused turn', body: { messages: [user('x'), assistant(search('s'))] }, says: null },
  {
    name: 'a paused turn with results of the client',
    body: {
      tools: [SEARCH, TOOL],
      messages: [user('x'), assistant(search('s'), call('a')), user(result('a'))],
    },
    says: null,
  },
  {
    name: 'a result without its call',
    body: { messages: [user('x'), assistant(found('s'), 'y'), user('z')] },
    says: 'messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: s. Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it.',
  },
  {
    name: 'a call without its result',
    body: { messages: [user('x'), assistant(search('s'), 'y'), user('z')] },
    says: 'messages.1: `web_search` tool use with id `s` was found without a corresponding `web_search_tool_result` block',
  },
  {
    name: 'a paused turn without its tool',
    body: { tools: [TOOL], messages: [user('x'), assistant(search('s'))] },
    says: 'messages.1: `web_search` tool use with id `s` was found without a corresponding `web_search_tool_result` block, but no `web_search` tool was provided',
  },
  {
    name: 'text while a server tool is waited for',
    body: {
      tools: [SEARCH, TOOL],
      messages: [user('x'), assistant(search('s'), call('a')), user(result('a'), 'and?')],
    },
    says: 'messages.1: `web_search` tool use with id `s` was found without a corresponding `web_search_tool_result` block',
  },
]

describe('calls and results', () => {
  testRejections(PAIRS, { tools: [TOOL] })
})

describe('calls of the provider’s own tools', () => {
  testRejections(SERVER_PAIRS, { tools: [SEARCH] })
})

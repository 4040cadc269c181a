import {
  assistant,
  type BadRequest,
  call,
  profileWith,
  request,
  result,
  serverCall,
  serverResult,
  system,
  text,
  tool,
  user,
} from './make.ts'

const asked = (...blocks: readonly unknown[]): readonly unknown[] => [user('a'), assistant(blocks)]

export const badTools: readonly BadRequest[] = [
  {
    why: 'tools in an object',
    payload: request([user('a')], { tools: {} }),
    findings: [['tools-shape', 'tools']],
  },
  {
    why: 'a string for a tool',
    payload: request([user('a')], { tools: ['read'] }),
    findings: [['tools-shape', 'tools.0']],
  },
  {
    why: 'a tool with a space in its name',
    payload: request([user('a')], { tools: [tool('read file')] }),
    findings: [['tool-name', 'tools.0.name']],
  },
  {
    why: 'a tool with too long a name',
    payload: request([user('a')], { tools: [tool('r'.repeat(65))] }),
    findings: [['tool-name', 'tools.0.name']],
  },
  {
    why: 'a tool without a name',
    payload: request([user('a')], { tools: [{ input_schema: { type: 'object' } }] }),
    findings: [['tool-name', 'tools.0.name']],
  },
  {
    why: 'a tool of the provider with a bad name',
    payload: request([user('a')], { tools: [{ type: 'search_1', name: '' }] }),
    findings: [['tool-name', 'tools.0.name']],
  },
  {
    why: 'two tools of one name',
    payload: request([user('a')], { tools: [tool('read'), tool('read')] }),
    findings: [['tool-name-repeated', 'tools.1.name']],
  },
  {
    why: 'a tool without a schema',
    payload: request([user('a')], { tools: [{ name: 'read', type: 'custom' }] }),
    findings: [['tool-schema', 'tools.0.input_schema']],
  },
  {
    why: 'a schema without a type',
    payload: request([user('a')], { tools: [tool('read', { input_schema: {} })] }),
    findings: [['tool-schema', 'tools.0.input_schema']],
  },
  {
    why: 'calls in the messages and no tools',
    payload: request([...asked(call('t')), user([result('t')])], { tools: [] }),
    findings: [['tools-undeclared', 'tools']],
  },
  {
    why: 'a result in the messages and no tools',
    payload: request([user([result('t')])], { tools: [] }),
    findings: [
      ['tool-result-unexpected', 'messages.0.content.0'],
      ['tools-undeclared', 'tools'],
    ],
  },
  {
    why: 'a search under way and nothing to run it',
    payload: request(asked(serverCall('s')), { tools: undefined }),
    findings: [['tools-undeclared', 'tools']],
  },
  {
    why: 'a search under way and other tools',
    payload: request([...asked(serverCall('s'), call('t')), user([result('t')])], { tools: [tool('read')] }),
    findings: [['tools-undeclared', 'messages.1.content.0']],
  },
  {
    why: 'code under way and other tools',
    payload: request(asked(serverCall('s', { name: 'bash_code_execution' }))),
    findings: [['tools-undeclared', 'messages.1.content.0']],
  },
  {
    why: 'more deferred tools than there may be',
    payload: request([user('a')], {
      tools: ['read', 'a', 'b', 'c', 'd'].map((name, at) => tool(name, { defer_loading: at > 0 })),
    }),
    findings: [['tool-count', 'tools']],
  },
  {
    why: 'an unknown choice',
    payload: request([user('a')], { tool_choice: { type: 'some' } }),
    findings: [['tool-choice', 'tool_choice']],
  },
  {
    why: 'a choice in a string',
    payload: request([user('a')], { tool_choice: 'auto' }),
    findings: [['tool-choice', 'tool_choice']],
  },
  {
    why: 'a choice among none',
    payload: request([user('a')], { tools: [], tool_choice: { type: 'auto' } }),
    findings: [['tool-choice', 'tool_choice']],
  },
  {
    why: 'a choice of a tool there is not',
    payload: request([user('a')], { tool_choice: { type: 'tool', name: 'write' } }),
    findings: [['tool-choice', 'tool_choice.name']],
  },
  {
    why: 'a call forced where none may be',
    payload: request([user('a')], { tool_choice: { type: 'tool', name: 'read' } }),
    profile: profileWith({ tools: { forcedChoice: 'refused' } }),
    findings: [['tool-choice-forced', 'tool_choice.type']],
  },
  {
    why: 'a call forced while thinking is enabled',
    payload: request([user('a')], {
      tool_choice: { type: 'any' },
      thinking: { type: 'enabled', budget_tokens: 1024 },
    }),
    findings: [['tool-choice-forced', 'tool_choice.type']],
  },
  {
    why: 'a tool removed where that cannot be',
    payload: request([user('a'), system([{ type: 'tool_removal', tool: {} }])]),
    profile: profileWith({ capabilities: { toolChanges: false } }),
    findings: [['tool-change-refused', 'messages.1.content.0']],
  },
  {
    why: 'a tool added and removed that is not declared, found once',
    payload: request([
      user('a'),
      system([
        { type: 'tool_addition', tool: { type: 'tool_reference', name: 'write' } },
        { type: 'tool_removal', tool: { type: 'tool_reference', name: 'write' } },
      ]),
    ]),
    findings: [['tool-change-unknown', 'messages.1.content.0.tool.name']],
  },
  {
    why: 'an id with a dot in it',
    payload: request([...asked(call('t.1')), user([result('t.1')])]),
    findings: [['tool-id', 'messages.1.content.0.id']],
  },
  {
    why: 'an empty id of the provider',
    payload: request([...asked(serverCall(''), serverResult(''), text()), user('b')]),
    findings: [['tool-id', 'messages.1.content.0.id']],
  },
  {
    why: 'one id twice in a message',
    payload: request([...asked(call('t'), call('t')), user([result('t')])]),
    findings: [['tool-id-repeated', 'messages.1.content.1']],
  },
  {
    why: 'one id twice, far apart',
    payload: request([
      ...asked(call('t')),
      user([result('t')]),
      assistant('b'),
      user('c'),
      assistant([call('u'), call('t')]),
      user([result('u')]),
    ]),
    findings: [['tool-id-repeated', 'messages.5.content.1']],
  },
  {
    why: 'calls without results, all in one finding',
    payload: request([
      ...asked(call('t'), call('u'), call('v')),
      user([result('u')]),
      assistant('b'),
      user('c'),
    ]),
    findings: [['tool-result-missing', 'messages.1']],
  },
  {
    why: 'a call at the end',
    payload: request(asked(text(), call('t'))),
    findings: [['tool-result-missing', 'messages.1']],
  },
  {
    why: 'calls of a turn in two messages, one finding each',
    payload: request([...asked(call('t')), assistant([call('u')]), user('b')]),
    findings: [
      ['tool-result-missing', 'messages.1'],
      ['tool-result-missing', 'messages.2'],
    ],
  },
  {
    why: 'a result first of all',
    payload: request([user([result('t')])]),
    findings: [['tool-result-unexpected', 'messages.0.content.0']],
  },
  {
    why: 'a result a turn too late',
    payload: request([...asked(call('t')), user('b'), assistant('c'), user([result('t')])]),
    findings: [
      ['tool-result-missing', 'messages.1'],
      ['tool-result-unexpected', 'messages.4.content.0'],
    ],
  },
  {
    why: 'a result twice',
    payload: request([...asked(call('t')), user([result('t'), result('t')])]),
    findings: [['tool-result-repeated', 'messages.2.content.1']],
  },
  {
    why: 'a result twice, in two messages of one turn',
    payload: request([...asked(call('t')), user([result('t')]), user([result('t')])]),
    findings: [['tool-result-repeated', 'messages.3.content.0']],
  },
  {
    why: 'a result behind text',
    payload: request([...asked(call('t'), call('u')), user([result('t'), text(), result('u')])]),
    findings: [['tool-result-late', 'messages.2.content.2']],
  },
  {
    why: 'a result behind a message of text',
    payload: request([...asked(call('t')), user('b'), user([result('t')])]),
    findings: [['tool-result-late', 'messages.3.content.0']],
  },
  {
    why: 'a search without a result',
    payload: request([...asked(serverCall('s'), serverCall('z'), serverResult('s'), text()), user('b')]),
    findings: [['server-result-missing', 'messages.1.content.1']],
  },
  {
    why: 'a search without a result two rounds later',
    payload: request([
      ...asked(serverCall('s'), call('t')),
      user([result('t')]),
      assistant([call('u')]),
      user([result('u')]),
      assistant('b'),
      user('c'),
    ]),
    findings: [['server-result-missing', 'messages.1.content.0']],
  },
  {
    why: 'a result of a search that was not made',
    payload: request([...asked(serverResult('s'), text()), user('b')]),
    findings: [['server-result-unexpected', 'messages.1.content.0']],
  },
  {
    why: 'a result of a search before the search',
    payload: request([...asked(serverResult('s'), serverCall('s'), serverResult('s'), text()), user('b')]),
    findings: [['server-result-unexpected', 'messages.1.content.0']],
  },
  {
    why: 'a result of a search twice',
    payload: request([...asked(serverCall('s'), serverResult('s'), serverResult('s'), text()), user('b')]),
    findings: [['server-result-unexpected', 'messages.1.content.2']],
  },
  {
    why: 'text beside results while a search is under way',
    payload: request([...asked(serverCall('s'), call('t')), user([result('t'), text(), text()])]),
    findings: [['server-wait-results-only', 'messages.2.content.1']],
  },
]

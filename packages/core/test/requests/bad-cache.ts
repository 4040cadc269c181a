import {
  assistant,
  type BadRequest,
  call,
  mark,
  profileWith,
  request,
  result,
  system,
  text,
  thinking,
  tool,
  user,
} from './make.ts'

const plain = (more: Readonly<Record<string, unknown>>): unknown => request([user('a')], more)
const marked = (...ttls: readonly (string | undefined)[]): unknown =>
  request([user(ttls.map((ttl) => text('a', mark(ttl))))])

export const badCache: readonly BadRequest[] = [
  {
    why: 'a marker that is true',
    payload: request([user([text('a', { cache_control: true })])]),
    findings: [['marker-shape', 'messages.0.content.0.cache_control']],
  },
  {
    why: 'a marker for ever',
    payload: request([user([text('a', { cache_control: { type: 'persistent' } })])]),
    findings: [['marker-shape', 'messages.0.content.0.cache_control']],
  },
  {
    why: 'a marker for two hours',
    payload: marked('2h'),
    findings: [['marker-ttl', 'messages.0.content.0.cache_control.ttl']],
  },
  {
    why: 'a lifetime there is not, which orders nothing',
    payload: marked('2h', '1h', '5m'),
    findings: [['marker-ttl', 'messages.0.content.0.cache_control.ttl']],
  },
  {
    why: 'another automatic lifetime than on the last block before a message for one turn',
    payload: request(
      [user([text('a', mark('1h'))]), system('b', { clear_at: 'next_user_message' })],
      mark('5m'),
    ),
    findings: [['marker-automatic', 'cache_control.ttl']],
  },
  {
    why: 'another automatic lifetime than on the system prompt, with nothing markable behind it',
    payload: request([user([])], { system: [text('a', mark('1h')), text('b', mark('1h'))], ...mark('5m') }),
    findings: [
      ['message-empty', 'messages.0'],
      ['marker-automatic', 'cache_control.ttl'],
    ],
  },
  {
    why: 'another automatic lifetime than on the last tool, with nothing markable behind it',
    payload: request([user([])], { tools: [tool('read', mark('1h'))], ...mark('5m') }),
    findings: [
      ['message-empty', 'messages.0'],
      ['marker-automatic', 'cache_control.ttl'],
    ],
  },
  {
    why: 'a lifetime out of order, which the automatic one repeats',
    payload: request([user([text('a', mark()), text('b', mark('1h'))])], mark('1h')),
    findings: [['marker-order', 'messages.0.content.1.cache_control.ttl']],
  },
  {
    why: 'a marker with a scope there is not, and a field',
    payload: request([user([text('a', { cache_control: { type: 'ephemeral', scope: 'world', x: 1 } })])]),
    findings: [
      ['marker-field', 'messages.0.content.0.cache_control.scope'],
      ['marker-field', 'messages.0.content.0.cache_control.x'],
    ],
  },
  {
    why: 'bad markers on tools and system',
    payload: plain({ tools: [tool('read', mark('2h'))], system: [text('a', { cache_control: 1 })] }),
    findings: [
      ['marker-shape', 'system.0.cache_control'],
      ['marker-ttl', 'tools.0.cache_control.ttl'],
    ],
  },
  {
    why: 'markers on thinking',
    payload: request([
      user('a'),
      assistant([thinking(mark()), { type: 'redacted_thinking', data: 'x', ...mark() }, text()]),
      user('b'),
    ]),
    findings: [
      ['marker-refused', 'messages.1.content.0.cache_control'],
      ['marker-refused', 'messages.1.content.1.cache_control'],
    ],
  },
  {
    why: 'a marker on empty text',
    payload: request([user([text(), text('', mark())])]),
    findings: [
      ['text-blank', 'messages.0.content.1'],
      ['marker-refused', 'messages.0.content.1.cache_control'],
    ],
  },
  {
    why: 'five markers, one of them inside a result',
    payload: request(
      [
        user('a'),
        assistant([call('t')]),
        user([result('t', { content: [text('b', mark())], ...mark() }), text('c', mark())]),
      ],
      { tools: [tool('read', mark())], system: [text('s', mark())] },
    ),
    findings: [['marker-count', 'messages.2.content.1.cache_control']],
  },
  {
    why: 'four markers and the automatic one',
    payload: request(
      [user([text('a', mark()), text('b', mark()), text('c', mark()), text('d', mark()), text('e')])],
      mark(),
    ),
    findings: [['marker-count', 'cache_control']],
  },
  {
    why: 'a longer lifetime behind a shorter one',
    payload: marked('5m', '1h', undefined, '1h'),
    findings: [
      ['marker-order', 'messages.0.content.1.cache_control.ttl'],
      ['marker-order', 'messages.0.content.3.cache_control.ttl'],
    ],
  },
  {
    why: 'a longer lifetime in messages than on tools',
    payload: request([user([text('a', mark('1h'))])], { tools: [tool('read', mark())] }),
    findings: [['marker-order', 'messages.0.content.0.cache_control.ttl']],
  },
  {
    why: 'a longer lifetime on a result than inside it',
    payload: request([
      user('a'),
      assistant([call('t')]),
      user([result('t', { content: [text('b', mark())], ...mark('1h') })]),
    ]),
    findings: [['marker-order', 'messages.2.content.0.cache_control.ttl']],
  },
  {
    why: 'a longer automatic lifetime',
    payload: request([user([text('a', mark()), text('b')])], mark('1h')),
    findings: [['marker-order', 'cache_control.ttl']],
  },
  {
    why: 'another automatic lifetime than on the last block that can carry one',
    payload: request(
      [
        user('a'),
        assistant([text('b', mark('1h')), thinking()]),
        assistant([thinking(), call('t', mark('1h'))]),
        user([result('t', mark('1h'))]),
      ],
      mark('5m'),
    ),
    findings: [['marker-automatic', 'cache_control.ttl']],
  },
  {
    why: 'an automatic marker that is none',
    payload: plain({ cache_control: {} }),
    findings: [['marker-shape', 'cache_control']],
  },
  {
    why: 'an automatic marker where there is none',
    payload: plain(mark()),
    profile: profileWith({ cache: { automatic: false } }),
    findings: [['marker-automatic', 'cache_control']],
  },
  {
    why: 'cache edits and references where there are none',
    payload: request([
      user('a'),
      assistant([call('t')]),
      user([result('t', { cache_reference: 't' }), { type: 'cache_edits', edits: [] }]),
    ]),
    profile: profileWith({ capabilities: { cacheEdits: false } }),
    findings: [
      ['cache-edit-refused', 'messages.2.content.0'],
      ['cache-edit-refused', 'messages.2.content.1'],
    ],
  },
]

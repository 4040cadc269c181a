import { describe, expect, it } from 'vitest'
import type { Fetch } from './client.ts'
import { createComparison } from './request-comparison.ts'

const TOOL = { name: 'Read', input_schema: { type: 'object' } }
const PROMPT = { role: 'user', content: 'Go.' }
const ANSWER = { role: 'assistant', content: 'Done.' }
const THANKS = { role: 'user', content: 'Thanks.' }
const REQUEST = { model: 'm', max_tokens: 5, tools: [TOOL], messages: [PROMPT] }

const FIRST = { ...REQUEST, thread: {} }
const LATER = {
  ...{ model: 'm', max_tokens: 5, messages: [THANKS] },
  thread: { previous_message_id: 'msg_1' },
}
const WHOLE = { ...REQUEST, messages: [PROMPT, ANSWER, THANKS] }

/** Sends requests of a client on a way that puts others in their place. Returns what the comparison finds. */
async function send(
  way: 'fetch' | 'middleware' | 'proxy',
  pairs: readonly (readonly [given: object, sent: object])[],
  isRewritten = false,
): Promise<readonly string[]> {
  const comparison = createComparison(() => isRewritten)
  const toBody = (value: object): string | Buffer =>
    way === 'proxy' ? Buffer.from(JSON.stringify(value)) : JSON.stringify(value)
  const upstream = comparison.watchProvider(async () => new Response('{}'))
  for (const [given, sent] of pairs) {
    const replace: Fetch = () => upstream('http://provider.test', { body: toBody(sent) })
    const init = { method: 'POST', body: toBody(given) }
    if (way !== 'middleware') await comparison.watchClient(replace)('http://client.test', init)
    else
      await comparison.clientMiddleware({ ...init, url: 'http://client.test' }, () =>
        replace('http://x.test'),
      )
  }
  return comparison.readChanges()
}

describe.each(['fetch', 'middleware', 'proxy'] as const)('on the way of %s', (way) => {
  it('a request that is sent as it is has no change', async () => {
    expect(await send(way, [[REQUEST, REQUEST]])).toEqual([])
  })

  it('a tool, a parameter and a message that the client did not send are found', async () => {
    const sent = { ...REQUEST, tools: [], top_k: 1, messages: [{ ...PROMPT, content: 'Stop.' }] }
    expect(await send(way, [[REQUEST, sent]])).toEqual([
      'another top_k: 1',
      'no tool Read',
      expect.stringContaining('Stop.'),
    ])
  })

  it('a client that sends only what is new is compared with that, and with the tools of its first request', async () => {
    const other = { ...WHOLE, tools: [], messages: [PROMPT, ANSWER, { ...THANKS, content: 'No.' }] }
    expect([
      await send(way, [
        [FIRST, REQUEST],
        [LATER, WHOLE],
      ]),
      await send(way, [
        [FIRST, REQUEST],
        [LATER, other],
      ]),
    ]).toEqual([[], ['no tool Read', expect.stringContaining('No.')]])
  })

  it('messages are not compared once the context was rewritten, nor calls of the engine itself', async () => {
    const rewritten = { ...REQUEST, messages: [{ ...PROMPT, content: 'A summary.' }] }
    expect(await send(way, [[REQUEST, rewritten]], true)).toEqual([])
    expect(await send(way, [[REQUEST, { ...rewritten, max_tokens: 99 }]])).toEqual([])
  })
})

describe('a request of an OpenAI client', () => {
  const RESPONSES = { model: 'm', input: [{ role: 'user', content: 'Go.' }], tools: [TOOL] }
  const LONG = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Go.' }] }]
  const CHAT = { model: 'm', messages: [{ role: 'developer', content: 'Be kind.' }, PROMPT] }
  const MARKLESS = { model: 'm', input: [{ role: 'developer', content: 'Be kind.' }] }
  const MARKED = {
    role: 'developer',
    content: [{ type: 'input_text', text: 'Be kind.', prompt_cache_breakpoint: { mode: 'explicit' } }],
  }

  it.each([
    [
      'may be marked for the cache',
      RESPONSES,
      { ...RESPONSES, prompt_cache_options: { comparison_response_id: 'r' } },
    ],
    ['may have its system prompt marked for the cache', MARKLESS, { ...MARKLESS, input: [MARKED] }],
  ])('%s', async (_, given, sent) => {
    expect(await send('fetch', [[given, sent]])).toEqual([])
  })

  it.each([
    ['another form of an item', RESPONSES, { ...RESPONSES, input: LONG }],
    ['another role', CHAT, { ...CHAT, messages: [{ role: 'system', content: 'Be kind.' }, PROMPT] }],
    [
      'messages that are one',
      { ...RESPONSES, input: [LONG[0], LONG[0]] },
      {
        ...RESPONSES,
        input: [{ ...LONG[0], content: [...(LONG[0]?.content ?? []), ...(LONG[0]?.content ?? [])] }],
      },
    ],
    [
      'no id',
      { ...RESPONSES, input: [{ ...LONG[0], id: 'msg_1', status: 'completed' }] },
      { ...RESPONSES, input: LONG },
    ],
  ])('that has %s is found', async (_, given, sent) => {
    expect(await send('fetch', [[given, sent]])).toHaveLength(1)
  })

  it('has the fields, tools and items of the client', async () => {
    const other = { ...RESPONSES, tools: [], store: false, input: [{ role: 'user', content: 'Stop.' }] }
    expect(await send('fetch', [[RESPONSES, other]])).toEqual([
      'another tools: []',
      'another store: false',
      expect.stringContaining('Stop.'),
    ])
  })
})

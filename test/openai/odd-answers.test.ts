/**
 * Answers in every shape that servers of OpenAI's APIs are known to give: errors of gateways, proxies and frameworks, bodies that
 * are no answer, odd messages, odd streams. A client gets each as it would have got it alone, and its next request goes out.
 */
import { createTidemark, openai } from 'tidemark'
import { describe, expect, it } from 'vitest'

interface Answer {
  readonly name: string
  readonly status?: number
  readonly type?: string
  readonly body?: string
  /** The connection breaks after the body. */
  readonly breaks?: true
}

type Api = 'responses' | 'chat'

const STREAM = 'text/event-stream'
const JSON_TYPE = 'application/json'
const toJson = JSON.stringify

const frames = (...events: readonly (object | string)[]): string =>
  events.map((event) => `data: ${typeof event === 'string' ? event : toJson(event)}\n\n`).join('')
const named = (...events: readonly { readonly type: string; readonly [field: string]: unknown }[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${toJson(event)}\n\n`).join('')
const stream = (name: string, body: string): Answer => ({ name: `a stream: ${name}`, type: STREAM, body })

const ANY: readonly Answer[] = [
  { name: '502 of a proxy', status: 502, type: 'text/html', body: '<h1>Bad gateway</h1>' },
  { name: '500 without a body', status: 500, body: '' },
  { name: 'an error that is a text', status: 400, body: '{"error":"model not found"}' },
  { name: 'the list of a framework', status: 422, body: '{"detail":[{"loc":["body"],"msg":"required"}]}' },
  { name: 'a detail', status: 401, body: '{"detail":"Unauthorized"}' },
  {
    name: 'a message alone',
    status: 400,
    body: '{"object":"error","message":"bad","param":null,"code":400}',
  },
  { name: 'a list of errors', status: 400, body: '[{"error":{"code":400,"status":"INVALID_ARGUMENT"}}]' },
  { name: 'an error that is null', status: 400, body: '{"error":null}' },
  { name: 'a number', status: 400, body: '7' },
  { name: '429', status: 429, body: '{"error":{"message":"Rate limit","code":"rate_limit_exceeded"}}' },
  { name: '413 of a proxy', status: 413, type: 'text/plain', body: 'Request Entity Too Large' },
  { name: '200 with an error', body: '{"error":{"message":"Provider returned error","code":502}}' },
  { name: '200 of a login page', type: 'text/html', body: '<html>login</html>' },
  { name: '200 without a body', body: '' },
  { name: '204', status: 204 },
  { name: '200 with null', body: 'null' },
  { name: '200 with half an answer', body: '{"id":"c1","choices":[{"index":0,"mess' },
  { name: 'half an answer before the connection breaks', body: '{"id":"c1","cho', breaks: true },
  stream('a login page', '<html></html>'),
  stream('nothing', ''),
  stream('only comments', ': keep\n\n: keep\n\n'),
  stream('an error', frames({ error: { message: 'boom', code: 500 } })),
  stream('an error that is a text', frames({ error: 'boom' })),
  stream('an event of an error', named({ type: 'error', code: 'server_error', message: 'x' })),
  stream('no JSON', 'data: {oops\n\ndata: [DONE]\n\n'),
]

const completion = (message: object, finish: string | null = 'stop', more: object = {}): string =>
  toJson({
    id: 'c1',
    object: 'chat.completion',
    choices: [{ index: 0, finish_reason: finish, message }],
    ...more,
  })
const chunk = (delta: object, finish: string | null = null, more: object = {}): object => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
const call = (given: object): object => ({ id: 'a', type: 'function', function: { name: 'read', ...given } })
const HI = frames(chunk({ role: 'assistant', content: 'Hi é😀' }), chunk({}, 'stop'), '[DONE]')

const CHAT: readonly Answer[] = [
  { name: 'no content', body: completion({ role: 'assistant' }) },
  {
    name: 'content in parts',
    body: completion({ role: 'assistant', content: [{ type: 'text', text: 'Hi.' }] }),
  },
  { name: 'a refusal', body: completion({ role: 'assistant', content: null, refusal: 'I cannot.' }) },
  { name: 'no choice', body: toJson({ id: 'c', choices: [], usage: null }) },
  {
    name: 'a choice with an error',
    body: toJson({ choices: [{ index: 0, error: { code: 502 }, message: {} }] }),
  },
  {
    name: 'a function call',
    body: completion({ content: null, function_call: { name: 'read', arguments: '{}' } }, 'function_call'),
  },
  {
    name: 'arguments that are an object',
    body: completion({ content: null, tool_calls: [call({ arguments: { a: 1 } })] }, 'tool_calls'),
  },
  { name: 'calls, but stopped', body: completion({ content: '', tool_calls: [call({ arguments: '{}' })] }) },
  { name: 'no reason to stop', body: completion({ content: 'x' }, null) },
  {
    name: 'usage that is no number',
    body: completion({ content: 'x' }, 'stop', { usage: { prompt_tokens: -1, completion_tokens: 'x' } }),
  },
  {
    name: 'a number that no double holds',
    body: completion({ content: 'x' }).replace('"x"', '"x","n":12345678901234567890.0'),
  },
  stream('no end mark', frames(chunk({ content: 'Hi' }), chunk({}, 'stop'))),
  stream('rows of Windows', HI.replaceAll('\n', '\r\n')),
  stream('comments between', `: WAIT\n\n${HI.replace('\n\n', '\n\n: WAIT\n\n')}`),
  stream('no space', HI.replaceAll('data: ', 'data:')),
  stream('a byte order mark', `\ufeff${HI}`),
  stream('no last empty row', HI.slice(0, -2)),
  stream(
    'usage in each chunk',
    frames(
      chunk({ content: 'Hi' }, null, { usage: { prompt_tokens: 4 } }),
      chunk({}, 'stop', { usage: null }),
      '[DONE]',
    ),
  ),
  stream(
    'a first chunk without a choice',
    frames({ choices: [], prompt_filter_results: [] }, chunk({ content: 'Hi' }), chunk({}, 'stop'), '[DONE]'),
  ),
  stream(
    'two calls at once',
    frames(
      chunk({
        tool_calls: [
          { index: 0, ...call({ arguments: '' }) },
          { index: 1, ...call({ arguments: '' }), id: 'b' },
        ],
      }),
      chunk({ tool_calls: [{ index: 1, function: { arguments: '{}' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{}' } }] }),
      chunk({}, 'tool_calls'),
      '[DONE]',
    ),
  ),
  stream(
    'a call without an index',
    frames(chunk({ tool_calls: [call({ arguments: '{}' })] }), chunk({}, 'tool_calls'), '[DONE]'),
  ),
  stream(
    'an error in the middle',
    frames(chunk({ content: 'Hi' }), { error: { message: 'x', code: 'server_error' } }),
  ),
  stream(
    'more behind the end',
    frames(chunk({ content: 'Hi' }), chunk({}, 'stop'), chunk({ content: 'more' }), '[DONE]', '[DONE]'),
  ),
  { ...stream('that breaks', frames(chunk({ content: 'Hi' }))), breaks: true },
]

const text = (words: string): object => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  content: [{ type: 'output_text', text: words, annotations: [] }],
})
const toResponse = (output: readonly object[] | null, more: object = {}): object => ({
  id: 'resp_1',
  object: 'response',
  model: 'gpt-5.4',
  status: 'completed',
  output,
  ...more,
})
const body = (output: readonly object[] | null, more: object = {}): string => toJson(toResponse(output, more))
const CREATED = { type: 'response.created', response: { id: 'r', output: [] } }
const ADDED = { type: 'response.output_item.added', output_index: 0, item: { ...text(''), content: [] } }
const DELTA = {
  type: 'response.output_text.delta',
  output_index: 0,
  content_index: 0,
  item_id: 'msg_1',
  delta: 'Hi',
}

const RESPONSES: readonly Answer[] = [
  { name: 'no output', body: body([]) },
  { name: 'output that is null', body: body(null) },
  { name: 'content that is null', body: body([{ ...text(''), content: null }]) },
  { name: 'a refusal', body: body([{ ...text(''), content: [{ type: 'refusal', refusal: 'No.' }] }]) },
  { name: 'failed', body: body([], { status: 'failed', error: { code: 'server_error', message: 'x' } }) },
  { name: 'queued', body: body([], { status: 'queued' }) },
  {
    name: 'items that nobody knows',
    body: body([
      { type: 'mcp_list_tools', tools: [] },
      { type: 'something_new', deep: [1, { b: null }] },
      text('ok'),
    ]),
  },
  {
    name: 'reasoning in the open',
    body: body([
      {
        type: 'reasoning',
        id: 'rs',
        summary: [],
        content: [{ type: 'reasoning_text', text: 'hm' }],
        encrypted_content: null,
      },
      text('ok'),
    ]),
  },
  stream('only its beginning', named(CREATED)),
  stream('only its end', named({ type: 'response.completed', response: toResponse([text('all')]) })),
  stream(
    'incomplete',
    named(CREATED, ADDED, DELTA, {
      type: 'response.incomplete',
      response: toResponse([text('Hi')], {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      }),
    }),
  ),
  stream(
    'events that nobody knows',
    named(
      CREATED,
      { type: 'response.weird' },
      { type: 'keepalive' },
      { type: 'response.completed', response: toResponse([{ type: 'new_item', v: 1 }]) },
    ),
  ),
  stream(
    'an item that is not its deltas',
    named(
      CREATED,
      ADDED,
      DELTA,
      { type: 'response.output_item.done', output_index: 0, item: text('Other') },
      { type: 'response.completed', response: toResponse([text('Other')]) },
    ),
  ),
  stream(
    'failed',
    named(CREATED, {
      type: 'response.failed',
      response: toResponse([], { status: 'failed', error: { code: 'server_error', message: 'x' } }),
    }),
  ),
  { ...stream('that breaks', named(CREATED, ADDED)), breaks: true },
]

const FINE: Readonly<Record<Api, Answer>> = {
  chat: { name: 'fine', body: completion({ role: 'assistant', content: 'fine' }) },
  responses: { name: 'fine', body: body([text('fine')]) },
}

/** Bytes come in pieces that cut frames and characters. */
function toBody({ status, body: whole = '', breaks }: Answer): ReadableStream<Uint8Array> | null {
  if (status === 204) return null
  const bytes = new TextEncoder().encode(whole)
  const starts = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, index) => index * 7)
  return new ReadableStream({
    start(controller) {
      for (const start of starts) controller.enqueue(bytes.slice(start, start + 7))
      if (breaks === true) controller.error(new TypeError('terminated'))
      else controller.close()
    },
  })
}

async function readAnswer(response: Response): Promise<string> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let read = ''
  try {
    for await (const piece of response.body ?? []) read += decoder.decode(piece, { stream: true })
    return read
  } catch (thrown) {
    // A body that is no stream is read at once: that it broke may be known before its head is passed on.
    if (response.headers.get('content-type') !== STREAM) throw thrown
    return `${read} ${String(thrown)}`
  }
}

interface ExchangeSettings {
  readonly api: Api
  readonly isStream: boolean
  readonly mode: 'manage' | 'observe' | 'off'
}

/** What a client sees of an odd answer and of the one to its next request, and how its requests reached the server. */
async function exchange(answer: Answer, { api, isStream, mode }: ExchangeSettings) {
  const answers = [answer, FINE[api]]
  const sent: object[] = []
  const server: typeof globalThis.fetch = async (_, init) => {
    // The usage of a stream is always asked for; it is no part of what is compared here.
    const { stream_options: __, ...request } = JSON.parse(String(init?.body))
    sent.push(request)
    const now = answers.shift() ?? FINE[api]
    return new Response(toBody(now), {
      status: now.status ?? 200,
      headers: { 'content-type': now.type ?? JSON_TYPE },
    })
  }
  const model = api === 'chat' ? 'gpt-4.1' : 'gpt-5.4'
  const tide = createTidemark({ model: openai(model, { apiKey: 'any', fetch: server, api }), memory: true })
  const fetch = tide.fetch({ session: 'odd', fetch: server, mode })
  const ask = async (said: readonly object[]) => {
    const read = { name: 'read', parameters: {} }
    const tools = [api === 'chat' ? { type: 'function', function: read } : { type: 'function', ...read }]
    const request = { model, [api === 'chat' ? 'messages' : 'input']: said, tools, stream: isStream }
    const path = api === 'chat' ? 'chat/completions' : 'responses'
    const headers = { authorization: 'Bearer any', 'content-type': JSON_TYPE }
    const given = { method: 'POST', headers, body: toJson(request) }
    try {
      const response = await fetch(`https://server.test/v1/${path}`, given)
      return {
        status: response.status,
        type: response.headers.get('content-type'),
        body: await readAnswer(response),
      }
    } catch (thrown) {
      return String(thrown)
    }
  }
  const hello = { role: 'user', content: 'Hello.' }
  const [odd, fine] = [
    await ask([hello]),
    await ask([hello, { role: 'assistant', content: 'Hi.' }, { role: 'user', content: 'Again.' }]),
  ]
  await tide.close()
  return { odd, fine, sent }
}

const CASES = { chat: [...ANY, ...CHAT], responses: [...ANY, ...RESPONSES] }
/** A server that refuses a stream may not know the question for its usage, so the client's own request is tried. */
const mayBeAsked = (api: Api, isStream: boolean, { status = 200 }: Answer): boolean =>
  api === 'chat' && isStream && [400, 413, 422].includes(status)

describe.each(['responses', 'chat'] as const)('on the %s API', (api) => {
  it.each(CASES[api])(
    '$name reaches the client as it came, and the next request goes out',
    async (answer) => {
      for (const isStream of [false, true]) {
        const alone = await exchange(answer, { api, isStream, mode: 'off' })
        expect(await exchange(answer, { api, isStream, mode: 'observe' })).toEqual(alone)
        const managed = await exchange(answer, { api, isStream, mode: 'manage' })
        if (mayBeAsked(api, isStream, answer)) expect(managed.sent).toHaveLength(3)
        else expect(managed).toEqual(alone)
      }
    },
  )
})

it('a request that is refused as the client wrote it is not sent a second time, whatever it continues', async () => {
  const sent: string[] = []
  const server: typeof globalThis.fetch = async (_, init) => {
    sent.push(String(init?.body))
    const error = { message: 'Unknown model.', type: 'invalid_request_error', code: 'model_not_found' }
    if (sent.length !== 1) return Response.json({ error }, { status: 400 })
    return Response.json(toResponse([text('fine')]))
  }
  const passed: unknown[] = []
  const tide = createTidemark({
    model: openai('gpt-5.4', { apiKey: 'any', fetch: server }),
    memory: true,
    onEvent: (event) => void (event.type === 'request-passed' && passed.push(event)),
  })
  const fetch = tide.fetch({ session: 'refused', fetch: server })
  const ask = (request: object): Promise<Response> =>
    fetch('https://server.test/v1/responses', {
      method: 'POST',
      headers: { authorization: 'Bearer any' },
      body: toJson(request),
    })
  const tools = [{ type: 'function', name: 'read', parameters: {} }]
  const first = { model: 'gpt-5.4', input: 'Hello.', tools }
  expect((await ask(first)).status).toBe(200)
  expect((await ask({ ...first, input: 'Again.', previous_response_id: 'resp_1' })).status).toBe(400)
  const whole = [{ role: 'user', content: 'Hello.' }, text('fine'), { role: 'user', content: 'Again.' }]
  const refused = await ask({ ...first, input: whole })
  expect([refused.status, await refused.json()]).toEqual([
    400,
    { error: expect.objectContaining({ code: 'model_not_found' }) },
  ])
  expect(sent).toHaveLength(3)
  expect(passed).toEqual([])
  await tide.close()
})

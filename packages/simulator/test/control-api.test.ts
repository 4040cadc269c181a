/** The control API: who may use it, what it refuses, and what it says about requests. */
import { request as sendHttp } from 'node:http'
import { createSimulator, type Simulator, type SimulatorServer, serve } from '@tidemark/simulator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MARK, MODEL, postMessage, simulate, text, tokens, user } from './ask.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

interface HttpResult {
  readonly status: number
  readonly text: string
}

/** Sends a request with any headers. `fetch` would not send `Host` and `Origin` as given. */
function send(
  { port }: SimulatorServer,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body = '',
): Promise<HttpResult> {
  return new Promise((resolve, reject) => {
    const sent = sendHttp({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      let read = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        read += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: read }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

describe('a web page', () => {
  let served: SimulatorServer
  beforeAll(async () => {
    served = await serve()
  })
  afterAll(() => served.close())

  const ATTEMPTS = [
    ['GET', '/_simulator/requests', ''],
    ['POST', '/_simulator/faults', '"status=500"'],
    ['DELETE', '/_simulator/cache', ''],
    ['POST', '/_simulator/clock', '{"advance_ms":1}'],
    ['POST', '/v1/messages', '{}'],
    ['GET', '/v1/models', ''],
  ] as const

  it.each(
    ATTEMPTS.flatMap(([method, path, body]) =>
      [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: 'http://127.0.0.1:1' },
        { host: 'evil.example' },
        { host: 'localhost.evil.example:80' },
        { host: 'evil.example', origin: 'http://evil.example' },
      ].map((headers) => ({ method, path, body, headers })),
    ),
  )('of another site cannot $method $path with $headers', async ({ method, path, body, headers }) => {
    const { status, text: said } = await send(served, method, path, { ...JSON_TYPE, ...headers }, body)
    expect([status, said]).toEqual([403, expect.stringContaining('permission_error')])
    expect(said).not.toContain('"waiting"')
    expect(served.simulator.requests).toEqual([])
  })

  it('of another site leaves no fault behind', async () => {
    const waiting = await send(served, 'GET', '/_simulator/faults', {})
    expect(waiting).toEqual({ status: 200, text: '{"waiting":[]}' })
  })

  it.each([
    ['127.0.0.1', ''],
    ['localhost:8080', ''],
    ['[::1]:8080', ''],
    ['192.168.1.2', ''],
    ['simulator:8080', ''],
    ['host.docker.internal', ''],
    ['localhost:8080', 'http://localhost:8080'],
  ])('of the simulator itself, and a client, is answered: Host %s, Origin "%s"', async (host, origin) => {
    const headers = { host, ...(origin === '' ? {} : { origin }) }
    expect((await send(served, 'GET', '/_simulator', headers)).status).toBe(200)
  })
})

describe('a body', () => {
  const control = (
    path: string,
    body: string,
    headers: Record<string, string> = JSON_TYPE,
  ): Promise<Response> =>
    createSimulator().fetch(`http://simulator/_simulator${path}`, { method: 'POST', body, headers })

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'of type %s, which a form can send, is refused with 415',
    async (type) => {
      for (const path of ['/faults', '/clock'])
        expect((await control(path, '"500"', { 'content-type': type })).status).toBe(415)
    },
  )

  it('of over a megabyte is refused by the control API with 413', async () => {
    expect((await control('/faults', `"${'x'.repeat(1_000_000)}"`)).status).toBe(413)
  })

  const DEEP = 100_000
  const nest = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`

  it('that is nested too deeply is refused with 400, not 500', async () => {
    const fault = `{"type":"status","status":500,"details":{"a":${nest(DEEP)}}}`
    const several = `${'['.repeat(DEEP)}"500"${']'.repeat(DEEP)}`
    for (const body of [fault, several]) expect([(await control('/faults', body)).status]).toEqual([400])
  })

  it.each([
    [
      'a schema',
      (deep: string) => `"tools":[{"name":"a","input_schema":{"type":"object","properties":${deep}}}]`,
    ],
    ['the input of a call', (deep: string) => `"metadata":${deep}`],
  ])('whose %s is nested too deeply is refused with 400, not 500', async (_, write) => {
    const deep = `${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`
    const body = `{"model":"${MODEL}","max_tokens":9,"messages":[{"role":"user","content":"x"}],${write(deep)}}`
    const headers = { ...JSON_TYPE, 'x-api-key': 'k', 'anthropic-version': '2023-06-01' }
    const response = await createSimulator().fetch('http://x/v1/messages', { method: 'POST', headers, body })
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('nested deeper than 200 levels'),
    ])
  })

  it('in the fault header that is nested too deeply is refused with 400', async () => {
    const answer = await postMessage(
      simulate(),
      { messages: [user('x')] },
      { headers: { 'x-simulator-fault': nest(6_000) } },
    )
    expect([answer.status, answer.body.error.message]).toEqual([
      400,
      'x-simulator-fault: it is nested deeper than 200 levels',
    ])
  })

  it.each([
    ['as it is', {}, 'Request exceeds the maximum size'],
    [
      'after decompression',
      { 'content-encoding': 'gzip' },
      'Request exceeds the maximum size after decoding',
    ],
  ])('over the limit %s is refused before the rest of it is read', async (_, encoding, message) => {
    let sent = 0
    const endless = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull(controller) {
        sent += 1_000_000
        controller.enqueue(new Uint8Array(1_000_000))
      },
    })
    const isPacked = 'content-encoding' in encoding
    const body = isPacked ? endless.pipeThrough(new CompressionStream('gzip')) : endless
    const headers = { ...JSON_TYPE, 'x-api-key': 'k', 'anthropic-version': '2023-06-01', ...encoding }
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
    const response = await createSimulator().fetch('http://x/v1/messages', init)
    expect([response.status, await response.text()]).toEqual([413, expect.stringContaining(message)])
    // Compression holds back some of what it was given; an endless body would never have been answered.
    expect(sent).toBeLessThan(isPacked ? 1_000_000_000 : 40_000_000)
  })

  it('over the limit is refused on a port as well, without a length that says so', async () => {
    const served = await serve()
    try {
      const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
        pull: (controller) => controller.enqueue(new Uint8Array(1_000_000)),
      })
      const headers = { ...JSON_TYPE, 'x-api-key': 'k', 'anthropic-version': '2023-06-01' }
      const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
      const outcome = await fetch(`${served.url}/v1/messages`, init).then(
        ({ status }) => status,
        () => 'closed',
      )
      expect([413, 'closed']).toContain(outcome)
      expect(served.simulator.requests).toMatchObject([{ status: 413 }])
    } finally {
      await served.close()
    }
  })
})

describe('what is kept of requests', () => {
  const read = async (simulator: Simulator, path: string): Promise<{ status: number; body: unknown }> => {
    const response = await simulator.fetch(`http://simulator/_simulator${path}`)
    return { status: response.status, body: await response.json() }
  }
  const ask = (simulator: Simulator, said: string): Promise<unknown> =>
    postMessage(simulator, { messages: [user(text(tokens(700, said), MARK))] })

  it('is said, together with how many records are gone', async () => {
    const simulator = simulate({ keepRequests: 2 })
    for (const said of ['a', 'b', 'c']) await ask(simulator, said)
    expect((await read(simulator, '/requests')).body).toMatchObject({
      requests: [{ number: 2 }, { number: 3 }],
      total: 3,
      kept: 2,
      forgotten: 1,
    })
    expect(await read(simulator, '/requests/1/body')).toEqual({
      status: 404,
      body: {
        error: 'request 1 is no longer kept: the newest 2 are, and of these the newest 64 MiB of bodies',
      },
    })
    expect((await read(simulator, '/requests/9')).body).toEqual({ error: 'no request 9' })
  })

  it('is nothing with keepRequests: 0, and no record with ?limit=0', async () => {
    const none = simulate({ keepRequests: 0 })
    await ask(none, 'a')
    expect(none.requests).toEqual([])
    expect((await read(none, '/requests')).body).toMatchObject({ requests: [], total: 1, forgotten: 1 })
    const some = simulate()
    await ask(some, 'a')
    expect((await read(some, '/requests?limit=0')).body).toMatchObject({ requests: [], forgotten: 0 })
    expect((await read(some, '/requests?limit=many')).body).toEqual({ error: 'limit must be a whole number' })
  })

  it('includes the body as it was sent, even if it was refused', async () => {
    const simulator = simulate()
    await ask(simulator, 'a')
    const headers = { ...JSON_TYPE, 'x-api-key': 'k', 'anthropic-version': '2023-06-01' }
    await simulator.fetch('http://x/v1/messages', { method: 'POST', headers, body: '{ "no": "JSON"' })
    expect((await read(simulator, '/requests/1/body')).body).toMatchObject({ model: MODEL, max_tokens: 64 })
    const second = await simulator.fetch('http://x/_simulator/requests/2/body')
    expect(await second.text()).toBe('{ "no": "JSON"')
  })

  it('are totals of all requests, also of those that are gone', async () => {
    const simulator = simulate({ keepRequests: 1 })
    for (const said of ['a', 'a', 'b']) await ask(simulator, said)
    await postMessage(simulator, { messages: [] })
    const { body } = await read(simulator, '')
    expect(body).toMatchObject({
      requests: 4,
      totals: {
        failed: 1,
        usage: { input: 0, cacheRead: 704, write5m: 1_408, write1h: 0, output: 3 },
        unpriced: 0,
        missedTokens: 0,
      },
    })
    const { totals } = body as { readonly totals: { readonly cost: { readonly total: number } } }
    expect(totals.cost.total).toBeGreaterThan(0)
  })

  it('the clock only goes forward, and not to the end of time', async () => {
    const simulator = simulate()
    for (const ms of ['-1', '1e999', '"1"'])
      expect(
        (
          await simulator.fetch('http://x/_simulator/clock', {
            method: 'POST',
            headers: JSON_TYPE,
            body: `{"advance_ms":${ms}}`,
          })
        ).status,
      ).toBe(400)
  })
})

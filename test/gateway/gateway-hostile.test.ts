/** Callers who want more than their budget, and a provider that tells too much or hangs up. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { listKeys } from '@tidemark/gateway'
import { afterEach, describe, expect, it } from 'vitest'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { OpenAI, useGatewayWorlds } from './gateway-world.ts'

const missing = explainMissingPostgres()
const BODY = {
  model: 'claude-sonnet-5-5',
  max_tokens: 400,
  messages: [{ role: 'user', content: 'How many?' }],
}

describe.skipIf(missing !== null)('a gateway with hostile neighbours', () => {
  const createGatewayWorld = useGatewayWorlds()
  const closing: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })

  async function createWorld(answer?: RequestListener, budget?: number) {
    const world = await createGatewayWorld()
    const upstream = answer === undefined ? {} : await startUpstream(answer)
    const { url } = await world.startGateway(upstream)
    const key = await world.addKey('team', budget === undefined ? {} : { budget })
    const post = (body: object, headers: Record<string, string> = {}, path = '/v1/messages') =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key, ...headers },
        body: JSON.stringify(body),
      })
    const readSpending = async () => (await listKeys(world.pool))[0]
    return { ...world, key, url, post, readSpending }
  }

  async function startUpstream(answer: RequestListener) {
    const upstream = createServer(answer).listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    closing.push(async () => {
      upstream.closeAllConnections()
      upstream.close()
    })
    const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
    return { upstream: address, upstreamOpenai: address }
  }

  it.each([
    ['fewer than no tokens', { max_tokens: -1e7 }],
    ['a number of tokens that is none', { max_tokens: '400' }],
    ['answers without end', { n: 1e308 }],
    ['a model with a zero byte', { model: 'claude-sonnet-5-5\u0000' }],
    ['an answer in the background', { background: true }],
  ])('refuses a request for %s, and reserves nothing', async (_, fields) => {
    const { post, readSpending, simulator } = await createWorld(undefined, 0.05)
    const response = await post({ ...BODY, ...fields })
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([400, 'false'])
    expect(simulator.simulator.requests).toEqual([])
    expect(await readSpending()).toMatchObject({ spent: 0, reserved: 0 })
  })

  it.each([
    ['images', { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }, 0.03],
    ['documents', { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }, 0.5],
  ])('%s that a request names are reserved for as large as they can be', async (_, block, budget) => {
    const { post, readSpending } = await createWorld(undefined, budget)
    const response = await post({ ...BODY, max_tokens: 1, messages: [{ role: 'user', content: [block] }] })
    expect(response.status).toBe(402)
    expect(await readSpending()).toMatchObject({ spent: 0, reserved: 0 })
  })

  it('a web search that the provider adds is reserved for as large as it can be', async () => {
    const { post, readSpending } = await createWorld(undefined, 0.5)
    const response = await post({ ...BODY, max_tokens: 1, web_search_options: {} })
    expect(response.status).toBe(402)
    expect(await readSpending()).toMatchObject({ spent: 0, reserved: 0 })
  })

  it('a call that the provider may have billed, but did not report, is charged with all that was reserved', async () => {
    const hangUp: RequestListener = (request) => void readAll(request).then(() => request.socket.destroy())
    const { post, readSpending } = await createWorld(hangUp, 1)
    expect((await post(BODY)).status).toBeGreaterThanOrEqual(500)
    const { spent = 0, reserved } = (await readSpending()) ?? {}
    // 400 tokens of output alone cost $0.006.
    expect(spent).toBeGreaterThan(0.006)
    expect(reserved).toBe(0)
  })

  it('a provider that quotes the credential of the gateway does not tell it to a client', async () => {
    const quote =
      (status: number): RequestListener =>
      (_, response) =>
        void response
          .writeHead(status, {
            'content-type': 'application/json',
            'set-cookie': 'a=b',
            'anthropic-organization-id': 'org',
          })
          .end(
            JSON.stringify({ type: 'error', error: { type: 'x', message: 'Bad request with sk-gateway' } }),
          )
    for (const [status, expected] of [
      [401, 502],
      [400, 400],
    ] as const) {
      const { post, logs } = await createWorld(quote(status))
      const response = await post(BODY)
      expect([response.status, response.headers.get('x-should-retry')]).toEqual([
        expected,
        expected === 502 ? 'false' : null,
      ])
      expect([...response.headers.keys()].filter((name) => /cookie|organization/.test(name))).toEqual([])
      expect(`${await response.text()} ${JSON.stringify(logs)}`).not.toContain('sk-gateway')
    }
  })

  it('a key of the gateway never reaches the provider, whichever header or query it stands in', async () => {
    const seen: string[] = []
    const record: RequestListener = (request, response) => {
      seen.push(`${request.url} ${JSON.stringify(request.rawHeaders)}`)
      response.writeHead(404, { 'content-type': 'application/json' }).end('{}')
    }
    const { post, key } = await createWorld(record)
    await post(BODY, { 'api-key': key, 'x-goog-api-key': key }, `/v1/messages?key=${key}`)
    await post(BODY, { 'x-tidemark-key': key, authorization: `Token ${key}`, 'x-api-key': `own, ${key}` })
    expect(seen).toHaveLength(2)
    expect(seen.filter((text) => text.includes('tmk_'))).toEqual([])
  })

  it('models that have not changed are answered as the provider does, without a body', async () => {
    const { url, key } = await createWorld((_, response) => void response.writeHead(304).end())
    const response = await fetch(`${url}/v1/models`, {
      headers: { 'x-api-key': key, 'if-none-match': '"1"' },
    })
    expect(response.status).toBe(304)
  })

  it('a stream of Chat Completions has the frame with the usage only if the client asked for it', async () => {
    const { url, key, readSpending } = await createWorld(undefined, 5)
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key })
    const ask = async (stream_options?: { include_usage: boolean }): Promise<number[]> => {
      const stream = await client.chat.completions.create({
        ...{ model: 'gpt-6-sol', max_completion_tokens: 400, stream: true as const },
        messages: [{ role: 'user', content: 'How many?' }],
        ...(stream_options === undefined ? {} : { stream_options }),
      })
      const choices: number[] = []
      for await (const chunk of stream) choices.push(chunk.choices.length)
      return choices
    }
    expect(new Set(await ask())).toEqual(new Set([1]))
    // The client stops at the last frame, and the call is settled at the end of the stream.
    await expect.poll(async () => (await readSpending())?.spent).toBeGreaterThan(0)
    expect(new Set(await ask({ include_usage: true }))).toEqual(new Set([1, 0]))
  })
})

async function readAll(request: IncomingMessage): Promise<void> {
  for await (const _ of request);
}

/** Requests that the gateway refuses, and what it passes on of those that it answers. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { listKeys, revokeKey } from '@tidemark/gateway'
import { describe, expect, it } from 'vitest'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { useGatewayWorlds } from './gateway-world.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('a request to the gateway', () => {
  const createWorld = useGatewayWorlds()
  it.each<[string, string, string, Record<string, string>, number]>([
    ['no key', 'POST', '/v1/messages', {}, 401],
    ['a key that is none', 'POST', '/v1/messages', { 'x-api-key': "tmk_' or 1=1 --" }, 401],
    ['an unknown key', 'POST', '/v1/messages', { 'x-api-key': `tmk_${'a'.repeat(43)}` }, 401],
    ['two keys in one header', 'POST', '/v1/messages', { 'x-api-key': 'KEY, KEY' }, 401],
    ['a revoked key', 'POST', '/v1/messages', { 'x-api-key': 'REVOKED' }, 403],
    [
      'a revoked key beside a good one',
      'POST',
      '/v1/messages',
      { 'x-api-key': 'KEY', authorization: 'Bearer REVOKED' },
      401,
    ],
    ['files of the account', 'GET', '/v1/files', { 'x-api-key': 'KEY' }, 404],
    ['batches, which nobody would count', 'POST', '/v1/messages/batches', { 'x-api-key': 'KEY' }, 404],
    ['a path that leads elsewhere', 'POST', '/v1/x/../files', { 'x-api-key': 'KEY' }, 404],
    ['a path that only ends as one that is served', 'POST', '/v1/x/responses', { 'x-api-key': 'KEY' }, 404],
    ['a version twice', 'POST', '/v1/v1/messages', { 'x-api-key': 'KEY' }, 404],
    ['a model that leads elsewhere', 'GET', '/v1/models/..', { 'x-api-key': 'KEY' }, 404],
    ['an encoded path', 'POST', '/v1/%2e%2e/messages', { 'x-api-key': 'KEY' }, 404],
    ['a stored response of somebody', 'GET', '/v1/responses/resp_1', { 'x-api-key': 'KEY' }, 404],
  ])('refuses %s', async (_, method, path, headers, status) => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const [key, revoked] = [await world.addKey('good'), await world.addKey('gone')]
    await revokeKey(world.pool, 'gone', 'test')
    const given = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        value.replaceAll('REVOKED', revoked).replaceAll('KEY', key),
      ]),
    )
    const answer = await sendRaw(`${url}${path}`, method, given, '{"model":"claude-sonnet-5-5"}')
    expect([answer.status, JSON.parse(answer.body).error.message.length > 10]).toEqual([status, true])
    expect(world.simulator.simulator.requests).toEqual([])
  })

  it('passes on no key and no account of its own, takes SQL as text, and refuses huge bodies', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway({ maxBodyBytes: 100_000 })
    const key = await world.addKey('team')
    const sql = "'; drop table gateway_keys; -- \u0000"
    const headers = { 'x-api-key': key, 'anthropic-version': '2023-06-01', 'x-session-id': sql.slice(0, -1) }
    const body = {
      model: 'claude-sonnet-5-5',
      max_tokens: 100,
      metadata: { user_id: sql },
      tools: [{ name: 'look', description: sql, input_schema: { type: 'object' } }],
      messages: [{ role: 'user', content: sql }],
    }
    const ok = await sendRaw(`${url}/v1/messages`, 'POST', headers, JSON.stringify(body))
    expect(ok.status).toBe(200)
    const model = await sendRaw(
      `${url}/v1/messages`,
      'POST',
      headers,
      JSON.stringify({ ...body, model: sql }),
    )
    expect(model.status).toBeGreaterThanOrEqual(400)
    expect((await listKeys(world.pool)).map(({ name }) => name)).toEqual(['team'])
    const large = await sendRaw(`${url}/v1/messages`, 'POST', headers, 'x'.repeat(200_000))
    expect(large.status).toBe(413)
    const { rows } = await world.pool.query(
      "select count(*)::int as lines from tidemark_lines where text like '%tmk\\_%'",
    )
    expect(rows[0].lines).toBe(0)
  })

  it('is logged with the name of the key if it is refused, here or by the provider', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const key = await world.addKey('ann', { models: ['claude-*'] })
    const headers = { 'x-api-key': key, 'anthropic-version': '2023-06-01' }
    for (const model of ['gpt-6-sol', 'claude-none'])
      await sendRaw(
        `${url}/v1/messages`,
        'POST',
        headers,
        JSON.stringify({ model, max_tokens: 1, messages: [] }),
      )
    await revokeKey(world.pool, 'ann', 'test')
    await sendRaw(`${url}/v1/messages`, 'POST', headers, '{}')
    await sendRaw(`${url}/v1/messages`, 'POST', {}, '{}')
    const lines = world.logs.filter(({ event }) => event === 'refused').map(({ message }) => message)
    expect(lines.map((line) => line.slice(0, 12))).toEqual([
      '403 to ann: ',
      expect.stringMatching(/^4\d\d to ann: $/),
      '403 to ann: ',
      '401 Unknown ',
    ])
  })

  it('that its client breaks off is no failure of the gateway', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const key = await world.addKey('ann')
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write(`POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\ncontent-length: 100\r\n\r\n{`)
    await new Promise((resolve) => setTimeout(resolve, 100))
    socket.destroy()
    const readMetrics = async () => (await fetch(`${url}/metrics`)).text()
    await expect.poll(readMetrics).toContain('tidemark_gateway_responses_total{status="499"} 1')
    expect(world.logs).toEqual([])
  })

  it('for a provider without a credential of the gateway is announced to the operator at the start', async () => {
    const world = await createWorld()
    await world.startGateway({ env: { ANTHROPIC_API_KEY: 'sk-gateway', OPENAI_API_KEY: '' } })
    expect(world.logs).toEqual([
      { level: 'info', event: 'credentials', message: expect.stringMatching(/^OPENAI_API_KEY is not set: /) },
    ])
  })
})

/** Sends a request as it is written: `fetch` would tidy up paths and headers. */
function sendRaw(
  url: string,
  method: string,
  headers: Record<string, string>,
  body: string,
): Promise<{ readonly status: number; readonly body: string }> {
  const { hostname, port } = new URL(url)
  const path = url.slice(new URL(url).origin.length)
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers }, (response) => {
      let text = ''
      response.on('data', (data: Buffer) => {
        text += String(data)
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
    })
    sent.on('error', reject)
    sent.end(method === 'GET' ? undefined : body)
  })
}

/** Requests that the gateway refuses, and what it passes on of those that it answers. */
import { request } from 'node:http'
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

/** A redirect of the API to another host: the key stays with the host that the user has named. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { anthropic, createTidemark } from 'tidemark'
import { serveLoopbackProxy } from 'tidemark/internal'
import { expect, it, onTestFinished } from 'vitest'

/** Starts two servers: one that redirects every request to the other, and the other, which keeps the headers it gets. */
async function startRedirect(status: number) {
  const followed: unknown[] = []
  const start = async (answer: Parameters<typeof createServer>[1]): Promise<string> => {
    const server = createServer(answer).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const other = await start((request, response) => {
    followed.push(request.headers['x-api-key'])
    response.end('{}')
  })
  const api = await start((request, response) => {
    request.resume()
    response.writeHead(status, { location: `http://${other}${request.url}?token=in-the-address` }).end()
  })
  return { url: `http://${api}`, other: `http://${other}`, followed }
}

const REQUEST = {
  method: 'POST',
  headers: { 'x-api-key': 'the-key', 'content-type': 'application/json' },
  body: JSON.stringify({
    model: 'claude-sonnet-5-5',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'Hello.' }],
  }),
}

it.each([301, 302, 303, 307, 308])(
  'a redirect (%i) of the API is an error that names the other host, is not tried again, and takes no key there',
  async (status) => {
    const { url, other, followed } = await startRedirect(status)
    const model = anthropic('claude-sonnet-5-5', { apiKey: 'the-key', baseUrl: url })
    const tide = createTidemark({ model, memory: true, env: {} })
    onTestFinished(() => tide.close())
    const session = await tide.open('redirected')
    const outcome = await session.run('Hello.').outcome
    expect(outcome).toMatchObject({ ok: false, reason: 'failed' })
    const message = 'message' in outcome ? outcome.message : ''
    expect(message).toContain(`The API answered with a redirect to ${other}, which is not followed`)
    expect([followed, message.includes('in-the-address')]).toEqual([[], false])
  },
)

it('a redirect is not followed with the key of a client that sends through tide.fetch', async () => {
  const { url, followed } = await startRedirect(307)
  const tide = createTidemark({
    model: anthropic('claude-sonnet-5-5', { apiKey: 'any' }),
    memory: true,
    env: {},
  })
  onTestFinished(() => tide.close())
  const response = await tide.fetch()(`${url}/v1/messages`, REQUEST)
  expect([response.status, followed]).toEqual([307, []])
})

it.each(['/v1/messages', '/v1/files'])(
  'a redirect of %s reaches no client of the proxy, which would follow it with its key',
  async (path) => {
    const { url, other, followed } = await startRedirect(307)
    const proxy = await serveLoopbackProxy({ upstream: url, token: 'token', memory: true, env: {} })
    onTestFinished(() => proxy.close())
    const response = await fetch(`${proxy.url}${path}`, REQUEST)
    expect([response.status, await response.json(), followed]).toEqual([
      502,
      { type: 'error', error: { type: 'api_error', message: expect.stringContaining(other) } },
      [],
    ])
  },
)

/** What goes through the proxy as it is: errors of the provider, and requests of another API. The user of the proxy reads of both. */
import { once } from 'node:events'
import { createServer, request as sendRequest } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { serveLoopbackProxy } from 'tidemark/internal'
import { describe, expect, it, onTestFinished } from 'vitest'

it.each([
  ['of the API', '{"type":"error","error":{"type":"api_error","message":"say \\"when\\""}}', 'say "when"'],
  ['with a message alone', '{"message":"no such route"}', 'no such route'],
  ['that is no JSON, although it looks like it', '{"message": "C:\\temp\nof a gateway"}', 'Bad Gateway'],
  ['that is a page', '<html>Bad gateway</html>', 'Bad Gateway'],
])('an error %s reaches the client unchanged', async (_, body, message) => {
  const server = createServer((_request, response) => {
    response.writeHead(502, { 'content-type': 'application/json' })
    response.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const errors: unknown[] = []
  const proxy = await serveLoopbackProxy({
    upstream: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: 'token',
    memory: true,
    env: {},
    onError: (status, text) => errors.push([status, text]),
  })
  onTestFinished(async () => {
    await proxy.close()
    server.closeAllConnections()
    server.close()
  })
  const response = await fetch(`${proxy.url}/v1/models`)
  expect([response.status, await response.text()]).toEqual([502, body])
  expect(errors).toEqual([[502, message]])
})

it('requests of another API are passed on untouched, and one line says so', async () => {
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    for await (const chunk of request) bodies.push(String(chunk))
    response.end('{"id":"resp_1"}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const events: { readonly type: string; readonly message?: string }[] = []
  const proxy = await serveLoopbackProxy({
    upstream: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: 'token',
    memory: true,
    env: {},
    onEvent: (event) => events.push(event),
  })
  onTestFinished(async () => {
    await proxy.close()
    server.closeAllConnections()
    server.close()
  })
  const body = '{"model":"gpt-5.5","input":"Hello."}'
  for (let count = 0; count < 2; count += 1)
    await (await fetch(`${proxy.url}/v1beta/interactions`, { method: 'POST', body })).text()
  expect(bodies).toEqual([body, body])
  expect(events).toMatchObject([{ type: 'request-passed', reason: 'unreadable' }])
  expect(events[0]?.message).toMatch(
    /^POST \/v1beta\/interactions is no request of the Messages API or the Responses API or Chat Completions: it is passed on/,
  )
})

describe('a request that the proxy does not pass on', () => {
  async function openProxy() {
    const passed: string[] = []
    const server = createServer((request, response) => {
      passed.push(request.url ?? '')
      request.resume()
      response.end('{}')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = await serveLoopbackProxy({
      upstream: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      token: 'token',
      memory: true,
      env: {},
      maxBodyBytes: 1_000,
    })
    onTestFinished(async () => {
      await proxy.close()
      server.closeAllConnections()
      server.close()
    })
    return { passed, url: new URL(`${proxy.url}/v1/messages`) }
  }

  const send = (url: URL, headers: Record<string, string>, body = ''): Promise<[number, string]> =>
    new Promise((resolve, reject) => {
      const sent = sendRequest(url, { method: 'POST', headers }, (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += String(chunk)
        })
        response.on('end', () => resolve([response.statusCode ?? 0, text]))
      })
      sent.on('error', reject)
      sent.end(body)
    })

  it.each([
    ['with its size', { 'content-length': '1001' }],
    ['without its size', { 'transfer-encoding': 'chunked' }],
  ])('is too large, %s', async (_, headers) => {
    const { passed, url } = await openProxy()
    const error = { type: 'request_too_large', message: 'Request exceeds the maximum size' }
    expect(await send(url, headers, 'x'.repeat(1_001))).toEqual([
      413,
      JSON.stringify({ type: 'error', error }),
    ])
    expect(passed).toEqual([])
    expect((await send(url, {}, 'x'.repeat(1_000)))[0]).toBe(200)
  })

  it('is too large for a client that sends all of it before it reads the answer', async () => {
    const { passed, url } = await openProxy()
    const size = 20_000_000
    const socket = connect(Number(url.port), '127.0.0.1').pause()
    socket.write(`POST ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-length: ${size}\r\n\r\n`)
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject)
      socket.write('x'.repeat(size), () => resolve())
    })
    const [answer] = await once(socket.resume(), 'data')
    socket.destroy()
    expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /)
    expect(passed).toEqual([])
  })

  it.each([
    ['a name that leads here', { host: 'evil.example:8787' }],
    ['a name that begins as an address', { host: '127.0.0.1.evil.example' }],
    ['a page of another site', { origin: 'https://evil.example' }],
    ['a page without a site', { origin: 'null' }],
    ['a page of another server of this machine', { origin: 'http://127.0.0.1:1' }],
  ])('comes from %s', async (_, headers) => {
    const { passed, url } = await openProxy()
    const [status, text] = await send(url, headers)
    expect([status, JSON.parse(text).error.type]).toEqual([403, 'permission_error'])
    expect(passed).toEqual([])
  })
})

/** What goes through the proxy as it is: errors of the provider, and requests of another API. The user of the proxy reads of both. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serveLoopbackProxy } from 'tidemark/internal'
import { expect, it, onTestFinished } from 'vitest'

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
    onError: (...error) => errors.push(error),
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
    await (await fetch(`${proxy.url}/v1/responses`, { method: 'POST', body })).text()
  expect(bodies).toEqual([body, body])
  expect(events).toMatchObject([{ type: 'request-passed', reason: 'unreadable' }])
  expect(events[0]?.message).toMatch(
    /^POST \/v1\/responses is no request of the Messages API: it is passed on/,
  )
})

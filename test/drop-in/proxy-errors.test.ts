/** Errors of the provider through the proxy: the client gets them as they are, and the user of the proxy reads them. */
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

/** The HTTP side of every proxy, with clients as networks have them. */
import { once } from 'node:events'
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { closeServer, createClientServer } from './client-server.ts'

const [CHUNKS, CHUNK_BYTES] = [200, 100_000]

/** An answer of many chunks, each of which is more than a connection takes at once. */
function createLongAnswer(): Response {
  let left = CHUNKS
  return new Response(
    new ReadableStream({
      pull(controller) {
        left -= 1
        if (left < 0) controller.close()
        else controller.enqueue(new Uint8Array(CHUNK_BYTES))
      },
    }),
  )
}

it('a long answer to a client that reads slowly adds no listeners as it goes on', async ({
  onTestFinished,
}) => {
  const host = createClientServer({
    admit: async (_, headers) => ({
      ok: true,
      url: 'http://upstream/v1/models',
      headers,
      answer: async () => createLongAnswer(),
    }),
  })
  let answering: ServerResponse | undefined
  const server = createServer((request, response) => {
    answering = response
    void host.handle(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET /v1/models HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n')
  let [arrived, most] = [0, 0]
  for await (const data of client) {
    arrived += (data as Buffer).length
    most = Math.max(most, answering?.listenerCount('close') ?? 0)
    await setTimeout(1)
  }
  expect(arrived).toBeGreaterThan(CHUNKS * CHUNK_BYTES)
  expect(most).toBeLessThan(6)
})

it('a client that asks again and again on an open connection does not hold a server that closes', async ({
  onTestFinished,
}) => {
  let finishFirst = (): void => {}
  const server = createServer((request, response) => {
    if (request.url === '/first') finishFirst = () => response.end()
    else response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  const { port } = server.address() as AddressInfo
  const ask = async (path: string): Promise<IncomingMessage> => {
    const [response] = (await once(get({ port, path, agent }), 'response')) as [IncomingMessage]
    response.resume()
    await once(response, 'end')
    return response
  }

  const asked = once(server, 'request')
  const first = ask('/first')
  await asked
  const closing = closeServer(server, 3_600_000)
  finishFirst()
  expect((await first).headers.connection).toBe('keep-alive')
  expect((await ask('/second')).headers.connection).toBe('close')
  await closing
})

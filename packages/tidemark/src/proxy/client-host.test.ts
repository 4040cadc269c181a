/** The HTTP side of every proxy, with clients as networks have them. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createClientHost } from './client-host.ts'

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
  const host = createClientHost({
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

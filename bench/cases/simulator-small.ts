/** Small requests over a real connection, against the same kind of server that always says the same. */
import { Agent, request } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { serve } from '@tidemark/simulator'
import { Hono } from 'hono'
import type { BenchCase } from '../harness/bench-case.ts'

const AT_ONCE = 16
const BODY = JSON.stringify({
  model: 'claude-opus-5',
  max_tokens: 100,
  system: 'You help.',
  messages: [{ role: 'user', content: 'Say it back.' }],
})
const ANSWER = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-opus-5',
  content: [{ type: 'text', text: 'Say it back.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 3 },
}

function post(port: number, agent: Agent): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(BODY),
    'x-api-key': 'k',
    'anthropic-version': '2026-10-21',
  }
  return new Promise((resolve, reject) => {
    const sent = request(
      { port, agent, headers, host: '127.0.0.1', path: '/v1/messages', method: 'POST' },
      (response) => {
        if (response.statusCode !== 200) reject(new Error(`answered with ${response.statusCode}`))
        response.resume()
        response.on('end', resolve)
        response.on('error', reject)
      },
    )
    sent.on('error', reject)
    sent.end(BODY)
  })
}

function many(port: number, agent: Agent): Promise<unknown> {
  return Promise.all(Array.from({ length: AT_ONCE }, () => post(port, agent)))
}

/** Reads the body, as any server of this API must, and says the same whatever it holds. */
async function serveConstant(): Promise<{ readonly port: number; close(): void }> {
  const app = new Hono()
  app.post('/v1/messages', async (context) => {
    await context.req.json()
    return context.json(ANSWER)
  })
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return { port: address.port, close: () => void server.close() }
}

export const benchCase: BenchCase = {
  name: 'simulator-small',
  compares: 'small requests to the simulator with the same to a server that answers a constant, over HTTP',
  bound: { atMost: 4 },
  async prepare() {
    const [simulated, constant] = [await serve(), await serveConstant()]
    const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
    return {
      subject: () => many(simulated.port, agent),
      baseline: () => many(constant.port, agent),
      async close() {
        agent.destroy()
        constant.close()
        await simulated.close()
      },
    }
  },
}

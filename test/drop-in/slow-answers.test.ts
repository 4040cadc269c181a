/** A client that waits for a whole response through the proxy while the answer takes longer than its own patience. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import { serveLoopbackProxy } from 'tidemark/internal'
import { expect, it, type TestContext } from 'vitest'

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-5-5',
  content: [{ type: 'text', text: 'Done.' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 10, output_tokens: 2 },
}

type OnTestFinished = TestContext['onTestFinished']

/** An API that takes five seconds, and a proxy to it; returns the address of the proxy. */
async function serveSlowly(status: number, onTestFinished: OnTestFinished): Promise<string> {
  const server = createServer((_, response) => {
    setTimeout(() => {
      response.writeHead(status, { 'content-type': 'application/json' })
      const error = { type: 'error', error: { type: 'overloaded_error', message: 'busy' } }
      response.end(JSON.stringify(status === 200 ? MESSAGE : error))
    }, 5_000)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const proxy = await serveLoopbackProxy({
    upstream,
    token: 'token',
    memory: true,
    env: {},
    pingSeconds: 0.1,
  })
  onTestFinished(async () => {
    await proxy.close()
    server.closeAllConnections()
    server.close()
  })
  return proxy.url
}

/** The `fetch` of Node with a limit for the time without a status; that limit is 300 seconds by default. */
function createImpatientFetch(): typeof globalThis.fetch {
  const known = (globalThis as Record<symbol, unknown>)[Symbol.for('undici.globalDispatcher.1')] as object
  const Agent = known.constructor as new (options: object) => object
  const dispatcher = new Agent({ headersTimeout: 2_500 })
  return (input, init) => fetch(input, { ...init, dispatcher } as RequestInit)
}

async function ask(
  status: number,
  { onTestFinished }: TestContext,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  // Node creates its dispatcher with the first request.
  await fetch('http://127.0.0.1:9').catch(() => {})
  const baseURL = await serveSlowly(status, onTestFinished)
  const impatient = createImpatientFetch()
  const client = new Anthropic({
    apiKey: 'any',
    baseURL,
    fetch: impatient,
    maxRetries: 0,
    defaultHeaders: headers,
  })
  const tools: Anthropic.Tool[] = [{ name: 'Read', input_schema: { type: 'object' } }]
  const body = { model: 'claude-sonnet-5-5', max_tokens: 100, tools }
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Hello.' }]
  return client.messages.create({ ...body, messages }).then(
    ({ stop_reason }) => String(stop_reason),
    (error: Error) => `${(error as { status?: number }).status} ${error.constructor.name}`,
  )
}

// At the same time: each waits for seconds and does nothing.

it.concurrent('the official client gets interim responses, and then the response', async (context) => {
  expect(await ask(200, context)).toBe('end_turn')
})

it.concurrent('an error keeps its status, so that the client can try again', async (context) => {
  expect(await ask(529, context)).toBe('529 OverloadedError')
})

it.concurrent('a client that may take an interim response for the answer gets none', async (context) => {
  expect(await ask(200, context, { 'x-stainless-lang': 'ruby' })).toMatch(/^undefined APIConnection/)
})

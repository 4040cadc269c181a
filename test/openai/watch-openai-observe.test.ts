/** `tidemark watch --observe` between an OpenAI client and a provider: no byte is changed in either direction. */
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveLoopbackProxy } from 'tidemark/internal'
import { describe, expect, it, onTestFinished } from 'vitest'

interface Exchange {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** A provider that keeps what it gets, byte for byte, and answers with the given pieces. */
async function openProvider(type: string, pieces: readonly Buffer[]) {
  const received: Exchange[] = []
  const server = createServer(async (incoming, outgoing) => {
    const body = Buffer.concat(await incoming.toArray())
    const headers = incoming.headers as Record<string, string>
    received.push({ path: incoming.url ?? '', headers, body })
    outgoing.writeHead(200, { 'content-type': type, 'x-request-id': 'req_1' })
    for (const piece of pieces) outgoing.write(piece)
    outgoing.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** Sends bytes as they are, and returns the bytes of the answer. */
async function post(url: string, body: Buffer, headers: Readonly<Record<string, string>>): Promise<Buffer> {
  const outgoing = request(url, { method: 'POST', headers })
  outgoing.end(body)
  const [incoming] = await once(outgoing, 'response')
  return Buffer.concat(await incoming.toArray())
}

const TOOLS = '[ {"type":"function","name":"read","parameters":{"type":"object"},"strict":false} ]'
const CHAT_TOOLS = '[ {"type":"function","function":{"name":"read","parameters":{"type":"object"}}} ]'

/** Spellings that a program would write otherwise: spaces, escapes, an order of keys, a repeated key, fields nobody knows. */
const BODIES = {
  '/v1/responses': `{ "input" : "caf\\u00e9 \u00fc 😀\\/" ,\n "model":"gpt-6-sol", "tools":${TOOLS}, "x_new": 1.0, "stream" : true }`,
  '/v1/chat/completions': `{"messages":[ {"content":"caf\\u00e9","role":"user"} ],"model":"gpt-4.1","model":"gpt-4.1", "tools":${CHAT_TOOLS},"stream":true, "seed":1e0}`,
}

const STREAM = [': hello\r\n\r\n', 'event: x_new\ndata:{ "a" :\t"\u00fc', '"}\n\ndata: [DONE]\r\n\r\n'].map(
  (text) => Buffer.from(text),
)

describe.each(Object.entries(BODIES))('observing a client on %s', (path, text) => {
  it('passes on its request and the answer byte for byte, and records the conversation', async () => {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-'))
    onTestFinished(() => rmSync(home, { recursive: true }))
    const provider = await openProvider('text/event-stream', STREAM)
    const options = { upstream: 'http://127.0.0.1:1', upstreamOpenai: provider.url, token: 'token', home }
    const proxy = await serveLoopbackProxy({ ...options, mode: 'observe' })
    const body = Buffer.from(text)
    const headers = { authorization: 'Bearer any', 'content-type': 'application/json', 'x-own': 'a, b' }
    const answer = await post(`${proxy.url}${path}`, body, headers)
    await proxy.close()
    expect(provider.received).toEqual([{ path, headers: expect.objectContaining(headers), body }])
    expect(answer).toEqual(Buffer.concat(STREAM))
    const logs = readdirSync(join(home, 'sessions')).filter((name) => name.endsWith('.jsonl'))
    expect(logs.map((name) => readFileSync(join(home, 'sessions', name), 'utf8')).join('')).toContain('café')
  })
})

/**
 * `npm run bench:gateway [-- --clients N --seconds N --idle N --heap]`: clients at once on the gateway, beside a plain proxy of the same kind (node:http,
 * `fetch`) before the same provider: throughput, latency, and what 1,000 calls leave in Postgres.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { addKey, serveGateway } from '@tidemark/gateway'
import pg from 'pg'
import { startPostgres } from '../../test/support/postgres-server.ts'

type Side = 'provider' | 'plain' | 'gateway'

/** Roles of the child processes: each prints its address to the parent. */
const ROLES: Readonly<Record<Side, (upstream: string, database: string, idle: string) => Promise<string>>> = {
  provider: () => listen((request, response) => void request.resume().on('end', () => sendAnswer(response))),
  plain: (upstream) =>
    listen((request, response) => {
      const headers = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
      const chunks: Buffer[] = []
      request
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => {
          const init = { method: 'POST', headers, body: Buffer.concat(chunks) }
          void fetch(`${upstream}${request.url}`, init).then(
            async (answer) => {
              response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
              for await (const chunk of answer.body ?? []) response.write(chunk)
              response.end()
            },
            () => response.destroy(),
          )
        })
    }),
  gateway: async (upstream, database, idle) => {
    const env = { ANTHROPIC_API_KEY: 'sk-own' }
    const idleSeconds = Number(idle)
    const { url } = await serveGateway({ database, upstream, home: '/nonexistent', env, idleSeconds })
    return url
  },
}

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const PIECES = 20
const PIECE_MS = 10
const TEXT = 'It is 42, or so. '

function writeEvent(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

/** A stream of the Messages API in twenty pieces, 10 ms apart. */
function sendAnswer(response: Parameters<RequestListener>[1]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const usage = {
    input_tokens: 1_000,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
    output_tokens: 1,
  }
  const message = {
    id: `msg_${Math.random().toString(36).slice(2)}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-5-5',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  }
  response.write(writeEvent('message_start', { message }))
  response.write(writeEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }))
  let sent = 0
  const timer = setInterval(() => {
    sent += 1
    response.write(writeEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text: TEXT } }))
    if (sent < PIECES) return
    clearInterval(timer)
    response.write(writeEvent('content_block_stop', { index: 0 }))
    response.write(
      writeEvent('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 120 },
      }),
    )
    response.end(writeEvent('message_stop', {}))
  }, PIECE_MS)
}

interface Figures {
  readonly calls: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly failed: number
}

/** Each client has conversations of ten turns, one after the other, with a pause between two calls. */
async function drive(
  url: string,
  key: string,
  options: { clients: number; seconds: number; pauseMs: number },
): Promise<Figures> {
  const end = performance.now() + options.seconds * 1000
  const times: number[] = []
  let failed = 0
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  await Promise.all(
    Array.from({ length: options.clients }, async (_, client) => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * options.pauseMs))
      for (let number = 0; performance.now() < end; number += 1) {
        const messages: object[] = []
        for (let turn = 0; turn < 10 && performance.now() < end; turn += 1) {
          messages.push({
            role: 'user',
            content: `Client ${client}, question ${number}.${turn}. ${TEXT.repeat(60)}`,
          })
          const begun = performance.now()
          const headers = {
            'x-api-key': key,
            'anthropic-version': '2023-06-01',
            'content-type': 'application/json',
            'x-session-id': `${client}-${number}`,
          }
          const body = JSON.stringify({
            model: 'claude-sonnet-5-5',
            max_tokens: 500,
            stream: true,
            tools,
            messages,
          })
          const ok = await fetch(`${url}/v1/messages`, { method: 'POST', headers, body }).then(
            async (answer) => (await answer.text()).includes('message_stop'),
            () => false,
          )
          if (ok) times.push(performance.now() - begun)
          else failed += 1
          messages.push({ role: 'assistant', content: TEXT.repeat(PIECES) })
          await new Promise((resolve) => setTimeout(resolve, options.pauseMs))
        }
      }
    }),
  )
  const sorted = times.sort((one, other) => one - other)
  const at = (share: number): number =>
    Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN)
  return {
    calls: times.length,
    perSecond: Math.round(times.length / options.seconds),
    p50: at(0.5),
    p99: at(0.99),
    failed,
  }
}

async function start(
  side: Side,
  upstream: string,
  database: string,
  idle = '300',
): Promise<{ child: ChildProcess; url: string }> {
  const child = fork(fileURLToPath(import.meta.url), [side, upstream, database, idle], {
    execArgv: ['--conditions=tidemark-source', '--expose-gc'],
  })
  const [url] = await once(child, 'message')
  return { child, url: String(url) }
}

async function readHeap(child: ChildProcess): Promise<number> {
  child.send('heap')
  return Number((await once(child, 'message'))[0])
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      clients: { type: 'string', default: '200' },
      seconds: { type: 'string', default: '20' },
      pause: { type: 'string', default: '4000' },
      // Sessions stay in memory for so many seconds: with less than 120, the heap is measured when as many are closed as are opened.
      idle: { type: 'string', default: '300' },
      heap: { type: 'boolean', default: false },
    },
  })
  const options = {
    clients: Number(values.clients),
    seconds: Number(values.seconds),
    pauseMs: Number(values.pause),
  }
  const server = await startPostgres()
  const pool = new pg.Pool({ connectionString: server.url })
  const provider = await start('provider', '', '')
  const plain = await start('plain', provider.url, '')
  const gateway = await start('gateway', provider.url, server.url, values.idle)
  try {
    const { key } = await addKey(pool, { name: 'bench', actor: 'bench' })
    await drive(gateway.url, key, { ...options, seconds: 5 })
    const before = (
      await pool.query(
        'select count(*)::int as calls, pg_database_size(current_database())::bigint as bytes from gateway_calls',
      )
    ).rows[0]
    for (const [name, { url }] of Object.entries({ direct: provider, plain, gateway }))
      console.log(name, JSON.stringify(await drive(url, key, options)))
    if (values.heap) {
      for (const minutes of [2, 10]) {
        await drive(gateway.url, key, { ...options, seconds: minutes === 2 ? 120 - options.seconds : 480 })
        console.log(`heap after GC at minute ${minutes}`, await readHeap(gateway.child))
      }
    }
    const after = (
      await pool.query(
        'select count(*)::int as calls, pg_database_size(current_database())::bigint as bytes, (select count(*)::int from tidemark_lines) as lines, (select sum(length(text))::bigint from tidemark_lines) as text from gateway_calls',
      )
    ).rows[0]
    console.log({ before, after })
  } finally {
    for (const { child } of [provider, plain, gateway]) child.kill('SIGKILL')
    await pool.end()
    await server.stop()
  }
}

const [, , role = '', upstream = '', database = '', idle = ''] = process.argv
if (role in ROLES) {
  process.send?.(await ROLES[role as Side](upstream, database, idle))
  process.on('message', () => {
    globalThis.gc?.()
    process.send?.(process.memoryUsage().heapUsed)
  })
} else await main()

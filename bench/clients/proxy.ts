/**
 * The two ways for clients that only take a base URL: a proxy that passes everything on, and the command
 * `tidemark watch`. Both are timed between a proxy in front of them and one behind them.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { Fetch } from './client.ts'
import { createTiming, type DoorOptions, type DoorRecord, UNTOUCHED } from './door.ts'

export interface Proxy {
  readonly url: string
  close(): Promise<DoorRecord>
}

interface Server {
  readonly url: string
  close(): Promise<void>
}

/** Puts something before the `fetch` that the client's requests go into. */
type WrapFetch = (fetch: Fetch) => Fetch

export async function openDirectProxy(options: DoorOptions, wrap: WrapFetch): Promise<Proxy> {
  return openBetween(options, wrap, async (upstream) => {
    const middle = await serveFetch(globalThis.fetch, upstream)
    return {
      url: middle.url,
      async close() {
        await middle.close()
        return UNTOUCHED
      },
    }
  })
}

/** The command `tidemark watch` as a process of its own, from the sources of this checkout. */
const WATCH = fileURLToPath(new URL('../../packages/cli/test/run-sources.ts', import.meta.url))

export async function openTidemarkProxy(options: DoorOptions, wrap: WrapFetch): Promise<Proxy> {
  return openBetween(options, wrap, async (upstream) => {
    const home = await mkdtemp(join(tmpdir(), 'tidemark-dropin-'))
    const child = spawn(
      process.execPath,
      [
        ...['--conditions=tidemark-source', WATCH, 'watch', '--port', '0'],
        ...['--upstream', upstream, '--upstream-openai', upstream, '--window', String(options.window)],
      ],
      {
        env: { PATH: process.env.PATH, HOME: home, TIDEMARK_HOME: home },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    const ended = once(child, 'close')
    const lines = createInterface({ input: child.stdout })
    const done = { compactions: 0, clearings: 0, remarks: [] as string[] }
    const url = new Promise<string>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', () => reject(new Error('tidemark watch ended')))
      lines.on('line', (line) => {
        const address = /ANTHROPIC_BASE_URL=(\S+)/.exec(line)?.[1]
        if (address !== undefined) resolve(address)
        else if (countRewrite(line, done)) options.onRewrite()
      })
    })
    return {
      url: await url,
      async close() {
        child.kill('SIGINT')
        await ended
        await rm(home, { recursive: true, force: true, maxRetries: 3 })
        return done
      },
    }
  })
}

/** Reads a line that `tidemark watch` printed: time, session, and what happened. Returns true if it tells of a clearing or a compaction. */
function countRewrite(
  line: string,
  done: { compactions: number; clearings: number; remarks: string[] },
): boolean {
  const text = line.replace(/^\S+ \S+ {2,}/, '')
  if (text.startsWith('Compacted: ')) done.compactions += 1
  else if (text.startsWith('Cleared ')) done.clearings += 1
  else {
    if (/^(The client|take:|The provider|The request)/.test(text)) done.remarks.push(text)
    return false
  }
  return true
}

/** Opens a proxy with timed proxies on both sides of it. */
async function openBetween(
  options: DoorOptions,
  wrap: WrapFetch,
  open: (upstream: string) => Promise<{ readonly url: string; close(): Promise<Omit<DoorRecord, 'delays'>> }>,
): Promise<Proxy> {
  const timing = createTiming(options.upstream, options.isLive)
  const behind = await serveFetch(timing.upstream, options.baseUrl)
  const middle = await open(behind.url)
  const front = await serveFetch(wrap(timing.time(globalThis.fetch)), middle.url)
  return {
    url: front.url,
    async close() {
      await front.close()
      const record = await middle.close()
      await behind.close()
      return { ...record, delays: timing.delays }
    },
  }
}

async function serveFetch(fetch: Fetch, baseUrl: string): Promise<Server> {
  const server = createServer((request, response) => {
    forward(fetch, baseUrl, request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function forward(
  fetch: Fetch,
  baseUrl: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { host: _, connection: __, 'content-length': ___, ...headers } = request.headers
  const body = Buffer.concat(await request.toArray())
  const answer = await fetch(`${baseUrl}${request.url}`, {
    method: request.method ?? 'GET',
    headers: headers as Record<string, string>,
    ...(body.length === 0 ? {} : { body }),
  })
  const sent = new Headers(answer.headers)
  for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) sent.delete(name)
  response.writeHead(answer.status, Object.fromEntries(sent))
  if (answer.body === null) response.end()
  else await pipeline(Readable.fromWeb(answer.body), response)
}

/**
 * The two ways for clients that only take a base URL: a proxy that passes everything on, and the proxy of `tidemark
 * watch`. Both are timed between a proxy in front of them and one behind them.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { serveLoopbackProxy } from 'tidemark/internal'
import type { Fetch } from './client.ts'
import { createHome, createTiming, type DoorOptions, type DoorRecord, UNTOUCHED } from './door.ts'

export interface Proxy {
  readonly url: string
  close(): Promise<DoorRecord>
}

interface Server {
  readonly url: string
  close(): Promise<void>
}

export async function openDirectProxy(options: DoorOptions): Promise<Proxy> {
  return openBetween(options, async (upstream) => {
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

export async function openTidemarkProxy(options: DoorOptions): Promise<Proxy> {
  return openBetween(options, async (upstream) => {
    const home = await createHome({ ...options, baseUrl: upstream }, globalThis.fetch)
    const watch = await serveLoopbackProxy({ ...home.settings, upstream, token: 'token-of-this-bench' })
    return {
      url: watch.url,
      async close() {
        await watch.close()
        return home.close()
      },
    }
  })
}

/** Opens a proxy with timed proxies on both sides of it. */
async function openBetween(
  options: DoorOptions,
  open: (upstream: string) => Promise<{ readonly url: string; close(): Promise<Omit<DoorRecord, 'delays'>> }>,
): Promise<Proxy> {
  const timing = createTiming(options.upstream)
  const behind = await serveFetch(timing.upstream, options.baseUrl)
  const middle = await open(behind.url)
  const front = await serveFetch(timing.time(globalThis.fetch), middle.url)
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

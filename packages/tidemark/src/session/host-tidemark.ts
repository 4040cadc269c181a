/**
 * Tidemark for a client that has the model, the address and the credentials: they are taken from its requests. The
 * engine's own calls, such as summaries, go the same way as the client's.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { isObject } from '@tidemark/core'
import { anthropic } from '../models/anthropic.ts'
import type { Fetch } from './host-exchange.ts'
import type { FetchOptions } from './host-fetch.ts'
import type { TidemarkOptions } from './options.ts'
import { createTidemark, type Tidemark } from './tidemark.ts'

/** Options of `createTidemark` without the model, and those of `fetch`. */
export interface HostTidemarkOptions
  extends Omit<TidemarkOptions, 'model'>,
    Pick<FetchOptions, 'session' | 'mode' | 'pingSeconds'> {
  /** The model by whose figures the context is managed. Default: the model of each request, by the catalogue. */
  readonly model?: TidemarkOptions['model']
}

export interface HostTidemark {
  /** Answers a request of the client. `send` sends a request as the client would. */
  answer(url: string, init: RequestInit, send: Fetch): Promise<Response>
  close(): Promise<void>
}

interface HostConnection {
  readonly url: string
  readonly headers: Headers
  readonly send: Fetch
}

export function createHostTidemark(options: HostTidemarkOptions): HostTidemark {
  const { session, mode, pingSeconds, model: given, ...own } = options
  const connections = new AsyncLocalStorage<HostConnection>()
  let last: HostConnection | null = null
  let opened: { readonly tide: Tidemark; readonly fetch: Fetch } | null = null

  /** Sends a call of the engine with the address and the credentials of the request that it is made for. */
  const sendForEngine: Fetch = (_, init) => {
    const connection = connections.getStore() ?? last
    if (connection === null) throw new Error('The client has not sent a request yet.')
    const { url, headers, send } = connection
    return send(url, { ...init, headers: mergeHeaders(headers, new Headers(init?.headers)) })
  }

  function open(modelId: string): { readonly tide: Tidemark; readonly fetch: Fetch } {
    const model = given ?? anthropic(modelId, { apiKey: 'host', fetch: sendForEngine })
    const tide = createTidemark({ ...own, model })
    const upstream: Fetch = (input, init) => (connections.getStore()?.send ?? globalThis.fetch)(input, init)
    const fetch = tide.fetch({
      fetch: upstream,
      ...(session === undefined ? {} : { session }),
      ...(mode === undefined ? {} : { mode }),
      ...(pingSeconds === undefined ? {} : { pingSeconds }),
    })
    return { tide, fetch }
  }

  return {
    async answer(url, init, send) {
      const modelId = readModelId(init.body)
      if (mode === 'off' || modelId === null) return send(url, init)
      try {
        opened ??= open(modelId)
      } catch (thrown) {
        // The catalogue does not have the model: nothing is known of its window.
        const message = thrown instanceof Error ? thrown.message : String(thrown)
        own.onEvent?.({ type: 'request-passed', reason: 'failed', message }, '')
        return send(url, init)
      }
      const connection = { url: new URL(url).href, headers: new Headers(init.headers), send }
      last = connection
      const { fetch } = opened
      return connections.run(connection, () => fetch(url, init))
    },
    close: async () => opened?.tide.close(),
  }
}

function readModelId(body: unknown): string | null {
  if (typeof body !== 'string') return null
  try {
    const value: unknown = JSON.parse(body)
    return isObject(value) && typeof value.model === 'string' ? value.model : null
  } catch {
    return null
  }
}

/** Headers of the client's request that do not hold for another request. */
const OWN_HEADERS = [
  'content-length',
  'content-encoding',
  'idempotency-key',
  'x-stainless-retry-count',
  'host',
]

/** Returns the client's headers with those of the engine's call that are about its body. */
function mergeHeaders(host: Headers, engine: Headers): Headers {
  const merged = new Headers(host)
  for (const name of OWN_HEADERS) merged.delete(name)
  for (const name of ['content-type', 'accept', 'anthropic-beta']) {
    const value = engine.get(name)
    if (value === null) merged.delete(name)
    else merged.set(name, value)
  }
  return merged
}

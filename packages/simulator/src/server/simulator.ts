/** Creates a simulator: in memory with its own `fetch`, or served on a port of this machine. */

import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { TidemarkError } from '@tidemark/core/errors'
import type { Fault } from '../faults/fault.ts'
import type { RequestRecord } from '../request-log/request-log.ts'
import { resolveSettings, type SimulatorOptions, type SimulatorSettings } from './options.ts'
import { createRoutes, type RequestBindings, type SimulatorApp } from './routes.ts'
import { createSimulatorState } from './simulator-state.ts'

export interface Simulator {
  /**
   * A `fetch` function for API clients, which ignores the host of the URL. An abort rejects the call, or breaks the
   * body if the response has begun.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** Handles a request that an HTTP server received. `bindings` has the network connection and the abort signal. */
  handle(request: Request, bindings?: RequestBindings): Response | Promise<Response>
  /** Records of the newest requests that were answered, oldest first: at most as many as the option `keepRequests`. */
  readonly requests: readonly RequestRecord[]
  /** Schedules faults: the first for the next request, the second for the request after that, and so on. */
  queueFaults(...faults: readonly Fault[]): void
  /** Sets the simulator's clock forward by `ms` milliseconds. */
  advance(ms: number): void
}

/**
 * Creates a simulator in memory, without a port. Throws a `TidemarkError` (`bad-option`) if `script` is not a
 * function.
 *
 * @example
 * const simulator = createSimulator({ script: withSummaries(echo) })
 * const client = new Anthropic({ apiKey: 'any', fetch: simulator.fetch })
 * simulator.queueFaults({ type: 'status', status: 529 })
 */
export function createSimulator(options: SimulatorOptions = {}): Simulator {
  return createSimulatorFrom(resolveSettings(options))
}

/** Creates a simulator from complete settings, for example with ids that differ from those of other simulators. */
export function createSimulatorFrom(settings: SimulatorSettings): Simulator {
  const state = createSimulatorState(settings)
  const app: SimulatorApp = createRoutes(state)
  return {
    async fetch(input, init) {
      const signal = init?.signal ?? (input instanceof Request ? input.signal : null)
      const { request, bodyText } = createRequest(input, init)
      if (signal === null) return app.fetch(request, { bodyText })
      signal.throwIfAborted()
      return withAbort(Promise.resolve(app.fetch(request, { bodyText, signal })), signal)
    },
    handle: (request, bindings = {}) => app.fetch(request, bindings),
    get requests() {
      return state.log.records
    },
    queueFaults: (...faults) => {
      state.faults.add(...faults.map((fault) => ({ fault })))
    },
    advance: (ms) => state.clock.advance(ms),
  }
}

/**
 * Creates a request. The text of a POST body is kept beside it, and its signal is dropped, because the caller passes
 * both on. Inside the `Request` object, the text would be encoded and decoded again, which takes longer than most of
 * the processing.
 */
function createRequest(
  input: string | URL | Request,
  init: RequestInit | undefined,
): { readonly request: Request; readonly bodyText: string | null } {
  const text = init?.body
  if (typeof text !== 'string' || init?.method !== 'POST')
    return { request: new Request(input, init), bodyText: null }
  const request = new Request(input, { ...init, body: null, signal: null })
  return request.headers.has('content-encoding')
    ? { request: new Request(input, init), bodyText: null }
    : { request, bodyText: text.toWellFormed() }
}

/**
 * Rejects the call if it is aborted before the response begins, and breaks the body if it is aborted later, as
 * `fetch` does.
 */
async function withAbort(answer: Promise<Response>, signal: AbortSignal): Promise<Response> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    const response = await Promise.race([answer, aborted.promise])
    if (response.body === null) return response
    const { status, headers } = response
    return new Response(breakAtAbort(response.body, signal), { status, headers })
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Returns a body that fails when the signal is aborted. Piping the stream would take four times as long. */
function breakAtAbort(body: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let abort = (): void => undefined
  const release = (): void => signal.removeEventListener('abort', abort)
  return new ReadableStream({
    start(controller) {
      abort = () => {
        controller.error(signal.reason)
        reader.cancel(signal.reason).catch(() => undefined)
      }
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (signal.aborted) return
        if (!done) return controller.enqueue(value)
        release()
        controller.close()
      } catch (error) {
        release()
        throw error
      }
    },
    cancel(reason) {
      release()
      return reader.cancel(reason)
    },
  })
}

export interface ServeOptions extends SimulatorOptions {
  /** Port to listen on. Default: any free port. */
  readonly port?: number
  /** Host to listen on. Default: 127.0.0.1. */
  readonly host?: string
  /** True to allow a host other than loopback. Required because the simulator has no access control. */
  readonly allowRemote?: boolean
}

export interface SimulatorServer {
  readonly simulator: Simulator
  /** Base URL of the server, without a slash at the end. */
  readonly url: string
  readonly port: number
  /** Closes every connection and frees the port. */
  close(): Promise<void>
}

const LOOPBACK_HOSTS = new Set(['127.0.0.1', '::1', 'localhost'])

/**
 * Starts a simulator on a port. Throws a `TidemarkError`: `bad-option` for a host other than loopback without
 * `allowRemote`, `io-failed` if the port cannot be opened.
 *
 * @example
 * const server = await serve({ port: 8080, script: createCoder().script })
 * console.log(server.url) // http://127.0.0.1:8080
 * await server.close()
 */
export async function serve(options: ServeOptions = {}): Promise<SimulatorServer> {
  const { port = 0, host = '127.0.0.1', allowRemote = false } = options
  if (!LOOPBACK_HOSTS.has(host) && !allowRemote)
    throw new TidemarkError(
      'bad-option',
      `The simulator serves this machine only, and ${host} can be reached by others. Use 127.0.0.1, or set allowRemote (--allow-remote).`,
      { details: { host } },
    )
  const settings = resolveSettings(options)
  const idSeed = options.seed ?? randomUUID()
  const simulator = createSimulatorFrom({ ...settings, idSeed })
  const server = createAdaptorServer({
    overrideGlobalObjects: false,
    fetch: (request, env) => handleRequest(simulator, request, { ...(env as HttpBindings), host }),
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(listenError(host, port, cause)))
    server.listen(port, host, () => resolve())
  })
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    simulator,
    port: bound,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        if ('closeAllConnections' in server) server.closeAllConnections()
      }),
  }
}

function listenError(host: string, port: number, cause: Error): TidemarkError {
  const text = `The simulator cannot listen on ${host}:${port} (${cause.message}). Choose another port, or none for any that is free.`
  return new TidemarkError('io-failed', text, { cause, details: { host, port } })
}

/**
 * Milliseconds before each check whether everything has been sent; only then is the connection reset. A reset discards data
 * that the client has not read.
 */
const CLIENT_READ_MS = 25

async function waitUntilFlushed({ incoming: { socket }, outgoing }: HttpBindings): Promise<void> {
  const isWaiting = (): boolean =>
    !outgoing.headersSent || outgoing.writableLength > 0 || socket.writableLength > 0
  do await setTimeout(CLIENT_READ_MS)
  while (!socket.destroyed && isWaiting())
}

/**
 * Handles a request that the HTTP server received. If a fault has reset the socket, the error is expected and no
 * response is sent.
 */
async function handleRequest(
  simulator: Simulator,
  request: Request,
  env: HttpBindings & { readonly host: string },
): Promise<Response> {
  const { socket } = env.incoming
  const connection = { reset: () => socket.resetAndDestroy(), waitUntilReceived: () => waitUntilFlushed(env) }
  try {
    return await simulator.handle(request, { connection, host: env.host })
  } catch (error) {
    if (socket.destroyed) return RESPONSE_ALREADY_SENT
    throw error
  }
}

/** A simulator in memory: a `fetch` of its own, no port. `serve.ts` puts it on one. */
import type { Fault } from './faults/fault.ts'
import { type SimulatorOptions, settingsOf } from './options.ts'
import type { RequestRecord } from './seeing/record.ts'
import { type App, type Bindings, createApp } from './server/app.ts'
import { createWorld } from './server/world.ts'

export interface Simulator {
  /** Give it to a client as its `fetch`; the host in the address does not matter. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** What a server calls, with the connection the request came on. */
  handle(request: Request, bindings?: Bindings): Response | Promise<Response>
  /** The requests answered so far, oldest first. */
  readonly requests: readonly RequestRecord[]
  /** The next request meets this fault, the one after it the next, and so on. */
  queueFaults(...faults: readonly Fault[]): void
  /** Sets the simulator's clock forward. */
  advance(ms: number): void
}

export function createSimulator(options: SimulatorOptions = {}): Simulator {
  const world = createWorld(settingsOf(options))
  const app: App = createApp(world)
  return {
    async fetch(input, init) {
      const signal = init?.signal ?? (input instanceof Request ? input.signal : null)
      const request = new Request(input, init)
      if (signal === null) return app.fetch(request, {})
      signal.throwIfAborted()
      return abortable(Promise.resolve(app.fetch(request, { signal })), signal)
    },
    handle: (request, bindings = {}) => app.fetch(request, bindings),
    get requests() {
      return world.log.records
    },
    queueFaults: (...faults) => {
      world.faults.add(...faults.map((fault) => ({ fault })))
    },
    advance: (ms) => world.clock.shift(ms),
  }
}

/** As with a real connection, giving up is noticed by the one who waits, for the head or for more of the body. */
async function abortable(answer: Promise<Response>, signal: AbortSignal): Promise<Response> {
  const given = Promise.withResolvers<never>()
  const giveUp = (): void => given.reject(signal.reason)
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    const response = await Promise.race([answer, given.promise])
    if (response.body === null) return response
    const { status, headers } = response
    return new Response(response.body.pipeThrough(new TransformStream(), { signal }), { status, headers })
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** The two ways from a client to the provider: straight, and through Tidemark. Both are timed in the same manner. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  anthropic,
  compatible,
  createTidemark,
  type ModelChoice,
  openai,
  type SessionEvent,
  type TidemarkOptions,
} from 'tidemark'
import { tidemark } from 'tidemark/anthropic'
import type { ClientProvider, Fetch } from './client.ts'

export interface DoorOptions {
  /** Sends requests to the provider. */
  readonly upstream: Fetch
  readonly baseUrl: string
  readonly provider: ClientProvider
  readonly window: number
  /** True to pass responses on as they come. They are then not timed. */
  readonly isLive: boolean
  /** True to keep the session in memory instead of a home on disk. */
  readonly inMemory: boolean
  /** Called when the context is cleared or compacted. */
  readonly onRewrite: () => void
}

/** What a door has done, for the tables. */
export interface DoorRecord {
  readonly compactions: number
  readonly clearings: number
  /** Messages of events about requests that were passed on, histories that changed and compactions that failed. */
  readonly remarks: readonly string[]
  /** Milliseconds per request that the door itself took, without those of the provider. */
  readonly delays: readonly number[]
}

export const UNTOUCHED: Omit<DoorRecord, 'delays'> = { compactions: 0, clearings: 0, remarks: [] }

export interface Door {
  readonly fetch: Fetch
  readonly middleware: readonly unknown[]
  /** Returns what has been done, and removes what is on disk. */
  close(): Promise<DoorRecord>
}

export function openDirectDoor({ upstream, isLive }: DoorOptions): Door {
  const timing = createTiming(upstream, isLive)
  return {
    fetch: timing.time(timing.upstream),
    middleware: [],
    close: async () => ({ ...UNTOUCHED, delays: timing.delays }),
  }
}

export async function openTidemarkDoor(options: DoorOptions): Promise<Door> {
  const timing = createTiming(options.upstream, options.isLive)
  const home = await createHome(options, timing.upstream)
  const tide = createTidemark(home.settings)
  return {
    fetch: timing.time(tide.fetch({ session: 'bench', fetch: timing.upstream })),
    middleware: [],
    async close() {
      await tide.close()
      return { ...(await home.close()), delays: timing.delays }
    },
  }
}

/** The same as middleware of the official client. It is not timed. */
export async function openTidemarkMiddleware(options: DoorOptions): Promise<Door> {
  const home = await createHome(options, options.upstream)
  const middleware = tidemark({ session: 'bench', ...home.settings })
  return {
    fetch: options.upstream,
    middleware: [middleware],
    async close() {
      await middleware.close()
      return { ...(await home.close()), delays: [] }
    },
  }
}

export interface Home {
  readonly settings: TidemarkOptions
  /** Returns what has been done, and removes what is on disk. */
  close(): Promise<Omit<DoorRecord, 'delays'>>
}

/** Creates the options of Tidemark as a user has them: a home on disk, the model, and a listener. */
export async function createHome(options: DoorOptions, upstream: Fetch): Promise<Home> {
  const { inMemory, onRewrite } = options
  const home = inMemory ? null : await mkdtemp(join(tmpdir(), 'tidemark-dropin-'))
  const events: SessionEvent[] = []
  return {
    settings: {
      model: createModel(options, upstream),
      ...(home === null ? { memory: true } : { home }),
      env: {},
      onEvent: (event) => {
        events.push(event)
        if (event.type === 'rewritten') onRewrite()
      },
    },
    async close() {
      if (home !== null) await rm(home, { recursive: true, force: true, maxRetries: 3 })
      return summarizeEvents(events)
    },
  }
}

function createModel({ provider, baseUrl, window }: DoorOptions, fetch: Fetch): ModelChoice {
  const { api, model, dialect } = provider
  if (api === 'messages') return anthropic(model, { apiKey: 'any', baseUrl, fetch, window })
  const connection = { apiKey: 'any', baseUrl: `${baseUrl}/v1`, fetch, window }
  return dialect === undefined
    ? openai(model, { ...connection, api })
    : compatible(model, { ...connection, dialect })
}

const REMARKS: ReadonlySet<SessionEvent['type']> = new Set([
  'request-passed',
  'host-history-changed',
  'compact-failed',
])

function summarizeEvents(events: readonly SessionEvent[]): Omit<DoorRecord, 'delays'> {
  const count = (type: SessionEvent['type']): number => events.filter((event) => event.type === type).length
  const remarks = events
    .filter(({ type }) => REMARKS.has(type))
    .map((event) => ('message' in event ? `${event.type}: ${event.message}` : JSON.stringify(event)))
  return { compactions: count('compact'), clearings: count('microcompact'), remarks }
}

export interface Timing {
  /** The provider: its responses are read to the end before they are passed on, and that time is counted. */
  readonly upstream: Fetch
  /** Times a `fetch` that sends its requests with `upstream`. */
  readonly time: (fetch: Fetch) => Fetch
  readonly delays: readonly number[]
}

/** Assumes one request at a time, as the clients of this bench send them. */
export function createTiming(provider: Fetch, isLive: boolean): Timing {
  if (isLive) return { upstream: provider, time: (fetch) => fetch, delays: [] }
  const delays: number[] = []
  let providerMs = 0
  const upstream: Fetch = async (input, init) => {
    const start = performance.now()
    try {
      const response = await provider(input, init)
      const { status, headers } = response
      return new Response(await response.arrayBuffer(), { status, headers })
    } finally {
      providerMs += performance.now() - start
    }
  }
  const time =
    (fetch: Fetch): Fetch =>
    async (input, init) => {
      providerMs = 0
      const start = performance.now()
      const response = await fetch(input, init)
      const { status, headers } = response
      const body = await response.arrayBuffer()
      delays.push(performance.now() - start - providerMs)
      return new Response(body, { status, headers })
    }
  return { upstream, time, delays }
}

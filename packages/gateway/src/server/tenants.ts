/**
 * The sessions of each key. Each key has its own Tidemark object, on stores with only its own sessions, so that an id
 * sent by a caller can never name a session of another key.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { SessionEvent } from 'tidemark'
import { type ClientTidemark, createClientTidemark } from 'tidemark/internal'
import { createPostgresLocks } from 'tidemark/postgres'
import type { Telemetry } from 'tidemark/telemetry'
import type { Database } from '../database/database.ts'
import type { ObjectStore } from '../database/object-store.ts'
import { createScopeBlobs, createScopeJournal } from '../database/session-stores.ts'

interface TenantOptions {
  /** Null: sessions are files below `home`. */
  readonly database: Database | null
  /** Where large lines and blobs are stored; null for the database. */
  readonly objects: ObjectStore | null
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly idleSeconds: number
  readonly waitSeconds: number
  /** Maximum context window to use; null for that of each model. */
  readonly windowTokens: number | null
  readonly telemetry: Telemetry | null
  readonly onEvent: (event: SessionEvent, session: string, scope: string) => void
}

export interface Tenants {
  /** Returns the Tidemark object of a scope (the id of a key, or the hash of a caller's credential), or creates it. */
  open(scope: string): ClientTidemark
  /** Runs `work` for one request. `readFailure` returns why its session could not be read or written; null if it could. */
  run<T>(work: (readFailure: () => string | null) => Promise<T>): Promise<T>
  close(): Promise<void>
}

interface RequestState {
  failure: string | null
}

/** Number of connections for locks and appends. Each runs one statement at a time, and each append waits for the disk. */
const LOCK_CONNECTIONS = 4

export function createTenants(options: TenantOptions): Tenants {
  const { database, objects } = options
  const byScope = new Map<string, ClientTidemark>()
  const requests = new AsyncLocalStorage<RequestState>()
  const locks =
    database === null
      ? null
      : createPostgresLocks(database, { program: 'tidemark gateway', connections: LOCK_CONNECTIONS })
  const onFailure = (message: string): void => {
    const state = requests.getStore()
    if (state !== undefined) state.failure ??= message
  }

  function createStores(scope: string) {
    if (database === null || locks === null) return { home: join(options.home, 'gateway', scope) }
    const { waitSeconds } = options
    return {
      journal: createScopeJournal(database, { scope, locks, objects, waitSeconds, onFailure }),
      blobs: createScopeBlobs(database, scope, objects),
    }
  }

  return {
    open(scope) {
      const known = byScope.get(scope)
      if (known !== undefined) return known
      const { env, idleSeconds, windowTokens, telemetry } = options
      const tide = createClientTidemark({
        ...createStores(scope),
        env,
        idleSeconds,
        // The engine calls models only during requests, so that every cost belongs to a request.
        policy: {
          compact: { background: false },
          ...(windowTokens === null ? {} : { window: { capTokens: windowTokens } }),
        },
        ...(telemetry === null ? {} : { telemetry }),
        onEvent: (event, session) => options.onEvent(event, session, scope),
      })
      byScope.set(scope, tide)
      return tide
    },
    run(work) {
      const state: RequestState = { failure: null }
      return requests.run(state, () => work(() => state.failure))
    },
    async close() {
      await Promise.allSettled([...byScope.values()].map((tide) => tide.close()))
      await locks?.close()
    },
  }
}

/** Returns the scope of a caller without a key: a hash of the caller's own credential. */
export function toCredentialScope(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 32)
}

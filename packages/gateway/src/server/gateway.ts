/**
 * Serves the gateway: requests of many users, each through its session, on one Postgres. Processes share no state
 * except the database, so any number can run side by side.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describeThrown, TidemarkError } from '@tidemark/core/errors'
import type { SessionEvent } from 'tidemark'
import { closeServer, createClientServer, listenOn, PROVIDER_UPSTREAMS } from 'tidemark/internal'
import type { Telemetry } from 'tidemark/telemetry'
import { type Database, describeDatabaseError, openDatabase, queryPromptly } from '../database/database.ts'
import { migrateDatabase } from '../database/migrations.ts'
import { type ObjectStore, openObjectStore, probeObjectStore } from '../database/object-store.ts'
import type { GatewayKey } from '../keys/keys.ts'
import { type BackgroundJobs, startBackgroundJobs } from '../operation/background-jobs.ts'
import { createMetrics, type Metrics } from '../operation/metrics.ts'
import { createTeamPage, type TeamPage } from '../page/team-page.ts'
import { openAccounts, type ProcessAccounts } from './accounts.ts'
import { createAdmission } from './admission.ts'
import { KEY_HEADER } from './credentials.ts'
import { createTenants, type Tenants } from './tenants.ts'

export interface GatewayOptions {
  /** Address of the database. Without one, a single process stores sessions in files, and there are no keys. */
  readonly database?: string
  /** Address of a bucket in an S3-compatible store, for lines and blobs above 256 KB. Default: they are in the database. */
  readonly objects?: string
  /** Folder for sessions without a database. */
  readonly home: string
  /** Default: 127.0.0.1. */
  readonly host?: string
  /** Default: any free port. */
  readonly port?: number
  /** Address of the Messages API, without `/v1`. Default: Anthropic's own. */
  readonly upstream?: string
  /** Address of OpenAI's APIs, without `/v1`. Default: OpenAI's own. */
  readonly upstreamOpenai?: string
  /** Credentials are read from `ANTHROPIC_API_KEY` and `OPENAI_API_KEY`; those for `objects` from the variables of AWS. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** A larger request is refused with 413. Default: 32,000,000. */
  readonly maxBodyBytes?: number
  /** Maximum context window to use, in tokens. Default: that of each model. */
  readonly windowTokens?: number
  /** Days without a request after which a session is deleted. Default: sessions are kept. */
  readonly retentionDays?: number
  /** Seconds without a request after which a session is closed in this process. Default: 300. */
  readonly idleSeconds?: number
  /** Address at which browsers reach the page, such as `https://gateway.example.com`. Default: this machine only. */
  readonly pageUrl?: string
  /** Seconds that running responses get to finish after `close`. Default: 30. */
  readonly drainSeconds?: number
  /** Called for each log line for the operator. */
  readonly onLog?: (line: GatewayLogLine) => void
}

export interface GatewayLogLine {
  readonly level: 'info' | 'warning' | 'error'
  readonly event: string
  readonly message: string
}

export interface Gateway {
  readonly url: string
  /** Number of responses that are being sent. */
  readonly running: number
  /** Accepts no more requests, waits for running responses, settles open calls, and closes the sessions. */
  close(): Promise<void>
}

/** Seconds that a request waits while another process handles a request of the same session. */
const WAIT_SECONDS = 10
const DEFAULT_IDLE_SECONDS = 300
const DEFAULT_DRAIN_SECONDS = 30
/** Status that is counted, as by proxies, if the client left before its response began. */
const CLIENT_LEFT = 499

/** Upgrades the tables, starts the jobs, and listens. Throws `bad-option`, or `io-failed` if a store cannot be used. */
export async function serveGateway(options: GatewayOptions): Promise<Gateway> {
  const { host = '127.0.0.1', port = 0, onLog = () => {} } = options
  const metrics = createMetrics()
  const services = await openServices(options, metrics, onLog)
  const { tenants, database, accounts, page } = services
  const client = createClientServer({
    ...(options.maxBodyBytes === undefined ? {} : { maxBodyBytes: options.maxBodyBytes }),
    onError: (status, message, key) => {
      const to = key === undefined ? '' : `to ${key}: `
      onLog({ level: 'warning', event: 'refused', message: `${status} ${to}${message}` })
    },
    admit: createAdmission({
      tenants,
      keys: database === null || accounts === null ? null : { database, accounts },
      upstreams: {
        anthropic: trimAddress(options.upstream) ?? PROVIDER_UPSTREAMS.anthropic,
        openai: trimAddress(options.upstreamOpenai) ?? PROVIDER_UPSTREAMS.openai,
      },
      credentials: {
        anthropic: options.env.ANTHROPIC_API_KEY || null,
        openai: options.env.OPENAI_API_KEY || null,
      },
    }),
  })
  if (database !== null) announceMissingCredentials(options.env, onLog)
  let isDraining = false
  // After the server stops listening, it has no address, but open connections still send requests.
  let boundPort = port
  const server = serveApart(onLog, async (request, response) => {
    if (answerOperator(request, response, { database, metrics, isDraining, running: client.running })) return
    if (page?.answer(request, response, boundPort) === true) return
    const begun = performance.now()
    response.on('close', () => {
      const status = response.headersSent ? response.statusCode : CLIENT_LEFT
      metrics.count('tidemark_gateway_responses_total', { status: String(status) })
      metrics.observeSeconds((performance.now() - begun) / 1000)
    })
    await client.handle(request, response)
  })
  await listenOn(server, host, port).catch(async (thrown: unknown) => {
    await closeServices(services)
    throw thrown
  })
  const { address, port: bound } = server.address() as AddressInfo
  boundPort = bound
  return {
    url: `http://${address.includes(':') ? `[${address}]` : address}:${bound}`,
    get running() {
      return client.running
    },
    async close() {
      isDraining = true
      const drainMs = (options.drainSeconds ?? DEFAULT_DRAIN_SECONDS) * 1000
      await Promise.all([page?.close(), closeServer(server, drainMs)])
      await closeServices(services)
    },
  }
}

function announceMissingCredentials(env: GatewayOptions['env'], onLog: (line: GatewayLogLine) => void): void {
  for (const name of ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY'].filter((each) => !env[each])) {
    const message = `${name} is not set: for this provider, callers send their own credential, and the key as ${KEY_HEADER}.`
    onLog({ level: 'info', event: 'credentials', message })
  }
}

interface GatewayServices {
  readonly database: Database | null
  readonly accounts: ProcessAccounts | null
  readonly jobs: BackgroundJobs | null
  readonly page: TeamPage | null
  readonly tenants: Tenants
}

async function openServices(
  options: GatewayOptions,
  metrics: Metrics,
  onLog: (line: GatewayLogLine) => void,
): Promise<GatewayServices> {
  const objects = await openObjects(options)
  const database = options.database === undefined ? null : openDatabase(options.database)
  const tenants = createTenants({
    database,
    objects,
    home: options.home,
    env: options.env,
    idleSeconds: options.idleSeconds ?? DEFAULT_IDLE_SECONDS,
    waitSeconds: WAIT_SECONDS,
    windowTokens: options.windowTokens ?? null,
    telemetry: await loadTelemetry(),
    onEvent: (event, session) => noteEvent(event, session, metrics, onLog),
  })
  if (database === null) return { database, tenants, accounts: null, jobs: null, page: null }
  try {
    const steps = await migrateDatabase(database)
    for (const step of steps) onLog({ level: 'info', event: 'migrated', message: step })
    const onWarning = ({ name, budget }: GatewayKey, spent: number): void =>
      onLog({
        level: 'warning',
        event: 'budget',
        message: `The key ${name} has used $${spent.toFixed(2)} of $${budget}.`,
      })
    const accounts = await openAccounts({ database, process: randomUUID(), metrics, onWarning })
    const onError = (message: string): void => onLog({ level: 'error', event: 'jobs', message })
    const jobs = await startBackgroundJobs({
      database,
      objects,
      retentionDays: options.retentionDays ?? null,
      onError,
    })
    const page = createTeamPage({
      database,
      objects,
      pageUrl: options.pageUrl ?? null,
      onError: (message) => onLog({ level: 'warning', event: 'page', message }),
    })
    return { database, tenants, accounts, jobs, page }
  } catch (thrown) {
    await database.end().catch(() => {})
    if (thrown instanceof TidemarkError) throw thrown
    throw new TidemarkError('io-failed', describeDatabaseError(thrown), { cause: thrown })
  }
}

async function openObjects({ database, objects, env }: GatewayOptions): Promise<ObjectStore | null> {
  if (objects === undefined) return null
  if (database === undefined)
    throw new TidemarkError('bad-option', 'objects: an object store is used beside a database: give both.')
  const store = openObjectStore(objects, env)
  await probeObjectStore(store)
  return store
}

async function closeServices({ database, accounts, jobs, page, tenants }: GatewayServices): Promise<void> {
  await page?.close()
  await tenants.close()
  await jobs?.close().catch(() => {})
  await accounts?.close(SETTLE_MS)
  await database?.end().catch(() => {})
}

/** Milliseconds that the costs of the last calls get to be stored. */
const SETTLE_MS = 5_000

/** Loads telemetry if the package of OpenTelemetry is installed. Without a provider, it costs nothing. */
async function loadTelemetry(): Promise<Telemetry | null> {
  try {
    const { openTelemetry } = await import('tidemark/telemetry')
    return openTelemetry()
  } catch {
    return null
  }
}

function noteEvent(
  event: SessionEvent,
  session: string,
  metrics: Metrics,
  onLog: (line: GatewayLogLine) => void,
): void {
  if (event.type === 'rewritten') metrics.count('tidemark_gateway_rewrites_total')
  if (event.type === 'request-passed' && event.reason !== 'side-call')
    onLog({ level: 'warning', event: 'passed', message: `${session}: ${event.message}` })
}

/** Returns a server in which an unexpected error ends only the request that caused it. */
function serveApart(
  onLog: (line: GatewayLogLine) => void,
  answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Server {
  return createServer((request, response) => {
    answer(request, response).catch((thrown: unknown) => {
      response.destroy()
      const message = describeThrown(thrown)
      onLog({ level: 'error', event: 'request', message })
    })
  })
}

interface OperatorView {
  readonly database: Database | null
  readonly metrics: Metrics
  readonly isDraining: boolean
  readonly running: number
}

/** Answers requests of the operator, such as those for metrics. Returns false for other requests. */
function answerOperator(
  { url = '', method }: IncomingMessage,
  response: ServerResponse,
  { database, metrics, isDraining, running }: OperatorView,
): boolean {
  const send = (status: number, text: string): void => {
    response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    response.end(text)
  }
  if (method !== 'GET') return false
  if (url === '/healthz') send(200, 'ok\n')
  else if (url === '/metrics')
    send(
      200,
      metrics.render({
        running,
        heap_bytes: process.memoryUsage().heapUsed,
        database_waiting: database?.waitingCount ?? 0,
      }),
    )
  else if (url === '/readyz') {
    if (isDraining) send(503, 'draining\n')
    else if (database === null) send(200, 'ready\n')
    else
      queryPromptly(database, 'select 1').then(
        () => send(200, 'ready\n'),
        () => send(503, 'the database does not answer\n'),
      )
  } else return false
  return true
}

function trimAddress(address: string | undefined): string | undefined {
  return address?.replace(/(?:\/v1)?\/*$/, '')
}

/** A gateway on a real Postgres and the simulator, for tests. */
import { randomUUID } from 'node:crypto'
import Anthropic from '@anthropic-ai/sdk'
import {
  addKey,
  type Gateway,
  type GatewayLogLine,
  type GatewayOptions,
  serveGateway,
} from '@tidemark/gateway'
import {
  createCoder,
  type SimulatorOptions,
  type SimulatorServer,
  serve,
  withSummaries,
} from '@tidemark/simulator'
import OpenAI from 'openai'
import pg from 'pg'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres-server.ts'

export type Coder = ReturnType<typeof createCoder>

export interface GatewayWorld {
  readonly server: PostgresServer
  /** A database of its own. */
  readonly url: string
  readonly pool: pg.Pool
  readonly simulator: SimulatorServer
  readonly coder: Coder
  readonly logs: GatewayLogLine[]
  startGateway(options?: Partial<GatewayOptions>): Promise<Gateway>
  addKey(
    name: string,
    options?: { budget?: number; models?: string[]; team?: string; isViewer?: boolean },
  ): Promise<string>
  /** Dollars that the simulator has billed. */
  readBill(): number
  close(): Promise<void>
}

interface GatewayWorldOptions extends SimulatorOptions {
  /** Default: one that works for `turns` turns. */
  readonly coder?: Coder
  readonly turns?: number
  /** True for a database without tables. */
  readonly isEmpty?: boolean
}

/** Databases with the tables of a gateway, of which worlds get copies: to create the tables takes ten times as long. */
const templates = new WeakMap<PostgresServer, Promise<string>>()
/** That of the tests' own server. Whoever comes first creates it, for the files in other workers too. */
const TEMPLATE = 'tidemark_template'

async function findTemplate(server: PostgresServer): Promise<string> {
  if (!server.isOwn) return createTemplate(server)
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  try {
    await admin.query('select pg_advisory_lock(1)')
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1', [TEMPLATE])
    if (rowCount === 0)
      await admin.query(`alter database ${await createTemplate(server)} rename to ${TEMPLATE}`)
    return TEMPLATE
  } finally {
    await admin.end()
  }
}

async function createTemplate(server: PostgresServer): Promise<string> {
  const { name, url } = await createDatabase(server, null)
  await (await serveGateway({ database: url, home: '/nonexistent', env: {} })).close()
  return name
}

async function createDatabase(server: PostgresServer, template: string | null) {
  const name = `tidemark_test_${randomUUID().replaceAll('-', '')}`
  await runAsAdmin(server, `create database ${name} template ${template ?? 'template0'}`)
  return { name, url: server.url.replace(/\/[^/]*$/, `/${name}`) }
}

async function runAsAdmin(server: PostgresServer, sql: string): Promise<void> {
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  await admin.query(sql).finally(() => admin.end())
}

export async function createGatewayWorld(
  server: PostgresServer,
  options: GatewayWorldOptions = {},
): Promise<GatewayWorld> {
  const { turns = 30, isEmpty = false, coder = createCoder({ turns }), ...simulation } = options
  if (!isEmpty && !templates.has(server)) templates.set(server, findTemplate(server))
  const { name, url } = await createDatabase(server, isEmpty ? null : ((await templates.get(server)) ?? null))
  const pool = new pg.Pool({ connectionString: url, max: 10 }).on('error', () => {})
  const simulator = await serve({
    script: withSummaries(coder.script),
    keepRequests: Number.POSITIVE_INFINITY,
    ...simulation,
  })
  const gateways: Gateway[] = []
  const logs: GatewayLogLine[] = []
  return {
    server,
    url,
    pool,
    simulator,
    coder,
    logs,
    async startGateway(given = {}) {
      const gateway = await serveGateway({
        database: url,
        home: '/nonexistent',
        upstream: simulator.url,
        upstreamOpenai: simulator.url,
        env: { ANTHROPIC_API_KEY: 'sk-gateway', OPENAI_API_KEY: 'sk-gateway' },
        onLog: (line) => logs.push(line),
        ...given,
      })
      gateways.push(gateway)
      return gateway
    },
    addKey: async (keyName, given = {}) =>
      (await addKey(pool, { name: keyName, actor: 'test', ...given })).key,
    readBill: () => simulator.simulator.requests.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0),
    async close() {
      await Promise.all(gateways.map((gateway) => gateway.close()))
      await pool.end()
      await simulator.close()
      if (!server.isOwn) await runAsAdmin(server, `drop database ${name} with (force)`)
    },
  }
}

/** Ends a server of the tests' own; of one that is configured, removes what is left. */
export async function stopServer(server: PostgresServer): Promise<void> {
  const template = await templates.get(server)?.catch(() => undefined)
  if (!server.isOwn && template !== undefined) await runAsAdmin(server, `drop database ${template}`)
  await server.stop()
}

export type CreateGatewayWorld = (options?: GatewayWorldOptions) => Promise<GatewayWorld>

/** Finds a Postgres for the tests of a suite. Returns what creates a world on it, which is closed after its test or the suite. */
export function useGatewayWorlds(lifetime: 'test' | 'suite' = 'test'): CreateGatewayWorld {
  let server: PostgresServer | undefined
  const worlds: GatewayWorld[] = []
  beforeAll(async () => {
    server = await startPostgres()
  })
  const closeWorlds = async () => {
    for (const world of worlds.splice(0)) await world.close()
  }
  if (lifetime === 'test') afterEach(closeWorlds)
  afterAll(async () => {
    await closeWorlds()
    if (server !== undefined) await stopServer(server)
  })
  return async (options = {}) => {
    if (server === undefined) throw new Error('Postgres has not been started.')
    const world = await createGatewayWorld(server, options)
    worlds.push(world)
    return world
  }
}

/** An agent on the official client: each step is one call with tools, whose results it sends back. */
export class SdkAgent {
  readonly client: Anthropic
  readonly messages: Anthropic.MessageParam[] = []
  /** Whose tools are offered. */
  coder: Coder
  readonly headers: Record<string, string>
  /** Requests that were sent, with those that the SDK tried again. */
  attempts = 0

  constructor(baseURL: string, apiKey: string, coder: Coder, session: string | null) {
    const send: typeof fetch = (input, init) => {
      this.attempts += 1
      return fetch(input, init)
    }
    this.client = new Anthropic({ baseURL, apiKey, maxRetries: 8, fetch: send })
    this.coder = coder
    this.headers = session === null ? {} : { 'x-session-id': session }
  }

  /** Returns false if the model is done. */
  async step(): Promise<boolean> {
    const stream = this.client.messages.stream(
      {
        model: 'claude-sonnet-5-5',
        max_tokens: 1_000,
        tools: [...this.coder.tools] as unknown as Anthropic.Tool[],
        messages: this.messages,
      },
      { headers: this.headers },
    )
    const reply = await stream.finalMessage()
    this.messages.push({ role: 'assistant', content: reply.content })
    const calls = reply.content.filter((block) => block.type === 'tool_use')
    if (calls.length === 0) return false
    this.messages.push({
      role: 'user',
      content: calls.map(
        (call) => this.coder.toolResult(call as never) as unknown as Anthropic.ToolResultBlockParam,
      ),
    })
    return true
  }
}

export { OpenAI }

/** A gateway on a real Postgres and the simulator, for tests. */
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

let databases = 0

export async function createGatewayWorld(
  server: PostgresServer,
  options: SimulatorOptions & { readonly turns?: number } = {},
): Promise<GatewayWorld> {
  const { turns = 30, ...simulation } = options
  databases += 1
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  const name = `gateway_${process.pid}_${databases}`
  await admin.query(`create database ${name}`)
  await admin.end()
  const url = server.url.replace(/\/[^/]*$/, `/${name}`)
  const pool = new pg.Pool({ connectionString: url, max: 10 }).on('error', () => {})
  const coder = createCoder({ turns })
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
    },
  }
}

type CreateWorld = (options?: Parameters<typeof createGatewayWorld>[1]) => Promise<GatewayWorld>

/** Starts a Postgres for the tests of a suite. Returns what creates a world on it, which is closed after its test. */
export function useGatewayWorlds(): CreateWorld {
  let server: PostgresServer | undefined
  const worlds: GatewayWorld[] = []
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.close()
  })
  afterAll(() => server?.stop())
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

  constructor(baseURL: string, apiKey: string, coder: Coder, session: string | null) {
    this.client = new Anthropic({ baseURL, apiKey, maxRetries: 8 })
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

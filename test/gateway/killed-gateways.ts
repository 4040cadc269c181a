/**
 * Kills one of two gateway processes again and again while real clients work through a proxy in front, and compares what is left
 * with the same work without kills: lost records, doubled results, and what the provider billed.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import Anthropic from '@anthropic-ai/sdk'
import { createCoder, type Script, withSummaries } from '@tidemark/simulator'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'
import { type CreateGatewayWorld, type GatewayWorld, SdkAgent } from './gateway-world.ts'
import { expectWholeLogs, listLostBlocks } from './stored-sessions.ts'

export interface KillOptions {
  readonly sessions: number
  readonly kills: number
  /** Milliseconds between two kills. */
  readonly everyMs: number
  /** Tokens of the context window: small ones make compactions. */
  readonly window: number
  /** Delay before each piece of an answer. */
  readonly pieceMs: number
}

export interface KillFigures {
  readonly kills: number
  /** Answers that clients have read to their end. */
  readonly steps: number
  readonly compactions: number
  /** Requests whose answer a client could not read to its end, with those that no process took. */
  readonly cutAnswers: number
  /** Calls that a killed process had not settled: they are charged in full. */
  readonly openCalls: number
  /** Calls that the provider answered once more, since a kill had cut the first answer. */
  readonly repeatedCalls: number
  readonly lostRecords: number
  /** What the provider billed, and of it for answers that a kill cut. */
  readonly bill: number
  readonly cutBill: number
  /** What the provider billed for the same work without kills. */
  readonly undisturbedBill: number
}

export async function killGateways(
  createWorld: CreateGatewayWorld,
  options: KillOptions,
): Promise<KillFigures> {
  const disturbed = await runDisturbed(createWorld, options)
  return {
    ...disturbed.figures,
    undisturbedBill: await runUndisturbed(createWorld, options, disturbed.steps),
  }
}

async function runDisturbed(createWorld: CreateGatewayWorld, options: KillOptions) {
  const { sessions, kills, everyMs } = options
  const asked: string[] = []
  const world = await createKillWorld(createWorld, options, asked)
  const start = () =>
    startGatewayProcess({
      database: world.url,
      upstream: world.simulator.url,
      args: ['--window', String(options.window)],
    })
  const living: GatewayProcess[] = await Promise.all([start(), start()])
  const front = await startFront(() => living.map(({ url }) => Number(new URL(url).port)))
  const key = await world.addKey('team')
  const agents = createAgents(world, front.url, key, sessions)
  const steps = agents.map(() => 0)
  let isOver = false
  const work = agents.map(async (agent, index) => {
    while (!isOver) if (await stepOnce(agent)) steps[index] = (steps[index] ?? 0) + 1
  })
  try {
    for (let kill = 0; kill < kills; kill += 1) {
      await Promise.race([wait(everyMs), Promise.all(work)])
      const [oldest] = living.splice(0, 1)
      await oldest?.kill('SIGKILL')
      living.push(await start())
    }
    isOver = true
    await Promise.all(work)
    return {
      steps,
      figures: await readFigures(world, { agents, asked, kills, steps: sum(steps) }),
    }
  } finally {
    isOver = true
    await front.close()
    await Promise.all(living.map((gateway) => gateway.kill('SIGKILL')))
  }
}

interface DisturbedWork {
  readonly agents: readonly SdkAgent[]
  readonly asked: readonly string[]
  readonly kills: number
  readonly steps: number
}

async function readFigures(
  world: GatewayWorld,
  { agents, asked, ...counts }: DisturbedWork,
): Promise<Omit<KillFigures, 'undisturbedBill'>> {
  await expectWholeLogs(world.pool, agents.length)
  const lost = await Promise.all(
    agents.map((agent, index) => listLostBlocks(world.pool, `job-${index}`, agent.messages.slice(0, -1))),
  )
  const { rows } = await world.pool.query(
    `select count(*) filter (where settled_at is null)::int as open,
       (select count(*)::int from tidemark_lines where text like '%"subtype":"compact_boundary"%') as compactions
     from gateway_calls`,
  )
  const cut = listCutCosts(world, asked)
  return {
    ...counts,
    cutAnswers: sum(agents.map(({ attempts }) => attempts)) - counts.steps,
    compactions: Number(rows[0].compactions),
    openCalls: Number(rows[0].open),
    repeatedCalls: cut.length,
    lostRecords: lost.flat().length,
    bill: world.readBill(),
    cutBill: sum(cut),
  }
}

/** What the provider billed for answers that were asked for again: of equal requests, all but the last. */
function listCutCosts({ simulator }: GatewayWorld, asked: readonly string[]): readonly number[] {
  const costs = simulator.simulator.requests.map(({ cost }) => cost?.total ?? 0)
  return asked.flatMap((hash, index) => (asked.lastIndexOf(hash) > index ? [costs[index] ?? 0] : []))
}

async function runUndisturbed(
  createWorld: CreateGatewayWorld,
  options: KillOptions,
  steps: readonly number[],
): Promise<number> {
  const asked: string[] = []
  const world = await createKillWorld(createWorld, { ...options, pieceMs: 0 }, asked)
  const { url } = await world.startGateway({ windowTokens: options.window })
  const agents = createAgents(world, url, await world.addKey('team'), options.sessions)
  await Promise.all(
    agents.map(async (agent, index) => {
      for (let step = 0; step < (steps[index] ?? 0); ) if (await stepOnce(agent)) step += 1
    }),
  )
  return world.readBill() - sum(listCutCosts(world, asked))
}

/** Equal for requests with equal messages: another process may place cache markers elsewhere. */
function hashMessages({ messages }: Parameters<Script>[0]): string {
  const text = JSON.stringify(messages, (name, value) => (name === 'cache_control' ? undefined : value))
  return createHash('sha256').update(text).digest('hex')
}

/** `asked` gets a hash of each request, in the order of the provider's records. */
function createKillWorld(
  createWorld: CreateGatewayWorld,
  { pieceMs }: KillOptions,
  asked: string[],
): Promise<GatewayWorld> {
  const coder = createCoder({ turns: Number.POSITIVE_INFINITY, resultTokens: 1_500 })
  const answer = withSummaries(coder.script)
  const script: Script = async (request, context) => {
    asked[context.index] = hashMessages(request)
    return { ...(await answer(request, context)), delays: { startMs: 5 * pieceMs, pieceMs } }
  }
  return createWorld({ script, coder })
}

function createAgents(world: GatewayWorld, url: string, key: string, sessions: number): readonly SdkAgent[] {
  return Array.from({ length: sessions }, (_, index) => {
    const agent = new SdkAgent(url, key, world.coder, `job-${index}`)
    agent.headers['x-simulator-session'] = `job-${index}`
    agent.messages.push({ role: 'user', content: `Job ${index}: fix the sums.` })
    return agent
  })
}

/** Returns false if the connection broke: the agent then tries again, as its user would. Refusals are thrown. */
async function stepOnce(agent: SdkAgent): Promise<boolean> {
  try {
    await agent.step()
    return true
  } catch (error) {
    if (error instanceof Anthropic.APIError && error.status !== undefined) throw error
    return false
  }
}

interface Front {
  readonly url: string
  close(): Promise<void>
}

/** A proxy in front that gives each connection to the next process that lives. */
async function startFront(listPorts: () => readonly number[]): Promise<Front> {
  const sockets = new Set<Socket>()
  let next = 0
  const server = createServer((client) => {
    const ports = listPorts()
    next += 1
    const gateway = connect(ports[next % ports.length] ?? 0, '127.0.0.1')
    for (const [from, to] of [
      [client, gateway],
      [gateway, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

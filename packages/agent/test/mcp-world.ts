/** An agent with MCP servers, against the simulator: what the model was sent, and what the user was told. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Script, withSummaries } from '@tidemark/simulator'
import { anthropic, type SessionEvent } from 'tidemark'
import { onTestFinished } from 'vitest'
import { openAgent } from '../src/agent/agent.ts'
import type { Agent } from '../src/agent/agent-options.ts'
import type { McpServerSettings } from '../src/mcp/server-settings.ts'
import { type ChatWorld, createChatWorld } from './chat-world.ts'

const TEST_SERVER = fileURLToPath(new URL('mcp-test-server.ts', import.meta.url))
const REFERENCE_SERVER = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
)

/** A server gets hardly any variables of this process, so the folder of compiled code is passed to it. */
const COMPILED = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '' }

/** The test server, which misbehaves as its arguments say. */
export function testServer(...args: readonly string[]): McpServerSettings {
  return { command: process.execPath, args: [TEST_SERVER, ...args], env: COMPILED }
}

/** The reference server of the protocol, as a process. */
export const REFERENCE: McpServerSettings = {
  command: process.execPath,
  args: [REFERENCE_SERVER, 'stdio'],
  env: COMPILED,
}

export interface McpAgent {
  readonly agent: Agent
  readonly events: readonly SessionEvent[]
  readonly notices: readonly string[]
  /** Runs a prompt and returns the text of the tool results in the last request. */
  ask(prompt?: string): Promise<readonly string[]>
}

export interface McpWorld extends ChatWorld {
  /** The tools of each request, as JSON. */
  readonly tools: readonly string[]
  /** The system prompt of each request, as JSON. */
  readonly systems: readonly string[]
  /** The messages of the last request, as JSON. */
  messages(): string
  open(
    servers: Readonly<Record<string, McpServerSettings>>,
    options?: { model?: string; firstServerWait?: number },
  ): Promise<McpAgent>
}

export async function createMcpWorld(given: Script): Promise<McpWorld> {
  const script = withSummaries(given)
  const [tools, systems]: [string[], string[]] = [[], []]
  let messages = ''
  const world = await createChatWorld((request, context) => {
    tools.push(JSON.stringify(request.tools))
    systems.push(JSON.stringify(request.system))
    messages = JSON.stringify(request.messages)
    return script(request, context)
  })
  return {
    ...world,
    tools,
    systems,
    messages: () => messages,
    // However long the machine takes, the first request has the tools of all servers.
    async open(mcpServers, { model = 'claude-sonnet-5', firstServerWait = 60_000 } = {}) {
      const [events, notices]: [SessionEvent[], string[]] = [[], []]
      const agent = await openAgent({
        folder: world.folder,
        home: world.home,
        sessionId: 'mcp',
        model: anthropic(model, { apiKey: 'any', baseUrl: world.server.url }),
        settings: { permissions: { allow: [], ask: [], deny: [] }, env: {}, notices: [], mcpServers },
        mode: 'allow-all',
        env: world.env,
        firstServerWait,
        onEvent: (event) => events.push(event),
        onNotice: (message) => notices.push(message),
      })
      onTestFinished(() => agent.close())
      return {
        agent,
        events,
        notices,
        async ask(prompt = 'Go on.') {
          const outcome = await agent.run(prompt).outcome
          if (!outcome.ok) throw new Error(outcome.message)
          return world.lastResults()
        },
      }
    },
  }
}

/** Counts the new prefix snapshots that broke the cache. */
export function countBreaks({ events }: McpAgent): number {
  return events.filter(
    (event) => event.type === 'prefix-changed' && event.change.kind === 'epoch' && event.change.breaksCache,
  ).length
}

/** Names the tools of servers in the tools of a request, without `mcp__`. */
export function listServerTools(tools: string | undefined): readonly string[] {
  return [...(tools ?? '').matchAll(/"name":"mcp__(\w+)"/g)].map(([, name]) => String(name))
}

/** The reference server listens on every address; this keeps it on the loopback one, and prints its port. */
const LOOPBACK = `data:text/javascript,import net from "node:net";const l=net.Server.prototype.listen;net.Server.prototype.listen=function(p,...r){this.once("listening",()=>console.error("PORT="+this.address().port));return l.call(this,Number(p),"127.0.0.1",...r)}`

export interface HttpServer {
  /** Known once it was started. */
  readonly settings: McpServerSettings
  start(): Promise<void>
  kill(): Promise<void>
}

/** The reference server over HTTP, which can be killed and started again at the same address. */
export function createHttpServer(): HttpServer {
  // The system chooses a free one at the first start.
  let port = '0'
  let child: ChildProcess | null = null
  const kill = async (): Promise<void> => {
    if (child === null) return
    const ended = new Promise((resolve) => child?.once('close', resolve))
    child.kill('SIGKILL')
    child = null
    await ended
  }
  onTestFinished(kill)
  return {
    get settings(): McpServerSettings {
      return { type: 'http', url: `http://127.0.0.1:${port}/mcp` }
    },
    kill,
    async start() {
      const args = ['--import', LOOPBACK, REFERENCE_SERVER, 'streamableHttp']
      const started = spawn(process.execPath, args, { env: { ...process.env, PORT: port } })
      child = started
      started.stdout.resume()
      let printed = ''
      port = await new Promise<string>((resolve, reject) => {
        started.once('close', () => reject(new Error(`the server ended: ${printed}`)))
        started.stderr.on('data', (chunk: Buffer) => {
          printed += chunk.toString()
          const found = /PORT=(\d+)\n/.exec(printed)?.[1]
          if (found !== undefined) resolve(found)
        })
      })
    },
  }
}

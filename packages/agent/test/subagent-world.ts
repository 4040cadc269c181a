/** An agent with subagents, against the simulator: each conversation plays its own steps. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Script, withSummaries } from '@tidemark/simulator'
import { anthropic, type SessionEvent } from 'tidemark'
import { onTestFinished } from 'vitest'
import { openAgent } from '../src/agent/agent.ts'
import type { Agent, AgentOptions } from '../src/agent/agent-options.ts'
import type { SubagentEvent, SubagentRecord } from '../src/agent/subagent-records.ts'
import { type ChatWorld, createChatWorld } from './chat-world.ts'

export type ScriptRequest = Parameters<Script>[0]

/** One response: text, or tool calls by name; several calls of one tool as a list. */
type AgentStep = string | Readonly<Record<string, object | readonly object[]>>

/**
 * Returns the next step of a conversation. `name` is that of the subagent, or `main`; `count` is the number of its steps
 * so far. Steps of two subagents of one name are told apart by their prompts.
 */
export type PlayAgents = (given: {
  readonly name: string
  readonly count: number
  readonly request: ScriptRequest
  /** The messages as JSON. */
  readonly text: string
}) => AgentStep | Promise<AgentStep>

export interface SubagentWorld extends ChatWorld {
  /** The requests of each conversation, without those for summaries. */
  readonly requests: Readonly<Record<string, readonly ScriptRequest[]>>
  /** Writes a file into the user's home. */
  writeHome(name: string, content: string): void
  open(options?: Partial<AgentOptions>): Promise<OpenedAgent>
}

export interface OpenedAgent {
  readonly agent: Agent
  readonly events: readonly SessionEvent[]
  readonly news: readonly SubagentEvent[]
  readonly notices: readonly string[]
  /** Runs a prompt and returns the answer. */
  ask(prompt?: string): Promise<string>
  /** The subagent of a type. */
  find(type: string): SubagentRecord | undefined
}

/** `Task` for a subagent whose prompt begins with PART and a word. */
export function task(type: string, part: string, more: object = {}): object {
  return { description: `Part ${part}`, prompt: `PART ${part}. Do it.`, subagent_type: type, ...more }
}

export async function createSubagentWorld(play: PlayAgents, window?: number): Promise<SubagentWorld> {
  const counts = new Map<string, number>()
  const requests: Record<string, ScriptRequest[]> = {}
  const script = withSummaries(async (request) => {
    const name = /You are the agent ([\w:-]+)\./.exec(JSON.stringify(request.system))?.[1] ?? 'main'
    const text = JSON.stringify(request.messages)
    const key = name === 'main' ? name : `${name} ${/PART (\w+)\./.exec(text)?.[1]}`
    const count = counts.get(key) ?? 0
    counts.set(key, count + 1)
    requests[key] = [...(requests[key] ?? []), request]
    return toReply(await play({ name, count, request, text }))
  })
  const world = await createChatWorld(script, window)
  return {
    ...world,
    requests,
    writeHome(name, content) {
      const path = join(world.env.HOME ?? '', name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
    },
    async open(options = {}) {
      const [events, news, notices]: [SessionEvent[], SubagentEvent[], string[]] = [[], [], []]
      const agent = await openAgent({
        folder: world.folder,
        home: world.home,
        sessionId: 'main',
        model: anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: world.server.url, window: 200_000 }),
        settings: { permissions: { allow: [], ask: [], deny: [] }, env: {}, notices: [] },
        mode: 'allow-all',
        env: world.env,
        // However long the machine takes, the first request has the tools of all servers.
        firstServerWait: 60_000,
        onEvent: (event) => events.push(event),
        onSubagent: (event) => news.push(event),
        onUnread: (_, { path, why }) => notices.push(`${path}: ${why}`),
        ...options,
      })
      onTestFinished(() => agent.close())
      return {
        agent,
        events,
        news,
        notices,
        async ask(prompt = 'Go on.') {
          const outcome = await agent.run(prompt).outcome
          if (!outcome.ok) throw new Error(outcome.message)
          return outcome.text
        },
        find: (type) => agent.subagents().find((record) => record.type === type),
      }
    },
  }
}

function toReply(step: AgentStep): { blocks: { type: 'text'; text: string }[] } {
  if (typeof step === 'string') return { blocks: [{ type: 'text', text: step }] }
  const blocks = Object.entries(step).flatMap(([name, given]) =>
    (Array.isArray(given) ? given : [given]).map((input) => ({
      type: 'tool_use',
      name,
      input: { ...input },
    })),
  )
  return { blocks } as never
}

/** The names of the logs of subagents of a session. */
export function listAgentLogs({ home }: ChatWorld, session: string): readonly string[] {
  const folder = join(home, 'sessions', session, 'subagents', 'sessions')
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.jsonl')) : []
}

/** The text of the last tool results of a request. */
export function readLastResults(request: ScriptRequest | undefined): readonly string[] {
  const { content } = request?.messages.at(-1) ?? { content: [] }
  return (content as readonly { readonly type: string; readonly content?: unknown }[])
    .filter(({ type }) => type === 'tool_result')
    .map(({ content: text }) => (typeof text === 'string' ? text : JSON.stringify(text)))
}

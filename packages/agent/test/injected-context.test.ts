/**
 * What the agent adds to the conversation by itself (memory files, rules, skills, hooks, MCP servers, plan mode), measured
 * in the requests that the simulator got: idle turns add nothing, and nothing is there twice.
 */
import { isFullRun } from '@tidemark/core/testing'
import { type Script, withSummaries } from '@tidemark/simulator'
import { anthropic } from 'tidemark'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openAgent } from '../src/agent/agent.ts'
import { readSettings } from '../src/agent/settings.ts'
import { type ChatWorld, createChatWorld } from './chat-world.ts'
import { testServer } from './mcp-world.ts'

interface Part {
  readonly type: string
  readonly text?: string
}

interface SentMessage {
  readonly role: string
  readonly content: string | readonly Part[]
}

/** Kinds of what is injected, each with a text that only it has. */
const KINDS: Readonly<Record<string, RegExp>> = {
  memory: /Instructions of the (user|project)/,
  'nested memory': /src\/(deep\/)?(CLAUDE|AGENTS)\.md|rules\//,
  'skill listing': /Description of one\./,
  'skill in use': /is in use in this session/,
  hook: /Printed by the hook/,
  'plan mode': /[Pp]lan mode/,
  'restored file': /Content of the file/,
}

/** Returns the texts of a request that neither user nor model nor tool has written. */
function listInjected(messages: readonly SentMessage[]): readonly string[] {
  return messages.flatMap(({ role, content }) => {
    const texts = typeof content === 'string' ? [content] : content.map(({ text = '' }) => text)
    return texts.filter((text) => (role === 'system' && text !== '') || text.includes('<system-reminder>'))
  })
}

function nameKind(text: string): string {
  return Object.entries(KINDS).find(([, pattern]) => pattern.test(text))?.[0] ?? 'other'
}

/** Does what the newest prompt says: `Use: NAME {"input"}` calls a tool once, anything else is answered. */
const obey: Script = ({ messages }) => {
  const blocks = (messages as readonly SentMessage[]).flatMap(({ content }) =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : content,
  )
  const at = blocks.findLastIndex(({ text = '' }) => /^(Use|Say): /.test(text))
  const isDone = blocks.findLastIndex(({ type }) => type === 'tool_result') > at
  const [, name, input] = /^Use: (\S+) (.*)$/s.exec(blocks[at]?.text ?? '') ?? []
  if (isDone || name === undefined) return { blocks: [{ type: 'text', text: 'Done.' }] }
  return { blocks: [{ type: 'tool_use', name, input: JSON.parse(input ?? '{}') }] }
}

interface Measured {
  /** Requests of the conversation, in order. */
  readonly requests: (readonly SentMessage[])[]
  readonly rewrites: number[]
  readonly problems: string[]
  run(prompt: string): Promise<void>
  compact(): Promise<void>
}

async function openMeasuredAgent(world: ChatWorld, mode: 'allow-all' | 'plan', sent: Measured['requests']) {
  const settings = await readSettings(world.folder, world.env)
  const problems: string[] = []
  const rewrites: number[] = []
  const agent = await openAgent({
    folder: world.folder,
    home: world.home,
    sessionId: 'measured',
    model: anthropic('claude-sonnet-5-5', { apiKey: 'any', baseUrl: world.server.url, window: 40_000 }),
    settings: { ...settings, mcpServers: { test: testServer('shuffle') } },
    mode,
    env: world.env,
    // However long the machine takes, the first request has the tools of the server.
    firstServerWait: 60_000,
    onEvent: (event) => {
      if (event.type === 'rewritten') rewrites.push(sent.length)
      if (event.type === 'hook-failed' || event.type === 'restore-failed') problems.push(event.type)
    },
  })
  onTestFinished(() => agent.close())
  const measured: Measured = {
    requests: sent,
    rewrites,
    problems,
    async run(prompt) {
      const end = await agent.run(prompt).outcome
      if (!end.ok) throw new Error(end.message)
    },
    async compact() {
      const end = await agent.session.compact()
      if (!end.ok) throw new Error(end.message)
    },
  }
  return measured
}

async function createMeasuredWorld(): Promise<{ world: ChatWorld; sent: Measured['requests'] }> {
  const sent: Measured['requests'] = []
  const play = withSummaries((request, context) => {
    sent.push(request.messages as readonly SentMessage[])
    return obey(request, context)
  })
  const world = await createChatWorld(play)
  const code = 'export const total = (cents: number): number => cents // in cents\n'.repeat(80)
  const files = {
    'CLAUDE.md': 'Root canary. @docs/style.md\n',
    'docs/style.md': 'Imported canary.\n',
    '.claude/rules/typescript.md': '---\npaths: "**/*.ts"\n---\nRule canary.\n',
    'src/CLAUDE.md': 'Source canary.\n',
    'src/deep/AGENTS.md': 'Deep canary.\n',
    'src/a.ts': code,
    'src/deep/b.ts': code,
    '.claude/skills/one/SKILL.md': '---\ndescription: Description of one.\n---\nBody canary.\n',
    '../.config/tidemark/settings.json': JSON.stringify({
      trustedFolders: [world.folder],
      hooks: {
        SessionStart: [{ matcher: 'startup', hooks: [{ command: 'echo Printed by the hook.' }] }],
        UserPromptSubmit: [{ hooks: [{ command: 'true' }] }],
      },
    }),
  }
  for (const [name, text] of Object.entries(files)) world.write(name, text)
  return { world, sent }
}

const CANARIES = ['Root', 'Imported', 'Rule', 'Source', 'Deep', 'Body'].map((name) => `${name} canary.`)

const USES = [
  'Use: Read {"file_path":"src/a.ts"}',
  'Use: Read {"file_path":"src/deep/b.ts"}',
  'Use: mcp__test__alpha {"text":"hello"}',
  'Use: Skill {"skill":"one"}',
]

describe('what the agent adds by itself', () => {
  it.each([
    ['of many turns', 'allow-all', isFullRun() ? 200 : 44],
    ['in plan mode', 'plan', isFullRun() ? 40 : 12],
  ] as const)('in a session %s is added once, and idle turns add nothing', async (_, mode, turns) => {
    const { world, sent } = await createMeasuredWorld()
    const { run, compact, rewrites, problems } = await openMeasuredAgent(world, mode, sent)
    const added = new Map<string, number>()
    let idle = 0
    let isCompacted = false
    for (let turn = 0; turn < turns; turn += 1) {
      const isIdle = turn % 4 !== 0
      const [before, rewritten] = [sent.at(-1) ?? [], rewrites.length]
      const first = sent.length
      await run(isIdle ? `Say: turn ${turn}.` : (USES[(turn / 4) % USES.length] ?? ''))
      for (const messages of sent.slice(first)) expect(findTwice(messages)).toEqual([])
      const known = new Set(listInjected(before))
      // A rewritten context is written to the cache again, and what stands in it with it.
      const isRewritten = rewritten !== rewrites.length || isCompacted
      const news = listInjected(sent.at(-1) ?? []).filter((text) => isRewritten || !known.has(text))
      for (const kind of news.map(nameKind)) added.set(kind, (added.get(kind) ?? 0) + 1)
      if (isIdle && !isRewritten) {
        idle += 1
        expect(news).toEqual([])
      }
      isCompacted = turn % 60 === 59
      if (isCompacted) await compact()
    }
    expect(idle).toBeGreaterThan(turns / 2)
    expect(problems).toEqual([])
    expect(sent.every((messages) => JSON.stringify(messages).includes('Root canary.'))).toBe(true)
    // Once in the session, once in each context, or only where something is brought back after a rewrite.
    const { memory, hook, ...rest } = Object.fromEntries(added)
    expect([memory, hook, rest['skill listing']]).toEqual([rewrites.length + 1, 1, 1])
    expect(rest['plan mode'] ?? 0).toBe(mode === 'plan' ? 1 : 0)
    expect(rest['skill in use'] ?? 0).toBe(rewrites.length)
    expect(rest.other ?? 0).toBe(0)
  })
})

/** Returns what a request has more than once: injected texts, and rules that must be there once. */
function findTwice(messages: readonly SentMessage[]): readonly string[] {
  const injected = listInjected(messages)
  const repeated = injected.filter((text, index) => injected.indexOf(text) !== index)
  const all = injected.join('\n')
  return [...repeated, ...CANARIES.filter((canary) => all.split(canary).length > 2)]
}

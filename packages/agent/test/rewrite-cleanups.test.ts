/** What a rewrite of one conversation cleans up, and what it leaves: the state of the shell, of rules, servers and agents. */
import { realpathSync } from 'node:fs'
import { expect, it } from 'vitest'
import { testServer } from './mcp-world.ts'
import { createSubagentWorld, type OpenedAgent, readLastResults, task } from './subagent-world.ts'

const NO_RULES = { allow: [], ask: [], deny: [] }
const SETTINGS = { permissions: NO_RULES, env: {}, notices: [] }

/** Text of about 3,000 tokens. */
const LONG = Array.from({ length: 250 }, (_, line) => `line ${line} ${(line * 7919) % 10_007} value`).join(
  '\n',
)

const compact = async ({ agent }: OpenedAgent): Promise<void> =>
  expect(await agent.session.compact()).toMatchObject({ ok: true })

it('a compaction leaves the shell where it is and says so; going back leaves the directory', async () => {
  const steps = [{ Bash: { command: 'cd sub; cat ../long.txt' } }, 'Done.']
  const world = await createSubagentWorld(
    ({ count }) => steps[count] ?? (count % 2 === 0 ? { Bash: { command: 'pwd' } } : 'Done.'),
  )
  world.write('long.txt', LONG)
  world.write('sub/a.txt', 'a')
  const main = await world.open()
  await main.ask()
  await compact(main)
  await main.ask()
  const sub = realpathSync(world.path('sub'))
  const after = world.requests.main?.[2]
  expect(JSON.stringify(after?.messages)).toContain(`The next command of Bash starts in ${sub}.`)
  expect(readLastResults(world.requests.main?.[3])).toEqual([sub])
  const [first = ''] = main.events.flatMap((event) =>
    event.type === 'appended'
      ? event.records.flatMap(({ type, uuid }) => (type === 'user' ? (uuid ?? []) : []))
      : [],
  )
  expect(await main.agent.session.rewind(first)).toMatchObject({ ok: true })
  await main.ask()
  expect(readLastResults(world.requests.main?.[5])).toEqual([realpathSync(world.folder)])
})

it('a command in the background is told again after a compaction', async () => {
  const world = await createSubagentWorld(({ count }) =>
    count === 0
      ? { Bash: { command: 'sleep 20', run_in_background: true } }
      : count === 1
        ? { Read: { file_path: 'long.txt' } }
        : 'Done.',
  )
  world.write('long.txt', LONG)
  const main = await world.open()
  await main.ask()
  await compact(main)
  await main.ask()
  expect(JSON.stringify(world.requests.main?.at(-1)?.messages)).toContain(
    'bash_1 runs in the background: sleep 20',
  )
})

it('rules of a slash command end when the conversation goes back to before it, not with a compaction', async () => {
  const world = await createSubagentWorld(({ count }) =>
    count === 0
      ? { Read: { file_path: 'long.txt' } }
      : count % 2 === 1
        ? 'Done.'
        : { Bash: { command: 'touch made.txt' } },
  )
  world.write('long.txt', LONG)
  world.writeHome('.claude/commands/go.md', '---\nallowed-tools: Bash(touch:*)\n---\nGo.')
  const main = await world.open({ mode: 'default' })
  await main.agent.run((await main.agent.expandPrompt('/go')).prompt).outcome
  await compact(main)
  await main.ask()
  expect(world.read('made.txt')).toBe('')
  await main.agent.session.clear()
  await main.ask()
  expect(main.agent.denials).toMatchObject([{ tool: 'Bash' }])
})

it('the compaction of a subagent lets no tool of a server change, and it keeps the tools that it began with', async () => {
  let readMarker = (): string | null => null
  const countLists = (): number => (readMarker() ?? '').split('listed').length - 1
  const world = await createSubagentWorld(async ({ name, count }) => {
    // The server announces its tools after each call, and is asked for them beside the conversation.
    if (name === 'main' && count <= 3) await expect.poll(countLists).toBeGreaterThan(count)
    if (name === 'main')
      return count < 3 ? { mcp__t__alpha: {} } : count === 3 ? { Task: task('small', 'a') } : 'Done.'
    const todos = [{ content: LONG.slice(count).slice(0, 4_000), status: 'pending' }]
    return count < 12 ? { TodoWrite: { todos }, mcp__t__beta: { text: 'x' } } : 'Read.'
  })
  world.writeHome('.claude/agents/small.md', '---\nwindow: 16000\ntools: TodoWrite, mcp__t\n---\nGo.')
  readMarker = () => world.read('marker')
  const server = testServer('grow', `marker=${world.path('marker')}`)
  const main = await world.open({ settings: { ...SETTINGS, mcpServers: { t: server } } })
  expect(await main.ask()).toBe('Done.')
  expect(main.find('small')?.compactions).toBeGreaterThan(0)
  const listTools = (key: string) => new Set(world.requests[key]?.map(({ tools }) => JSON.stringify(tools)))
  expect(listTools('small a').size).toBe(1)
  expect([...listTools('small a')][0]).toContain('mcp__t__alpha')
  // The one change that is allowed without a compaction came before.
  expect(JSON.stringify(world.requests.main?.[3]?.tools)).toContain('grown_1')
  expect(world.requests.main?.[4]?.tools).toEqual(world.requests.main?.[3]?.tools)
  expect(JSON.stringify(world.requests['small a']?.[0]?.system)).toContain('Use alpha first.')
})

it('in plan mode a tool of a server runs only if it says that it reads, also in a subagent', async () => {
  const world = await createSubagentWorld(({ name, count }) => {
    const calls = { mcp__t__alpha: {}, mcp__t__beta: {} }
    if (name === 'main')
      return count === 0 ? calls : count === 1 ? { Task: task('general-purpose', 'a') } : 'Done.'
    return count === 0 ? calls : 'Tried.'
  })
  const main = await world.open({
    mode: 'plan',
    settings: {
      ...SETTINGS,
      permissions: { ...NO_RULES, allow: ['mcp__t__*'] },
      mcpServers: { t: testServer() },
    },
  })
  await main.ask()
  for (const request of [world.requests.main?.[1], world.requests['general-purpose a']?.[1]])
    expect(readLastResults(request)).toEqual([
      expect.stringMatching(/^alpha \d+/),
      expect.stringContaining('Plan mode is on'),
    ])
})

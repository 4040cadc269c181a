/** Plan mode in `tidemark chat`: nothing is changed or run before the user has approved a plan. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { withSummaries } from '@tidemark/simulator'
import { anthropic } from 'tidemark'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openAgent } from '../src/agent/agent.ts'
import { type ChatWorld, createChatWorld, playSteps, type Step } from './chat-world.ts'
import { testServer } from './mcp-world.ts'

const WRITE = { Write: { file_path: 'b.txt', content: 'new' } }
const PLAN = { ExitPlanMode: { plan: '# Plan\n1. Write b.txt' } }

async function createWorld(...steps: readonly Step[]): Promise<ChatWorld & { last(): string }> {
  let last = ''
  const play = withSummaries(playSteps(...steps))
  const world = await createChatWorld((request, context) => {
    last = JSON.stringify(request.messages)
    return play(request, context)
  })
  return { ...world, last: () => last }
}

function writeSettings({ env }: ChatWorld, settings: object): void {
  const path = join(env.HOME ?? '', '.config/tidemark/settings.json')
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, JSON.stringify(settings))
}

const planning = (world: ChatWorld, ...args: readonly string[]) =>
  world.run('chat', '-p', 'Do it.', '--permission-mode', 'plan', ...args)

const resume = async (world: ChatWorld, prompt: string, ...args: readonly string[]) =>
  world.run('chat', '--continue', '-p', prompt, ...args)

describe('in plan mode', () => {
  it.each([
    ['a file is not written', WRITE],
    ['a file is not edited', { Edit: { file_path: 'a.txt', old_string: 'a', new_string: 'b' } }],
    ['a command is not run', { Bash: { command: 'touch b.txt' } }],
  ])('%s, whatever the rules of the user allow', async (_, call) => {
    const world = await createWorld({ Read: { file_path: 'a.txt' } }, call, 'Done.')
    world.write('a.txt', 'a')
    writeSettings(world, { permissions: { allow: ['Edit', 'Bash', 'Edit(**)'], ask: ['Write'] } })
    expect(await planning(world, '--allowed-tools', 'Edit', 'Bash')).toMatchObject({ code: 0 })
    expect(world.lastResults()[0]).toContain('a')
    expect(world.lastResults()[1]).toContain('Plan mode is on: nothing is changed or run')
    expect([world.read('a.txt'), world.read('b.txt')]).toEqual(['a', null])
  })

  it('no hook that allows everything lets a call through', async () => {
    const world = await createWorld(WRITE, 'Done.')
    const answer = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow' } }
    const command = `echo '${JSON.stringify(answer)}'`
    writeSettings(world, { hooks: { PreToolUse: [{ hooks: [{ type: 'command', command }] }] } })
    await planning(world)
    expect(world.read('b.txt')).toBeNull()
  })

  it('a tool of an MCP server that may change something is not used; one that only reads needs its permission', async () => {
    const calls = { mcp__test__beta: { text: 'changed' }, mcp__test__alpha: { text: 'looked up' } }
    for (const allow of [['mcp__test'], []]) {
      const world = await createWorld(calls, 'Done.')
      writeSettings(world, { permissions: { allow }, mcpServers: { test: testServer() } })
      await planning(world)
      expect(world.lastResults()).toEqual([
        expect.stringContaining('Plan mode is on'),
        expect.stringMatching(allow.length > 0 ? /^alpha \d+: looked up$/ : /mcp__test__alpha/),
      ])
    }
  })

  it('a slash command runs no shell command', async () => {
    const world = await createWorld('Done.')
    writeSettings(world, { trustedFolders: [world.folder] })
    world.write('.claude/commands/go.md', 'Out: !`touch b.txt`')
    await world.run('chat', '-p', '/go', '--permission-mode', 'plan')
    expect([world.last().includes('[not run: touch b.txt]'), world.read('b.txt')]).toEqual([true, null])
  })

  it('without plan mode, there is no tool for plans', async () => {
    const world = await createWorld('Done.')
    const { lines } = await world.run('chat', '-p', 'Hello.', '--output-format', 'stream-json')
    expect(lines[0].tools).not.toContain('ExitPlanMode')
    expect(world.last()).not.toContain('Plan mode')
  })
})

describe('a plan is approved', () => {
  it('by the user in a terminal, who sees all of it; then the work is done', async () => {
    const world = await createWorld(PLAN, WRITE, 'Done.')
    writeSettings(world, { permissionMode: 'plan' })
    const { questions, out, err } = await world.answer('Do it.', 'y', 'y')
    expect(questions).toEqual(['[y/N, or what to change] ', '[y/N, or why not] '])
    expect(err).toContain('Carry out this plan?\n  # Plan\n  1. Write b.txt\n')
    expect(err).toContain('Create b.txt?\n  1 + new\n')
    expect([out, world.read('b.txt')]).toEqual(['Done.\n', 'new'])
    expect(world.last()).toContain('No longer in force: Plan mode is on.')
  })

  it('not by other words, which the model is told', async () => {
    const world = await createWorld(PLAN, WRITE, 'Done.')
    writeSettings(world, { permissionMode: 'plan' })
    const { questions } = await world.answer('Do it.', 'Use c.txt.')
    expect(questions).toHaveLength(1)
    expect(world.lastResults()[0]).toContain('The user said: Use c.txt.')
    expect([world.lastResults()[1], world.read('b.txt')]).toEqual([
      expect.stringContaining('Plan mode is on'),
      null,
    ])
  })

  it('by another permission mode, if nobody could be asked', async () => {
    const world = await createWorld(PLAN, 'The plan.', WRITE, 'Done.')
    const { err } = await planning(world)
    expect(world.lastResults()[0]).toContain('Give the plan as your answer and end your turn')
    expect(err).toMatch(/The plan waits for your approval\. To approve it: tidemark chat --resume \S+ -p/)
    expect(await resume(world, 'Carry it out.', '--permission-mode', 'accept-edits')).toMatchObject({
      out: 'Done.\n',
    })
    expect(world.read('b.txt')).toBe('new')
    expect(world.last()).toContain('No longer in force: Plan mode is on.')
  })

  it.each([[[]], [['--allowed-tools', 'Edit', 'ExitPlanMode']]])(
    'not by going on with the session in no other mode: %j',
    async (args) => {
      const world = await createWorld(PLAN, 'The plan.', PLAN, WRITE, 'Done.')
      await planning(world, ...args)
      await resume(world, 'Go on.', ...args)
      expect(world.lastResults().at(-1)).toContain('Plan mode is on')
      expect(world.read('b.txt')).toBeNull()
    },
  )

  it('once: going on with the session afterwards is not in plan mode again', async () => {
    const world = await createWorld(PLAN, 'Planned.', WRITE, 'Done.')
    writeSettings(world, { permissionMode: 'plan', permissions: { allow: ['Edit'] } })
    await world.answer('Do it.', 'y')
    await resume(world, 'Now.')
    expect(world.read('b.txt')).toBe('new')
  })
})

it('plan mode and the approved plan are in the context after a compaction', async () => {
  const first: Record<string, object> = { TodoWrite: { todos: [] } }
  const world = await createWorld(first, 'A long answer. '.repeat(3_000))
  const agent = await openAgent({
    folder: world.folder,
    home: world.home,
    sessionId: 'planned',
    model: anthropic('claude-sonnet-5-5', { apiKey: 'any', baseUrl: world.server.url }),
    settings: { permissions: { allow: [], ask: [], deny: [] }, env: {}, notices: [] },
    mode: 'plan',
    env: world.env,
    askPermission: async () => ({ isAllowed: true }),
  })
  onTestFinished(() => agent.close())
  const go = async (prompt: string): Promise<void> => {
    expect(await agent.run(prompt).outcome).toMatchObject({ ok: true })
  }
  await go('Think.')
  await go('Think more.')
  expect(await agent.session.compact()).toMatchObject({ ok: true })
  Object.assign(first, PLAN)
  delete first.TodoWrite
  await go('Go on.')
  expect(world.last().split('Plan mode is on.\\nOnly read and plan').length).toBe(2)
  await go('Go on.')
  expect(world.last()).toContain('The user has approved the plan, and plan mode is off.')
  await go('Go on.')
  Object.assign(first, { TodoWrite: { todos: [] } })
  delete first.ExitPlanMode
  expect(await agent.session.compact()).toMatchObject({ ok: true })
  await go('Go on.')
  expect(world.last()).toContain('The plan of this session.')
  expect(world.last()).toContain('1. Write b.txt')
  expect(world.last()).not.toContain('Only read and plan')
})

/** Hooks as commands through the library: compactions, several hooks at once, and hooks that end a turn. */
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Script } from '@tidemark/simulator'
import { type SessionEvent, type TidemarkOptions, tool } from 'tidemark'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestTidemark, type TestTidemarkOptions } from '../support/test-tidemark.ts'

type Hooks = NonNullable<TidemarkOptions['hookCommands']>['settings']

/** Opens a session whose hooks are read from a settings file. */
async function openHooked(hooks: Hooks, options: TestTidemarkOptions = {}) {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-library-hooks-')))
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true, maxRetries: 10 }))
  const path = join(cwd, 'settings.json')
  writeFileSync(path, JSON.stringify({ hooks }))
  const settings: Hooks = JSON.parse(readFileSync(path, 'utf8')).hooks
  const events: SessionEvent[] = []
  const env = { PATH: process.env.PATH }
  const world = createTestTidemark({
    cwd,
    hookCommands: { settings, env },
    onEvent: (event) => void events.push(event),
    ...options,
  })
  const session = await world.tide.open('hooked')
  const read = (name: string) => JSON.parse(readFileSync(join(cwd, name), 'utf8'))
  return { ...world, session, events, read }
}

const command = (line: string) => [{ hooks: [{ type: 'command' as const, command: line }] }]
const VETO = { PreCompact: command('echo "Not now." >&2; exit 2') }

describe('a veto by a command', () => {
  it('blocks a compaction that the session can do without', async () => {
    const { session, tools } = await openHooked(VETO)
    await session.run('Mend the sums of orders.', tools).outcome
    expect(await session.compact()).toMatchObject({
      ok: false,
      reason: 'blocked',
      message: expect.stringContaining('Not now.'),
    })
  })

  it('cannot stop a compaction at the hard limit: it is overruled, and that is said', async () => {
    const { session, tools, events } = await openHooked(VETO, {
      window: 60_000,
      realWindow: 14_000,
      resultTokens: 3_000,
      turns: 12,
    })
    expect(await session.run('Mend the sums of orders.', tools).outcome).toMatchObject({ ok: true })
    expect(events).toContainEqual(expect.objectContaining({ type: 'veto-overruled', reason: 'Not now.' }))
    expect(events.some(({ type }) => type === 'compact')).toBe(true)
  })

  it('that hangs does not hold up a compaction for longer than its timeout', async () => {
    const hooks = { PreCompact: [{ hooks: [{ command: 'sleep 60', timeout: 0.3 }] }] }
    const { session, tools, events } = await openHooked(hooks)
    await session.run('Mend the sums of orders.', tools).outcome
    expect(await session.compact()).toMatchObject({ ok: true })
    expect(events).toContainEqual(expect.objectContaining({ type: 'hook-failed', hook: 'sleep 60' }))
  })
})

it('the hooks of a compaction get its trigger and summary, and what they print reaches the summary and the model', async () => {
  const { session, tools, read, bodies } = await openHooked({
    PreCompact: command('cat >pre.json; echo "Keep all ticket numbers."'),
    PostCompact: [
      { matcher: 'manual', hooks: [{ command: 'cat >post.json; echo "The index was built anew."' }] },
    ],
    SessionStart: [{ matcher: 'compact', hooks: [{ command: 'echo "The branch is main."' }] }],
  })
  await session.run('Mend the sums of orders.', tools).outcome
  expect(await session.compact({ instructions: 'Keep names.' })).toMatchObject({ ok: true })
  expect(read('pre.json')).toMatchObject({ trigger: 'manual', custom_instructions: 'Keep names.' })
  expect(read('post.json').compact_summary).toContain('Summary:')
  expect(bodies.join()).toContain('Keep all ticket numbers.')
  const sent = JSON.stringify(session.messages())
  expect(sent.match(/The index was built anew\./g)).toHaveLength(1)
  expect(sent.match(/The branch is main\./g)).toHaveLength(1)
})

/** A model that calls `act` twice in one response, and then repeats what it was sent last. */
const script: Script = ({ messages }, { turn }) =>
  turn === 0
    ? { blocks: [1, 2].map((n) => ({ type: 'tool_use', name: 'act', input: { n } })) }
    : { blocks: [{ type: 'text', text: JSON.stringify(messages.at(-1)?.content) }] }

async function runCalls(options: Partial<TidemarkOptions>) {
  const ran: unknown[] = []
  const events: SessionEvent[] = []
  const { tide, simulator } = createTestTidemark({
    script,
    history: false,
    onEvent: (event) => void events.push(event),
    ...options,
  })
  const session = await tide.open('calls')
  const act = tool({
    input: { type: 'object', properties: { n: { type: 'integer' } } },
    run: (input) => `did ${ran.push(input)}`,
  })
  const end = await session.run('Go.', { tools: { act } }).outcome
  return { end, ran, session, simulator, events, act }
}

describe('several hooks of one point', () => {
  it('commands run before functions, and one that denies counts more than one that allows', async () => {
    const order: string[] = []
    const allow = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow' } }
    const { ran, end } = await runCalls({
      hookCommands: {
        settings: {
          PreToolUse: [
            {
              hooks: [{ command: 'echo "No." >&2; exit 2' }, { command: `echo '${JSON.stringify(allow)}'` }],
            },
          ],
        },
      },
      hooks: { preToolUse: [{ name: 'late', run: () => void order.push('late') }] },
    })
    expect([ran, order]).toEqual([[], []])
    expect(end).toMatchObject({ ok: true, text: expect.stringContaining('No.') })
  })

  it('all reasons of parallel hooks are told', async () => {
    const block = (reason: string) => ({ name: reason, isParallel: true, run: () => ({ block: reason }) })
    const { end } = await runCalls({ hooks: { userPromptSubmit: [block('First.'), block('Second.')] } })
    expect(end).toMatchObject({
      reason: 'blocked',
      message: expect.stringMatching(/First\.\nSecond\./),
    })
  })

  it('functions without isParallel run one after the other, and stop at a block', async () => {
    const order: string[] = []
    const block = (name: string) => ({
      name,
      run: async () => {
        order.push(`${name} begins`)
        await new Promise((resolve) => setTimeout(resolve, 5))
        order.push(`${name} ends`)
        return name === 'b' ? { block: 'b' } : {}
      },
    })
    await runCalls({ hooks: { userPromptSubmit: ['a', 'b', 'c'].map(block) } })
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })
})

describe('endTurn', () => {
  it.each(['preToolUse', 'permissionRequest', 'postToolUse'] as const)(
    'from %s ends the turn with its reason; the session is whole and goes on',
    async (point) => {
      const hook = { name: 'end', run: () => ({ endTurn: 'Enough.' }) }
      const { end, ran, session, simulator, act } = await runCalls({
        hooks: { [point]: [hook] },
        canUseTool: () => ({ decision: point === 'permissionRequest' ? 'ask' : 'allow' }),
      })
      expect(end).toMatchObject({ ok: false, reason: 'blocked', message: 'A hook ended the turn: Enough.' })
      expect(ran.length).toBeLessThanOrEqual(point === 'postToolUse' ? 2 : 0)
      expect(simulator.requests).toHaveLength(1)
      expect(await session.run('Go on.', { tools: { act } }).outcome).toMatchObject({ ok: true })
      expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
    },
  )

  it('from stop overrules a hook that wants the turn to go on', async () => {
    const { end, simulator } = await runCalls({
      hooks: {
        stop: [
          { name: 'more', isParallel: true, run: () => ({ block: 'More.' }) },
          { name: 'end', isParallel: true, run: () => ({ endTurn: 'Enough.' }) },
        ],
      },
    })
    expect(end).toMatchObject({ ok: true })
    expect(simulator.requests).toHaveLength(2)
  })
})

it('a reason or message of a hook is cut to the limit of hook output', async () => {
  const long = 'x'.repeat(50_000)
  const { end, events } = await runCalls({
    hooks: { postToolUse: [{ name: 'long', run: () => ({ block: long, userDisplayMessage: long }) }] },
  })
  expect(end.ok && end.text.length).toBeLessThan(21_000)
  const said = events.find((event) => event.type === 'hook-said')
  expect(said?.type === 'hook-said' && said.message.length).toBe(10_001)
})

describe('points that only the host reaches', () => {
  it('run their hooks with session.runHooks, and what they answer is returned', async () => {
    const { session, events, read } = await openHooked({
      InstructionsLoaded: [{ matcher: 'compact', hooks: [{ command: 'cat >loaded.json' }] }],
      SubagentStart: command(
        `echo '{"hookSpecificOutput":{"additionalContext":"Be brief."},"systemMessage":"It begins."}'`,
      ),
      SubagentStop: command('echo "Tests are missing." >&2; exit 2'),
    })
    const file = { filePath: '/p/CLAUDE.md', memoryType: 'Project' } as const
    await session.runHooks('instructionsLoaded', { ...file, loadReason: 'compact' })
    expect(read('loaded.json')).toMatchObject({ session_id: 'hooked', file_path: '/p/CLAUDE.md' })
    const agent = { agentId: 'a1', agentType: 'review' }
    expect(await session.runHooks('subagentStart', agent)).toEqual([
      { additionalContext: 'Be brief.', userDisplayMessage: 'It begins.' },
    ])
    expect(events).toContainEqual(expect.objectContaining({ type: 'hook-said', message: 'It begins.' }))
    expect(await session.runHooks('subagentStop', { ...agent, isContinued: false })).toEqual([
      { block: 'Tests are missing.' },
    ])
  })

  it('close ends a hook that is still running', async () => {
    const { session, events } = await openHooked({ SubagentStart: command('sleep 60') })
    const running = session.runHooks('subagentStart', { agentId: 'a1', agentType: 'review' })
    await session.close()
    expect(await running).toEqual([])
    expect(events).toContainEqual(expect.objectContaining({ type: 'hook-failed', hook: 'sleep 60' }))
  })
})

it.each<[unknown, RegExp]>([
  [{}, /hookCommands is .*; expected an object with settings/],
  [{ settings: { Stopp: [] } }, /hookCommands\.settings: there is no event Stopp; the events are/],
  [{ settings: {}, envs: {} }, /unknown option envs.*Did you mean env/],
])('a wrong option is named: %j', (hookCommands, message) => {
  expect(() => createTestTidemark({ hookCommands: hookCommands as never })).toThrow(message)
})

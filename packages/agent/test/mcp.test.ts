/** MCP servers in the agent: real servers, over standard streams and HTTP, that die, hang, flap and reorder their tools. */
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { McpServerSettings } from '../src/mcp/server-settings.ts'
import { playSteps } from './chat-world.ts'
import {
  countBreaks,
  createHttpServer,
  createMcpWorld,
  listServerTools,
  type McpWorld,
  REFERENCE,
  testServer,
} from './mcp-world.ts'

const ECHO = { mcp__everything__echo: { message: 'hello' } }
const ALPHA = { mcp__test__alpha: { text: 'a' } }
const LONG = { mcp__test__alpha: { text: 'word ', count: 4_000 } }

/** How often the server with a marker has listed its tools. */
function countLists(world: McpWorld): number {
  return (world.read('marker') ?? '').split('listed').length - 1
}

/** A server that has one tool more each time that it is asked, and says so when `announceTools` is called. */
function growingServer(world: McpWorld, ...args: readonly string[]): McpServerSettings {
  const files = [`marker=${world.path('marker')}`, `announce=${world.path('announce')}`]
  return testServer('grow', ...files, ...args)
}

/** Waits until the server was asked for its tools again. Its answer is there before that to the next call. */
async function announceTools(world: McpWorld): Promise<void> {
  const before = countLists(world)
  appendFileSync(world.path('announce'), 'changed\n')
  await expect.poll(() => countLists(world)).toBeGreaterThan(before)
}

describe('the reference server', () => {
  it('its tools, resources and pictures reach the model over standard streams', async () => {
    const world = await createMcpWorld(
      playSteps(
        ECHO,
        { 'mcp__everything__get-tiny-image': {} },
        { mcp__everything__list_resources: {} },
        { mcp__everything__read_resource: { uri: 'demo://resource/dynamic/text/1' } },
        'Done.',
      ),
    )
    const results = await (await world.open({ everything: REFERENCE })).ask()
    expect(results[0]).toBe('Echo: hello')
    expect(results[1]).toContain('"media_type":"image/png"')
    expect(results[2]).toMatch(/demo:\/\/resource\//)
    expect(results[3]).toContain('demo://resource/dynamic/text/1')
    const names = [...(world.tools[0] ?? '').matchAll(/"name":"(mcp__[\w-]+)"/g)].map(([, name]) => name)
    expect(names).toContain('mcp__everything__get-sum')
    expect(names).toEqual(names.toSorted())
  })

  it('over HTTP it is killed and started again in mid-session, and the cache is not broken', async () => {
    const server = createHttpServer()
    await server.start()
    const world = await createMcpWorld(playSteps(ECHO, 'One.', ECHO, 'Two.', ECHO, 'Three.'))
    const mcp = await world.open({ everything: server.settings })
    expect(await mcp.ask()).toEqual(['Echo: hello'])
    await server.kill()
    expect((await mcp.ask()).at(-1)).toMatch(/^MCP server everything: .*The call was not made\.$/s)
    await server.start()
    expect((await mcp.ask()).at(-1)).toBe('Echo: hello')
    expect(new Set(world.tools).size).toBe(1)
    expect(countBreaks(mcp)).toBe(0)
  })
})

describe('a server that misbehaves', () => {
  it('one that dies during a call is told once and started again by the next call', async () => {
    const crash = { mcp__test__crash: {} }
    const world = await createMcpWorld(playSteps(ALPHA, crash, ALPHA, crash, ALPHA, 'Done.'))
    const mcp = await world.open({ test: testServer() })
    const results = await mcp.ask()
    const pids = results.map((text) => /alpha (\d+)/.exec(text)?.[1])
    expect(results[1]).toContain('The call may have been carried out.')
    expect(new Set([pids[0], pids[2], pids[4]]).size).toBe(3)
    expect(mcp.notices).toEqual([expect.stringContaining('The MCP server test had ended')])
    expect(new Set(world.tools).size).toBe(1)
    expect(countBreaks(mcp)).toBe(0)
  })

  it('one that lists its tools in another order each time changes no byte of the requests', async () => {
    const world = await createMcpWorld(
      playSteps(ALPHA, ALPHA, 'One.', ALPHA, { mcp__test__crash: {} }, ALPHA, 'Two.'),
    )
    const mcp = await world.open({ test: testServer('shuffle', `marker=${world.path('marker')}`) })
    await mcp.ask()
    await expect.poll(() => countLists(world)).toBeGreaterThan(1)
    await mcp.ask()
    expect(listServerTools(world.tools[0])).toEqual([
      'test__alpha',
      'test__beta',
      'test__crash',
      'test__gamma',
    ])
    expect(new Set(world.tools).size).toBe(1)
    expect(mcp.events.filter(({ type }) => type === 'prefix-changed')).toEqual([])
  })

  it('one whose tools no provider accepts any more after a change is reported', async () => {
    const world = await createMcpWorld(playSteps(ALPHA, 'One.', 'Two.'))
    const mcp = await world.open({ test: testServer('spoil') })
    await mcp.ask()
    await expect
      .poll(() => mcp.notices)
      .toEqual(['MCP server test: The tool beta is left out: no provider accepts the field a b.'])
  })

  it('one with a new tool on each list breaks the cache once; what comes later waits for a compaction', async () => {
    const world = await createMcpWorld(playSteps(...Array.from({ length: 6 }, () => [LONG, 'Next.']).flat()))
    const mcp = await world.open({ test: growingServer(world) })
    await mcp.ask()
    for (let turn = 0; turn < 3; turn += 1) {
      await announceTools(world)
      await mcp.ask()
    }
    expect(countBreaks(mcp)).toBe(1)
    const listBreaks = () =>
      mcp.events.flatMap((event) => (event.type === 'cache-break' ? [event.event] : []))
    expect(listBreaks()).toEqual([
      expect.objectContaining({
        ours: expect.objectContaining({ act: expect.stringMatching(/^defined tool mcp__test__grown_/) }),
        moneyLost: expect.any(Number),
      }),
    ])
    expect(mcp.notices).toEqual([expect.stringContaining('They are offered after the next compaction')])
    const before = listServerTools(world.tools.at(-1)).length
    expect(await mcp.agent.session.compact()).toMatchObject({ ok: true })
    await mcp.ask()
    expect(listServerTools(world.tools.at(-1)).length).toBeGreaterThan(before)
    // A compaction leaves nothing to read behind the prefix, so no further loss is reported.
    expect(listBreaks()).toHaveLength(1)
  })

  it('one whose answers overtake each other offers the tools of the newest', async () => {
    const world = await createMcpWorld(playSteps(LONG, 'One.', LONG, 'Two.', ALPHA, 'Three.'))
    const mcp = await world.open({ test: growingServer(world, 'late') })
    await mcp.ask()
    await announceTools(world)
    await announceTools(world)
    await mcp.ask()
    expect(await mcp.agent.session.compact()).toMatchObject({ ok: true })
    await mcp.ask()
    expect(listServerTools(world.tools.at(-1))).toContain('test__grown_2')
  })

  it('one that gets a new tool while it is first asked for its tools offers it', async () => {
    const world = await createMcpWorld(playSteps(ALPHA, 'One.', ALPHA, 'Two.'))
    const mcp = await world.open({ test: growingServer(world, 'early') })
    await expect.poll(() => countLists(world)).toBe(2)
    await mcp.ask()
    await mcp.ask()
    expect(listServerTools(world.tools.at(-1))).toContain('test__grown_1')
  })

  it('one that hangs holds nothing up, and one that is slow comes later, at one declared price', async () => {
    const openGate = { Bash: { command: 'touch gate' } }
    const both = { mcp__quick__delta: { text: 'd' }, ...ALPHA }
    const world = await createMcpWorld(playSteps('One.', openGate, both, 'Two.', 'Three.'))
    const slow = testServer(`gate=${world.path('gate')}`)
    const servers = { test: slow, quick: testServer('named=delta') }
    const mcp = await world.open(servers, { firstServerWait: 500 })
    await mcp.ask()
    expect(listServerTools(world.tools[0])).not.toContain('test__alpha')
    expect((await mcp.ask()).at(-1)).toMatch(/^alpha \d+: a$/)
    await mcp.ask()
    expect(countBreaks(mcp)).toBe(1)
    expect(world.systems.at(-1)).toMatch(/Use delta first\..*Use alpha first\./)
    expect(world.systems[0]).not.toContain('Use alpha first.')
  })

  it('a call of a tool whose server is still starting waits for it', async () => {
    const openGate = { Bash: { command: '(sleep 0.5; touch gate) &' } }
    const world = await createMcpWorld(playSteps(openGate, ALPHA, { mcp__test__omega: {} }, 'Done.'))
    const mcp = await world.open(
      { test: testServer(`gate=${world.path('gate')}`) },
      { firstServerWait: 0, model: 'claude-sonnet-5-5' },
    )
    const results = await mcp.ask()
    expect(listServerTools(world.tools[1])).toEqual([])
    expect(results.slice(1)).toEqual([
      expect.stringMatching(/^alpha \d+: a$/),
      'There is no tool mcp__test__omega.',
    ])
  })

  it('plan mode asks about a tool that only reads, though its server is still starting', async () => {
    const play = playSteps(ALPHA, 'Done.')
    const world = await createMcpWorld((request, context) => {
      writeFileSync(world.path('gate'), '')
      return play(request, context)
    })
    const mcp = await world.open(
      { test: testServer(`gate=${world.path('gate')}`) },
      { firstServerWait: 0, model: 'claude-sonnet-5-5' },
    )
    await mcp.agent.switchMode('plan')
    expect(await mcp.ask()).toEqual([expect.stringMatching(/^(?!Plan mode is on).*mcp__test__alpha/s)])
    expect(listServerTools(world.tools[0])).toEqual([])
  })

  it('a call of a tool whose server cannot be started was not made, and the model learns why', async () => {
    const world = await createMcpWorld(playSteps(ALPHA, 'Done.'))
    const mcp = await world.open({ test: { command: 'no-such-program-here' } })
    expect(await mcp.ask()).toEqual([
      expect.stringMatching(/^MCP server test: It does not run: .*ENOENT.* The call was not made\.$/s),
    ])
  })

  it('one that cannot be started is told, and the session goes on', async () => {
    const world = await createMcpWorld(playSteps('Done.'))
    const servers = {
      none: { command: 'no-such-program-here' },
      gone: { command: process.execPath, args: ['/no/such/server.js'] },
      unset: { url: ['http://127.0.0.1:1/$', '{NOT_SET}'].join('') },
      hang: testServer('hang'),
    }
    const mcp = await world.open(servers, { firstServerWait: 500 })
    await mcp.ask()
    await expect.poll(() => mcp.notices).toHaveLength(3)
    const [gone, ...others] = mcp.notices.toSorted((a) => (a.includes('gone') ? -1 : 1))
    expect(gone).toMatch(
      /gone could not be started: .* It printed: Error: Cannot find module '.*server\.js'$/,
    )
    expect(others).toEqual([
      expect.stringMatching(/unset could not be started: The environment variable NOT_SET is not set/),
      expect.stringMatching(/none could not be started: .*ENOENT/),
    ])
  })
})

it('a resumed session declares the same tools, even if the server is gone', async () => {
  const world = await createMcpWorld(playSteps(ALPHA, 'One.', ALPHA, 'Two.'))
  const first = await world.open({ test: testServer() })
  await first.ask()
  await first.agent.close()
  const second = await world.open({ test: { command: 'no-such-program-here' } })
  expect((await second.ask()).at(-1)).toMatch(/It does not run: .*The call was not made\./s)
  expect(new Set(world.tools).size).toBe(1)
  expect(second.events.filter(({ type }) => type === 'prefix-changed')).toEqual([])
})

it('where the provider adds tools in mid-conversation, late tools break nothing', async () => {
  const openGate = { Bash: { command: 'touch gate' } }
  const world = await createMcpWorld(playSteps('One.', openGate, ALPHA, 'Two.'))
  const slow = testServer(`gate=${world.path('gate')}`)
  const mcp = await world.open({ test: slow }, { model: 'claude-sonnet-5-5', firstServerWait: 100 })
  await mcp.ask()
  expect((await mcp.ask()).at(-1)).toMatch(/^alpha \d+: a$/)
  expect(countBreaks(mcp)).toBe(0)
  expect(world.messages()).toContain('tool_addition')
  expect(world.messages().split('Use alpha first.')).toHaveLength(2)
  expect(new Set(world.systems).size).toBe(1)
})

it('calls of tools that only read run at the same time, others one after the other', async () => {
  const both = (name: string) => ({ [`mcp__test__${name}`]: { text: 'a' }, mcp__other__alpha: { text: 'a' } })
  const world = await createMcpWorld(playSteps(both('alpha'), both('beta'), 'Done.'))
  const mcp = await world.open({ test: testServer(), other: testServer() })
  await mcp.ask()
  const order = mcp.events.flatMap(({ type }) =>
    type === 'tool-started' || type === 'tool-ended' ? [type] : [],
  )
  const [started, ended] = ['tool-started', 'tool-ended']
  expect(order).toEqual([started, started, ended, ended, started, ended, started, ended])
})

it('a call that takes too long fails, and the server stays usable', async () => {
  const world = await createMcpWorld(
    playSteps({ mcp__test__wait: {} }, { mcp__test__alpha: { text: 'a' } }, 'Done.'),
  )
  const mcp = await world.open({ test: { ...testServer('named=alpha,wait'), timeout: 2_000 } })
  const results = await mcp.ask()
  expect(results[0]).toBe('MCP server test: It did not answer in time. The call may have been carried out.')
  expect(results[1]).toMatch(/^alpha /)
})

it('over HTTP, a server that is killed during a call ends the call', async () => {
  const server = createHttpServer()
  await server.start()
  const slow = { 'mcp__everything__trigger-long-running-operation': { duration: 60, steps: 60 } }
  const world = await createMcpWorld(playSteps(slow, 'Done.'))
  const mcp = await world.open({ everything: server.settings })
  const asked = mcp.ask()
  await expect.poll(() => mcp.events.map(({ type }) => type)).toContain('tool-progress')
  await server.kill()
  expect((await asked)[0]).toContain('The call may have been carried out.')
})

it('a large result is stored, and the model can read the rest', async () => {
  const world = await createMcpWorld(
    playSteps({ mcp__test__alpha: { text: 'word ', count: 100_000 } }, 'Done.'),
  )
  const results = await (await world.open({ test: testServer() })).ask()
  expect(results[0]?.length).toBeLessThan(50_000)
  expect(results[0]).toContain('history')
})

describe('a project with .mcp.json', () => {
  const script = playSteps(ALPHA, 'Done.')

  it('starts nothing before trust, and its server after it; a changed script is not started', async () => {
    const world = await createMcpWorld(script)
    const marker = join(world.home, '..', 'started.txt')
    const real = testServer().args?.[0]
    world.write('server.mjs', `await import(${JSON.stringify(`file://${real}`)})`)
    const test = { command: process.execPath, args: ['server.mjs', `marker=${marker}`] }
    world.write('.mcp.json', JSON.stringify({ mcpServers: { test, old: { type: 'sse', url: 'http://x' } } }))
    const run = () => world.run('chat', '-p', 'Go.', '--allowed-tools', 'mcp__test__*')
    const untrusted = await run()
    expect(untrusted.err).toContain('want to set mcpServers, which is not applied')
    expect(untrusted.err).toContain('the server old: expected type stdio or http')
    expect(existsSync(marker)).toBe(false)
    expect((await world.run('trust', world.folder, '--yes')).out).toMatch(/mcpServers: test: .*server\.mjs/)
    expect(await run()).toMatchObject({ code: 0, err: expect.not.stringContaining('mcpServers') })
    expect(world.lastResults().at(-1)).toMatch(/^alpha /)
    expect(readFileSync(marker, 'utf8')).toBe('started\nlisted\n')
    world.write('server.mjs', 'process.exit(0)')
    expect((await run()).err).toContain('want to set mcpServers')
  })

  it('rules by server allow, and without one the call is refused', async () => {
    const world = await createMcpWorld(script)
    world.write('.mcp.json', JSON.stringify({ mcpServers: { test: testServer() } }))
    await world.run('trust', world.folder, '--yes')
    const ask = async (...rules: readonly string[]) => {
      await world.run('chat', '-p', 'Go.', ...rules.flatMap((rule) => ['--allowed-tools', rule]))
      return world.lastResults().at(-1)
    }
    expect(await ask()).toContain('It calls an MCP server.')
    expect(await ask('mcp__tes__*')).toContain('It calls an MCP server.')
    expect(await ask('mcp__test')).toMatch(/^alpha /)
    expect(await ask('mcp__test__alpha')).toMatch(/^alpha /)
  })
})

it('no command loads the SDK before a server is started', () => {
  const folder = new URL('../src/', import.meta.url).pathname
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(?<!test)\.ts$/.test(name),
  )
  const loading = files.filter((name) =>
    /^import (?!type).*(?:modelcontextprotocol|server-connection)|^\} from '@modelcontext/m.test(
      readFileSync(join(folder, name), 'utf8'),
    ),
  )
  expect(loading).toEqual([join('mcp', 'server-connection.ts')])
})

/** The agent of `tidemark chat`: which tools it offers, and what its tools remember, against the simulator. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { echo } from '@tidemark/simulator'
import { anthropic } from 'tidemark'
import { expect, it, onTestFinished } from 'vitest'
import { openAgent } from '../src/agent/agent.ts'
import { AGENT_TOOL_NAMES } from '../src/tools/tool-access.ts'
import { createChatWorld, playSteps } from './chat-world.ts'

const READ = { Read: { file_path: 'a.txt' } }

it('a file that a stopped turn has read is shown again, because its text may not have reached the model', async () => {
  const world = await createChatWorld(playSteps({ ...READ, Bash: { command: 'sleep 30' } }, READ, 'Done.'))
  world.write('a.txt', 'the text of the file')
  const started = Promise.withResolvers<void>()
  const agent = await openAgent({
    folder: world.folder,
    home: world.home,
    sessionId: 'stopped',
    model: anthropic('claude-sonnet-5-5', { apiKey: 'any', baseUrl: world.server.url }),
    settings: { permissions: { allow: [], ask: [], deny: [] }, env: {}, notices: [] },
    mode: 'allow-all',
    env: world.env,
    onEvent: (event) => {
      if (event.type === 'tool-started' && event.call.name === 'Bash') started.resolve()
    },
  })
  onTestFinished(() => agent.close())
  const stop = new AbortController()
  const run = agent.run('Look.', { signal: stop.signal })
  await started.promise
  stop.abort()
  expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
  expect(await agent.run('Look again.').outcome).toMatchObject({ ok: true, text: 'Done.' })
  expect(world.lastResults().at(-1)).toContain('the text of the file')
})

it('AskUser is offered only if somebody can answer', async () => {
  const systems: string[] = []
  const world = await createChatWorld(({ system }) => {
    systems.push(JSON.stringify(system))
    return { blocks: [{ type: 'text', text: 'Done.' }] }
  })
  const options = {
    folder: world.folder,
    home: world.home,
    model: anthropic('claude-sonnet-5-5', { apiKey: 'any', baseUrl: world.server.url }),
    settings: { permissions: { allow: [], ask: [], deny: [] }, env: {}, notices: [] },
    env: world.env,
  }
  for (const asked of [{}, { askUser: async () => [] }]) {
    const agent = await openAgent({ ...options, ...asked, sessionId: `asked-${systems.length}` })
    await agent.run('Hello.').outcome
    const isOffered = 'askUser' in asked
    expect(agent.toolNames.includes('AskUser')).toBe(isOffered)
    expect(systems.at(-1)?.includes('AskUser')).toBe(isOffered)
    await agent.close()
  }
})

it('a policy of the user about spilled results keeps Read exempt', async () => {
  const world = await createChatWorld(playSteps(READ, 'Done.'))
  world.write('a.txt', `${'word '.repeat(100)}\n`.repeat(140))
  mkdirSync(join(world.env.HOME ?? '', '.config', 'tidemark'), { recursive: true })
  writeFileSync(
    join(world.env.HOME ?? '', '.config', 'tidemark', 'settings.json'),
    JSON.stringify({ policy: { spill: { exceptTools: ['Grep'] } } }),
  )
  expect(await world.run('chat', '-p', 'Look.')).toMatchObject({ code: 0, out: 'Done.\n' })
  expect(world.lastResults().join('').split('word').length).toBe(14_001)
})

it('rules may name exactly the tools that the agent has', async () => {
  const world = await createChatWorld(echo)
  world.write('.claude/skills/one/SKILL.md', 'Text.')
  const agent = await openAgent({
    folder: world.folder,
    home: world.home,
    mode: 'plan',
    sessionId: 'names',
    model: anthropic('claude-sonnet-5-5', { apiKey: 'any', baseUrl: world.server.url }),
    settings: { permissions: { allow: [], ask: [], deny: [] }, env: {}, notices: [] },
    env: world.env,
    askUser: async () => [],
  })
  onTestFinished(() => agent.close())
  expect([...agent.toolNames].sort()).toEqual([...AGENT_TOOL_NAMES].sort())
})

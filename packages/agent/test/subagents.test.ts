/** Subagents of the agent: what they do, what the starting conversation sees of them, and what they may do. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createSubagentWorld, listAgentLogs, readLastResults, task } from './subagent-world.ts'

const NO_RULES = { allow: [], ask: [], deny: [] }
const SETTINGS = { permissions: NO_RULES, env: {}, notices: [] }

describe('a subagent', () => {
  it('works in its own context, and the conversation that started it sees only its answer', async () => {
    const world = await createSubagentWorld(({ name, count }) => {
      if (name === 'main')
        return count === 0
          ? { Task: task('general-purpose', 'a') }
          : count === 1
            ? { Read: { file_path: 'a.txt' } }
            : 'Done.'
      return count === 0 ? { Read: { file_path: 'a.txt' } } : 'The file says 42.'
    })
    world.write('a.txt', 'SECRET 42')
    const main = await world.open()
    expect(await main.ask()).toBe('Done.')
    const [, second, third] = world.requests.main ?? []
    expect(readLastResults(second)[0]).toMatch(
      /^The file says 42\.\n\n\[agent-\w+ \(general-purpose\): 2 calls to the model, \$0\.\d+\./,
    )
    expect(JSON.stringify(second)).not.toContain('SECRET')
    // The main conversation has not read the file, although its subagent has.
    expect(readLastResults(third)[0]).toContain('SECRET 42')
    const [first] = world.requests['general-purpose a'] ?? []
    expect(JSON.stringify(first?.messages)).not.toContain('Go on.')
    expect(main.find('general-purpose')).toMatchObject({ status: 'finished', calls: 2, isDelivered: true })
    expect(main.find('general-purpose')?.filesRead).toEqual([expect.stringContaining('a.txt')])
  })

  it('has its log under that of the session, and inspect shows its cost there', async () => {
    const world = await createSubagentWorld(({ name, count }) =>
      name === 'main' && count === 0 ? { Read: { file_path: 'a.txt' }, Task: task('explore', 'a') } : 'Done.',
    )
    world.write('a.txt', 'a')
    const { code, lines } = await world.run('chat', '-p', 'Go.', '--output-format', 'stream-json')
    expect(code).toBe(0)
    const id = String(lines.at(-1)?.session_id)
    const result = lines.at(-1)
    expect(result.subagents).toEqual([
      expect.objectContaining({ agent_type: 'explore', status: 'finished', num_turns: 1 }),
    ])
    expect(result.subagents_cost_usd).toBeGreaterThan(0)
    expect(result.total_cost_usd).toBeGreaterThan(result.subagents_cost_usd)
    expect(lines.flatMap(({ subtype }) => (/^subagent/.test(subtype) ? subtype : []))).toEqual([
      'subagent_started',
      'subagent_ended',
    ])
    expect(listAgentLogs(world, id)).toEqual([`${result.subagents[0].agent_id}.jsonl`])
    const page = await world.run('inspect', join(world.home, 'sessions', `${id}.jsonl`))
    expect(page.out).toMatch(/Subagents\s+1, with 1 call/)
    expect(page.out).toContain(`${result.subagents[0].agent_id} (explore) `)
    expect(await world.run('inspect', join(world.home, 'sessions'))).toMatchObject({ code: 0, err: '' })
    const { out } = await world.run('sessions')
    expect(out).not.toContain(result.subagents[0].agent_id)
  })

  it('has no tool for questions and plans, and none that its definition does not name', async () => {
    const world = await createSubagentWorld(({ name, count }) =>
      name === 'main' && count === 0 ? { Task: [task('explore', 'a'), task('narrow', 'b')] } : 'Done.',
    )
    world.writeHome(
      '.claude/agents/narrow.md',
      '---\ntools: Read, Bash, Task, AskUser\ndisallowedTools: [NotebookEdit,\n  Bash(rm:*)]\n---\nBe terse.',
    )
    const main = await world.open({
      askUser: async () => [],
      toolNames: ['Read', 'Grep', 'Bash', 'Task', 'AskUser'],
    })
    await main.ask()
    const names = (key: string) => world.requests[key]?.[0]?.tools.map(({ name }) => name).sort()
    expect(names('main')).toEqual(['AskUser', 'Bash', 'Grep', 'Read', 'Task', 'history'])
    expect(names('explore a')).toEqual(['Grep', 'Read', 'history'])
    expect(names('narrow b')).toEqual(['Read', 'Task', 'history'])
    expect(JSON.stringify(world.requests['narrow b']?.[0]?.system)).toContain('Be terse.')
  })

  it('can be asked again, and remembers', async () => {
    let id = ''
    const world = await createSubagentWorld(({ name, count, text }) => {
      if (name !== 'main') return count === 0 ? 'First.' : 'Second.'
      if (count === 0) return { Task: task('explore', 'a') }
      id = /agent-\w+/.exec(text)?.[0] ?? ''
      return count === 1 ? { Task: task('general-purpose', 'a', { resume: id }) } : 'Done.'
    })
    const main = await world.open()
    await main.ask()
    const [, again] = world.requests['explore a'] ?? []
    expect(again?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(main.agent.subagents()).toMatchObject([{ id, type: 'explore', calls: 2, text: 'Second.' }])
  })

  it('is resumed by one of two calls', async () => {
    const world = await createSubagentWorld(({ name, count, text }) => {
      if (name !== 'main') return 'Ended.'
      if (count === 0) return { Task: task('explore', 'a') }
      const resume = /agent-\w+/.exec(text)?.[0]
      return count === 1 ? { Task: [1, 2].map(() => task('explore', 'a', { resume })) } : 'Done.'
    })
    const main = await world.open()
    await main.ask()
    const results = readLastResults(world.requests.main?.[2])
    expect(results.filter((text) => /^The agent agent-\w+ is still working\.$/.test(text))).toHaveLength(1)
    expect(world.requests['explore a']).toHaveLength(2)
  })
})

describe('the definition of a project', () => {
  const DEFINITION = '---\ndescription: Reviews.\nmodel: opus\n---\nReview it.'

  it('is told in one line if it names what does not exist, or its front matter has no end', async () => {
    const world = await createSubagentWorld(() => 'Done.')
    const [wrong, open] = [world.path('.claude/agents/wrong.md'), world.path('.claude/agents/open.md')]
    world.write('.claude/agents/wrong.md', '---\ntools: Read, Fly, mcp__a__b\nmodel: nosuch\n---\nDo it.')
    world.write('.claude/agents/open.md', '---\ntools: Read\nDo it.')
    world.write('.claude/commands/go.md', '---\ndescription: Goes.\nGo.')
    const notice = `The agent wrong (${wrong}): there is no tool Fly; the model nosuch is not in the catalogue.`
    const why = 'its front matter has no end (a line with ---).'
    const trusted = await world.run('trust', '--yes', world.folder)
    expect(trusted.out).not.toContain('agents: open:')
    const command = world.path('.claude/commands/go.md')
    expect(trusted.err.trimEnd().split('\n')).toEqual([
      `tidemark: ${command} is not used: ${why}`,
      `tidemark: ${open} is not used: ${why}`,
      `tidemark: ${notice}`,
    ])
    expect((await world.run('chat', '-p', 'Go.')).err.trimEnd().split('\n')).toEqual([
      `tidemark: The skill or command ${command} was not read: ${why}`,
      `tidemark: The definition of an agent ${open} was not read: ${why}`,
      `tidemark: ${notice}`,
    ])
  })

  it('counts only after trust, and no longer when it has changed', async () => {
    const world = await createSubagentWorld(({ name, count }) =>
      name === 'main' && count % 2 === 0 ? { Task: task('review', 'a') } : 'Done.',
    )
    world.write('.claude/agents/review.md', DEFINITION)
    const refused = await world.run('chat', '-p', 'Go.')
    expect(refused.err).toContain('want to set agents, which is not applied: you have not trusted it')
    expect(world.lastResults()[0]).toContain(
      'There is no agent of the type review. The types: general-purpose, explore',
    )
    const { out } = await world.run('trust', '--yes', world.folder)
    expect(out).toContain('agents: review: all tools, model opus, as in .claude/agents/review.md, sha256')
    await world.run('chat', '-p', 'Go.')
    expect(world.requests['review a']?.map(({ model }) => model)).toEqual([expect.stringContaining('opus')])
    world.write('.claude/agents/review.md', `${DEFINITION} Then publish it.`)
    await world.run('chat', '-p', 'Go.')
    expect(world.requests['review a']).toHaveLength(1)
  })

  it('is not read through a link out of the project, and the model may not write one unasked', async () => {
    const world = await createSubagentWorld(({ name, count }) =>
      name === 'main' && count === 0
        ? { Write: { file_path: '.claude/agents/x.md', content: 'x' } }
        : 'Done.',
    )
    world.writeHome('elsewhere/linked.md', DEFINITION)
    mkdirSync(world.path('.claude/agents'), { recursive: true })
    symlinkSync(join(world.env.HOME ?? '', 'elsewhere/linked.md'), world.path('.claude/agents/linked.md'))
    const main = await world.open({
      mode: 'accept-edits',
      settings: { ...SETTINGS, isItemTrusted: () => true },
    })
    await main.ask()
    expect(main.notices).toEqual([expect.stringMatching(/linked\.md: it is outside what may be read/)])
    expect(main.agent.denials).toMatchObject([{ tool: 'Write' }])
  })
})

describe('what a subagent may do', () => {
  const WRITE = { Write: { file_path: 'b.txt', content: 'x' } }

  it('is told that there is no tool which its type does not have, and that is no denial', async () => {
    const world = await createSubagentWorld(({ name, count }) => {
      if (name === 'main') return count === 0 ? { Task: task('explore', 'a') } : 'Done.'
      return count === 0 ? WRITE : 'Tried.'
    })
    const main = await world.open({ mode: 'default' })
    await main.ask()
    expect(readLastResults(world.requests['explore a']?.[1])).toEqual(['There is no tool Write.'])
    expect(main.agent.denials).toEqual([])
  })

  it.each([
    ['a rule that denies', { settings: { ...SETTINGS, permissions: { ...NO_RULES, deny: ['Edit'] } } }],
    ['plan mode', { mode: 'plan' as const }],
    ['the mode that asks, if nobody answers', { mode: 'default' as const }],
  ])('is limited by %s', async (_, options) => {
    const world = await createSubagentWorld(({ name, count }) => {
      if (name === 'main') return count === 0 ? { Task: task('general-purpose', 'a') } : 'Done.'
      return count === 0 ? WRITE : 'Tried.'
    })
    const main = await world.open(options)
    await main.ask()
    expect(readLastResults(world.requests['general-purpose a']?.[1])[0]).toMatch(/forbids|Plan mode|Nobody/)
    expect([world.read('b.txt'), main.agent.denials.length]).toEqual([null, 1])
  })

  it('is limited to reading if it was started in plan mode, also after the plan was approved', async () => {
    let id = ''
    const world = await createSubagentWorld(({ name, count, text }) => {
      if (name !== 'main') return count % 2 === 0 ? WRITE : 'Tried.'
      if (count === 0) return { Task: task('general-purpose', 'a') }
      id = /agent-\w+/.exec(text)?.[0] ?? ''
      if (count === 1) return { ExitPlanMode: { plan: 'Write b.txt' } }
      return count === 2 ? { Task: task('general-purpose', 'a', { resume: id }) } : 'Done.'
    })
    const main = await world.open({ mode: 'plan', askPermission: async () => ({ isAllowed: true }) })
    await main.ask()
    expect(world.requests['general-purpose a']).toHaveLength(4)
    expect(world.read('b.txt')).toBeNull()
  })

  it('depends on the rules for its type, also if the call does not name it or resumes it under another name', async () => {
    let id = ''
    const world = await createSubagentWorld(({ name, count, text }) => {
      if (name !== 'main') return 'Tried.'
      if (count === 0) return { Task: [task('explore', 'a'), { description: 'b', prompt: 'PART b.' }] }
      id = /agent-[0-9a-f]{6}/.exec(text)?.[0] ?? id
      return count === 2 ? { Task: task('plan', 'a', { resume: id }) } : 'Done.'
    })
    const open = (deny: readonly string[]) =>
      world.open({ settings: { ...SETTINGS, permissions: { ...NO_RULES, deny } } })
    const first = await open(['Task(general-purpose)'])
    await first.ask()
    expect(readLastResults(world.requests.main?.[1]).join()).toContain(
      'The rule Task(general-purpose) forbids it',
    )
    await first.agent.close()
    await (await open(['Task(explore)'])).ask()
    expect(readLastResults(world.requests.main?.[3])[0]).toContain(
      'not resumed: The rule Task(explore) forbids it',
    )
    expect(world.requests['explore a']).toHaveLength(1)
  })

  it('is asked about in its name, one question at a time', async () => {
    const allBegun = Promise.withResolvers<void>()
    let begun = 0
    const world = await createSubagentWorld(async ({ name, count }) => {
      if (name === 'main')
        return count === 0 ? { Task: ['a', 'b', 'c'].map((part) => task('general-purpose', part)) } : 'Done.'
      begun += 1
      if (begun === 3) allBegun.resolve()
      await allBegun.promise
      return count === 0 ? { Bash: { command: 'true' } } : 'Tried.'
    })
    let [open, most] = [0, 0]
    const asked: unknown[] = []
    const main = await world.open({
      mode: 'default',
      async askPermission({ agent, tool }) {
        asked.push([agent, tool])
        open += 1
        most = Math.max(most, open)
        await new Promise((resolve) => setTimeout(resolve, 150))
        open -= 1
        return { isAllowed: true }
      },
    })
    await main.ask()
    expect([asked, most]).toEqual([Array(3).fill(['general-purpose', 'Bash']), 1])
  })

  it('is not asked about after it was stopped', async () => {
    const bothBegun = Promise.withResolvers<void>()
    let begun = 0
    const world = await createSubagentWorld(async ({ name, count }) => {
      if (name === 'main')
        return count === 0 ? { Task: ['a', 'b'].map((part) => task('general-purpose', part)) } : 'Done.'
      begun += 1
      if (begun === 2) bothBegun.resolve()
      await bothBegun.promise
      return count === 0 ? { Bash: { command: 'true' } } : 'Tried.'
    })
    const stop = new AbortController()
    const answered = Promise.withResolvers<void>()
    let asked = 0
    const { agent } = await world.open({
      mode: 'default',
      async askPermission() {
        asked += 1
        // The other agent asks meanwhile.
        await new Promise((resolve) => setTimeout(resolve, 300))
        stop.abort()
        setTimeout(answered.resolve, 50)
        return { isAllowed: true }
      },
    })
    expect(await agent.run('Go.', { signal: stop.signal }).outcome).toMatchObject({ reason: 'aborted' })
    await answered.promise
    expect([asked, world.requests['general-purpose b']?.length, agent.denials]).toEqual([1, 1, []])
  })

  it('is asked about in the terminal', async () => {
    const world = await createSubagentWorld(({ name, count }) => {
      if (name === 'main') return count === 0 ? { Task: task('general-purpose', 'a') } : 'Done.'
      return count === 0 ? { Bash: { command: 'touch b.txt' } } : 'Tried.'
    })
    const { out, err } = await world.answer('Go.', 'y')
    expect(err).toContain('The agent general-purpose asks: Run this command?\n  touch b.txt\n')
    expect([out, world.read('b.txt')]).toEqual(['Done.\n', ''])
  })

  it('is guarded by the hooks of tool calls, and hooks hear of its start and end', async () => {
    const world = await createSubagentWorld(({ name, count, text }) => {
      if (name === 'main') return count === 0 ? { Task: task('general-purpose', 'a') } : 'Done.'
      return count === 0 ? WRITE : text.includes('Say it twice') ? 'Twice.' : 'Once.'
    })
    const log = (event: string) => ({ type: 'command' as const, command: `cat >> ${event}.log` })
    const hooks = {
      PreToolUse: [
        { matcher: 'Write', hooks: [{ type: 'command' as const, command: 'echo never >&2; exit 2' }] },
      ],
      SubagentStart: [
        {
          hooks: [
            {
              type: 'command' as const,
              command:
                'cat >> start.log; echo \'{"hookSpecificOutput":{"hookEventName":"SubagentStart","additionalContext":"HOOKED"}}\'',
            },
          ],
        },
      ],
      SubagentStop: [
        {
          hooks: [
            {
              type: 'command' as const,
              command:
                'cat > in; cat in >> stop.log; grep -q \'"stop_hook_active":true\' in || { echo Say it twice. >&2; exit 2; }',
            },
          ],
        },
      ],
      Stop: [{ hooks: [log('main-stop')] }],
      SessionStart: [{ hooks: [log('main-start')] }],
    }
    const main = await world.open({ settings: { ...SETTINGS, hooks } })
    await main.ask()
    const requests = world.requests['general-purpose a'] ?? []
    expect(JSON.stringify(requests[0]?.messages)).toContain('HOOKED')
    expect(readLastResults(requests[1])[0]).toContain('never')
    expect(main.find('general-purpose')?.text).toBe('Twice.')
    const read = (name: string) => (world.read(name) ?? '').match(/"hook_event_name"/g)?.length
    expect(['start.log', 'stop.log', 'main-stop.log', 'main-start.log'].map(read)).toEqual([1, 2, 1, 1])
    expect(world.read('stop.log')).toContain('"last_assistant_message":"Once."')
  })

  it('does not include more agents than the limits allow', async () => {
    const world = await createSubagentWorld(({ name, count }) => {
      if (name !== 'main') return 'Tried.'
      return count === 0
        ? { Task: ['a', 'b', 'c'].map((part) => task('general-purpose', part)) }
        : { Task: task('explore', 'd') }
    })
    const main = await world.open({ settings: { ...SETTINGS, subagents: { maxRunning: 2 } } })
    await main.agent.run('Go.', { maxCalls: 2 }).outcome
    const results = readLastResults(world.requests.main?.[1])
    expect(results.filter((text) => text.includes('2 agents are working, which is the limit'))).toHaveLength(
      1,
    )
    expect(main.agent.subagents().map(({ status }) => status)).toEqual(Array(3).fill('finished'))
  })

  it('includes agents of its own, but not deeper than the limit', async () => {
    const world = await createSubagentWorld(({ name, count, text }) => {
      if (name === 'main') return count === 0 ? { Task: task('general-purpose', 'a') } : 'Done.'
      return count === 0 && !text.includes('PART deep') ? { Task: task('general-purpose', 'deep') } : 'Tried.'
    })
    const main = await world.open({ settings: { ...SETTINGS, subagents: { maxDepth: 2 } } })
    await main.ask()
    const names = (key: string) => world.requests[key]?.[0]?.tools.map(({ name }) => name)
    expect(names('general-purpose a')).toContain('Task')
    expect(names('general-purpose deep')).not.toContain('Task')
    expect(main.agent.subagents().map(({ depth, startedBy }) => [depth, startedBy === 'main'])).toEqual([
      [1, true],
      [2, false],
    ])
    expect(listAgentLogs(world, 'main')).toHaveLength(2)
    const none = await world.open({
      sessionId: 'none',
      settings: { ...SETTINGS, subagents: { maxDepth: 0 } },
    })
    expect(none.agent.toolNames).not.toContain('Task')
  })
})

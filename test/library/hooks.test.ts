/** Hooks of a turn, as functions: what each can change, block or add, and what happens when it fails. */
import { sampleCases } from '@tidemark/core/testing'
import { type Script, withSummaries } from '@tidemark/simulator'
import { type SessionEvent, type TidemarkOptions, tool } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

/** A model that calls `act` once after each prompt, and then repeats everything it was sent last. */
const script: Script = ({ messages }) => {
  const last = messages.at(-1)
  const text = JSON.stringify(last?.content)
  return text.includes('Use it')
    ? { blocks: [{ type: 'tool_use', name: 'act', input: { n: 1 } }] }
    : { blocks: [{ type: 'text', text }] }
}

type Choices = Pick<TidemarkOptions, 'hooks' | 'canUseTool'>

async function open(choices: Choices) {
  const inputs: unknown[] = []
  const events: SessionEvent[] = []
  const act = tool({
    input: { type: 'object', properties: { n: { type: 'integer' } } },
    run: (input) => `did ${inputs.push(input)}`,
  })
  const world = createTestTidemark({ script, history: false, ...choices })
  const session = await world.tide.open('hooked', { tools: { act } })
  session.on('*', (event) => events.push(event))
  const run = async (prompt: string) => await session.run(prompt).outcome
  return { ...world, session, inputs, events, run }
}

describe('UserPromptSubmit', () => {
  it('adds context that the model sees after the prompt', async () => {
    const hook = { name: 'branch', run: () => ({ additionalContext: 'The branch is main.' }) }
    const { run } = await open({ hooks: { userPromptSubmit: [hook] } })
    expect(await run('Hello.')).toMatchObject({
      ok: true,
      text: expect.stringContaining('The branch is main.'),
    })
  })

  it('blocks a prompt: it is not in the session, and nothing is sent', async () => {
    const hook = { name: 'no-keys', run: () => ({ block: 'It contains a key.' }) }
    const { run, session, simulator } = await open({ hooks: { userPromptSubmit: [hook] } })
    expect(await run('sk-123')).toMatchObject({
      ok: false,
      reason: 'blocked',
      message: expect.stringContaining('It contains a key.'),
    })
    expect(session.messages()).toEqual([])
    expect(simulator.requests).toHaveLength(0)
  })

  it('one that throws is told and takes nothing down', async () => {
    const hook = {
      name: 'broken',
      run: () => {
        throw new Error('Oh.')
      },
    }
    const { run, events } = await open({ hooks: { userPromptSubmit: [hook] } })
    expect(await run('Hello.')).toMatchObject({ ok: true })
    expect(events).toContainEqual({ type: 'hook-failed', hook: 'broken', message: 'Oh.' })
  })
})

describe('PreToolUse', () => {
  it('changes the input of the tool', async () => {
    const { run, inputs } = await open({
      hooks: { preToolUse: [{ name: 'more', run: () => ({ input: { n: 7 } }) }] },
    })
    await run('Use it')
    expect(inputs).toEqual([{ n: 7 }])
  })

  it('denies a call: the tool does not run, and the model learns why', async () => {
    const hook = { name: 'no', run: () => ({ decision: 'deny' as const, reason: 'Not on Fridays.' }) }
    const { run, inputs } = await open({ hooks: { preToolUse: [hook] } })
    expect(await run('Use it')).toMatchObject({ text: expect.stringContaining('Not on Fridays.') })
    expect(inputs).toEqual([])
  })

  it('an allowing hook spares the question, and does not lift a ban', async () => {
    const hook = { name: 'yes', run: () => ({ decision: 'allow' as const }) }
    const asking = await open({ hooks: { preToolUse: [hook] }, canUseTool: () => ({ decision: 'ask' }) })
    await asking.run('Use it')
    expect(asking.inputs).toHaveLength(1)
    const banning = await open({ hooks: { preToolUse: [hook] }, canUseTool: () => ({ decision: 'deny' }) })
    await banning.run('Use it')
    expect(banning.inputs).toHaveLength(0)
  })
})

describe('PermissionRequest', () => {
  const ask = () => ({ decision: 'ask' as const, reason: 'It changes a file.' })

  it('decides what the permission check asks about, with the reason', async () => {
    const reasons: string[] = []
    const hook = {
      name: 'person',
      run: ({ reason }: { readonly reason: string }) => {
        reasons.push(reason)
        return { decision: 'allow' as const, input: { n: 3 } }
      },
    }
    const { run, inputs } = await open({ hooks: { permissionRequest: [hook] }, canUseTool: ask })
    await run('Use it')
    expect(reasons).toEqual(['It changes a file.'])
    expect(inputs).toEqual([{ n: 3 }])
  })

  it('without an answer the call is refused, and the model learns why', async () => {
    const { run, inputs } = await open({ canUseTool: ask })
    expect(await run('Use it')).toMatchObject({
      text: expect.stringMatching(/not permitted, and nothing was run\. It changes a file\./),
    })
    expect(inputs).toEqual([])
  })

  it('a permission check that throws refuses the call', async () => {
    const { run, inputs } = await open({
      canUseTool: () => {
        throw new Error('The rules cannot be read.')
      },
    })
    expect(await run('Use it')).toMatchObject({ text: expect.stringContaining('The rules cannot be read.') })
    expect(inputs).toEqual([])
  })
})

describe('PostToolUse', () => {
  it('sees the result; what it objects to is added to the result, its context after it', async () => {
    const seen: unknown[] = []
    const hook = {
      name: 'lint',
      run: ({ result }: { readonly result: { readonly content?: unknown } }) => {
        seen.push(result.content)
        return { block: 'A line is too long.', additionalContext: 'The limit is 100.' }
      },
    }
    const { run, session } = await open({ hooks: { postToolUse: [hook] } })
    await run('Use it')
    expect(seen).toEqual(['did 1'])
    const sent = JSON.stringify(session.messages())
    expect(sent).toMatch(/did 1.*A check after this call says: A line is too long\..*The limit is 100\./)
  })
})

describe('Stop', () => {
  it('makes the turn go on until it is satisfied', async () => {
    const seen: boolean[] = []
    const hook = {
      name: 'tests',
      run: ({ isContinued }: { readonly isContinued: boolean }) => {
        seen.push(isContinued)
        return isContinued ? {} : { block: 'The tests fail.' }
      },
    }
    const { run } = await open({ hooks: { stop: [hook] } })
    expect(await run('Hello.')).toMatchObject({ ok: true, text: expect.stringContaining('The tests fail.') })
    expect(seen).toEqual([false, true])
  })
})

describe('SessionStart and SessionEnd', () => {
  it('run once for a new session, and again when it is resumed and closed', async () => {
    const told: string[] = []
    const hooks = {
      sessionStart: [
        {
          name: 'start',
          run: ({ source }: { readonly source: string }) => {
            told.push(source)
            return { additionalContext: `Began by ${source}.` }
          },
        },
      ],
      sessionEnd: [
        { name: 'end', run: ({ reason }: { readonly reason: string }) => void told.push(`end: ${reason}`) },
      ],
    }
    const { run, session, tide } = await open({ hooks })
    expect(await run('Hello.')).toMatchObject({ text: expect.stringContaining('Began by startup.') })
    await run('Again.')
    await session.close()
    const again = await tide.open('hooked')
    await again.run('More.', { tools: {} }).outcome
    expect(JSON.stringify(again.messages())).toContain('Began by resume.')
    expect(told).toEqual(['startup', 'end: close', 'resume'])
  })
})

it('what hooks added before the turn was aborted reaches the model when the turn goes on', async () => {
  const stop = new AbortController()
  const hook = { name: 'check', run: () => ({ additionalContext: 'The first call was checked.' }) }
  const twice: Script = ({ messages }) =>
    messages.length === 1
      ? { blocks: [1, 2].map((n) => ({ type: 'tool_use', name: 'act', input: { n } })) }
      : { blocks: [{ type: 'text', text: JSON.stringify(messages.at(-1)?.content) }] }
  const { tide } = createTestTidemark({ script: twice, history: false, hooks: { postToolUse: [hook] } })
  const session = await tide.open('two-calls')
  const act = tool({ run: () => 'done' })
  let started = 0
  session.on('tool-started', () => {
    started += 1
    if (started === 2) stop.abort()
  })
  const stopped = await session.run('Use it.', { tools: { act }, signal: stop.signal }).outcome
  expect(stopped).toMatchObject({ ok: false, reason: 'aborted' })
  expect(await session.run(null, { tools: { act } }).outcome).toMatchObject({
    ok: true,
    text: expect.stringContaining('The first call was checked.'),
  })
})

it('SessionStart tells a cleared and a forked session apart, and SessionEnd runs after clear', async () => {
  const told: string[] = []
  const hooks = {
    sessionStart: [{ name: 's', run: ({ source }: { readonly source: string }) => void told.push(source) }],
    sessionEnd: [
      { name: 'e', run: ({ reason }: { readonly reason: string }) => void told.push(`end: ${reason}`) },
    ],
  }
  const { run, session } = await open({ hooks })
  await run('Hello.')
  await session.clear()
  await run('Anew.')
  const fork = await session.fork('other')
  await fork.run('Go on.').outcome
  expect(told).toEqual(['startup', 'end: clear', 'clear', 'fork'])
})

it('SessionStart runs again if the turn was aborted before its context was in the log', async () => {
  const stop = new AbortController()
  const told: string[] = []
  const hook = {
    name: 'start',
    run: ({ source }: { readonly source: string }) => {
      if (told.push(source) === 1) stop.abort()
      return { additionalContext: `Began by ${source}.` }
    },
  }
  const { run, session } = await open({ hooks: { sessionStart: [hook] } })
  expect(await session.run('Hello.', { signal: stop.signal }).outcome).toMatchObject({ reason: 'aborted' })
  expect(await run('Hello.')).toMatchObject({ text: expect.stringContaining('Began by startup.') })
  await run('Again.')
  expect(told).toEqual(['startup', 'startup'])
})

it('what SessionEnd says to the user is shown', async () => {
  const hook = { name: 'end', run: () => ({ userDisplayMessage: 'Saved a report.' }) }
  const { session, events } = await open({ hooks: { sessionEnd: [hook] } })
  await session.close()
  expect(events).toContainEqual({ type: 'hook-said', hook: 'end', message: 'Saved a report.' })
})

it('an unknown hook point is named', async () => {
  await expect(open({ hooks: { preTool: [] } as never })).rejects.toThrow(/preTool/)
})

describe('a hook or permission check while the turn is stopped', () => {
  it.each(['preToolUse', 'canUseTool'] as const)(
    'in %s: the tool does not run, also not later',
    async (point) => {
      let answer: (value: { decision: 'allow' }) => void = () => {}
      const wait = () =>
        new Promise<{ decision: 'allow' }>((resolve) => {
          answer = resolve
        })
      const choices =
        point === 'canUseTool' ? { canUseTool: wait } : { hooks: { preToolUse: [{ name: 'w', run: wait }] } }
      const { session, inputs } = await open(choices)
      const stop = new AbortController()
      const run = session.run('Use it', { signal: stop.signal })
      session.on('tool-started', () => setTimeout(() => stop.abort(), 10))
      expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
      answer({ decision: 'allow' })
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(inputs).toEqual([])
    },
  )
})

describe('nonsense from a hook', () => {
  it.each([5, 'text', { additionalContext: 5 }, { block: 7 }])(
    '%j is told as a failure and stops nothing',
    async (output) => {
      const hook = { name: 'odd', run: () => output as never }
      const { run, events } = await open({
        hooks: {
          userPromptSubmit: [hook],
          preToolUse: [hook],
          postToolUse: [hook],
          stop: [hook],
          sessionStart: [hook],
        },
      })
      expect(await run('Use it')).toMatchObject({ ok: true })
      expect(events.filter(({ type }) => type === 'hook-failed').length).toBeGreaterThanOrEqual(4)
    },
  )

  it.each([null, { block: null, additionalContext: null }])('%j counts as nothing', async (output) => {
    const hook = { name: 'none', run: () => output as never }
    const { run, session } = await open({
      hooks: {
        userPromptSubmit: [hook],
        stop: [hook],
        preCompact: [hook],
        postCompact: [hook],
        sessionStart: [hook],
      },
    })
    expect(await run('Hello.')).toMatchObject({ ok: true })
    expect(typeof (await session.compact({ summarizer: 'local' })).ok).toBe('boolean')
  })

  it.each(['Deny', 'block', false])('an unknown decision (%j) forbids the call', async (decision) => {
    const hook = { name: 'odd', run: () => ({ decision }) as never }
    const { run, inputs } = await open({
      hooks: { preToolUse: [hook] },
      canUseTool: () => ({ decision: 'allow' }),
    })
    expect(await run('Use it')).toMatchObject({ text: expect.stringContaining('unknown decision') })
    expect(inputs).toEqual([])
  })
})

it('an input that a hook changes must fit the schema too', async () => {
  const hook = { name: 'odd', run: () => ({ input: { n: { a: 1 } } }) }
  const { run, inputs } = await open({ hooks: { preToolUse: [hook] } })
  expect(await run('Use it')).toMatchObject({ text: expect.stringContaining('does not fit the schema') })
  expect(inputs).toEqual([])
})

it('a stop hook that is never satisfied ends after a while', async () => {
  const { run, events, simulator } = await open({
    hooks: { stop: [{ name: 's', run: () => ({ block: 'again' }) }] },
  })
  expect(await run('Hello.')).toMatchObject({ ok: true })
  expect(simulator.requests.length).toBe(26)
  expect(events).toContainEqual(expect.objectContaining({ type: 'hook-failed', hook: 'stop' }))
})

describe('context of a hook that the model has not read yet', () => {
  it.each(
    sampleCases(
      [
        ['userPromptSubmit', true],
        ['userPromptSubmit', false],
        ['postToolUse', false],
        ['postToolUse', true],
      ] as const,
      2,
    ),
  )('is not lost in a compaction: %s, notes: %s', async (point, enabled) => {
    let told = ''
    const hook = { name: 'ticket', run: () => ({ additionalContext: told }) }
    const world = createTestTidemark({
      window: 30_000,
      policy: { notes: { enabled }, compact: { background: false } },
      hostTools: { protected: ['act'] },
      script: withSummaries(({ messages }) => {
        const isPrompt = JSON.stringify(messages.at(-1)?.content).includes(`Use it for ${told}`)
        return isPrompt && point === 'postToolUse'
          ? { blocks: [{ type: 'tool_use', name: 'act', input: {} }] }
          : { blocks: [{ type: 'text', text: 'Words of an answer. '.repeat(150) }] }
      }),
      hooks: { [point]: [hook] },
    })
    const act = tool({ input: { type: 'object' }, run: () => 'A line of a result. '.repeat(150) })
    const session = await world.tide.open('a', { tools: { act } })
    // Responses of the turn before the model reads the context.
    const before = point === 'userPromptSubmit' ? 0 : 1
    let [answers, compactions] = [0, 0]
    let check = -1
    session.on('answered', () => {
      answers += 1
    })
    session.on('compact', () => {
      if (answers === before) check = world.bodies.length
    })
    for (let turn = 0; turn < 80 && compactions < 2; turn += 1) {
      told = `ticket ${turn}.`
      ;[answers, check] = [0, -1]
      expect(await session.run(`Use it for ${told}`).outcome).toMatchObject({ ok: true })
      if (check === -1) continue
      compactions += 1
      expect(world.bodies[check] ?? '').toContain(`A hook of the user adds this.\\n${told}`)
    }
    expect(compactions).toBeGreaterThan(0)
  })
})

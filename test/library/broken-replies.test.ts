/** Faults in the middle of a reply, against the simulator: the turn goes on by itself, and nothing is shown twice. */
import type { Fault, Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

const policy = { turn: { network: { firstDelayMs: 1, maximumDelayMs: 2 } } }

/** Answers with two blocks, the first time with a fault. */
function failOnce(fault: Fault): Script {
  let calls = 0
  return () => {
    calls += 1
    const blocks = [
      { type: 'thinking', thinking: 'I count.' },
      { type: 'text', text: 'One, two.' },
    ]
    return { blocks, ...(calls === 1 ? { fault } : {}) }
  }
}

describe('a stream that fails in the middle of the reply', () => {
  it.each<[string, Fault]>([
    ['is cut after a finished block', { type: 'cut', afterEvents: 6 }],
    ['is cut in the first block', { type: 'cut', afterEvents: 3 }],
    ['is cut after the last block', { type: 'cut', afterEvents: 9 }],
    ['is reset after a finished block', { type: 'reset', afterEvents: 6 }],
    [
      'has an error event after a finished block',
      { type: 'error-event', afterEvents: 6, errorType: 'overloaded_error' },
    ],
  ])('because it %s is asked for again inside the turn', async (_, fault) => {
    const world = createTestTidemark({ script: failOnce(fault), policy })
    const session = await world.tide.open('a')
    const types: string[] = []
    session.on('*', ({ type }) => types.push(type))
    expect(await session.run('Count.').outcome).toMatchObject({ ok: true, text: 'One, two.' })
    expect(types.filter((type) => type === 'retrying')).toHaveLength(1)
    expect(world.bodies).toHaveLength(2)
    expect(JSON.parse(world.bodies[1] ?? '').messages).toEqual(JSON.parse(world.bodies[0] ?? '').messages)
    expect(session.messages().map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(JSON.stringify(session.messages()).match(/One, two/g)).toHaveLength(1)
    expect(session.money()).toMatchObject({ calls: 2 })
    expect(await session.run('And on?').outcome).toMatchObject({ ok: true })
  })

  it('before it says what it costs is counted with an estimated prompt', async () => {
    let calls = 0
    const script: Script = () => {
      calls += 1
      const blocks = [{ type: 'text', text: 'One, two.' }]
      return {
        blocks,
        ...(calls > 1 && calls < 4 ? { fault: { type: 'cut', afterBytes: 40 } as const } : {}),
      }
    }
    const world = createTestTidemark({ script, policy })
    const session = await world.tide.open('a')
    await session.run(`Count these: ${'one two three '.repeat(1_500)}`).outcome
    expect(await session.run('And these: four five.').outcome).toMatchObject({ ok: true })
    const { calls: counted, spent } = session.money()
    const bill = world.simulator.requests.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0)
    expect(counted).toBe(4)
    expect(Math.abs((spent.total ?? 0) / bill - 1)).toBeLessThan(0.02)
    expect(spent.assumed).toEqual([
      'the prompts of responses that broke off before their usage are estimated',
    ])
  })

  it('because you abort it before anything came is counted with an estimated prompt, unless nothing was sent', async () => {
    let calls = 0
    const stop = new AbortController()
    const script: Script = () => {
      calls += 1
      if (calls === 2) stop.abort()
      const blocks = [{ type: 'text', text: 'One, two.' }]
      return { blocks, ...(calls === 2 ? { delays: { startMs: 60_000 } } : {}) }
    }
    const world = createTestTidemark({ script, policy })
    const session = await world.tide.open('a')
    await session.run(`Count these: ${'one two three '.repeat(1_500)}`).outcome
    const { total: before } = session.money().spent
    const late = session.run('And these: four five.', { signal: AbortSignal.abort() })
    expect(await late.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    expect(session.money()).toMatchObject({ calls: 1, spent: { total: before, assumed: [] } })
    const run = session.run('And these: six.', { signal: stop.signal })
    expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    const { calls: counted, spent } = session.money()
    expect(counted).toBe(2)
    expect(spent.total).toBeGreaterThan(before ?? 0)
    expect(spent.assumed).toEqual([
      'the prompts of responses that broke off before their usage are estimated',
    ])
  })

  it('for good ends the run, and run(null) takes it up again', async () => {
    let isBroken = true
    const script: Script = () => ({
      blocks: [
        { type: 'text', text: 'One.' },
        { type: 'text', text: 'Two.' },
      ],
      ...(isBroken ? { fault: { type: 'cut', afterEvents: 6 } as const } : {}),
    })
    const world = createTestTidemark({
      script,
      policy: { turn: { network: { ...policy.turn.network, retries: 1 } } },
    })
    const session = await world.tide.open('a')
    expect(await session.run('Count.').outcome).toMatchObject({ ok: false, reason: 'failed' })
    isBroken = false
    expect(await session.run(null).outcome).toMatchObject({ ok: true, text: 'One.Two.' })
    expect(await session.run(null).outcome).toMatchObject({
      ok: false,
      reason: 'invalid',
      message: 'The last message is an answer of the model: append a prompt first.',
    })
    expect(world.bodies).toHaveLength(3)
  })
})

describe('a response that the provider pauses in its text', () => {
  it.each(['claude-opus-5', 'claude-sonnet-5-5', 'claude-sonnet-4-5'])(
    'is continued by %s',
    async (modelId) => {
      let calls = 0
      const script: Script = () => {
        calls += 1
        const stopReason = calls === 1 ? 'pause_turn' : 'end_turn'
        return { blocks: [{ type: 'text', text: `part ${calls}, ` }], stopReason }
      }
      const session = await createTestTidemark({ modelId, script }).tide.open('a')
      expect(await session.run('Write.').outcome).toMatchObject({ ok: true, text: 'part 1, part 2, ' })
    },
  )
})

describe('an answer that max_tokens cuts', () => {
  it('is continued, and the outcome has all of it', async () => {
    let calls = 0
    const script: Script = () => {
      calls += 1
      const isCut = calls < 3
      return {
        blocks: [{ type: 'text', text: `part ${calls}, ` }],
        stopReason: isCut ? 'max_tokens' : 'end_turn',
      }
    }
    const session = await createTestTidemark({ script }).tide.open('a')
    const outcome = await session.run('Write.').outcome
    expect(outcome).toMatchObject({ ok: true, text: 'part 1, part 2, part 3, ', stopReason: 'end_turn' })
  })
})

/** Between a request that was handed out and its response: what waits, what is refused, what is counted once. */
import type { Journal } from '@tidemark/core/engine/ports'
import { type Session, type SessionEvent, toolResult, user } from 'tidemark'
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

function response(id: string, text: string): object {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-5-5',
    content: [
      { type: 'text', text },
      { type: 'text', text: 'Done.' },
    ],
    stop_reason: 'end_turn',
    usage: { input_tokens: 40, output_tokens: 5, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
  }
}

async function asked(session: Session): Promise<void> {
  await session.append(user('Mend the sums.'))
  expect(await session.next()).toMatchObject({ ok: true })
}

/** Says once, when told to, that somebody else has written. */
function contested(): { readonly journal: Journal; arm(): void } {
  const journal = createMemoryJournal(new Map())
  let isArmed = false
  return {
    journal: {
      ...journal,
      async append(session, after, records) {
        if (!isArmed) return journal.append(session, after, records)
        isArmed = false
        return { ok: false, reason: 'conflict', position: after }
      },
    },
    arm() {
      isArmed = true
    },
  }
}

describe('a response', () => {
  it('that met another writer is appended again, and still ends its call: once', async () => {
    const { journal, arm } = contested()
    const session = await createTestTidemark({ journal }).tide.open('a')
    const told: SessionEvent['type'][] = []
    session.on('*', ({ type }) => told.push(type))
    await asked(session)
    arm()
    expect(await session.append(response('msg_1', 'Mended.'))).toHaveLength(2)
    expect(told.filter((type) => ['answered', 'priced'].includes(type))).toEqual(['priced', 'answered'])
    const other = await createTestTidemark().tide.open('a')
    await asked(other)
    await other.append(response('msg_1', 'Mended.'))
    expect(session.contextRemaining()).toEqual(other.contextRemaining())
    expect(session.money()).toEqual(other.money())
  })

  it('given twice is said once', async () => {
    const session = await createTestTidemark().tide.open('a')
    await asked(session)
    const first = await session.append(response('msg_1', 'Mended.'))
    const messages = session.messages()
    expect(await session.append(response('msg_1', 'Mended.'))).toEqual(first)
    expect(session.messages()).toEqual(messages)
    expect(session.money().calls).toBe(1)
    expect(await session.append(response('msg_2', 'Mended.'))).not.toEqual(first)
  })
})

describe('a result', () => {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }

  it('that is given twice, one after the other or at once, is refused the second time', async () => {
    const session = await createTestTidemark({ history: true }).tide.open('a')
    await session.append(user('Read it.'), { role: 'assistant', content: [call] })
    const result = () => session.append(toolResult('toolu_1', 'words '.repeat(60_000)))
    const [first, second] = await Promise.allSettled([result(), result()])
    expect([first?.status, second?.status]).toEqual(['fulfilled', 'rejected'])
    const refused = { code: 'bad-record', details: { id: 'toolu_1' } }
    await expect(result()).rejects.toMatchObject(refused)
    await expect(
      session.append(toolResult('toolu_1', 'one'), toolResult('toolu_1', 'two')),
    ).rejects.toMatchObject(refused)
    expect(session.messages()).toHaveLength(3)
  })

  it('of a call that a run has in hand is the run’s own', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    const refused: unknown[] = []
    const run = session.run('Mend the sums.', {
      ...world.tools,
      runTool: async ({ id }) => {
        await session.append(toolResult(id, 'mine')).catch(({ code }) => refused.push(code))
        return 'done'
      },
    })
    expect(await run.outcome).toMatchObject({ ok: true })
    expect(new Set(refused)).toEqual(new Set(['busy']))
  })
})

describe('a rewrite before the response', () => {
  it.each(['compact', 'undo', 'commit'] as const)('%s waits for it', async (act) => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    await session.run('Mend the sums.', world.tools).outcome
    const plan = await session.planCompaction()
    const draft = plan.ok ? await session.prepare(plan) : plan
    if (!draft.ok) throw new Error(draft.message)
    await asked(session)
    const acts = {
      compact: (abandon: boolean) => session.compact({ abandon }),
      undo: (abandon: boolean) => session.undo(undefined, { abandon }),
      commit: (abandon: boolean) => session.commit(draft, { abandon }),
    }
    expect(await acts[act](false)).toEqual({
      ok: false,
      reason: 'busy',
      message: `${act}: next gave a request of the session a whose response has not been appended; nothing was changed. Append the response first, or give { abandon: true } if none will come.`,
    })
    const forced = await acts[act](true)
    expect(forced).toMatchObject(act === 'undo' ? { reason: 'nothing-to-undo' } : { ok: true })
  })
})

describe('nothing to answer', () => {
  it.each(['next', 'run'] as const)('%s says to append a prompt first', async (act) => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    const ask = () => (act === 'next' ? session.next() : session.run(null, world.tools).outcome)
    expect(await ask()).toMatchObject({
      ok: false,
      reason: 'invalid',
      message: 'The conversation is empty: append a prompt first.',
    })
    await session.run('Mend the sums.', world.tools).outcome
    expect(await ask()).toMatchObject({
      ok: false,
      reason: 'invalid',
      message: 'The last message is an answer of the model: append a prompt first.',
    })
  })

  it('a prompt that could never fit is refused with the figures, and is not in the log', async () => {
    const world = createTestTidemark({ window: 30_000 })
    const session = await world.tide.open('a')
    const told: SessionEvent['type'][] = []
    session.on('*', ({ type }) => told.push(type))
    const end = await session.run('a long story '.repeat(20_000), world.tools).outcome
    expect(end).toMatchObject({ ok: false, reason: 'full', withdrawn: ['a long story '.repeat(20_000)] })
    expect('message' in end && end.message).toMatch(
      /^The prompt has about \d\d,\d{3} tokens, and the system prompt and tools before it have [\d,]+: claude-sonnet-5-5 takes \d\d,\d{3}\. The prompt is not part of the conversation/,
    )
    expect([told.filter((type) => type !== 'status'), session.messages()]).toEqual([['turn-ended'], []])
    expect(await session.run('Mend the sums.', world.tools).outcome).toMatchObject({ ok: true })
  })
})

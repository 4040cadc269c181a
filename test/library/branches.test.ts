/** Going back, beginning anew, forking and asking beside the conversation, each also after the session was reopened. */
import type { Script } from '@tidemark/simulator'
import type { Session, SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'
import { createBranchWorld, say, userTexts } from './branch-world.ts'

function createWorld() {
  const world = createBranchWorld()
  return { ...world, open: (id = 'talk'): Promise<Session> => world.tide.open(id) }
}

describe('rewind', () => {
  it('goes back to before a message; the branch is kept, and undo returns to it', async () => {
    const { open } = createWorld()
    const session = await open()
    const uuids: string[] = []
    session.on('appended', ({ records }) => {
      for (const record of records) if (record.type === 'user') uuids.push(record.uuid ?? '')
    })
    await say(session, 'One', 'Two', 'Three')
    const before = JSON.stringify(session.messages())
    const outcome = await session.rewind(uuids[1] ?? '')
    expect(outcome).toMatchObject({ ok: true, before: uuids[1] })
    expect(userTexts(session)).toEqual(['One'])
    await say(session, 'Four')
    expect(userTexts(session)).toEqual(['One', 'Four'])
    expect(await session.undo()).toMatchObject({ ok: true, kind: 'rewind' })
    expect(JSON.stringify(session.messages())).toBe(before)
  })

  it('is still there when the session is opened again, and can then be undone', async () => {
    const { open } = createWorld()
    const session = await open()
    const uuids: string[] = []
    session.on('appended', ({ records }) => {
      for (const record of records) if (record.type === 'user') uuids.push(record.uuid ?? '')
    })
    await say(session, 'One', 'Two', 'Three')
    await session.rewind(uuids[2] ?? '')
    await session.close()
    const again = await open()
    expect(userTexts(again)).toEqual(['One', 'Two'])
    await again.undo()
    expect(userTexts(again)).toEqual(['One', 'Two', 'Three'])
  })

  it('the request after it reads the cache up to there, and nothing is called a cache break', async () => {
    const { open, simulator } = createWorld()
    const session = await open()
    const uuids: string[] = []
    const events: SessionEvent[] = []
    session.on('*', (event) => events.push(event))
    session.on('appended', ({ records }) => {
      for (const record of records) if (record.type === 'user') uuids.push(record.uuid ?? '')
    })
    await say(session, 'One', 'Two', 'Three')
    await session.rewind(uuids[2] ?? '')
    await say(session, 'Four')
    const usage = simulator.requests.map((request) => request.usage)
    expect(usage.at(-1)?.cacheRead).toBe((usage[1]?.cacheRead ?? 0) + (usage[1]?.write5m ?? 0))
    expect(events.filter(({ type }) => type === 'cache-break')).toEqual([])
  })

  it('over a compaction brings the messages from before it back', async () => {
    const { open } = createWorld()
    const session = await open()
    const uuids: string[] = []
    session.on('appended', ({ records }) => {
      for (const record of records) if (record.type === 'user') uuids.push(record.uuid ?? '')
    })
    await say(session, 'One', 'Two', 'Three')
    expect(await session.compact({ summarizer: 'local' })).toMatchObject({ ok: true })
    await say(session, 'Four')
    await session.rewind(uuids[2] ?? '')
    expect(userTexts(session)).toEqual(['One', 'Two'])
    await say(session, 'Five')
    expect(userTexts(session)).toEqual(['One', 'Two', 'Five'])
  })

  it('a record that is not there is refused, and so is something that is no uuid', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One')
    expect(await session.rewind('nope')).toMatchObject({ ok: false, reason: 'unknown-record' })
    await expect(session.rewind(7 as never)).rejects.toThrow(/7 is not the uuid of a record/)
  })
})

describe('clear', () => {
  it('begins an empty conversation; the old one stays in the log, and undo returns to it', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One', 'Two')
    const before = JSON.stringify(session.messages())
    expect(await session.clear()).toMatchObject({ ok: true, before: null })
    expect(session.messages()).toEqual([])
    await say(session, 'Three')
    expect(userTexts(session)).toEqual(['Three'])
    await session.close()
    const again = await open()
    expect(userTexts(again)).toEqual(['Three'])
    expect(await again.undo()).toMatchObject({ ok: true, kind: 'rewind' })
    expect(JSON.stringify(again.messages())).toBe(before)
  })

  it('the request after it is as the first one of a new session, and nothing is called a cache break', async () => {
    const { open } = createWorld()
    const session = await open()
    const events: SessionEvent[] = []
    session.on('*', (event) => events.push(event))
    await say(session, 'One', 'Two')
    await session.clear()
    await say(session, 'Three')
    const fresh = await open('other')
    await say(fresh, 'Three')
    expect(session.messages()).toEqual(fresh.messages())
    expect(events.filter(({ type }) => type === 'cache-break')).toEqual([])
  })
})

describe('an undo', () => {
  it('of a clear can be taken back by its id, with all that was said since, and undone again', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One')
    await session.clear()
    await say(session, 'Two', 'Three')
    const undone = await session.undo()
    expect(userTexts(session)).toEqual(['One'])
    expect(await session.undo(undone.ok ? undone.id : '')).toMatchObject({ ok: true, kind: 'rewind' })
    expect(userTexts(session)).toEqual(['Two', 'Three'])
    await session.undo()
    expect(userTexts(session)).toEqual(['One'])
  })

  it('of a compaction can be taken back by its id, also after the session was opened again', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One', 'Two', 'Three')
    await session.compact({ summarizer: 'local' })
    const compacted = JSON.stringify(session.messages())
    const undone = await session.undo()
    const whole = JSON.stringify(session.messages())
    await session.close()
    const again = await open()
    await again.undo(undone.ok ? undone.id : '')
    expect(JSON.stringify(again.messages())).toBe(compacted)
    await again.undo()
    expect(JSON.stringify(again.messages())).toBe(whole)
  })

  it('that is taken back after more was said is undone to exactly that', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One')
    await session.clear()
    await say(session, 'Two')
    const undone = await session.undo()
    await say(session, 'Three')
    await session.undo(undone.ok ? undone.id : '')
    expect(userTexts(session)).toEqual(['Two'])
    await session.undo()
    expect(userTexts(session)).toEqual(['One', 'Three'])
  })

  it('after another goes further back, and both can be taken back in turn', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One', 'Two', 'Three')
    await session.compact({ summarizer: 'local' })
    await session.clear()
    await say(session, 'Four')
    const first = await session.undo()
    const second = await session.undo()
    expect([first, second]).toMatchObject([{ kind: 'rewind' }, { kind: 'compact' }])
    expect(userTexts(session)).toEqual(['One', 'Two', 'Three'])
    await session.undo(second.ok ? second.id : '')
    await session.undo(first.ok ? first.id : '')
    expect(userTexts(session)).toEqual(['Four'])
  })
})

describe('fork', () => {
  it('is another session with the same conversation, which reads the cache and costs nothing by itself', async () => {
    const { open, simulator } = createWorld()
    const session = await open()
    await say(session, 'One', 'Two')
    const fork = await session.fork('other')
    expect(fork.id).toBe('other')
    expect(fork.messages()).toEqual(session.messages())
    expect(fork.money().spent.total).toBe(0)
    await say(fork, 'Three')
    const [before, after] = simulator.requests.slice(-2).map((request) => request.usage)
    expect(after?.cacheRead).toBe((before?.cacheRead ?? 0) + (before?.write5m ?? 0))
    expect(userTexts(session)).toEqual(['One', 'Two'])
    await fork.close()
    expect(userTexts(await open('other'))).toEqual(['One', 'Two', 'Three'])
  })

  it('of a compacted session can undo that compaction', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One', 'Two', 'Three')
    const before = JSON.stringify(session.messages())
    await session.compact({ summarizer: 'local' })
    const fork = await session.fork()
    expect(await fork.undo()).toMatchObject({ ok: true, kind: 'compact' })
    expect(JSON.stringify(fork.messages())).toBe(before)
  })

  it('to an id that exists is refused, and nothing is written to it', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One')
    const other = await open('other')
    await say(other, 'Two')
    await other.close()
    await expect(session.fork('other')).rejects.toThrow(/the session other exists already/)
    expect(userTexts(await open('other'))).toEqual(['Two'])
  })
})

describe('ask', () => {
  it('answers from the cache and leaves no trace in the conversation', async () => {
    const { open, simulator } = createWorld()
    const session = await open()
    await say(session, 'One', 'Two')
    const before = JSON.stringify(session.messages())
    const spent = session.money().spent.total ?? 0
    const outcome = await session.ask('What did I say first?')
    expect(outcome).toMatchObject({ ok: true, text: expect.stringContaining('Answer') })
    expect(JSON.stringify(session.messages())).toBe(before)
    const [last, asked] = simulator.requests.slice(-2).map((request) => request.usage)
    const cached = (last?.cacheRead ?? 0) + (last?.write5m ?? 0)
    expect(asked?.cacheRead).toBe(cached)
    expect(session.money().spent.total).toBeGreaterThan(spent)
    await say(session, 'Three')
    expect(userTexts(session)).toEqual(['One', 'Two', 'Three'])
  })

  it('works right after the session was opened again', async () => {
    const { open } = createWorld()
    const session = await open()
    await say(session, 'One')
    await session.close()
    const again = await open()
    expect(await again.ask('What did I say?')).toMatchObject({ ok: true })
    expect(userTexts(again)).toEqual(['One'])
  })

  it('in an empty session says what to do', async () => {
    const { open } = createWorld()
    const session = await open()
    expect(await session.ask('What?')).toMatchObject({
      ok: false,
      reason: 'nothing-sent',
      message: expect.stringContaining('Run a prompt first'),
    })
  })
})

it('the status tells phase and stream of a turn, and is idle after it, also after a failure', async () => {
  const { open, simulator: _ } = createWorld()
  const session = await open()
  const seen: string[] = []
  session.on('status', ({ status }) =>
    seen.push(`${status.operation} ${status.phase ?? '-'} ${status.stream}`),
  )
  const first = session.status().viewId
  await say(session, 'One', 'Two', 'Three')
  expect(seen).toContain('run - responding')
  expect(session.status()).toEqual({
    operation: null,
    phase: null,
    stream: 'requesting',
    received: 0,
    viewId: first,
    preparedSummary: 'none',
  })
  await session.compact({ summarizer: 'local' })
  expect(seen).toContain('compact compacting requesting')
  expect(session.status()).toMatchObject({ operation: null, phase: null, received: 0 })
  expect(session.status().viewId).not.toBe(first)
})

it('the status says that a response arrives while a summary streams, and not before or after', async () => {
  const { tide, tools } = createTestTidemark({ turns: 8, resultTokens: 3_000 })
  const session = await tide.open('talk')
  await session.run('Correct the sums.', tools).outcome
  const seen: string[] = []
  session.on('summary-progress', ({ characters }) => {
    const { stream, received, phase } = session.status()
    seen.push(`${stream} ${phase}`)
    expect([stream, received]).toEqual([characters > 0 ? 'responding' : 'requesting', characters])
  })
  expect(await session.compact()).toMatchObject({ ok: true })
  expect(seen).toContain('responding compacting')
  expect(session.status()).toMatchObject({ stream: 'requesting', received: 0, phase: null })
})

it('a question beside the work is answered while a tool runs', async () => {
  const script: Script = ({ messages }) => {
    const text = JSON.stringify(messages.at(-1)?.content)
    return text.includes('Use it') && !text.includes('beside the work')
      ? { blocks: [{ type: 'tool_use', name: 'slow', input: {} }] }
      : { blocks: [{ type: 'text', text: 'An answer.' }] }
  }
  const { tide } = createTestTidemark({ script, history: false, system: 'You are careful. '.repeat(600) })
  const session = await tide.open('talk')
  const asked: unknown[] = []
  const slow = {
    run: async () => {
      asked.push(await session.ask('What are you doing?'))
      return 'done'
    },
  }
  expect(await session.run('Use it', { tools: { slow } }).outcome).toMatchObject({ ok: true })
  expect(asked).toEqual([{ ok: true, text: 'An answer.' }])
})

it('the status tells the new view id as soon as the context was rewritten', async () => {
  const { open } = createWorld()
  const session = await open()
  const seen: string[] = []
  await say(session, 'One')
  session.on('status', ({ status }) => seen.push(`${status.operation} ${status.viewId}`))
  await session.clear()
  expect(seen).toContain(`clear ${session.status().viewId}`)
})

import { type FakeReply, SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { TurnEvent } from '../../src/engine/events.ts'
import type { TurnHost } from '../../src/engine/host.ts'
import type { ModelFailure } from '../../src/engine/reply.ts'
import {
  addLargeRound,
  compactNow,
  openTestSession,
  playTurn,
  reply,
  SUMMARY,
  type TestSession,
  type TestSessionOptions,
  text,
  toolCall,
  undoNow,
} from './test-session.ts'

const OVERFLOW: ModelFailure = { kind: 'overflow', retryable: false, message: 'prompt is too long' }

/** A conversation of so many rounds of 5,000 tokens. */
function told(rounds: number): SessionBuilder {
  const builder = new SessionBuilder('told')
  builder.user('look at the login')
  for (let round = 0; round < rounds; round += 1) addLargeRound(builder, 5_000)
  return builder
}

const open = (rounds: number, options: TestSessionOptions): Promise<TestSession> =>
  openTestSession(told(rounds).records, {
    policy: { switches: { microcompactEnabled: false } },
    window: 64_000,
    ...options,
  })

async function turn(
  made: TestSession,
  prompt: string | null = 'go on',
  host: Partial<TurnHost> = {},
): Promise<Played> {
  const { events, outcome } = await playTurn(made.run.state, { prompt }, { ...made.host, ...host })
  made.run.state = outcome.state
  return { events, end: outcome.ok ? 'done' : outcome.reason, types: typesOf(events) }
}

interface Played {
  readonly events: readonly TurnEvent[]
  readonly end: string
  readonly types: readonly string[]
}

const TOLD = new Set(['compact', 'compact-failed', 'breaker-open', 'reactive-compact', 'planned'])

function typesOf(events: readonly TurnEvent[]): readonly string[] {
  return events.map(({ type }) => type).filter((type) => TOLD.has(type))
}

const failed = (failure: ModelFailure): FakeReply => ({ blocks: [], failure })
const shownFailures = (events: readonly TurnEvent[]): number =>
  events.filter((event) => event.type === 'reply' && event.event.type === 'reply-failed').length

describe('room is made before a request', () => {
  it('once, and not again before something has come', async () => {
    const made = await open(7, { replies: [reply(text('Fine.'))] })
    const first = await turn(made)
    expect([first.types, first.end]).toEqual([['planned', 'compact'], 'done'])
    expect(JSON.stringify(made.asked[0]?.payload.messages)).toContain(SUMMARY.split('\n')[1])
    expect((await turn(made)).types).toEqual([])
  })

  it('and where that fails the turn goes on, until it has failed too often', async () => {
    let asked = 0
    const writeSummary = async (): Promise<null> => {
      asked += 1
      return null
    }
    const usage = { input: 44_500 }
    const calls = Array.from({ length: 6 }, (_, index) => ({ ...reply(toolCall(`call-x${index}`)), usage }))
    const done = { ...reply(text('Fine.')), usage }
    const made = await open(7, { replies: [...calls, done, done, done], room: { writeSummary } })
    const first = await turn(made)
    expect([asked, first.end, first.types.filter((type) => type === 'breaker-open').length]).toEqual([
      3,
      'done',
      1,
    ])
    await turn(made)
    expect(asked).toBe(4)
  })

  it('a success closes the breaker, also one by hand', async () => {
    const answers: (string | null)[] = [null, null, SUMMARY]
    const usage = { input: 44_500 }
    const made = await open(7, {
      replies: [toolCall('x1'), toolCall('x2'), text('Fine.')].map((block) => ({ ...reply(block), usage })),
      room: { writeSummary: async () => answers.shift() ?? null },
    })
    const { types } = await turn(made)
    expect(types.filter((type) => type !== 'planned')).toEqual([
      'compact-failed',
      'compact-failed',
      'compact',
    ])
    expect(made.run.state.context?.breaker).toEqual({ failures: 0, lastReason: null, at: -1 })
  })

  it('halts where nothing more fits and nothing could be done', async () => {
    const made = await open(11, { room: { writeSummary: async () => null } })
    const { end, events } = await turn(made)
    expect([end, made.asked.length]).toEqual(['full', 0])
    expect(events.at(-1)).toMatchObject({ outcome: { message: 'The host gave no summary.' } })
  })
})

describe('what was undone', () => {
  const undoneAt = async (rounds: number): Promise<TestSession> => {
    const fine = { ...reply(text('Fine.')), usage: { input: 44_500 } }
    const made = await open(rounds, { replies: [fine, fine] })
    expect((await compactNow(made)).ok).toBe(true)
    expect((await undoNow(made)).ok).toBe(true)
    return made
  }

  it('is not done again for the sake of caution before something was answered', async () => {
    const made = await undoneAt(7)
    expect((await turn(made)).types).toEqual([])
    expect((await turn(made)).types).toEqual(['planned', 'compact'])
  })

  it('is not done again by a turn without a prompt', async () => {
    const made = await undoneAt(8)
    expect((await turn(made, null)).types.filter((type) => type === 'compact')).toEqual([])
  })
})

describe('a request that the provider finds too long', () => {
  it('is made smaller and sent again, and nobody sees the failure', async () => {
    const made = await open(2, { replies: [failed(OVERFLOW), reply(text('Fine.'))] })
    const { events, end, types } = await turn(made)
    expect([end, types, shownFailures(events), made.asked.length]).toEqual([
      'done',
      ['reactive-compact', 'compact'],
      0,
      2,
    ])
    expect(JSON.stringify(made.asked[1]).length).toBeLessThan(JSON.stringify(made.asked[0]).length)
  })

  it('is let through where that does not help, once', async () => {
    const made = await open(2, { replies: [failed(OVERFLOW), failed(OVERFLOW)] })
    const { events, end } = await turn(made)
    expect([end, shownFailures(events), made.asked.length]).toEqual(['failed', 1, 2])
  })

  it('is let through where nothing can be compacted', async () => {
    const made = await open(2, { replies: [failed(OVERFLOW)], room: { writeSummary: async () => null } })
    const { events, end, types } = await turn(made)
    expect([end, shownFailures(events), types]).toEqual(['failed', 1, ['reactive-compact', 'compact-failed']])
  })

  it.each([
    ['another failure', { ...OVERFLOW, kind: 'auth' as const }, {}],
    ['reactive is off', OVERFLOW, { turn: { reactive: { enabled: false } } }],
    ['auto is off', OVERFLOW, { switches: { autoCompactEnabled: false } }],
  ])('is shown at once: %s', async (_, failure, policy) => {
    const made = await open(2, { replies: [failed(failure)], policy })
    const { events, end, types } = await turn(made)
    expect([end, shownFailures(events), types]).toEqual(['failed', 1, []])
  })

  it.each([
    ['by the stop reason', { blocks: [text('Half')], stop: 'window', usage: { input: 20_000 } }, 2],
    ['by the figures', { blocks: [text('Half')], stop: 'cut', usage: { input: 63_996 } }, 2],
    ['not where the answer was only long', { blocks: [text('Half')], stop: 'cut' }, 1],
  ])('an answer cut short for want of room is asked for again: %s', async (_, spoken, calls) => {
    const made = await open(2, { replies: [spoken, reply(text('Whole'))] })
    const { profile } = made.host
    const { types } = await turn(made, 'go on', { profile: { ...profile, window: 64_000 } })
    expect(types).toEqual(calls === 2 ? ['reactive-compact', 'compact'] : [])
  })

  it('is made after the results of a call that the window ended, before the next request', async () => {
    const cut: FakeReply = {
      blocks: [toolCall('x1')],
      stop: 'window',
      usage: { input: 14_000 },
    }
    const made = await open(2, { replies: [cut, reply(text('Whole'))] })
    const { types, end } = await turn(made)
    expect([types, end]).toEqual([['reactive-compact', 'compact'], 'done'])
    expect(JSON.stringify(made.asked[1]?.payload.messages).length).toBeLessThan(
      JSON.stringify(made.asked[0]?.payload.messages).length / 2,
    )
  })
})

import { createIdleCompaction } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CompactionOptions } from '../../src/compaction/plan-compaction.ts'
import type { RewriteRefusalReason } from '../../src/engine/events.ts'
import type { SessionHooks } from '../../src/engine/hooks.ts'
import type { CompactionServices, TurnHost } from '../../src/engine/host.ts'
import type { Signal } from '../../src/engine/ports.ts'
import { readSessionState } from '../../src/engine/session-state.ts'
import type { Switches } from '../../src/policy/switches.ts'
import type { ContextSource } from '../../src/sources/context-source.ts'
import { prepareNextRequest } from '../../src/turn/turn.ts'
import {
  addLargeRound,
  compactNow,
  LENIENT,
  openTestSession,
  PROVIDER_RULES,
  perform,
  playTurn,
  reopen,
  reply,
  SESSION,
  SUMMARY,
  type TestSession,
  text,
  textCarrier,
} from '../engine/test-session.ts'
import {
  buildSession,
  type CompactionPlan,
  compactionPlans,
  requestBytes,
  toCompactAsked,
} from './planned-compactions.ts'

interface Wrong {
  readonly room: Partial<CompactionServices>
  readonly reasons: readonly RewriteRefusalReason[]
  readonly asked?: Partial<CompactionOptions>
  /** Where it is called off. */
  readonly abortAt?: (signal: { aborted: boolean }) => Partial<CompactionServices>
}

const never = new Promise<never>(() => {})
const hooks = (more: SessionHooks): Partial<CompactionServices> => ({ hooks: more })
const throwing: ContextSource = {
  ...textCarrier('broken', { text: '' }),
  // biome-ignore lint/correctness/useYield: it never comes to that
  render: async function* () {
    throw new Error('no disk')
  },
}

/** Each way in which a compaction comes to nothing, and how it says so. */
const WRONG: Readonly<Record<string, Wrong>> = {
  'an empty summary': { room: { writeSummary: async () => '' }, reasons: ['no-summary'] },
  'a blank summary': { room: { writeSummary: async () => ' \n' }, reasons: ['no-summary'] },
  'no summary': { room: { writeSummary: async () => null }, reasons: ['no-summary'] },
  'a summary that throws': {
    room: {
      writeSummary: () => {
        throw new Error('gone')
      },
    },
    reasons: ['no-summary'],
  },
  'a summary that is rejected': {
    room: { writeSummary: () => Promise.reject(new Error('gone')) },
    reasons: ['no-summary'],
  },
  'a summary that never comes': { room: { writeSummary: () => never }, reasons: ['no-summary'] },
  'a huge summary': {
    room: { writeSummary: async () => `Summary:\n${'word '.repeat(60_000)}` },
    reasons: ['not-smaller'],
  },
  'a target that cannot be met': { room: {}, reasons: ['floor'], asked: { target: 5 } },
  'a veto': {
    room: hooks({ preCompact: [{ name: 'no', run: () => ({ block: 'not now' }) }] }),
    reasons: ['blocked'],
  },
  'called off in a hook': {
    room: {},
    reasons: ['aborted'],
    abortAt: (signal) => hooks({ preCompact: [{ name: 'a', run: () => stop(signal) }] }),
  },
  'called off in the summary': {
    room: {},
    reasons: ['aborted'],
    abortAt: (signal) => ({ writeSummary: async () => stop(signal) ?? SUMMARY }),
  },
  'called off while things are brought back': {
    room: {},
    reasons: ['aborted'],
    abortAt: (signal) => ({
      sources: [
        {
          ...textCarrier('todos', { text: 'x' }),
          // biome-ignore lint/correctness/useYield: it never comes to that
          render: async function* () {
            stop(signal)
          },
        },
      ],
    }),
  },
  'called off in a hook after it': {
    room: {},
    reasons: ['aborted'],
    abortAt: (signal) => hooks({ postCompact: [{ name: 'a', run: () => stop(signal) }] }),
  },
  'called off when the session starts anew': {
    room: {},
    reasons: ['aborted'],
    abortAt: (signal) => hooks({ sessionStart: [{ name: 'a', run: () => stop(signal) }] }),
  },
}

function stop(signal: { aborted: boolean }): undefined {
  signal.aborted = true
  return undefined
}

async function opened(
  story: CompactionPlan,
  room: Partial<CompactionServices>,
  signal?: Signal,
): Promise<TestSession> {
  const made = await openTestSession(buildSession(story).records, {
    room,
    profile: PROVIDER_RULES[story.provider] ?? LENIENT,
  })
  await perform(made, prepareNextRequest(made.run, 'prompt'))
  return signal === undefined ? made : { ...made, run: { ...made.run, signal } }
}

describe('law 6: what comes to nothing leaves everything as it was', () => {
  it.each(Object.entries(WRONG))('%s', async (_, wrong) => {
    let refusals = 0
    await fc.assert(
      fc.asyncProperty(compactionPlans(1), async (story) => {
        const signal = { aborted: false }
        const made = await opened(story, { ...wrong.room, ...wrong.abortAt?.(signal) }, signal)
        const { state } = made.run
        const bytes = requestBytes(state, made.host)
        const [asked] = story.acts
        const end = await compactNow(made, {
          ...(asked === undefined ? {} : toCompactAsked(state, asked)),
          ...wrong.asked,
        })
        expect(end.ok).toBe(false)
        refusals += !end.ok && wrong.reasons.includes(end.reason) ? 1 : 0
        expect([made.run.state.view, made.run.state.position]).toEqual([state.view, state.position])
        expect(requestBytes(made.run.state, made.host)).toBe(bytes)
        expect((await reopen(made)).position).toBe(state.position)
      }),
      { numRuns: 10 },
    )
    expect(refusals).toBeGreaterThan(0)
  })

  it('a carrier that throws takes nothing down: the others come, and it is told', async () => {
    const [story] = fc.sample(compactionPlans(1), { numRuns: 1, seed: 3 })
    const made = await opened(story as CompactionPlan, {
      sources: [throwing, textCarrier('plan', { text: 'plan: read' })],
    })
    expect((await compactNow(made)).ok).toBe(true)
    expect(made.events.filter(({ type }) => type === 'restore-failed')).toEqual([
      { type: 'restore-failed', carrier: 'broken', why: 'no disk' },
    ])
    expect(requestBytes(made.run.state, made.host)).toContain('plan: read')
  })
})

const OFF: Switches = { set: ['DISABLE_COMPACT'], autoCompactPercent: null }

/** A turn on a conversation that fills most of its window: what was sent, and whether anything was done about it. */
async function turnOn(
  story: CompactionPlan,
  changes: Partial<TurnHost>,
  hasRoom = true,
): Promise<readonly [unknown, boolean]> {
  const builder = buildSession(story)
  for (let round = 0; round < 9; round += 1) addLargeRound(builder, 5_000)
  const made = await openTestSession(builder.records, {
    host: changes,
    profile: PROVIDER_RULES[story.provider] ?? LENIENT,
    replies: [reply(text('Fine.'))],
  })
  const host: TurnHost = hasRoom ? made.host : { ...made.host, compaction: createIdleCompaction() }
  const { events } = await playTurn(
    await readSessionState(host.journal, SESSION),
    { prompt: 'and now?' },
    host,
  )
  const isAct = events.some(({ type }) => type === 'microcompact' || type === 'compact')
  return [made.asked.map(({ payload }) => payload.messages), isAct]
}

describe('law 8: off is off', () => {
  it('with every mechanism off, requests are those of a session without room', async () => {
    let acts = 0
    await fc.assert(
      fc.asyncProperty(compactionPlans(1), async (story) => {
        const [off, without, on] = [
          await turnOn(story, { switches: OFF }),
          await turnOn(story, {}, false),
          await turnOn(story, {}),
        ]
        expect(JSON.stringify(off[0]) === JSON.stringify(without[0])).toBe(true)
        expect(off[1]).toBe(false)
        acts += on[1] ? 1 : 0
      }),
      { numRuns: 10 },
    )
    expect(acts).toBeGreaterThan(3)
  })
})

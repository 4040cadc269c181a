/** Summarisers that answer wrong, however a compaction comes about: a good view, or a refusal that changed nothing. */
import { countPropertyRuns, sampleCases } from '@tidemark/core/testing'
import { user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { openTestSession } from '../support/test-tidemark.ts'
import { runTrial, startTrial, TRIGGERS, type Trial, trials } from './adversarial-trials.ts'
import { expectUntouched, fillTo, takeSnapshot } from './session-size.ts'

const SMALL = [8_000, 16_000, 32_000] as const

/** Of the 48 pairs of adversary and trigger, so many are tried in a window of 200,000 tokens as well. */
const IN_LARGE_WINDOW = countPropertyRuns(12, 4)

/** One small window for each adversary, another for each trigger, and a large one for some of them. */
function someWindows(place: number, way: number): readonly number[] {
  const small = SMALL.slice((place + way) % 3, ((place + way) % 3) + 1)
  return (place + way) % (48 / IN_LARGE_WINDOW) === 0 ? [...small, 200_000] : small
}

const named = (list: readonly Trial[]): readonly (readonly [string, Trial])[] =>
  list.map((trial) => [`${trial.adversary}, ${trial.trigger}, ${trial.window} tokens`, trial])

describe('a summariser that answers wrong', () => {
  it.each(sampleCases(named(trials(someWindows, 'last')), 10))(
    '%s: the view is valid and under its target',
    async (_, trial) => {
      expect(await runTrial(trial)).toMatchObject({ committed: true })
    },
  )

  it.each(
    sampleCases(
      named(trials(() => [8_000], 'never')).filter(([, { adversary }]) => adversary !== 'injection'),
      8,
    ),
  )('%s, and no other way allowed: refused, and nothing has changed', async (_, trial) => {
    expect(await runTrial(trial)).toMatchObject({ committed: false, summarizer: 'no-summary' })
  })
})

describe('a window that is smaller than anybody said', () => {
  it.each([...SMALL, 200_000])(
    'of %d tokens costs a model that sums up well one more call',
    async (window) => {
      const trial: Trial = { adversary: 'injection', trigger: 'reactive', window, local: 'last' }
      // In the smallest, the user's own words leave no room for the text of a model.
      const summarizer = window === 8_000 ? 'local' : 'model'
      expect(await runTrial(trial)).toMatchObject({ committed: true, summarizer, calls: 2 })
    },
  )
})

describe('what cannot be made smaller', () => {
  it.each([8_000, 32_000, 200_000])(
    'is named, in a window of %d tokens, and nothing has changed',
    async (window) => {
      const stage = await openTestSession({
        script: () => ({ blocks: [{ type: 'text', text: 'Yes.' }] }),
        window,
      })
      await fillTo(stage, window * 0.1, 'early')
      await stage.session.append(user(`Mind all of this. ${'word '.repeat(window * 1.5)}`))
      const before = takeSnapshot(stage)
      const end = await stage.session.compact()
      expect(end).toMatchObject({ ok: false, reason: 'floor' })
      const [largest] = !end.ok && 'floor' in end ? (end.floor ?? []) : []
      expect(largest?.what).toMatch(/^message not yet answered /)
      expect(largest?.tokens).toBeGreaterThan(window / 2)
      expectUntouched(stage, before)
    },
  )
})

describe('called off', () => {
  it.each(
    sampleCases(
      TRIGGERS.flatMap((trigger) => [1, 2, 4].map((call) => [trigger, call] as const)),
      4,
    ),
  )('%s, at call %d for a summary: nothing has changed, and it can be done again', async (trigger, call) => {
    const adversary = 'empty'
    const stage = await startTrial({ adversary, trigger, window: 16_000, local: 'last' })
    const before = takeSnapshot(stage)
    const stop = new AbortController()
    let calls = 0
    const off = stage.session.on('side-sent', () => {
      calls += 1
      if (calls === call) stop.abort()
    })
    const { session } = stage
    const { signal } = stop
    const end =
      trigger === 'manual' ? session.compact({ signal }) : session.run('And then?', { signal }).outcome
    expect(await end).toMatchObject({ ok: false, reason: 'aborted' })
    expect(calls).toBe(call)
    expectUntouched(stage, before)
    off()
    expect(await session.compact()).toMatchObject({ ok: true })
  })
})

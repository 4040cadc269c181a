import { countPropertyRuns, runToEnd } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toApiMessages } from '../../src/context/flatten-context.ts'
import { measureContext, updatePlanningStateInSlices } from '../../src/engine/measure-context.ts'
import { appendUnlinkedRecords, type TurnContext } from '../../src/engine/session-writer.ts'
import { buildRounds, compactNow, logLines, openRounds, reopen, type TestSession } from './test-session.ts'

/** A session of so many rounds, with a summary from the log. `onPause` is called at each pause, which are counted from 1. */
async function openLong(
  rounds: number,
  onPause: (nth: number, made: TestSession) => Promise<void> | void = () => {},
  signal?: { readonly aborted: boolean },
): Promise<{ readonly made: TestSession; readonly countPauses: () => number }> {
  let pauses = 0
  const pause = async (): Promise<void> => {
    pauses += 1
    await onPause(pauses, made)
  }
  const opened = await openRounds(
    {
      byChain: true,
      window: 1_000_000,
      policy: { compact: { chain: { local: 'only' } } },
      host: { pause },
    },
    buildRounds(rounds, 2_000),
  )
  const made: TestSession = { ...opened, run: { ...opened.run, signal } }
  return { made, countPauses: () => pauses }
}

async function countPausesOf(rounds: number): Promise<number> {
  const { made, countPauses } = await openLong(rounds)
  expect(await compactNow(made)).toMatchObject({ ok: true })
  return countPauses()
}

async function appendWords(run: TurnContext, words: string): Promise<void> {
  const body = { type: 'user' as const, message: { role: 'user' as const, content: words } }
  expect(await runToEnd(appendUnlinkedRecords(run, [body]))).toBeNull()
}

describe('a compaction of a long session', () => {
  it('lets the host run other work, the more often the longer the session is', async () => {
    const [short, long] = [await countPausesOf(40), await countPausesOf(160)]
    expect(long).toBeGreaterThan(2 * short)
    expect(long).toBeLessThan(5 * short)
  })

  it('ends as it does without a pause', async () => {
    const [paused, whole] = [await openLong(40), await openLong(40)]
    const { pause: _, ...host } = whole.made.host
    const unpaused: TestSession = { ...whole.made, run: { ...whole.made.run, host } }
    const ends = [await compactNow(paused.made), await compactNow(unpaused)]
    expect(ends[0]).toEqual(ends[1])
    expect(logLines(await reopen(paused.made))).toEqual(logLines(await reopen(whole.made)))
  })

  it('stops and leaves the session as it was if it is aborted during a pause before the commit', async () => {
    const all = await countPausesOf(40)
    const ends: string[] = []
    for (let nth = 1; nth <= all; nth += 1) {
      const signal = { aborted: false }
      const { made, countPauses } = await openLong(
        40,
        (now) => {
          if (now === nth) signal.aborted = true
        },
        signal,
      )
      const before = [logLines(made.run.state), toApiMessages(made.run.state.flat)]
      const end = await compactNow(made)
      ends.push(end.ok ? 'committed' : end.reason)
      const after = [logLines(await reopen(made)), toApiMessages(made.run.state.flat)]
      if (end.ok) expect(after[0]?.length).toBeGreaterThan(before[0]?.length ?? 0)
      else {
        expect(after).toEqual(before)
        expect(countPauses()).toBeLessThan(nth + 5)
      }
    }
    // The pauses after the commit come last: what is in the log is not called aborted.
    const committed = ends.indexOf('committed')
    expect(new Set(ends.slice(0, committed))).toEqual(new Set(['aborted']))
    expect(new Set(ends.slice(committed))).toEqual(new Set(['committed']))
  })

  it('keeps every message that is appended during a pause, once and in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }), async (choices) => {
        const sent: string[] = []
        const { made } = await openLong(40, async (nth, { run }) => {
          if (choices[nth % choices.length] !== true) return
          const words = `typed at pause ${nth}`
          sent.push(words)
          await appendWords(run, words)
        })
        expect(await compactNow(made)).toMatchObject({ ok: true })
        for (const { flat, session } of [made.run.state, await reopen(made)]) {
          const shown = JSON.stringify(toApiMessages(flat)).match(/typed at pause \d+/g) ?? []
          expect(shown).toEqual(sent)
          const logged = [...session.records].flatMap((record) => {
            const text = JSON.stringify(record)
            return record.type === 'user' ? (text.match(/typed at pause \d+/g) ?? []) : []
          })
          expect(logged).toEqual(sent)
        }
      }),
      { numRuns: countPropertyRuns(20) },
    )
  })
})

describe('a long session that is measured in slices', () => {
  it('has the size of all its messages, also of those that were appended meanwhile', async () => {
    const { made, countPauses } = await openLong(200, (_, { run }) =>
      appendWords(run, 'typed meanwhile '.repeat(99)),
    )
    const before = measureContext(made.run.state, made.host)
    const { made: other, countPauses: countOthers } = await openLong(200)
    expect(await updatePlanningStateInSlices(made.run)).toBe(true)
    expect(await updatePlanningStateInSlices(other.run)).toBe(true)
    expect([countPauses() > 0, countOthers() > 0]).toEqual([true, true])
    expect(measureContext(other.run.state, other.host)).toEqual(before)
    const after = measureContext(made.run.state, made.host)
    expect(after.expected).toBeGreaterThan(before.expected)
    expect(after).toEqual(measureContext(await reopen(made), made.host))
  })
})

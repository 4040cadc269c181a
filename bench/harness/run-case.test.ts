import { describe, expect, it } from 'vitest'
import { type BenchCase, meets } from './bench-case.ts'
import { lastResult, measure, median, type Stopwatch } from './measure.ts'
import { benchJson, benchTable } from './report.ts'
import { runCase } from './run-case.ts'

/** A watch that stands still but for what the calls add to it. */
function fakeWatch(): Stopwatch & { pass(ms: number): void; collected: number } {
  let at = 0
  return {
    now: () => at,
    pass(ms) {
      at += ms
    },
    collect() {
      this.collected += 1
    },
    collected: 0,
  }
}

const effort = { rounds: 5, sampleMs: 8 }

describe('measure', () => {
  it('gives time per call, calls per sample found by trial', async () => {
    const watch = fakeWatch()
    const contest = { subject: () => watch.pass(3), baseline: () => watch.pass(2) }
    expect(await measure(contest, effort, watch)).toEqual({ ratio: 1.5, subjectMs: 3, baselineMs: 2 })
  })

  it('takes turns at going first and collects before each sample', async () => {
    const watch = fakeWatch()
    let order = ''
    const side = (letter: string) => () => {
      order += letter
      watch.pass(1)
    }
    await measure(
      { subject: side('s'), baseline: side('b'), calls: { subject: 1, baseline: 2 } },
      effort,
      watch,
    )
    expect([order, watch.collected]).toEqual(['sbbbbssbbbbssbb', 10])
  })

  it('does not time what precedes a sample', async () => {
    const watch = fakeWatch()
    const contest = {
      subject: () => watch.pass(3),
      baseline: () => watch.pass(2),
      before: { subject: () => watch.pass(100), baseline: async () => watch.pass(50) },
    }
    expect(await measure(contest, effort, watch)).toEqual({ ratio: 1.5, subjectMs: 3, baselineMs: 2 })
  })

  it('lets one bad round pass', async () => {
    const watch = fakeWatch()
    const times = [1, 1, 90, 1, 1]
    const contest = {
      subject: () => watch.pass(times.shift() ?? 1),
      baseline: () => watch.pass(1),
      calls: { subject: 1, baseline: 1 },
    }
    expect(await measure(contest, effort, watch)).toEqual({ ratio: 1, subjectMs: 1, baselineMs: 1 })
  })

  it('waits for asynchronous calls and keeps what they return', async () => {
    const watch = fakeWatch()
    const slow = (ms: number) => async () => {
      await null
      watch.pass(ms)
      return 'kept'
    }
    const measured = await measure({ subject: slow(4), baseline: slow(1) }, effort, watch)
    expect([measured.ratio, await lastResult()]).toEqual([4, 'kept'])
  })

  it('stops growing a sample of calls that cost nothing', async () => {
    const contest = { subject: () => 1, baseline: () => 1 }
    const { subjectMs } = await measure(contest, { rounds: 1, sampleMs: 1 }, fakeWatch())
    expect(subjectMs).toBe(0)
  })
})

it.each([
  [[3, 1, 2], 2],
  [[4, 1, 2, 3], 2.5],
  [[7], 7],
])('the median of %j is %d', (values, expected) => {
  expect(median(values)).toBe(expected)
})

describe('runCase', () => {
  /** A case whose n-th attempt has the n-th of the given ratios. */
  function scripted(ratios: readonly number[], bound: BenchCase['bound']) {
    const watch = fakeWatch()
    const closed: number[] = []
    let attempt = -1
    const benchCase: BenchCase = {
      name: 'scripted',
      compares: 'a with b',
      bound,
      rounds: 3,
      prepare: () => {
        attempt += 1
        const subject = ratios[attempt] ?? 0
        return {
          subject: () => watch.pass(subject),
          baseline: () => watch.pass(1),
          calls: { subject: 1, baseline: 1 },
          close: () => void closed.push(attempt),
        }
      },
    }
    return { benchCase, watch, closed }
  }

  it.each([
    ['met by the median, at the bound itself', [1.5, 9, 1], { atMost: 1.5 }, true, 1.5],
    ['missed by the median, though the first attempt met it', [1, 3, 2], { atMost: 1.5 }, false, 2],
    ['missed by the median, though the last attempt met it', [2, 3, 1], { atMost: 1.5 }, false, 2],
    ['a least', [5, 2, 4], { atLeast: 4 }, true, 4],
  ])('%s', async (_what, ratios, bound, ok, ratio) => {
    const { benchCase, watch, closed } = scripted(ratios, bound)
    const result = await runCase(benchCase, watch, effort)
    expect(result).toMatchObject({ ok, ratio, ratios, subjectMs: ratio, baselineMs: 1 })
    expect(closed).toEqual([0, 1, 2])
  })

  it('tells a case that breaks, after closing it', async () => {
    const { benchCase, watch } = scripted([1], { atMost: 1 })
    let closed = false
    const broken: BenchCase = {
      ...benchCase,
      prepare: () => ({
        subject: () => {
          throw new Error('out of paper')
        },
        baseline: () => 1,
        close: () => {
          closed = true
        },
      }),
    }
    const result = await runCase(broken, watch, effort)
    expect([result.ok, result.error, closed]).toEqual([false, 'out of paper', true])
    expect(benchTable([result])).toContain('broke: out of paper')
  })
})

it('no ratio meets no bound', () => {
  expect([meets(Number.NaN, { atMost: 1 }), meets(Number.NaN, { atLeast: 1 })]).toEqual([false, false])
})

it('reports as a table and as one JSON value', () => {
  const result = {
    name: 'append-is-flat',
    compares: 'late with early',
    bound: { atMost: 1.5 },
    ratio: 1.25,
    ratios: [2, 1.25, 1],
    subjectMs: 0.0125,
    baselineMs: 1.5,
    ok: true,
    error: null,
  }
  expect(benchTable([result])).toBe(
    [
      'case            ratio  attempts          bound   subject   baseline  verdict  compares',
      '--------------  -----  ----------------  ------  --------  --------  -------  ---------------',
      'append-is-flat  1.25   2.00, 1.25, 1.00  ≤ 1.50  12.50 µs  1.50 ms   ok       late with early',
    ].join('\n'),
  )
  expect(JSON.parse(benchJson([result]))).toEqual({ ok: true, cases: [result] })
})

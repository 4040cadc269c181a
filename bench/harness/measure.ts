/** Times the two sides of a contest against each other, in turns, so that a slow moment of the machine hits both. */
import type { Contest } from './bench-case.ts'

export interface Stopwatch {
  /** Milliseconds, with a fraction. */
  now(): number
  /** Collects garbage where the runtime lets us, so that one side does not pay for the other's. */
  collect(): void
}

export interface Measured {
  /** Median over the rounds of subject time per call over baseline time per call. */
  readonly ratio: number
  /** Median time of one call. */
  readonly subjectMs: number
  readonly baselineMs: number
}

export interface Effort {
  readonly rounds: number
  /** Shortest sample worth trusting; the number of calls in a sample grows until it takes this long. */
  readonly sampleMs: number
}

export const USUAL_EFFORT: Effort = { rounds: 15, sampleMs: 5 }

/** No sample has more calls than this, however short they are: a call that costs nothing must not run for ever. */
const MOST_CALLS = 1 << 22

interface Side {
  call(): unknown
  before(): unknown
  readonly isSelfTimed: boolean
}

export async function measure(contest: Contest, effort: Effort, watch: Stopwatch): Promise<Measured> {
  const { before, isSelfTimed = false } = contest
  const subject: Side = { call: () => contest.subject(), before: () => before?.subject(), isSelfTimed }
  const baseline: Side = { call: () => contest.baseline(), before: () => before?.baseline(), isSelfTimed }
  const calls = contest.calls ?? {
    subject: await callsFor(subject, effort.sampleMs, watch),
    baseline: await callsFor(baseline, effort.sampleMs, watch),
  }
  const rounds: { readonly subject: number; readonly baseline: number }[] = []
  for (let round = 0; round < effort.rounds; round += 1) {
    const first = round % 2 === 0
    const early = first ? await sample(subject, calls.subject, watch) : null
    const base = await sample(baseline, calls.baseline, watch)
    rounds.push({ subject: early ?? (await sample(subject, calls.subject, watch)), baseline: base })
  }
  return {
    ratio: median(rounds.map((round) => round.subject / round.baseline)),
    subjectMs: median(rounds.map((round) => round.subject)),
    baselineMs: median(rounds.map((round) => round.baseline)),
  }
}

async function callsFor(side: Side, sampleMs: number, watch: Stopwatch): Promise<number> {
  for (let calls = 1; ; calls *= 2) {
    const took = (await sample(side, calls, watch)) * calls
    if (took >= sampleMs || calls >= MOST_CALLS) return calls
  }
}

/** Milliseconds a call. */
async function sample({ call, before, isSelfTimed }: Side, calls: number, watch: Stopwatch): Promise<number> {
  await before()
  watch.collect()
  const start = watch.now()
  let own = 0
  for (let index = 0; index < calls; index += 1) {
    kept = call()
    if (kept instanceof Promise) kept = await kept
    if (isSelfTimed) own += Number(kept)
  }
  return (isSelfTimed ? own : watch.now() - start) / calls
}

/** Where results go, so that no compiler may skip the work. */
let kept: unknown

export function lastResult(): unknown {
  return kept
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

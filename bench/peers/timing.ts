/** Times requests of one conversation against those of another, in turns, with what they use up readied before. */
import { type Effort, type Measured, measure, type Stopwatch } from '../harness/measure.ts'
import type { Ask, Conversation } from './contender.ts'

const watch: Stopwatch = { now: () => performance.now(), collect: () => globalThis.gc?.({ type: 'minor' }) }

/** A request that takes longer is measured less often: it stands out of the noise anyway. */
const LONG_MS = 500
const SAMPLE_MS = 5
const MOST_CALLS = 10

export async function compareTimes(subject: Conversation, baseline: Conversation): Promise<Measured> {
  const [one, other] = [await timeOnce(subject), await timeOnce(baseline)]
  const effort: Effort = { rounds: Math.max(one, other) > LONG_MS ? 3 : 7, sampleMs: SAMPLE_MS }
  const calls = { subject: callsFor(one), baseline: callsFor(other) }
  const [first, second] = [
    await pool(subject, calls.subject * effort.rounds),
    await pool(baseline, calls.baseline * effort.rounds),
  ]
  return measure({ subject: () => next(first), baseline: () => next(second), calls }, effort, watch)
}

/** The second of two, since the first compiles; one that is long anyway is enough. */
async function timeOnce(conversation: Conversation): Promise<number> {
  const { ms } = await timed(await conversation.ready())
  return ms > LONG_MS ? ms : (await timed(await conversation.ready())).ms
}

export async function timed<T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly value: T }> {
  const start = watch.now()
  const value = await work()
  return { ms: watch.now() - start, value }
}

function callsFor(ms: number): number {
  return Math.min(MOST_CALLS, Math.max(1, Math.ceil(SAMPLE_MS / ms)))
}

async function pool(conversation: Conversation, count: number): Promise<Ask[]> {
  const asks: Ask[] = []
  for (let index = 0; index < count; index += 1) asks.push(await conversation.ready())
  return asks
}

function next(asks: Ask[]): Promise<unknown> {
  const request = asks.pop()
  if (request === undefined) throw new Error('more requests than were readied')
  return request()
}

/** What callers hand in, checked at the door: a wrong argument is told at once and in words. */
import { TidemarkError } from '@tidemark/core'
import { show } from '../home/show.ts'
import { isPlain } from './lock-owner.ts'

/** Any number: one that the log is not at is a conflict, not a mistake. */
export function checkAfter(after: unknown): void {
  if (typeof after === 'number') return
  refuse('after', after, 'the position to append behind, 0 in an empty session')
}

export function checkFrom(from: unknown): void {
  if (Number.isSafeInteger(from) && Number(from) >= 0) return
  refuse('from', from, 'the position to read on from, a whole number from 0 on')
}

export function checkVisit(visit: unknown): void {
  if (typeof visit !== 'function') refuse('visit', visit, 'a function that takes records')
}

/** Written into the lock: a name that nobody could read there would make the lock worthless. */
export function checkProgram(program: string): string {
  if (isPlain(program)) return program
  return refuse('program', program, 'a name of at most 200 characters, all on one line')
}

/** Thirty years. It is added to a time, which has an end. */
const LONGEST_MS = 1e12

export function checkStaleLock(ms: number): number {
  if (typeof ms === 'number' && ms >= 1 && ms <= LONGEST_MS) return ms
  return refuse('staleLockMs', ms, `a number of milliseconds from 1 to ${LONGEST_MS}`)
}

function refuse(name: string, given: unknown, expected: string): never {
  const message = `${name} is ${show(given)}: it has to be ${expected}.`
  throw new TidemarkError('bad-option', message, { details: { name, given } })
}

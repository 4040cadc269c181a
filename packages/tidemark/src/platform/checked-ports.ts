/**
 * The clock, id generator and journal that a caller gave, with their values checked and their errors named, so that a
 * failure says which of them failed.
 */
import type { Clock, IdGenerator, Journal } from '@tidemark/core/engine/ports'
import { TidemarkError } from '@tidemark/core/errors'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { badOptionError } from './argument-errors.ts'

/** Latest time that a date can express, in milliseconds since 1970. */
const MAX_TIME_MS = 8.64e15

/** Returns the clock with a check of its time, now and at each later call: a log needs times that are dates. */
export function withCheckedTime(clock: Clock): Clock {
  const checked: Clock = {
    now() {
      const time: unknown = callPort('clock', 'now', () => clock.now())
      if (typeof time === 'number' && Math.abs(time) <= MAX_TIME_MS) return time
      throw badOptionError(
        'clock',
        `clock: now() returned ${formatErrorValue(time)}; expected milliseconds since 1970.`,
      )
    },
    sleep: (ms, signal) => clock.sleep(ms, signal),
    sleepInBackground: (ms, signal) =>
      clock.sleepInBackground === undefined ? clock.sleep(ms, signal) : clock.sleepInBackground(ms, signal),
  }
  checked.now()
  return checked
}

/** Returns the id generator with a check of each id: records need an id that is a text. */
export function withCheckedIds(ids: IdGenerator): IdGenerator {
  return {
    next(kind) {
      const id: unknown = callPort('ids', 'next', () => ids.next(kind))
      if (typeof id === 'string' && id !== '') return id
      throw badOptionError('ids', `ids: next() returned ${formatErrorValue(id)}; expected a unique text.`)
    },
  }
}

/** Calls a method of a port that the caller gave. An exception becomes one that names the port. */
function callPort<T>(port: string, method: string, call: () => T): T {
  try {
    return call()
  } catch (thrown) {
    throw namePortError(port, method, thrown)
  }
}

function namePortError(port: string, method: string, thrown: unknown): TidemarkError {
  if (thrown instanceof TidemarkError) return thrown
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  const code = port === 'journal' ? 'io-failed' : 'bad-option'
  const details = { option: port }
  return new TidemarkError(code, `${port}: ${method}() failed: ${why}`, { cause: thrown, details })
}

/** Returns the caller's journal, whose errors name it. */
export function withNamedErrors(journal: Journal): Journal {
  const name = async <T>(method: string, call: () => Promise<T>): Promise<T> => {
    try {
      return await call()
    } catch (thrown) {
      throw namePortError('journal', method, thrown)
    }
  }
  return {
    read: (...input) => name('read', () => journal.read(...input)),
    append: (...input) => name('append', () => journal.append(...input)),
    list: () => name('list', () => journal.list()),
    release: (session) => name('release', () => journal.release(session)),
  }
}

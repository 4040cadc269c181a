/**
 * Wraps the clock, id generator, journal and model that a caller gave: checks their values, names the port in their
 * errors, and adds the fields that the engine expects to their records and replies.
 */
import type { Clock, IdGenerator, Journal, Model, NewRecord } from '@tidemark/core/engine/ports'
import { overlayFields, type Reply, type ReplyEvent } from '@tidemark/core/engine/reply'
import { describeThrown, TidemarkError } from '@tidemark/core/errors'
import type { JsonObject } from '@tidemark/core/log/json'
import type { SessionRecord } from '@tidemark/core/log/record'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { readReplyReport } from '@tidemark/wire/providers/message-object'
import { fromStoredRecord, toStoredRecord } from '@tidemark/wire/readers/stored-records'
import { badOptionError } from './argument-errors.ts'

/** Latest time that a date can express, in milliseconds since 1970. */
const MAX_TIME_MS = 8.64e15

/**
 * Returns the clock with a check, now and at each call, that its time is a valid date, because records have timestamps.
 * Throws `bad-option` otherwise.
 */
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

/** Returns the id generator with a check that each id is a text that is not empty. Throws `bad-option` otherwise. */
export function withCheckedIds(ids: IdGenerator): IdGenerator {
  return {
    next(kind) {
      const id: unknown = callPort('ids', 'next', () => ids.next(kind))
      if (typeof id === 'string' && id !== '') return id
      throw badOptionError('ids', `ids: next() returned ${formatErrorValue(id)}; expected a unique text.`)
    },
  }
}

/** Calls a method of a caller's port. If it throws, the error names the port. */
function callPort<T>(port: string, method: string, call: () => T): T {
  try {
    return call()
  } catch (thrown) {
    throw namePortError(port, method, thrown)
  }
}

function namePortError(port: string, method: string, thrown: unknown): TidemarkError {
  if (thrown instanceof TidemarkError) return thrown
  const why = describeThrown(thrown)
  const code = port === 'journal' ? 'io-failed' : 'bad-option'
  const details = { option: port }
  return new TidemarkError(code, `${port}: ${method}() failed: ${why}`, { cause: thrown, details })
}

/**
 * Returns the caller's journal with two changes: its errors name the journal (`io-failed`), and provider data is stored
 * in the form of the Messages API and read in the neutral form.
 */
export function withNeutralRecords(journal: Journal): Journal {
  const name = async <T>(method: string, call: () => Promise<T>): Promise<T> => {
    try {
      return await call()
    } catch (thrown) {
      throw namePortError('journal', method, thrown)
    }
  }
  return {
    read: (session, visit, ...from) =>
      name('read', () => journal.read(session, (records) => visit(records.map(fromStoredRecord)), ...from)),
    append: async (session, after, records) => {
      const stored = records.map((record) => toStoredRecord(record as SessionRecord) as NewRecord)
      const outcome = await name('append', () => journal.append(session, after, stored))
      return outcome.ok ? { ...outcome, records: outcome.records.map(fromStoredRecord) } : outcome
    },
    list: (...prefix) => name('list', () => journal.list(...prefix)),
    release: (session) => name('release', () => journal.release(session)),
  }
}

/**
 * Returns a model whose replies have usage and other provider data in the neutral form, too. A caller's model may set
 * only the fields of the Messages API.
 */
export function withNeutralReplies(model: Model): Model {
  return {
    async *stream(call, signal) {
      let figures: JsonObject = {}
      let fields: JsonObject = {}
      const read = (event: ReplyEvent): ReplyEvent => {
        switch (event.type) {
          case 'reply-started':
            figures = event.message.usage ?? {}
            return { report: readReplyReport(event.message, figures), ...event }
          case 'reply-updated':
            figures = overlayFields(figures, event.usage ?? {})
            fields = overlayFields(fields, event.fields)
            return { report: readReplyReport(fields, figures), ...event }
          case 'reply-ended':
            return { ...event, reply: withReport(event.reply) }
          case 'reply-failed':
            return event.reply === null ? event : { ...event, reply: withReport(event.reply) }
          default:
            return event
        }
      }
      for await (const event of model.stream(call, signal)) yield read(event)
    },
  }
}

function withReport(reply: Reply): Reply {
  const { message, figures = message.usage ?? {}, ...rest } = reply
  const report = readReplyReport(message, figures)
  if (reply.usage !== undefined || report.usage === undefined) return { ...report, ...reply }
  return { ...report, ...rest, message: { ...message, usage: figures } }
}

/** A conversation told again from its log, call by call: what each request sent, and what was written since the last. */
import {
  advance,
  emptySession,
  emptyView,
  type Flat,
  flatten,
  reduce,
  type SessionRecord,
} from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'
import { type Call, keyOf } from '../calls.ts'
import { type Prefix, prefixBy, UNTOLD_PREFIX } from './sent-from-log.ts'
import { createSettingsReader, type TurnSettings } from './turn-settings.ts'

export interface Moment {
  readonly call: Call
  /** Of the first record of the response. */
  readonly line: number
  readonly record: SessionRecord
  /** When the request was sent, in milliseconds, as near as the log tells; 0 where it does not. */
  readonly at: number
  readonly flat: Flat
  readonly prefix: Prefix
  readonly settings: TurnSettings
  /** The act that the view last went through; null for none. */
  readonly act: string | null
  /** From the first record of the response before up to this one. */
  readonly since: readonly ReadRecord[]
}

/** Calls of which the log has no usage are passed over: nothing is known of what they read. */
export function* momentsOf(records: readonly ReadRecord[], calls: readonly Call[]): Generator<Moment> {
  const waiting = new Map(calls.filter(({ usage }) => usage !== null).map((call) => [call.key, call]))
  const settings = createSettingsReader()
  let session = emptySession()
  let view = emptyView()
  let flat = flatten(view)
  let prefix = UNTOLD_PREFIX
  let since: ReadRecord[] = []
  for (const read of records) {
    const key = keyOf(read.record)
    const call = key === null ? undefined : waiting.get(key)
    if (call !== undefined && key !== null) {
      waiting.delete(key)
      view = advance(view, session)
      flat = flatten(view, flat)
      const act = view.acts.at(-1)?.uuid ?? null
      const shared = { call, ...read, flat, prefix, settings: settings.standing, act, since }
      yield { ...shared, at: sentAt(since, call) }
      since = []
    }
    since.push(read)
    settings.take(read)
    prefix = prefixBy(read.record, prefix)
    session = reduce(session, read.record)
  }
}

const SAID = new Set(['user', 'attachment'])

/** The newest thing said before the response began, and no later than that. */
function sentAt(since: readonly ReadRecord[], call: Call): number {
  const answered = timeOf(call.at) ?? 0
  const said = since.flatMap(({ record }) => (SAID.has(record.type) ? (momentOf(record) ?? []) : []))
  const newest = said.filter((time) => time <= answered).reduce((most, time) => Math.max(most, time), 0)
  return newest === 0 ? answered : newest
}

function momentOf({ timestamp }: SessionRecord): number | null {
  return typeof timestamp === 'string' ? timeOf(timestamp) : null
}

function timeOf(text: string): number | null {
  const time = Date.parse(text)
  return Number.isNaN(time) ? null : time
}

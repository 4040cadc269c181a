/** From what a person asks of a log to the records that count and what the engine is asked for. */
import type { CompactAsked, SessionRecord } from '@tidemark/core'
import { asOf, type LogAsOf } from './as-of.ts'
import type { CompactLogOptions, CompactLogRefusal } from './compact-options.ts'
import { namedRecord } from './named-record.ts'
import { restamped } from './whole-log.ts'

export type Cut = LogAsOf | CompactLogRefusal

/** In a journal of its own nothing can be left out: there the newest record counts. */
export function cutOf(all: readonly SessionRecord[], { at, journal }: CompactLogOptions): Cut {
  const named = at === undefined ? null : namedRecord(all, at)
  if (named?.ok === false) return { ok: false, reason: 'bad-record', message: `${named.why}.` }
  const cut = asOf(all, named === null ? null : named.uuid)
  if (!cut.ok)
    return { ok: false, reason: 'empty-conversation', message: `There is nothing to compact: ${cut.why}.` }
  if (journal !== undefined) return { ...cut, records: all, movedFrom: null, leftOut: 0 }
  return { ...cut, records: restamped(cut.records) }
}

export type Asked =
  | { readonly ok: true; readonly asked: CompactAsked }
  | { readonly ok: false; readonly message: string }

export function askedOf(all: readonly SessionRecord[], options: CompactLogOptions): Asked {
  const { from, upTo, instructions, target } = options
  const given = from ?? upTo
  const pivot = given === undefined ? null : namedRecord(all, given)
  if (pivot?.ok === false) return { ok: false, message: `${pivot.why}.` }
  return {
    ok: true,
    asked: {
      trigger: 'manual',
      cause: 'person',
      ...(pivot === null ? {} : { form: from === undefined ? 'up_to' : 'from', pivot: pivot.uuid }),
      ...(instructions === undefined ? {} : { instructions }),
      ...(target === undefined ? {} : { target }),
    },
  }
}

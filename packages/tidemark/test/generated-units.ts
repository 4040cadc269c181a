/** A long generated session as units to append, and the problems of the request that a log of it leads to. */

import { emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { flattenContext, toApiMessages } from '@tidemark/core/context/flatten-context'
import type { NewRecord } from '@tidemark/core/engine/ports'
import type { SessionRecord } from '@tidemark/core/log/record'
import { appendRecord, emptySessionLog } from '@tidemark/core/log/session-log'
import { createChoices, generateSession } from '@tidemark/core/testing'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'

/** Lists of records, each to be appended as one batch, without positions. */
export function generateUnits(seed: number, choices: number): readonly NewRecord[][] {
  const units: NewRecord[][] = []
  for (const { seq: _seq, batch, ...record } of generateSession(createChoices(seed, choices)).records) {
    if (batch === undefined || batch.index === 0) units.push([])
    units.at(-1)?.push(record)
  }
  return units
}

export function withoutStamps(records: readonly SessionRecord[]): readonly NewRecord[] {
  return records.map(({ seq: _seq, batch: _batch, ...record }) => record)
}

const profile = defineMessagesProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [] },
})
const own = ['Read', 'Bash', 'Edit'].map((name) => ({ name, input_schema: { type: 'object' } }))
const tools = [...own, { type: 'search_1', name: 'web_search' }]

/** What a provider would refuse about the next request of a session with these records. */
export function findRequestProblems(records: readonly SessionRecord[]): readonly unknown[] {
  let session = emptySessionLog()
  let view = emptyContextView()
  for (const record of records) {
    session = appendRecord(session, record)
    view = updateContextView(view, session)
  }
  const messages = toApiMessages(flattenContext(view))
  return messages.length === 0
    ? []
    : validateRequest({ model: 'model-a', max_tokens: 100, tools, messages }, profile)
}

/** A recorded session as one line of records with nothing rewritten in it: what a planner can be tried on. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { gunzipSync } from 'node:zlib'
import {
  isKnownRecord,
  isRewriteBoundary,
  isSyntheticError,
  type KnownRecord,
  type SessionRecord,
} from '@tidemark/core/log/record'
import { buildSessionLog, requireRecordAt } from '@tidemark/core/log/session-log'
import { createLogReader } from '@tidemark/wire/readers/log-format'

export function readRecords(file: string): readonly SessionRecord[] {
  const bytes = readFileSync(file)
  const text = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  const reader = createLogReader(basename(file).startsWith('codex') ? 'codex' : 'claude-code')
  const records = text.split('\n').flatMap((line) => reader.readLine(line))
  return [...records, ...reader.finish().records].map(({ record }) => record)
}

/** The branch that counts, in order, without the acts of whoever led it; each follows the one before. */
export function linear(records: readonly SessionRecord[]): readonly KnownRecord[] {
  const session = buildSessionLog(records)
  const branch = [...session.branch].map((index) => requireRecordAt(session, index)).filter(isKnownRecord)
  const said = branch.filter(
    (record) =>
      record.type !== 'system' &&
      record.type !== 'progress' &&
      !isRewriteBoundary(record) &&
      !isOfActs(record),
  )
  return said.map((record, index) => ({ ...record, parentUuid: said[index - 1]?.uuid ?? null }))
}

function isOfActs(record: KnownRecord): boolean {
  return record.isCompactSummary === true || isSyntheticError(record)
}

/** What the provider counted measured another conversation than the one replayed. */
export function unmeasured(record: KnownRecord): KnownRecord {
  if (record.type !== 'assistant') return record
  const { usage: _, ...message } = record.message
  return { ...record, message: message as typeof record.message }
}

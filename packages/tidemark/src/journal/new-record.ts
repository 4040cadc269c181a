/** What a record has to be to be appended: whole, and the same when it is read back. Reading takes less. */
import {
  type Decoded,
  decodeRecord,
  firstNonJson,
  isKnown,
  isObject,
  isTooDeep,
  MAX_DEPTH,
  type SessionRecord,
} from '@tidemark/core'

type Fields = { readonly [field: string]: unknown }

/** The record without position and batch, which are the journal's to give; or why it cannot be appended. */
export function readNewRecord(given: unknown): Decoded {
  if (!isObject(given)) return { ok: false, why: 'a record is an object' }
  const { seq: _seq, batch: _batch, ...fields } = given
  if (isTooDeep(fields)) return { ok: false, why: TOO_DEEP }
  const decoded = decodeRecord(fields)
  if (!decoded.ok) return decoded
  const why = problemOf(decoded.record, fields) ?? noteProblem(decoded.note)
  return why === null ? decoded : { ok: false, why }
}

const TOO_DEEP = `it is nested more than ${MAX_DEPTH} levels deep, or in itself`

function problemOf(record: SessionRecord, fields: Fields): string | null {
  if (record.type === 'tidemark') return 'the type tidemark is for headers'
  return linkProblem(record, fields) ?? rawBlocksProblem(fields.rawBlocks) ?? valueProblem(fields)
}

function noteProblem(note: string | undefined): string | null {
  return note === undefined ? null : `it would not be read back as it is: ${note}`
}

/** A line of another tool may lack them; one of ours never does. */
function linkProblem(record: SessionRecord, { parentUuid, timestamp, sessionId }: Fields): string | null {
  if (!isKnown(record)) return null
  if (parentUuid === undefined) return 'parentUuid is the uuid it follows, or null where it follows nothing'
  if (!isText(timestamp)) return 'timestamp is when it was made, as a text'
  return isText(sessionId) ? null : 'sessionId is the session it was made in, as a text'
}

function rawBlocksProblem(rawBlocks: unknown): string | null {
  if (rawBlocks === undefined) return null
  const isGood = Array.isArray(rawBlocks) && Array.from(rawBlocks).every(isRawBlock)
  return isGood ? null : 'rawBlocks is a list of texts, each with the index of its block'
}

function isRawBlock(value: unknown): boolean {
  if (!isObject(value) || typeof value.text !== 'string') return false
  return Number.isSafeInteger(value.index) && Number(value.index) >= 0
}

function valueProblem(fields: Fields): string | null {
  const path = firstNonJson(fields)
  return path === null ? null : `${path} is not a JSON value`
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

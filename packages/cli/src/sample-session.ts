/** The sample session that comes with the package: a log as any other, read as any other. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  createLineReader,
  type Damage,
  type Epoch,
  flatten,
  isKnown,
  messagesOf,
  type Payload,
  type Session,
  type SessionRecord,
  type View,
} from '@tidemark/core'

/** Both `src/` and the built `dist/` stand beside `sample/`. */
const SAMPLE = new URL('../sample/login-bug.jsonl', import.meta.url)

/** Where it lies. It is only ever read. */
export const SAMPLE_PATH: string = fileURLToPath(SAMPLE)

export interface Sample {
  readonly records: readonly SessionRecord[]
  readonly damage: readonly Damage[]
}

export function readSample(): Sample {
  const lines = readFileSync(SAMPLE, 'utf8').split('\n')
  const reader = createLineReader()
  const rest = lines.pop()
  const records = lines.flatMap((line) => reader.take(line))
  const end = reader.end(rest)
  return { records: [...records, ...end.records], damage: end.damage }
}

// The next request of a session: the prefix its newest epoch fixed, and the messages of its view.

export function requestOf(session: Session, view: View): Payload {
  const epoch = newestEpoch(session)
  const messages = messagesOf(flatten(view))
  if (epoch === null) return { model: 'unknown', messages }
  const { sections, tools, model, parameters } = epoch
  const system = sections.map(({ text }) => ({ type: 'text', text }))
  return { model, ...parameters, system, tools, messages }
}

function newestEpoch(session: Session): Epoch | null {
  for (const record of session.records.toArray().reverse()) {
    if (isKnown(record) && record.type === 'system' && record.epoch !== undefined) return record.epoch
  }
  return null
}

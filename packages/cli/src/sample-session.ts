/** The sample session in the package. It is a log like any other, and is only ever read. */
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

/** Resolves from `src/` and from the built `dist/`: both are beside `sample/`. */
const SAMPLE = new URL('../sample/login-bug.jsonl', import.meta.url)

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

/** The next request of a session: the prefix of its newest snapshot, and the messages of its context. */
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

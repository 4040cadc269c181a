/** The sample in the package: a recorded session, which is never written to. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ContextView } from '@tidemark/core/context/context-view'
import { flattenContext, toApiMessages } from '@tidemark/core/context/flatten-context'
import type { Payload } from '@tidemark/core/context/payload'
import type { Damage } from '@tidemark/core/log/decode-log'
import { createLogLineReader } from '@tidemark/core/log/decode-log'
import { isKnownRecord, type PrefixSnapshot, type SessionRecord } from '@tidemark/core/log/record'
import type { SessionLog } from '@tidemark/core/log/session-log'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'

/** The URL works from both `src/` and the built `dist/`, because `sample/` is next to them. */
const SAMPLE_URL = new URL('../sample/login-bug.jsonl', import.meta.url)

export const SAMPLE_LOG_PATH: string = fileURLToPath(SAMPLE_URL)

export interface SampleLog {
  readonly records: readonly SessionRecord[]
  readonly damage: readonly Damage[]
}

/** Reads the whole log. Throws if the package is incomplete. */
export function readSampleSession(): SampleLog {
  const lines = readFileSync(SAMPLE_URL, 'utf8').split('\n')
  const reader = createLogLineReader({ readReport: readAnthropicReport })
  const rest = lines.pop()
  const records = lines.flatMap((line) => reader.readLine(line))
  const end = reader.finish(rest)
  return { records: [...records, ...end.records], damage: end.damage }
}

/**
 * Builds the next API request of a session from its newest prefix snapshot (tools, system prompt, parameters) and the
 * messages of its context. Without a snapshot, the model is `unknown`.
 */
export function buildSampleRequest(session: SessionLog, view: ContextView): Payload {
  const epoch = findNewestSnapshot(session)
  const messages = toApiMessages(flattenContext(view))
  if (epoch === null) return { model: 'unknown', messages }
  const { sections, tools, model, parameters } = epoch
  const system = sections.map(({ text }) => ({ type: 'text', text }))
  return { model, ...parameters, system, tools, messages }
}

function findNewestSnapshot(session: SessionLog): PrefixSnapshot | null {
  for (const record of session.records.toArray().reverse()) {
    if (isKnownRecord(record) && record.type === 'system' && record.epoch !== undefined) return record.epoch
  }
  return null
}

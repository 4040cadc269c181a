/** Recorded sessions as histories: the records of the branch in order, and the places worth measuring at. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import { createLogLineReader } from '../../packages/core/src/log/decode-log.ts'
import { isCompactBoundary, isKnownRecord, type KnownRecord } from '../../packages/core/src/log/record.ts'

export interface RecordedHistory {
  /** The first letters of the session's id: all that is ever told about it. */
  readonly name: string
  /** Models that answered, in order of first answer. */
  readonly models: readonly string[]
  readonly records: readonly KnownRecord[]
  /** Places of the logged compactions: everything before one is what it compacted. */
  readonly compactions: readonly number[]
}

/** Logs of Claude Code (`.jsonl`, or `.jsonl.gz`), in order of name. */
export function readHistories(folder: string): readonly RecordedHistory[] {
  const files = readdirSync(folder).filter((file) => /^claude.*\.jsonl(\.gz)?$/.test(file))
  return files.toSorted().map((file) => historyIn(join(folder, file)))
}

function historyIn(path: string): RecordedHistory {
  const bytes = readFileSync(path)
  const lines = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').split('\n')
  const reader = createLogLineReader({ readReport: readAnthropicReport })
  const all = [
    ...lines.slice(0, -1).flatMap((line) => reader.readLine(line)),
    ...reader.finish(lines.at(-1)).records,
  ]
  const records = all.filter(isKnownRecord).filter((record) => record.isSidechain !== true)
  const compactions = records.flatMap((record, place) => (isCompactBoundary(record) ? [place] : []))
  const models = records.flatMap((record) => (record.type === 'assistant' ? [record.message.model] : []))
  const name = /([0-9a-f]{8})[^_]*\.jsonl/.exec(path)?.[1] ?? path
  return {
    name,
    models: [...new Set(models)].filter((model) => model !== '<synthetic>'),
    records,
    compactions,
  }
}

/** Recorded sessions to fit on, read from a folder of Claude Code logs (`.jsonl`, or `.jsonl.gz`). */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import { createLogLineReader } from '../../packages/core/src/log/decode-log.ts'
import type { SessionRecord } from '../../packages/core/src/log/record.ts'
import { isClaudeCodeRestart } from '../../packages/wire/src/readers/claude-code-reader.ts'
import { listMeasuredCalls, type MeasuredCall } from './estimator-error.ts'

export interface RecordedSession {
  /** The first letters of the session's id: all that is ever told about it. */
  readonly name: string
  readonly model: string
  readonly calls: readonly MeasuredCall[]
}

/** Sessions whose calls all went to models that `isWanted`, in order of name. */
export function readSessions(
  folder: string,
  isWanted: (model: string) => boolean,
): readonly RecordedSession[] {
  const files = readdirSync(folder).filter((file) => /\.jsonl(\.gz)?$/.test(file))
  return files.toSorted().flatMap((file) => {
    const calls = listMeasuredCalls(recordsIn(join(folder, file)), isClaudeCodeRestart)
    const model = calls[0]?.model
    if (model === undefined || !calls.every((call) => isWanted(call.model))) return []
    return [{ name: nameOf(file), model, calls }]
  })
}

function nameOf(file: string): string {
  return (/([0-9a-f]{8})[^_]*\.jsonl/.exec(file)?.[1] ?? file).slice(0, 8)
}

function recordsIn(path: string): readonly SessionRecord[] {
  const bytes = readFileSync(path)
  const lines = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').split('\n')
  const reader = createLogLineReader({ readReport: readAnthropicReport })
  const records = lines.slice(0, -1).flatMap((line) => reader.readLine(line))
  return [...records, ...reader.finish(lines.at(-1)).records]
}

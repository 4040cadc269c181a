import { createCodexReader } from './codex/codex-reader.ts'
import type { LogFormat, LogReader } from './log-reader.ts'
import { createRecordReader } from './record-reader.ts'

/** A reader for one log of that format. */
export function createLogReader(format: LogFormat): LogReader {
  return format === 'codex' ? createCodexReader() : createRecordReader(format)
}

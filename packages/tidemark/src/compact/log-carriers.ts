/** What comes back when a log's session is compacted without its host: files, from the log or the disk, and the todo list. */
import { type Carrier, type FileReader, filesCarrier, type SessionState, todosCarrier } from '@tidemark/core'
import { createDiskReader } from '../carry/disk-reader.ts'
import { createEitherReader, createLogReader } from './log-reader.ts'
import { logTexts, placeOf } from './log-texts.ts'

export interface LogCarriersOptions {
  /** The folder the session worked in; null where the log does not say. */
  readonly folder: string | null
  /** The session is this machine's, and as it is now: its files are read from the disk where they are there. */
  readonly fromDisk: boolean
  /** The log, which is never brought back itself. */
  readonly path: string
}

export function logCarriers(state: SessionState, options: LogCarriersOptions): readonly Carrier[] {
  const { folder, path } = options
  const never = (): readonly string[] => [path]
  return [
    filesCarrier({ reader: readerOf(state, options), never, ...(folder === null ? {} : { folder }) }),
    todosCarrier(),
  ]
}

function readerOf({ session }: SessionState, { folder, fromDisk }: LogCarriersOptions): FileReader {
  const records = [...session.branch].flatMap((index) => session.records.at(index) ?? [])
  const log = createLogReader(logTexts(records, folder), folder)
  return fromDisk ? createEitherReader(absoluteOnly(folder), log) : log
}

/** Where nobody knows which folder a relative path starts from, it would be another project's file. */
function absoluteOnly(folder: string | null): FileReader {
  const disk = createDiskReader(folder ?? '/')
  return {
    read: async (path, limitBytes) =>
      folder !== null || placeOf(path, null).startsWith('/')
        ? disk.read(path, limitBytes)
        : { ok: false, why: 'the log does not say which folder it is in' },
  }
}

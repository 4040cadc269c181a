/** Reads a session's log: its records in pieces, what was wrong with it, and what a writer has to know of its end. */
import { createLineReader, type Damage, type SessionRecord, TidemarkError } from '@tidemark/core'
import type { FilePort, OpenFile } from '../files/file-port.ts'
import { ioFailed } from '../files/io-failed.ts'
import { readLines } from './read-lines.ts'

/** A log as it was read. */
export interface LogState {
  readonly exists: boolean
  readonly position: number
  readonly damage: readonly Damage[]
  /** Null where no header survived. */
  readonly version: number | null
  readonly sizeBytes: number
  readonly endsInNewline: boolean
  /** Of the file, null where there is none. */
  readonly identity: string | null
}

export interface LogPlace {
  readonly files: FilePort
  readonly session: string
  readonly path: string
}

export type Visit = (records: readonly SessionRecord[]) => void

const NO_LOG: LogState = {
  exists: false,
  position: 0,
  damage: [],
  version: null,
  sizeBytes: 0,
  endsInNewline: true,
  identity: null,
}

/** `limit`: how many bytes to read, where what stands behind them is still being written. */
export async function readLog(
  place: LogPlace,
  visit: Visit = () => {},
  limit: number = Number.POSITIVE_INFINITY,
): Promise<LogState> {
  const file = await openLog(place)
  if (file === null) return NO_LOG
  try {
    return await readOpened(place, file, { visit, limit })
  } finally {
    await file.close()
  }
}

async function openLog(place: LogPlace): Promise<OpenFile | null> {
  try {
    return await place.files.open(place.path, 'read')
  } catch (error) {
    if ((await place.files.facts(place.path).catch(() => null))?.kind === 'other') throw notRegular(place)
    throw failed(place, error)
  }
}

async function readOpened(
  place: LogPlace,
  file: OpenFile,
  { visit, limit }: { readonly visit: Visit; readonly limit: number },
): Promise<LogState> {
  const facts = await file.facts().catch((error: unknown) => Promise.reject(failed(place, error)))
  if (facts.kind !== 'file') throw notRegular(place)
  const gathering = gatherRecords(visit)
  const lines = await readLines(failingClearly(place, file), limit, gathering.flow)
  const { isLog, ...end } = gathering.end(lines.rest)
  if (!isLog) throw notASession(place)
  const { sizeBytes, endsInNewline } = lines
  return { ...end, exists: true, sizeBytes, endsInNewline, identity: facts.identity }
}

type Found = Pick<LogState, 'position' | 'damage' | 'version'> & { readonly isLog: boolean }

function gatherRecords(visit: Visit): {
  readonly flow: Parameters<typeof readLines>[2]
  end(rest: string): Found
} {
  const reader = createLineReader()
  const flaws: Damage[] = []
  let lines = 0
  let ready: SessionRecord[] = []
  function take(records: readonly SessionRecord[]): void {
    for (const record of records) ready.push(record)
  }
  function piece(): void {
    if (ready.length > 0) visit(ready)
    ready = []
  }
  return {
    flow: {
      line(text) {
        lines += 1
        take(reader.take(text))
      },
      flaw: (why) => flaws.push({ kind: 'bad-json', line: lines + 1, why }),
      piece,
    },
    end(rest) {
      const { records, damage, position, version, isLog } = reader.end(rest)
      take(records)
      piece()
      return { position, version, isLog, damage: inOrder(damage, flaws) }
    },
  }
}

function inOrder(damage: readonly Damage[], flaws: readonly Damage[]): readonly Damage[] {
  return flaws.length === 0 ? damage : [...damage, ...flaws].sort((one, other) => one.line - other.line)
}

/** Trouble of the disk is told apart from trouble of whoever is handed the records. */
function failingClearly(place: LogPlace, file: OpenFile): OpenFile {
  return {
    ...file,
    read: (into, position) =>
      file.read(into, position).catch((error: unknown) => Promise.reject(failed(place, error))),
  }
}

function failed({ session, path }: LogPlace, cause: unknown): TidemarkError {
  return ioFailed(`read session "${session}" (${path})`, cause, { session, path })
}

function notRegular({ session, path }: LogPlace): TidemarkError {
  const message = `Session "${session}" cannot be read: ${path} is not a regular file (symbolic links are not followed). Put the log itself there.`
  return new TidemarkError('not-a-session', message, { details: { session, path } })
}

function notASession({ session, path }: LogPlace): TidemarkError {
  const message = `${path} is not a session: no line of it is a record or a header of Tidemark's. Nothing was changed; move it away or choose another session id.`
  return new TidemarkError('not-a-session', message, { details: { session, path } })
}

/** Reads a session's log: its records in pieces, what was wrong with it, and what a writer has to know of its end. */
import {
  createLineReader,
  type Damage,
  type LogEnd,
  type ReadingOptions,
  type ReadingStart,
  type SessionRecord,
  TidemarkError,
} from '@tidemark/core'
import { type FilePort, ioFailed, type OpenFile } from './file-system.ts'
import { readLines } from './split-lines.ts'

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
  /** Its end, where the log can be read on from there. */
  readonly mark: LogMark | null
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
  mark: null,
}

/** How much of a log to read. */
export interface Reach {
  /** How many bytes, where what stands behind them is still being written. */
  readonly limit: number
  /** Records up to this position are not handed over. */
  readonly from: number
  /** What stands before a mark need not be read again. */
  readonly marks: LogMarks
}

export async function readLog(place: LogPlace, visit: Visit, reach: Reach): Promise<LogState> {
  const file = await openLog(place)
  if (file === null) return NO_LOG
  try {
    return await readOpened(place, failingClearly(place, file), { ...reach, visit })
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
  { visit, limit, from, marks }: Reach & { readonly visit: Visit },
): Promise<LogState> {
  const facts = await file.facts()
  if (facts.kind !== 'file') throw notRegular(place)
  const start = await marks.latest(file, from, limit)
  const offset = start?.sizeBytes ?? 0
  const gathering = gatherRecords(visit, start === null ? { from } : { from, start })
  const lines = await readLines(fileFrom(file, offset), limit - offset, gathering.flow)
  const { isLog, resume, ...end } = gathering.end(lines.rest)
  if (!isLog) throw notASession(place)
  const damage = start === null ? end.damage : [...start.damage, ...end.damage]
  const sizeBytes = offset + lines.sizeBytes
  const { identity } = facts
  const mark =
    resume === null ? null : { ...resume, sizeBytes, identity, damage, tail: await readTail(file, sizeBytes) }
  return { ...end, damage, exists: true, sizeBytes, endsInNewline: lines.endsInNewline, identity, mark }
}

/** What of the file stands behind the first `offset` bytes. */
function fileFrom(file: OpenFile, offset: number): OpenFile {
  return { ...file, read: (into, position) => file.read(into, offset + position) }
}

type Found = Omit<LogEnd, 'records'>

function gatherRecords(
  visit: Visit,
  options: ReadingOptions,
): {
  readonly flow: Parameters<typeof readLines>[2]
  end(rest: string): Found
} {
  const reader = createLineReader(options)
  const flaws: Damage[] = []
  let lines = options.start?.line ?? 0
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
      const { records, damage, ...found } = reader.end(rest)
      take(records)
      piece()
      return { ...found, damage: inOrder(damage, flaws) }
    },
  }
}

function inOrder(damage: readonly Damage[], flaws: readonly Damage[]): readonly Damage[] {
  return flaws.length === 0 ? damage : [...damage, ...flaws].sort((one, other) => one.line - other.line)
}

/** Trouble of the disk is told apart from trouble of whoever is handed the records. */
function failingClearly(place: LogPlace, file: OpenFile): OpenFile {
  const clearly = (error: unknown) => Promise.reject(failed(place, error))
  return {
    ...file,
    read: (into, position) => file.read(into, position).catch(clearly),
    facts: () => file.facts().catch(clearly),
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

// Places in a log from which it can be read on, instead of from its beginning.

/** What the log had come to at a place between two of its lines, and how to know that place again. */
export interface LogMark extends ReadingStart {
  /** How far into the file. */
  readonly sizeBytes: number
  readonly identity: string
  /** What was wrong with the lines before it. */
  readonly damage: readonly Damage[]
  /** The last bytes before it: they hold for as long as nobody rewrites the log in place. */
  readonly tail: Uint8Array
}

const TAIL_BYTES = 512

export function tailOf(bytes: Uint8Array): Uint8Array {
  return bytes.slice(-TAIL_BYTES)
}

/** The last bytes of the first `sizeBytes` of the file. */
export async function readTail(file: OpenFile, sizeBytes: number): Promise<Uint8Array> {
  return readBytes(file, Math.max(0, sizeBytes - TAIL_BYTES), sizeBytes)
}

/** The newest marks of a log. Those who ask to read on mostly left off at one of them. */
export class LogMarks {
  /** By how far into the file they are. */
  #marks: readonly LogMark[] = []

  add(mark: LogMark | null): void {
    if (mark === null) return
    const others = this.#marks.filter(
      ({ identity, sizeBytes }) => identity === mark.identity && sizeBytes !== mark.sizeBytes,
    )
    const marks = [...others, mark].sort((one, other) => one.sizeBytes - other.sizeBytes)
    this.#marks = marks.slice(-MOST_MARKS)
  }

  /** The last one that is behind neither, and up to which the file is still the one that was marked. */
  async latest(file: OpenFile, position: number, limit: number): Promise<LogMark | null> {
    const facts = await file.facts()
    const end = Math.min(limit, facts.sizeBytes)
    for (const mark of this.#marks.toReversed()) {
      if (mark.position > position || mark.sizeBytes > end) continue
      if (mark.identity === facts.identity && (await hasTail(file, mark))) return mark
      this.#marks = this.#marks.filter((other) => other !== mark)
    }
    return null
  }
}

const MOST_MARKS = 8

async function hasTail(file: OpenFile, { sizeBytes, tail }: LogMark): Promise<boolean> {
  return Buffer.from(tail).equals(await readBytes(file, sizeBytes - tail.length, sizeBytes))
}

async function readBytes(file: OpenFile, from: number, to: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(to - from)
  let filled = 0
  for (let count = -1; filled < bytes.length && count !== 0; filled += count)
    count = await file.read(bytes.subarray(filled), from + filled)
  return bytes.subarray(0, filled)
}

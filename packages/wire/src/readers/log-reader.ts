/**
 * Types and helpers of all log readers. A log reader converts the lines of a session log to records, and at the end
 * returns damage and metadata.
 */
import type { Damage, DamageKind } from '@tidemark/core/log/decode-log'
import { isObject, MAX_JSON_DEPTH } from '@tidemark/core/log/json'
import type { SessionRecord } from '@tidemark/core/log/record'

export type LogFormat = 'claude-code' | 'codex' | 'tidemark'

/** A record and the number of its line in the log, counted from 1. */
export interface RecordWithLine {
  readonly record: SessionRecord
  readonly line: number
}

/**
 * Reads a session log line by line, with little memory. Records are returned in log order. A record may be returned a
 * few lines late, when the batch or model response that it belongs to is complete.
 */
export interface LogReader {
  readonly format: LogFormat
  /** Reads the next line of the log, given without its newline. An empty line counts as a line but gives no record. */
  readLine(text: string): readonly RecordWithLine[]
  /** Ends reading. `rest` is the text after the last newline of the log. */
  finish(rest?: string): LogEndResult
}

/** What a reader still has to return at the end of a log. */
export interface LogEndResult {
  /** The last records, which had to wait for the end. */
  readonly records: readonly RecordWithLine[]
  /** Damaged parts of the log, in line order. */
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
}

export const NO_RECORDS: readonly RecordWithLine[] = []

/** Metadata of a session, collected from its log. A field is null if the log does not contain it. */
export interface LogMeta {
  readonly sessionId: string | null
  /** Folder that the session started in. `project` is the last part of its path. */
  readonly cwd: string | null
  readonly project: string | null
  /** Version of the program that wrote the log. */
  readonly version: string | null
  /** Earliest timestamp in the log. `endedAt` is the latest. */
  readonly startedAt: string | null
  readonly endedAt: string | null
  /** Id of the session whose beginning was copied into this log. */
  readonly forkedFrom: string | null
  /** Id of the session that started this session as a subagent. `agent` is the name of the subagent. */
  readonly parentSessionId: string | null
  readonly agent: string | null
  /** Context window of the model in tokens. */
  readonly contextWindow: number | null
  /** The log that this one was copied from; null if it is not a copy that Tidemark wrote. */
  readonly copiedFrom: LogOrigin | null
}

/** The log that a copy was made of. Records that the copy took from the log of another program have no `seq`. */
interface LogOrigin {
  readonly format: LogFormat
  readonly sessionId: string | null
}

type MetaField = Exclude<keyof LogMeta, 'project' | 'startedAt' | 'endedAt' | 'contextWindow' | 'copiedFrom'>

/** Collects metadata while a log is read. */
export interface MetaCollector {
  /** Sets a metadata field if the value is a non-empty string and the field is still null. */
  setOnce(field: MetaField, value: unknown): void
  /** Sets a metadata field if the value is a non-empty string, and replaces an earlier value. */
  set(field: MetaField, value: unknown): void
  addTime(value: unknown): void
  setContextWindow(value: unknown): void
  /** Takes the field `copiedFrom` of a header, with the metadata that only the original log contains. */
  setOrigin(value: unknown): void
  readonly meta: LogMeta
}

const EMPTY_META: LogMeta = {
  sessionId: null,
  cwd: null,
  project: null,
  version: null,
  startedAt: null,
  endedAt: null,
  forkedFrom: null,
  parentSessionId: null,
  agent: null,
  contextWindow: null,
  copiedFrom: null,
}

/** Metadata fields that a copy takes over from the original log. The copy has its own session id and times. */
const RESTORED_FIELDS = ['cwd', 'version', 'forkedFrom', 'parentSessionId', 'agent'] as const

/** Returns the field `copiedFrom` of the header of a copy. The reader of the copy restores the metadata from it. */
export function createCopyOrigin(format: LogFormat, meta: LogMeta): object {
  const { copiedFrom, project, endedAt, ...restored } = meta
  // A copy of a copy has the records of the first log, so it names the first log.
  return { format, ...restored, ...copiedFrom }
}

export function createMetaCollector(): MetaCollector {
  let meta = EMPTY_META
  function set(field: MetaField, value: unknown): void {
    if (!isNonEmptyString(value) || meta[field] === value) return
    meta = { ...meta, [field]: value }
    if (field === 'cwd') meta = { ...meta, project: lastPathPart(value) }
  }
  return {
    setOnce: (field, value) => {
      if (meta[field] === null) set(field, value)
    },
    set: set,
    addTime(value) {
      if (typeof value !== 'string' || !ISO_TIME_START.test(value)) return
      if (meta.startedAt === null || value < meta.startedAt) meta = { ...meta, startedAt: value }
      if (meta.endedAt === null || value > meta.endedAt) meta = { ...meta, endedAt: value }
    },
    setContextWindow(value) {
      if (typeof value === 'number' && value > 0) meta = { ...meta, contextWindow: value }
    },
    setOrigin(value) {
      if (!isObject(value) || !isLogFormat(value.format)) return
      const { format, sessionId } = value
      for (const field of RESTORED_FIELDS) set(field, value[field])
      this.addTime(value.startedAt)
      this.setContextWindow(value.contextWindow)
      const copiedFrom = { format, sessionId: isNonEmptyString(sessionId) ? sessionId : null }
      meta = { ...meta, copiedFrom }
    },
    get meta() {
      return meta
    },
  }
}

function isLogFormat(value: unknown): value is LogFormat {
  return value === 'claude-code' || value === 'codex' || value === 'tidemark'
}

/** Start of an ISO timestamp. All supported programs write UTC, so timestamps can be compared as strings. */
const ISO_TIME_START = /^\d{4}-\d\d-\d\dT\d\d:\d\d/

function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns the last part of a Unix or Windows path, or null if there is none. */
function lastPathPart(path: string): string | null {
  return path.split(/[/\\]/).findLast((part) => part !== '') ?? null
}

/**
 * Collects damage while a log is read. Consecutive lines with the same problem become one entry, and the number of
 * entries is limited. A file with a million broken lines therefore gives a short list.
 */
export interface DamageCollector {
  add(kind: DamageKind, line: number, why: string): void
  readonly list: readonly Damage[]
}

const MAX_DAMAGE_ENTRIES = 1000

interface DamageRun {
  readonly kind: DamageKind
  readonly why: string
  readonly first: number
  last: number
}

export function createDamageCollector(): DamageCollector {
  const runs: DamageRun[] = []
  let omitted = 0
  return {
    add(kind, line, why) {
      const open = runs.at(-1)
      if (omitted === 0 && open?.kind === kind && open.why === why && line === open.last + 1) open.last = line
      else if (runs.length < MAX_DAMAGE_ENTRIES) runs.push({ kind, why, first: line, last: line })
      else omitted += 1
    },
    get list() {
      const listed = runs.map(toDamage)
      const last = runs.at(-1)
      if (omitted === 0 || last === undefined) return listed
      const why = `${omitted} more places behind this one are damaged too`
      return [...listed, { kind: last.kind, line: last.last, why }]
    },
  }
}

/** Merges two lists of damage in line order. Entries of the same line keep their order. */
export function mergeDamage(one: readonly Damage[], other: readonly Damage[]): readonly Damage[] {
  if (one.length === 0 || other.length === 0) return one.length === 0 ? other : one
  return [...one, ...other].sort((a, b) => a.line - b.line)
}

function toDamage({ kind, why, first, last }: DamageRun): Damage {
  return { kind, line: first, why: last === first ? why : `lines ${first} to ${last}: ${why}` }
}

export const TOO_DEEP_MESSAGE: string = `the line is nested more than ${MAX_JSON_DEPTH} levels deep; it is left out`

/** What every reader of logs does: lines in, records out, and at the end what was wrong and whose log it was. */
import { type Damage, type DamageKind, MAX_DEPTH, type SessionRecord } from '@tidemark/core'

export type LogFormat = 'claude-code' | 'codex' | 'tidemark'

/** A record and the line of the file it was made from, 1 for the first. */
export interface ReadRecord {
  readonly record: SessionRecord
  readonly line: number
}

/**
 * Reads one log, line by line, in order. It keeps what it needs to understand the next line and nothing more:
 * a record may be given a few lines late (when its batch or its response is complete), never out of order.
 */
export interface LogReader {
  readonly format: LogFormat
  /** The next line, without its newline. An empty text counts as a line and gives nothing. */
  line(text: string): readonly ReadRecord[]
  /** After the last newline: `rest` is what stands behind it. */
  end(rest?: string): ReadEnd
}

export interface ReadEnd {
  readonly records: readonly ReadRecord[]
  /** In the order of lines. */
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
}

export const NO_RECORDS: readonly ReadRecord[] = []

// Whose log it is and when it was written, as far as its lines say.

export interface LogMeta {
  readonly sessionId: string | null
  /** The folder the session began in, and the last part of its name. */
  readonly cwd: string | null
  readonly project: string | null
  /** Of the program that wrote the log. */
  readonly version: string | null
  /** The earliest and the latest time a line bears. */
  readonly startedAt: string | null
  readonly endedAt: string | null
  /** The session whose beginning was copied into this one. */
  readonly forkedFrom: string | null
  /** The session that started this one to do part of its work, and what it called it. */
  readonly parentSessionId: string | null
  readonly agent: string | null
  /** Tokens the model's window holds, where the log says so. */
  readonly contextWindow: number | null
}

type MetaField = Exclude<keyof LogMeta, 'project' | 'startedAt' | 'endedAt' | 'contextWindow'>

/** Notes taken while a log is read. */
export interface MetaNotes {
  /** Takes the value for the field if it is a text and nothing was noted before. */
  first(field: MetaField, value: unknown): void
  /** Takes the value for the field if it is a text, whatever was noted before. */
  last(field: MetaField, value: unknown): void
  time(value: unknown): void
  window(value: unknown): void
  readonly standing: LogMeta
}

const NOTHING: LogMeta = {
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
}

export function createMetaNotes(): MetaNotes {
  let meta = NOTHING
  function set(field: MetaField, value: unknown): void {
    if (!isName(value) || meta[field] === value) return
    meta = { ...meta, [field]: value }
    if (field === 'cwd') meta = { ...meta, project: lastPart(value) }
  }
  return {
    first: (field, value) => {
      if (meta[field] === null) set(field, value)
    },
    last: set,
    time(value) {
      if (typeof value !== 'string' || !ISO_TIME.test(value)) return
      if (meta.startedAt === null || value < meta.startedAt) meta = { ...meta, startedAt: value }
      if (meta.endedAt === null || value > meta.endedAt) meta = { ...meta, endedAt: value }
    },
    window(value) {
      if (typeof value === 'number' && value > 0) meta = { ...meta, contextWindow: value }
    },
    get standing() {
      return meta
    },
  }
}

/** In this form, and in UTC as all three programs write it, earlier times are lesser texts. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d/

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Of a path of any system. */
function lastPart(path: string): string | null {
  return path.split(/[/\\]/).findLast((part) => part !== '') ?? null
}

// Damage found while a log is read. Neighbouring lines with the same trouble are told as one, and the list
// has an end: a file of a million broken lines is told in a few.

export interface DamageNotes {
  add(kind: DamageKind, line: number, why: string): void
  readonly list: readonly Damage[]
}

const MAX_NOTES = 1000

interface Run {
  readonly kind: DamageKind
  readonly why: string
  readonly first: number
  last: number
}

export function createDamageNotes(): DamageNotes {
  const runs: Run[] = []
  let untold = 0
  return {
    add(kind, line, why) {
      const open = runs.at(-1)
      if (untold === 0 && open?.kind === kind && open.why === why && line === open.last + 1) open.last = line
      else if (runs.length < MAX_NOTES) runs.push({ kind, why, first: line, last: line })
      else untold += 1
    },
    get list() {
      const told = runs.map(damageOf)
      const last = runs.at(-1)
      if (untold === 0 || last === undefined) return told
      const why = `${untold} more places behind this one are damaged too`
      return [...told, { kind: last.kind, line: last.last, why }]
    },
  }
}

/** Both lists in the order of lines; what stands first in a list stays in front. */
export function inLineOrder(one: readonly Damage[], other: readonly Damage[]): readonly Damage[] {
  if (one.length === 0 || other.length === 0) return one.length === 0 ? other : one
  return [...one, ...other].sort((a, b) => a.line - b.line)
}

function damageOf({ kind, why, first, last }: Run): Damage {
  return { kind, line: first, why: last === first ? why : `lines ${first} to ${last}: ${why}` }
}

// How a reader says that a line is nested too deep; what is too deep is core's to say.

export const TOO_DEEP: string = `the line is nested more than ${MAX_DEPTH} levels deep; it is set aside`

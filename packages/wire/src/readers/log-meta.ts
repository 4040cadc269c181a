/** Whose log it is and when it was written, as far as its lines say. */

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

export type MetaField = Exclude<keyof LogMeta, 'project' | 'startedAt' | 'endedAt' | 'contextWindow'>

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

/**
 * Reads faults in their two notations: one line of text, for a header or a scenario (`status=429; retry-after=2`,
 * `slow-start=2s, cut=utf8`), and JSON or YAML with the fields of `Fault`.
 */
import { isObject } from '../protocol/api.ts'
import {
  checked,
  count,
  fieldsOf,
  flag,
  inside,
  mapOf,
  type Place,
  type Reader,
  type Readers,
  report,
  shown,
  text,
} from '../protocol/json-fields.ts'
import type { Fault, FaultPlace } from './fault.ts'

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, '': 1 }

/** Milliseconds from `50ms`, `2s`, `1m` or a number of milliseconds; null for anything else. */
export function durationOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) && value >= 0 ? value : null
  const found = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*(ms|s|m|)$/.exec(value.trim()) : null
  const unit = UNIT_MS[found?.[2] ?? '']
  return found === null || unit === undefined ? null : Number(found[1]) * unit
}

// The text notation: commas separate faults, semicolons separate a fault and its options, quotes protect both.

interface WrittenPart {
  readonly name: string
  /** Null without `=`. */
  readonly value: string | null
}

interface WrittenFault {
  readonly head: WrittenPart
  readonly options: readonly WrittenPart[]
}

function writtenFaults(text: string): readonly WrittenFault[] {
  const faults = matches(text, OUTSIDE_COMMAS).filter((each) => each.trim() !== '')
  return faults.map((each) => {
    const [head = NO_PART, ...options] = matches(each, OUTSIDE_SEMICOLONS).map(partOf)
    return { head, options: options.filter((part) => part !== NO_PART && part.name !== '') }
  })
}

const NO_PART: WrittenPart = { name: '', value: null }

const OUTSIDE_COMMAS = /(?:"(?:\\.|[^"\\])*"|[^,"]|")+/g
const OUTSIDE_SEMICOLONS = /(?:"(?:\\.|[^"\\])*"|[^;"]|")+/g

function matches(text: string, pattern: RegExp): readonly string[] {
  return text.match(pattern) ?? []
}

function partOf(text: string): WrittenPart {
  const at = text.indexOf('=')
  if (at < 0) return { name: text.trim(), value: null }
  return { name: text.slice(0, at).trim(), value: unquoted(text.slice(at + 1).trim()) }
}

function unquoted(text: string): string {
  return text.length > 1 && /^".*"$/s.test(text) ? text.slice(1, -1).replaceAll(/\\(["\\])/g, '$1') : text
}

export type ParsedFault =
  | { readonly ok: true; readonly fault: Fault }
  /** `message` is one line: what is wrong, and what was expected. */
  | { readonly ok: false; readonly message: string }

/** Parses the text notation. Several faults become one fault of type `several`. */
export function parseFault(text: string): ParsedFault {
  const problems: string[] = []
  const faults = writtenFaults(text).flatMap((written) => faultOf(written, problems) ?? [])
  const [problem] = problems
  if (problem !== undefined) return { ok: false, message: problem }
  const [first, ...more] = faults
  if (first === undefined)
    return { ok: false, message: `expected a fault such as ${EXAMPLES}, found nothing` }
  return { ok: true, fault: more.length === 0 ? first : { type: 'several', faults } }
}

const EXAMPLES =
  '"status=429; retry-after=2", "drip=50ms", "cut=utf8", "reset-after=3", "error-at=2" or "hang"'

/** The values of one fault. A value that `read` does not accept is reported as a problem and left out. */
interface Writing {
  readonly head: string | null
  /** The value after the name of the fault. */
  own<T>(read: Read<T>): T | undefined
  /** All values of an option. */
  every<T>(name: string, read: Read<T>): readonly T[]
  /** The last value of an option. */
  get<T>(name: string, read: Read<T>): T | undefined
}

interface Read<T> {
  /** Completes the sentence "needs …". */
  readonly needs: string
  of(text: string): T | null
}

interface Kind {
  /** Names of its options. */
  readonly options: readonly string[]
  /** If a value is undefined, a problem has been reported and the fault is not used. */
  readonly build: (writing: Writing) => Fault
}

const KINDS: Readonly<Record<string, Kind>> = {
  status: { options: ['retry-after', 'type', 'message', 'code', 'header'], build: statusFault },
  'slow-start': { options: [], build: ({ own }) => ({ type: 'slow-start', ms: own(TIME) ?? 0 }) },
  drip: {
    options: ['bytes'],
    build: ({ own, get }) => ({ type: 'slow-drip', bytes: get('bytes', from(1)) ?? 16, ms: own(TIME) ?? 0 }),
  },
  cut: { options: ['after'], build: cutFault },
  'error-at': { options: ['type', 'message'], build: errorEvent },
  reset: { options: [], build: (writing) => ({ type: 'reset', ...placeOf(writing) }) },
  'reset-after': { options: [], build: ({ own }) => ({ type: 'reset', ...own(PLACE) }) },
  hang: { options: [], build: (writing) => ({ type: 'hang', ...placeOf(writing) }) },
  'hang-after': { options: [], build: ({ own }) => ({ type: 'hang', ...own(PLACE) }) },
}

function faultOf(written: WrittenFault, problems: string[]): Fault | null {
  const head = asStatus(written.head)
  const kind = Object.hasOwn(KINDS, head.name) ? KINDS[head.name] : undefined
  if (kind === undefined) {
    problems.push(`"${head.name}" is no fault; faults are ${Object.keys(KINDS).join(', ')}: ${EXAMPLES}`)
    return null
  }
  for (const { name, value } of written.options) {
    if (!kind.options.includes(name)) problems.push(notAbout(head.name, name, kind.options))
    else if (value === null) problems.push(`"${name}" of "${head.name}" needs a value: ${name}=…`)
  }
  return kind.build(writingOf({ head, options: written.options }, problems))
}

function notAbout(fault: string, part: string, options: readonly string[]): string {
  const known = options.length === 0 ? 'it takes nothing more' : `it takes ${options.join(', ')}`
  return `"${part}" says nothing about "${fault}"; ${known} (a comma begins another fault)`
}

/** `529` is short for `status=529`. */
function asStatus(part: WrittenPart): WrittenPart {
  return part.value === null && /^\d+$/.test(part.name) ? { name: 'status', value: part.name } : part
}

function writingOf({ head, options }: WrittenFault, problems: string[]): Writing {
  const parse = <T>({ name, value }: WrittenPart, read: Read<T>): T | undefined => {
    const found = read.of(value ?? '')
    if (found === null) problems.push(`"${name}" needs ${read.needs}, not "${value ?? ''}"`)
    return found ?? undefined
  }
  const every = <T>(name: string, read: Read<T>): readonly T[] =>
    options
      .filter((part) => part.name === name)
      .map((part) => parse(part, read))
      .filter((found) => found !== undefined)
  return {
    head: head.value,
    own: (read) => parse(head, read),
    every,
    get: (name, read) => every(name, read).at(-1),
  }
}

const TIME: Read<number> = { needs: 'a time, such as 50ms or 2s', of: durationOf }
const WORDS: Read<string> = { needs: 'text', of: (text) => text }

function from(least: number, most?: number): Read<number> {
  return {
    needs: `a whole number ${most === undefined ? `of at least ${least}` : `from ${least} to ${most}`}`,
    of: (text) => {
      const read = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
      return read >= least && read <= (most ?? read) ? read : null
    },
  }
}

/** `3` is after three events of the stream, `120b` is after 120 bytes. */
const PLACE: Read<FaultPlace> = {
  needs: 'a number of events, such as 3, or of bytes, such as 120b',
  of: (text) => {
    const [, amount, unit] = /^(\d{1,15})(b|)$/.exec(text) ?? []
    if (amount === undefined) return null
    return unit === 'b' ? { afterBytes: Number(amount) } : { afterEvents: Number(amount) }
  },
}

function placeOf({ head, own }: Writing): FaultPlace {
  return head === null ? {} : (own(PLACE) ?? {})
}

/** `retry-after` is in seconds, so a number without a unit is too. */
const SECONDS: Read<number> = {
  needs: 'seconds, such as 2',
  of: (text) => {
    const ms = durationOf(/^\d+(\.\d+)?$/.test(text) ? `${text}s` : text)
    return ms === null ? null : ms / 1_000
  },
}

const HEADER: Read<readonly [string, string]> = {
  needs: 'a name and a value in quotes, such as "x-should-retry: true"',
  of: (text) => {
    const [, name, value] = /^\s*([\w-]+)\s*:\s*(.*)$/.exec(text) ?? []
    return name === undefined || value === undefined ? null : [name.toLowerCase(), value]
  },
}

function statusFault({ own, get, every }: Writing): Fault {
  const code = get('code', WORDS)
  const headers = every('header', HEADER)
  return withoutUndefined({
    type: 'status',
    status: own(from(400, 599)) ?? 0,
    retryAfter: get('retry-after', SECONDS),
    errorType: get('type', WORDS),
    message: get('message', WORDS),
    details: code === undefined ? undefined : { error_code: code },
    headers: headers.length === 0 ? undefined : Object.fromEntries(headers),
  })
}

function errorEvent({ own, get }: Writing): Fault {
  return withoutUndefined({
    type: 'error-event',
    afterEvents: own(from(0)) ?? 0,
    errorType: get('type', WORDS),
    message: get('message', WORDS),
  })
}

function cutFault({ head, own, get }: Writing): Fault {
  const after = get('after', PLACE)
  if (head === 'utf8') return { type: 'cut', insideCharacter: true, ...after }
  return { type: 'cut', ...(head === null ? {} : own({ ...PLACE, needs: `utf8, ${PLACE.needs}` })), ...after }
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

function withoutUndefined<const T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

// The data notation.

/** Reads the text notation, the fields of a `Fault`, or a list of either. */
export const readFault: Reader<Fault> = (value, place) => {
  if (typeof value === 'string' || typeof value === 'number') return readText(String(value), place)
  if (Array.isArray(value)) return readSeveral(value, place)
  if (isObject(value)) return readFields(value, place)
  return report(place, `expected a fault, such as "status=429; retry-after=2", found ${shown(value)}`)
}

function readText(written: string, place: Place): Fault | undefined {
  const parsed = parseFault(written)
  return parsed.ok ? parsed.fault : report(place, parsed.message)
}

function readSeveral(values: readonly unknown[], place: Place): Fault | undefined {
  const faults = values.map((each, index) => readFault(each, inside(place, index)))
  const read = faults.filter((fault) => fault !== undefined)
  if (read.length === 0) return values.length === 0 ? report(place, 'expected at least one fault') : undefined
  return { type: 'several', faults: read }
}

export const duration: Reader<number> = checked('a time, such as 50ms, 2s or 50', durationOf)

const anyFields: Reader<Readonly<Record<string, unknown>>> = checked('fields', (value) =>
  isObject(value) ? value : null,
)

type Fields<T extends Fault['type']> = Readers<Omit<Extract<Fault, { type: T }>, 'type'>>

const PLACE_READ_FAULT = { afterBytes: count(0), afterEvents: count(0) }

const FIELDS: { readonly [T in Exclude<Fault['type'], 'several'>]: Fields<T> } = {
  status: {
    status: count(400, 599),
    errorType: text,
    message: text,
    retryAfter: checked('seconds', (value) => (typeof value === 'number' && value >= 0 ? value : null)),
    headers: mapOf(text),
    details: anyFields,
  },
  'slow-start': { ms: duration },
  'slow-drip': { bytes: count(1), ms: duration },
  cut: { ...PLACE_READ_FAULT, insideCharacter: flag },
  'error-event': { afterEvents: count(0), errorType: text, message: text },
  reset: PLACE_READ_FAULT,
  hang: PLACE_READ_FAULT,
}

const REQUIRED: Readonly<Partial<Record<Fault['type'], readonly string[]>>> = {
  status: ['status'],
  'slow-start': ['ms'],
  'slow-drip': ['bytes', 'ms'],
  'error-event': ['afterEvents'],
}

function readFields(value: Readonly<Record<string, unknown>>, place: Place): Fault | undefined {
  const { type, ...rest } = value
  if (type === 'several')
    return readSeveral(Array.isArray(rest.faults) ? rest.faults : [], inside(place, 'faults'))
  if (!isKind(type))
    return report(inside(place, 'type'), `expected one of ${KINDS_READ_FAULT}, found ${shown(type)}`)
  const missing = (REQUIRED[type] ?? []).filter((name) => rest[name] === undefined)
  for (const name of missing) report(inside(place, name), `is needed for a fault of type ${type}`)
  const read = fieldsOf<Record<string, unknown>>(FIELDS[type])(rest, place)
  // The cast holds because all fields were read by the readers of the type and none is missing.
  return read === undefined || missing.length > 0 ? undefined : ({ type, ...read } as Fault)
}

const KINDS_READ_FAULT = [...Object.keys(FIELDS), 'several'].join(', ')

function isKind(type: unknown): type is keyof typeof FIELDS {
  return typeof type === 'string' && Object.hasOwn(FIELDS, type)
}

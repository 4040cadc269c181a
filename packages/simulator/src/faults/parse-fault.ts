/**
 * Reads faults in their two notations: one line of text, for a header or a scenario (`status=429; retry-after=2`,
 * `slow-start=2s, cut=utf8`), and JSON or YAML with the fields of `Fault`.
 */
import { isObject } from '../protocol/messages-request.ts'
import {
  addReadProblem,
  booleanReader,
  createReader,
  describeValue,
  enterField,
  type FieldReaders,
  mapReader,
  partialObjectReader,
  type ReadContext,
  textReader,
  type ValueReader,
  wholeNumberReader,
} from '../protocol/value-readers.ts'
import type { Fault, FaultOffset } from './fault.ts'

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, '': 1 }

/** Parses a duration into milliseconds: `50ms`, `2s`, `1m`, or a number of milliseconds. Null for anything else. */
export function parseDurationMs(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) && value >= 0 ? value : null
  const found = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*(ms|s|m|)$/.exec(value.trim()) : null
  const unit = UNIT_MS[found?.[2] ?? '']
  return found === null || unit === undefined ? null : Number(found[1]) * unit
}

// The text notation of faults: commas separate faults, semicolons separate the options of a fault, and quotes protect
// both.

interface NameValue {
  readonly name: string
  /** The text after `=`; null if there is no `=`. */
  readonly value: string | null
}

interface FaultText {
  readonly head: NameValue
  readonly options: readonly NameValue[]
}

function splitFaults(text: string): readonly FaultText[] {
  const faults = listMatches(text, OUTSIDE_COMMAS).filter((each) => each.trim() !== '')
  return faults.map((each) => {
    const [head = EMPTY_PART, ...options] = listMatches(each, OUTSIDE_SEMICOLONS).map(parseNameValue)
    return { head, options: options.filter((part) => part !== EMPTY_PART && part.name !== '') }
  })
}

const EMPTY_PART: NameValue = { name: '', value: null }

const OUTSIDE_COMMAS = /(?:"(?:\\.|[^"\\])*"|[^,"]|")+/g
const OUTSIDE_SEMICOLONS = /(?:"(?:\\.|[^"\\])*"|[^;"]|")+/g

function listMatches(text: string, pattern: RegExp): readonly string[] {
  return text.match(pattern) ?? []
}

function parseNameValue(text: string): NameValue {
  const at = text.indexOf('=')
  if (at < 0) return { name: text.trim(), value: null }
  return { name: text.slice(0, at).trim(), value: unquote(text.slice(at + 1).trim()) }
}

function unquote(text: string): string {
  return text.length > 1 && /^".*"$/s.test(text) ? text.slice(1, -1).replaceAll(/\\(["\\])/g, '$1') : text
}

export type ParseFaultResult =
  | { readonly ok: true; readonly fault: Fault }
  /** The fault could not be parsed. `message` is one line that says what is wrong and what was expected. */
  | { readonly ok: false; readonly message: string }

/** Parses the text notation of a fault. Several faults become one fault of type `several`. */
export function parseFault(text: string): ParseFaultResult {
  const problems: string[] = []
  const faults = splitFaults(text).flatMap((written) => buildFault(written, problems) ?? [])
  const [problem] = problems
  if (problem !== undefined) return { ok: false, message: problem }
  const [first, ...more] = faults
  if (first === undefined)
    return { ok: false, message: `expected a fault such as ${FAULT_EXAMPLES}, found nothing` }
  return { ok: true, fault: more.length === 0 ? first : { type: 'several', faults } }
}

const FAULT_EXAMPLES =
  '"status=429; retry-after=2", "drip=50ms", "cut=utf8", "reset-after=3", "error-at=2" or "hang"'

/**
 * Reads the values in the text of one fault, such as `status=429; retry-after=2`. A value that cannot be parsed is
 * reported as a problem and treated as missing.
 */
interface FaultValues {
  readonly head: string | null
  /** Parses the value after the name of the fault, such as `429` in `status=429`. */
  readHead<T>(read: ValueParser<T>): T | undefined
  /** Parses all values of an option that may be repeated. */
  readAll<T>(name: string, read: ValueParser<T>): readonly T[]
  /** Parses the value of an option, or the last value if the option is repeated. Undefined if the option is missing. */
  readOption<T>(name: string, read: ValueParser<T>): T | undefined
}

interface ValueParser<T> {
  /** Description of a valid value. It completes the error message "needs …". */
  readonly needs: string
  parse(text: string): T | null
}

interface FaultKind {
  /** Names of the options that this kind of fault accepts. */
  readonly options: readonly string[]
  /** Builds the fault from its values. If a value was reported as a problem, the caller discards the fault. */
  readonly build: (writing: FaultValues) => Fault
}

const FAULT_KINDS: Readonly<Record<string, FaultKind>> = {
  status: { options: ['retry-after', 'type', 'message', 'code', 'header'], build: buildStatusFault },
  'slow-start': {
    options: [],
    build: ({ readHead }) => ({ type: 'slow-start', ms: readHead(TIME_PARSER) ?? 0 }),
  },
  drip: {
    options: ['bytes'],
    build: ({ readHead, readOption }) => ({
      type: 'slow-drip',
      bytes: readOption('bytes', countParser(1)) ?? 16,
      ms: readHead(TIME_PARSER) ?? 0,
    }),
  },
  cut: { options: ['after'], build: buildCutFault },
  'error-at': { options: ['type', 'message'], build: buildErrorEventFault },
  reset: { options: [], build: (writing) => ({ type: 'reset', ...readPlace(writing) }) },
  'reset-after': { options: [], build: ({ readHead }) => ({ type: 'reset', ...readHead(PLACE_PARSER) }) },
  hang: { options: [], build: (writing) => ({ type: 'hang', ...readPlace(writing) }) },
  'hang-after': { options: [], build: ({ readHead }) => ({ type: 'hang', ...readHead(PLACE_PARSER) }) },
}

function buildFault(written: FaultText, problems: string[]): Fault | null {
  const head = expandStatus(written.head)
  const kind = Object.hasOwn(FAULT_KINDS, head.name) ? FAULT_KINDS[head.name] : undefined
  if (kind === undefined) {
    problems.push(
      `"${head.name}" is no fault; faults are ${Object.keys(FAULT_KINDS).join(', ')}: ${FAULT_EXAMPLES}`,
    )
    return null
  }
  for (const { name, value } of written.options) {
    if (!kind.options.includes(name)) problems.push(describeUnknownOption(head.name, name, kind.options))
    else if (value === null) problems.push(`"${name}" of "${head.name}" needs a value: ${name}=…`)
  }
  return kind.build(createFaultValues({ head, options: written.options }, problems))
}

function describeUnknownOption(fault: string, part: string, options: readonly string[]): string {
  const known = options.length === 0 ? 'it takes nothing more' : `it takes ${options.join(', ')}`
  return `"${part}" says nothing about "${fault}"; ${known} (a comma begins another fault)`
}

/** Expands the short form of a status fault: `529` means `status=529`. */
function expandStatus(part: NameValue): NameValue {
  return part.value === null && /^\d+$/.test(part.name) ? { name: 'status', value: part.name } : part
}

function createFaultValues({ head, options }: FaultText, problems: string[]): FaultValues {
  const parse = <T>({ name, value }: NameValue, read: ValueParser<T>): T | undefined => {
    const found = read.parse(value ?? '')
    if (found === null) problems.push(`"${name}" needs ${read.needs}, not "${value ?? ''}"`)
    return found ?? undefined
  }
  const every = <T>(name: string, read: ValueParser<T>): readonly T[] =>
    options
      .filter((part) => part.name === name)
      .map((part) => parse(part, read))
      .filter((found) => found !== undefined)
  return {
    head: head.value,
    readHead: (read) => parse(head, read),
    readAll: every,
    readOption: (name, read) => every(name, read).at(-1),
  }
}

const TIME_PARSER: ValueParser<number> = { needs: 'a time, such as 50ms or 2s', parse: parseDurationMs }
const TEXT_PARSER: ValueParser<string> = { needs: 'text', parse: (text) => text }

function countParser(least: number, most?: number): ValueParser<number> {
  return {
    needs: `a whole number ${most === undefined ? `of at least ${least}` : `from ${least} to ${most}`}`,
    parse: (text) => {
      const read = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
      return read >= least && read <= (most ?? read) ? read : null
    },
  }
}

/** Parses an offset in an answer: `3` means after three events of the stream, `120b` after 120 bytes. */
const PLACE_PARSER: ValueParser<FaultOffset> = {
  needs: 'a number of events, such as 3, or of bytes, such as 120b',
  parse: (text) => {
    const [, amount, unit] = /^(\d{1,15})(b|)$/.exec(text) ?? []
    if (amount === undefined) return null
    return unit === 'b' ? { afterBytes: Number(amount) } : { afterEvents: Number(amount) }
  },
}

function readPlace({ head, readHead }: FaultValues): FaultOffset {
  return head === null ? {} : (readHead(PLACE_PARSER) ?? {})
}

/** Parses a duration in seconds. A number without a unit is in seconds too, as in the header `retry-after`. */
const SECONDS_PARSER: ValueParser<number> = {
  needs: 'seconds, such as 2',
  parse: (text) => {
    const ms = parseDurationMs(/^\d+(\.\d+)?$/.test(text) ? `${text}s` : text)
    return ms === null ? null : ms / 1_000
  },
}

const HEADER_PARSER: ValueParser<readonly [string, string]> = {
  needs: 'a name and a value in quotes, such as "x-should-retry: true"',
  parse: (text) => {
    const [, name, value] = /^\s*([\w-]+)\s*:\s*(.*)$/.exec(text) ?? []
    return name === undefined || value === undefined ? null : [name.toLowerCase(), value]
  },
}

function buildStatusFault({ readHead, readOption, readAll }: FaultValues): Fault {
  const code = readOption('code', TEXT_PARSER)
  const headers = readAll('header', HEADER_PARSER)
  return dropUndefined({
    type: 'status',
    status: readHead(countParser(400, 599)) ?? 0,
    retryAfter: readOption('retry-after', SECONDS_PARSER),
    errorType: readOption('type', TEXT_PARSER),
    message: readOption('message', TEXT_PARSER),
    details: code === undefined ? undefined : { error_code: code },
    headers: headers.length === 0 ? undefined : Object.fromEntries(headers),
  })
}

function buildErrorEventFault({ readHead, readOption }: FaultValues): Fault {
  return dropUndefined({
    type: 'error-event',
    afterEvents: readHead(countParser(0)) ?? 0,
    errorType: readOption('type', TEXT_PARSER),
    message: readOption('message', TEXT_PARSER),
  })
}

function buildCutFault({ head, readHead, readOption }: FaultValues): Fault {
  const after = readOption('after', PLACE_PARSER)
  if (head === 'utf8') return { type: 'cut', insideCharacter: true, ...after }
  return {
    type: 'cut',
    ...(head === null ? {} : readHead({ ...PLACE_PARSER, needs: `utf8, ${PLACE_PARSER.needs}` })),
    ...after,
  }
}

type WithoutUndefined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

function dropUndefined<const T extends object>(fields: T): WithoutUndefined<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as WithoutUndefined<T>
}

// The JSON and YAML notation of faults.

/** Reads a fault from the text notation, from the fields of a `Fault`, or from a list of either. */
export const readFault: ValueReader<Fault> = (value, place) => {
  if (typeof value === 'string' || typeof value === 'number') return readFaultText(String(value), place)
  if (Array.isArray(value)) return readFaultList(value, place)
  if (isObject(value)) return readFaultFields(value, place)
  return addReadProblem(
    place,
    `expected a fault, such as "status=429; retry-after=2", found ${describeValue(value)}`,
  )
}

function readFaultText(written: string, place: ReadContext): Fault | undefined {
  const parsed = parseFault(written)
  return parsed.ok ? parsed.fault : addReadProblem(place, parsed.message)
}

function readFaultList(values: readonly unknown[], place: ReadContext): Fault | undefined {
  const faults = values.map((each, index) => readFault(each, enterField(place, index)))
  const read = faults.filter((fault) => fault !== undefined)
  if (read.length === 0)
    return values.length === 0 ? addReadProblem(place, 'expected at least one fault') : undefined
  return { type: 'several', faults: read }
}

export const durationReader: ValueReader<number> = createReader(
  'a time, such as 50ms, 2s or 50',
  parseDurationMs,
)

const objectReader: ValueReader<Readonly<Record<string, unknown>>> = createReader('fields', (value) =>
  isObject(value) ? value : null,
)

type FaultFieldReaders<T extends Fault['type']> = FieldReaders<Omit<Extract<Fault, { type: T }>, 'type'>>

const PLACE_READERS = { afterBytes: wholeNumberReader(0), afterEvents: wholeNumberReader(0) }

const FIELD_READERS: { readonly [T in Exclude<Fault['type'], 'several'>]: FaultFieldReaders<T> } = {
  status: {
    status: wholeNumberReader(400, 599),
    errorType: textReader,
    message: textReader,
    retryAfter: createReader('seconds', (value) => (typeof value === 'number' && value >= 0 ? value : null)),
    headers: mapReader(textReader),
    details: objectReader,
  },
  'slow-start': { ms: durationReader },
  'slow-drip': { bytes: wholeNumberReader(1), ms: durationReader },
  cut: { ...PLACE_READERS, insideCharacter: booleanReader },
  'error-event': { afterEvents: wholeNumberReader(0), errorType: textReader, message: textReader },
  reset: PLACE_READERS,
  hang: PLACE_READERS,
}

const REQUIRED_FIELDS: Readonly<Partial<Record<Fault['type'], readonly string[]>>> = {
  status: ['status'],
  'slow-start': ['ms'],
  'slow-drip': ['bytes', 'ms'],
  'error-event': ['afterEvents'],
}

function readFaultFields(value: Readonly<Record<string, unknown>>, place: ReadContext): Fault | undefined {
  const { type, ...rest } = value
  if (type === 'several')
    return readFaultList(Array.isArray(rest.faults) ? rest.faults : [], enterField(place, 'faults'))
  if (!isFaultType(type))
    return addReadProblem(
      enterField(place, 'type'),
      `expected one of ${FAULT_TYPES}, found ${describeValue(type)}`,
    )
  const missing = (REQUIRED_FIELDS[type] ?? []).filter((name) => rest[name] === undefined)
  for (const name of missing) addReadProblem(enterField(place, name), `is needed for a fault of type ${type}`)
  const read = partialObjectReader<Record<string, unknown>>(FIELD_READERS[type])(rest, place)
  // The cast is safe because every field was read by a reader for this fault type and no required field is missing.
  return read === undefined || missing.length > 0 ? undefined : ({ type, ...read } as Fault)
}

const FAULT_TYPES = [...Object.keys(FIELD_READERS), 'several'].join(', ')

function isFaultType(type: unknown): type is keyof typeof FIELD_READERS {
  return typeof type === 'string' && Object.hasOwn(FIELD_READERS, type)
}

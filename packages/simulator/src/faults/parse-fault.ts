/**
 * Faults in one line of text, for a header or a scenario: `status=429; retry-after=2`, `drip=50ms`,
 * `slow-start=2s, cut=utf8`.
 */
import { durationOf } from './duration.ts'
import type { Fault, FaultPlace } from './fault.ts'
import { type WrittenFault, type WrittenPart, writtenFaults } from './fault-text.ts'

export type ParsedFault =
  | { readonly ok: true; readonly fault: Fault }
  /** `message` is one line: what is wrong, and what would be right. */
  | { readonly ok: false; readonly message: string }

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

/** What was written of one fault. What cannot be read as `read` says is a problem, and left out. */
interface Writing {
  readonly head: string | null
  /** The value right after the name of the fault. */
  own<T>(read: Read<T>): T | undefined
  /** The values of one name in what is said about it; the last of them counts, unless all do. */
  every<T>(name: string, read: Read<T>): readonly T[]
  get<T>(name: string, read: Read<T>): T | undefined
}

interface Read<T> {
  /** Finishes the sentence "needs …". */
  readonly needs: string
  of(text: string): T | null
}

interface Kind {
  /** What can be said about it. */
  readonly about: readonly string[]
  /** What is undefined here has been reported, and the fault is not used. */
  readonly build: (writing: Writing) => Fault
}

const KINDS: Readonly<Record<string, Kind>> = {
  status: { about: ['retry-after', 'type', 'message', 'code', 'header'], build: statusFault },
  'slow-start': { about: [], build: ({ own }) => ({ type: 'slow-start', ms: own(TIME) ?? 0 }) },
  drip: {
    about: ['bytes'],
    build: ({ own, get }) => ({ type: 'slow-drip', bytes: get('bytes', from(1)) ?? 16, ms: own(TIME) ?? 0 }),
  },
  cut: { about: ['after'], build: cutFault },
  'error-at': { about: ['type', 'message'], build: errorEvent },
  reset: { about: [], build: (writing) => ({ type: 'reset', ...placeOf(writing) }) },
  'reset-after': { about: [], build: ({ own }) => ({ type: 'reset', ...own(PLACE) }) },
  hang: { about: [], build: (writing) => ({ type: 'hang', ...placeOf(writing) }) },
  'hang-after': { about: [], build: ({ own }) => ({ type: 'hang', ...own(PLACE) }) },
}

function faultOf(written: WrittenFault, problems: string[]): Fault | null {
  const head = asStatus(written.head)
  const kind = Object.hasOwn(KINDS, head.name) ? KINDS[head.name] : undefined
  if (kind === undefined) {
    problems.push(`"${head.name}" is no fault; faults are ${Object.keys(KINDS).join(', ')}: ${EXAMPLES}`)
    return null
  }
  for (const { name, value } of written.about) {
    if (!kind.about.includes(name)) problems.push(notAbout(head.name, name, kind.about))
    else if (value === null) problems.push(`"${name}" of "${head.name}" needs a value: ${name}=…`)
  }
  return kind.build(writingOf({ head, about: written.about }, problems))
}

function notAbout(fault: string, part: string, about: readonly string[]): string {
  const known = about.length === 0 ? 'it takes nothing more' : `it takes ${about.join(', ')}`
  return `"${part}" says nothing about "${fault}"; ${known} (a comma begins another fault)`
}

/** `529` is short for `status=529`. */
function asStatus(part: WrittenPart): WrittenPart {
  return part.value === null && /^\d+$/.test(part.name) ? { name: 'status', value: part.name } : part
}

function writingOf({ head, about }: WrittenFault, problems: string[]): Writing {
  const checked = <T>({ name, value }: WrittenPart, read: Read<T>): T | undefined => {
    const found = read.of(value ?? '')
    if (found === null) problems.push(`"${name}" needs ${read.needs}, not "${value ?? ''}"`)
    return found ?? undefined
  }
  const every = <T>(name: string, read: Read<T>): readonly T[] =>
    about
      .filter((part) => part.name === name)
      .map((part) => checked(part, read))
      .filter((found) => found !== undefined)
  return {
    head: head.value,
    own: (read) => checked(head, read),
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

/** `3`: after three events of the stream; `120b`: after 120 bytes. */
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

/** The provider tells of seconds: a plain number is that. */
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

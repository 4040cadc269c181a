/** Faults as JSON or YAML: the text of `parse-fault.ts`, the fields of `Fault`, or a list of either. */
import { isObject } from '../api.ts'
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
} from '../script/fields.ts'
import { durationOf } from './duration.ts'
import type { Fault } from './fault.ts'
import { parseFault } from './parse-fault.ts'

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

const PLACE = { afterBytes: count(0), afterEvents: count(0) }

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
  cut: { ...PLACE, insideCharacter: flag },
  'error-event': { afterEvents: count(0), errorType: text, message: text },
  reset: PLACE,
  hang: PLACE,
}

/** What each kind cannot do without. */
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
  if (!isKind(type)) return report(inside(place, 'type'), `expected one of ${KINDS}, found ${shown(type)}`)
  const missing = (REQUIRED[type] ?? []).filter((name) => rest[name] === undefined)
  for (const name of missing) report(inside(place, name), `is needed for a fault of type ${type}`)
  const read = fieldsOf<Record<string, unknown>>(FIELDS[type])(rest, place)
  // The fields were read by those of the type, and none that it needs is missing.
  return read === undefined || missing.length > 0 ? undefined : ({ type, ...read } as Fault)
}

const KINDS = [...Object.keys(FIELDS), 'several'].join(', ')

function isKind(type: unknown): type is keyof typeof FIELDS {
  return typeof type === 'string' && Object.hasOwn(FIELDS, type)
}

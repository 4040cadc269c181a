/**
 * The version of a log and the way from every older one to the present: a log names its version in its first
 * line and is brought up to date as it is read, never rewritten.
 */
import { TidemarkError } from '../errors.ts'
import { isObject } from './json.ts'

/** The first line of a log, and of every later part that was written in another version. It has no position. */
export interface LogHeader {
  readonly type: 'tidemark'
  readonly format: 'tidemark-session'
  readonly version: number
  readonly sessionId: string
  readonly timestamp: string
}

/** A line as parsed, before it is known to be a record. */
export type ParsedLine = { readonly [field: string]: unknown }

/** Turns a line of one version into the same line of the next. */
export type Upcast = (line: ParsedLine) => ParsedLine

/** `UPCASTS[0]` leads from version 1 to version 2, and so on: the present version follows from their number. */
export const UPCASTS: readonly Upcast[] = []

export const LOG_VERSION: number = versionAfter(UPCASTS)

export function versionAfter(upcasts: readonly Upcast[]): number {
  return upcasts.length + 1
}

export function newHeader(sessionId: string, timestamp: string): LogHeader {
  return { type: 'tidemark', format: 'tidemark-session', version: LOG_VERSION, sessionId, timestamp }
}

export function isHeader(line: ParsedLine): boolean {
  return line.type === 'tidemark'
}

/** The version a header names; null where it names none that can be. */
export function versionOf(header: ParsedLine, upcasts: readonly Upcast[] = UPCASTS): number | null {
  const { format, version } = header
  if (format !== 'tidemark-session' || !isVersion(version)) return null
  const known = versionAfter(upcasts)
  if (version <= known) return version
  throw new TidemarkError(
    'newer-format',
    `This session was written in format version ${version}, and this tidemark reads up to version ${known}: update tidemark to open it.`,
    { details: { version, known } },
  )
}

/** Brings one line of `version` up to the present version. */
export function upcastLine(line: ParsedLine, version: number, upcasts: readonly Upcast[] = UPCASTS): unknown {
  let present: unknown = line
  for (let step = version; step <= upcasts.length && isObject(present); step += 1)
    present = upcasts[step - 1]?.(present)
  return present
}

function isVersion(version: unknown): version is number {
  return Number.isSafeInteger(version) && Number(version) >= 1
}

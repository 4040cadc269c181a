/** Takes credentials out of a text that is about to be shown or stored. What a log holds stays as it is. */
import { SECRET_PATTERNS } from './secrets/secret-patterns.ts'

export const REDACTED = '[redacted]'

/** A cheap look first: hardly any text has a credential, and the patterns are many. */
const SUSPICIOUS =
  /[A-Za-z0-9_+/=-]{16}|pass|pwd|secret|token|key|auth|bearer|cookie|credential|:\/\/|\b(?:curl|mysql|mariadb|docker|podman|helm|mongo|redis-cli|openssl|7z)/i

export function redact(text: string): string {
  if (!SUSPICIOUS.test(text)) return text
  return SECRET_PATTERNS.reduce((left, { pattern }) => left.replace(pattern, withoutSecret), text)
}

/** The same value with every text in it redacted. */
export function redactAll<Value>(value: Value): Value
export function redactAll(value: unknown): unknown {
  if (typeof value === 'string') return redact(value)
  if (Array.isArray(value)) return value.map((item) => redactAll<unknown>(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([field, item]) => [field, redactAll<unknown>(item)]))
}

/** A replacer gets the match, its groups, and last of all the named groups, where there are any. */
function withoutSecret(_match: string, ...rest: readonly unknown[]): string {
  const groups = rest.at(-1)
  const kept = typeof groups === 'object' && groups !== null && 'kept' in groups ? groups.kept : ''
  return `${typeof kept === 'string' ? kept : ''}${REDACTED}`
}

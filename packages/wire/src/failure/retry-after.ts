/** What response headers say about trying again. */
import { type Headers, header } from '../header.ts'

/**
 * Milliseconds to wait: `retry-after-ms`, else `retry-after` in seconds or as a date. A date is told from
 * `now`, or from the response's own `date`; without either it says nothing.
 */
export function retryAfterMs(headers: Headers, now?: number): number | undefined {
  const exact = amount(header(headers, 'retry-after-ms'))
  if (exact !== undefined) return exact
  const value = header(headers, 'retry-after')
  const seconds = amount(value)
  return seconds === undefined ? untilDate(value, now ?? dateOf(header(headers, 'date'))) : seconds * 1000
}

/** The provider's own word on whether to try again, which goes before any rule. */
export function shouldRetry(headers: Headers): boolean | undefined {
  const value = header(headers, 'x-should-retry')?.trim().toLowerCase()
  return value === 'true' ? true : value === 'false' ? false : undefined
}

function amount(value: string | undefined): number | undefined {
  if (value === undefined || !/^\s*\d+(?:\.\d+)?\s*$/.test(value)) return undefined
  return Number(value)
}

function untilDate(value: string | undefined, from: number | undefined): number | undefined {
  const at = dateOf(value)
  return at === undefined || from === undefined ? undefined : Math.max(0, at - from)
}

function dateOf(value: string | undefined): number | undefined {
  const at = value === undefined ? Number.NaN : Date.parse(value)
  return Number.isNaN(at) ? undefined : at
}

/** The requests answered so far, the newest kept, with what is needed to compare the next one with them. */
import type { CacheKey, Scope } from '../cache/key.ts'
import type { Prompt } from '../cache/prompt.ts'
import type { RequestRecord } from './record.ts'

/** A request as a later one is compared with it. */
export interface Seen {
  readonly number: number
  readonly scope: Scope
  readonly prompt: Prompt
  readonly key: CacheKey
  /** Its last breakpoint that counted, as a position; null where nothing of it could be cached. */
  readonly cachedUpTo: number | null
  /** When its own lifetimes began. */
  readonly startedAt: number
  readonly begun: () => boolean
}

export interface RequestLog {
  /** The number of the next request, counted from 1. */
  next(): number
  add(record: RequestRecord): void
  see(seen: Seen): void
  readonly records: readonly RequestRecord[]
  readonly seen: readonly Seen[]
  readonly count: number
  clear(): void
}

const COMPARABLE = 64

export function createRequestLog(kept: number): RequestLog {
  let records: RequestRecord[] = []
  let seen: Seen[] = []
  let count = 0
  return {
    next() {
      count += 1
      return count
    },
    add(record) {
      records.push(record)
      if (records.length > kept) records = records.slice(-kept)
    },
    see(request) {
      seen.push(request)
      if (seen.length > COMPARABLE) seen = seen.slice(-COMPARABLE)
    },
    get records() {
      return records
    },
    get seen() {
      return seen
    },
    get count() {
      return count
    },
    clear() {
      records = []
      seen = []
    },
  }
}

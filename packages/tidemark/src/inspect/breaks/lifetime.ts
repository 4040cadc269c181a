/** How long entries of a cache live, by what the log says was written. */
import { isObject, type SentMarker } from '@tidemark/core'
import type { Call } from '../calls.ts'

export type Lifetime = Pick<SentMarker, 'ttl' | 'seconds'>

const HOUR: Lifetime = { ttl: '1h', seconds: 3600 }
const FIVE_MINUTES: Lifetime = { ttl: '5m', seconds: 300 }
/** Providers that cache by themselves say nothing of it, and keep an entry for five to ten minutes. */
const UNTOLD: Lifetime = { ttl: 'some 10 minutes', seconds: 600 }

/** A call that wrote nothing leaves it at what it was. */
export function lifetimeOf({ usage }: Call, before: Lifetime | null): Lifetime {
  const written = isObject(usage?.cache_creation) ? usage.cache_creation : {}
  if (isSome(written.ephemeral_1h_input_tokens)) return HOUR
  if (isSome(written.ephemeral_5m_input_tokens)) return FIVE_MINUTES
  return before ?? (usage?.cache_creation_input_tokens === undefined ? UNTOLD : FIVE_MINUTES)
}

function isSome(count: unknown): boolean {
  return typeof count === 'number' && count > 0
}

/** How long entries of a cache live, by what the log says was written, else by what is known of the model. */
import { isObject, type Profile, type SentMarker } from '@tidemark/core'
import type { Call } from '../calls.ts'

export type Lifetime = Pick<SentMarker, 'ttl' | 'seconds'>

const HOUR: Lifetime = { ttl: '1h', seconds: 3600 }
const FIVE_MINUTES: Lifetime = { ttl: '5m', seconds: 300 }
/** Providers that cache by themselves say nothing of it, and keep an entry for five to ten minutes. */
const UNTOLD: Lifetime = { ttl: 'some 10 minutes', seconds: 600 }

/**
 * The split of what was written says it; a call that wrote nothing, or does not say, leaves it at what it was. At
 * first it is what a marker asks for by default. `cache`: of the model; null for one that nobody has described.
 */
export function lifetimeOf(
  { usage }: Call,
  cache: Profile['cache'] | null,
  before: Lifetime | null,
): Lifetime {
  const written = isObject(usage?.cache_creation) ? usage.cache_creation : {}
  if (isSome(written.ephemeral_1h_input_tokens)) return HOUR
  if (isSome(written.ephemeral_5m_input_tokens)) return FIVE_MINUTES
  if (before !== null) return before
  if (cache !== null) return defaultOf(cache)
  return usage?.cache_creation_input_tokens === undefined ? UNTOLD : FIVE_MINUTES
}

/** Where no marker can be set, what the profile lists is what the account may have bought, and not the rule. */
function defaultOf({ maxMarkers, ttls, defaultTtl }: Profile['cache']): Lifetime {
  const asked = maxMarkers === 0 ? undefined : ttls.find(({ name }) => name === defaultTtl)
  return asked === undefined ? UNTOLD : { ttl: asked.name, seconds: asked.seconds }
}

function isSome(count: unknown): boolean {
  return typeof count === 'number' && count > 0
}

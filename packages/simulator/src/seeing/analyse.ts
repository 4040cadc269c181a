/** What the cache did with a request, in the form people are shown, and what the next request is compared with. */
import type { CacheOutcome } from '../cache/prompt-cache.ts'
import { tokensAt } from '../cache/split.ts'
import type { CacheStore } from '../cache/store.ts'
import type { Prepared } from '../server/prepare.ts'
import { explainMiss } from './explain.ts'
import type { CacheAnalysis } from './record.ts'
import type { RequestLog, Seen } from './request-log.ts'

export interface Analysed {
  readonly analysis: CacheAnalysis
  readonly seen: Omit<Seen, 'begun'>
}

export function analyse(
  { log, store }: { readonly log: RequestLog; readonly store: CacheStore },
  { prompt, key, scope, model }: Prepared,
  { cache, number, now }: { readonly cache: CacheOutcome; readonly number: number; readonly now: number },
): Analysed {
  const { hit, breakpoints } = cache
  const counted = breakpoints.findLast(({ fate }) => fate !== 'below-minimum')
  const position = hit?.position ?? null
  return {
    analysis: {
      hit:
        hit === null
          ? null
          : {
              path: prompt.pathOf(hit.position),
              tokens: tokensAt(prompt, hit.position),
              from: prompt.pathOf(hit.from),
            },
      breakpoints: breakpoints.map((each) => ({
        path: prompt.pathOf(each.position),
        ttl: each.ttl,
        tokens: each.tokens,
        fate: each.fate,
      })),
      minimum: model.cacheMinimum,
      miss: explainMiss({ prompt, key, scope, hit: position, earlier: log.seen, store, now }),
    },
    seen: { number, scope, prompt, key, cachedUpTo: counted?.position ?? null, startedAt: now },
  }
}

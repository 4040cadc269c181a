/** A detector and a provider, side by side: each request goes to both, and the cache model learns from the answer. */
import type { Announcement } from '../../src/cache/cache-break.ts'
import {
  type Forecast,
  forecastSent,
  learnFromFork,
  learnFromResponse,
} from '../../src/cache/cache-forecast.ts'
import { type Lineage, NO_LINEAGE } from '../../src/cache/cache-model.ts'
import {
  announceAct,
  type BreakRules,
  type CacheAnswer,
  type CacheOutcome,
  type CacheWatch,
  emptyCacheWatch,
  parentKey,
  takeSnapshot,
  watchKey,
} from '../../src/cache/cache-monitor.ts'
import { compareAnswer } from '../../src/cache/detect-break.ts'
import type { SentRequest } from '../../src/cache/sent-request.ts'
import type { Usage } from '../../src/log/record.ts'
import { ProviderCache, type ProviderCacheOptions } from '../provider-cache.ts'
import { RULES } from './rules.ts'

export interface Watcher {
  /** Sends a request to the provider and compares its answer. */
  send(sent: SentRequest, said?: Omit<CacheAnswer, 'source' | 'usage'>): Sent
  /** A request under way, or one that never reaches the provider. */
  record(sent: SentRequest): void
  /** The answer to the request of a source that was recorded last. */
  answer(answer: CacheAnswer): CacheOutcome
  /** A request with the usage that it is answered with. */
  exchange(sent: SentRequest, usage: Usage): CacheOutcome
  announce(source: string, announcement: Announcement): void
  readonly cache: ProviderCache
  readonly watch: CacheWatch
}

export interface Sent {
  readonly outcome: CacheOutcome
  readonly usage: Usage
}

const countTokens = (text: string): number => Math.ceil(text.length / 4)

export function createWatcher(rules: BreakRules = RULES, options: ProviderCacheOptions = {}): Watcher {
  const cache = new ProviderCache({ countTokens, ...options })
  const models = new Map<string, Lineage>()
  const underWay = new Map<string, { readonly sent: SentRequest; readonly forecast: Forecast }>()
  let watch = emptyCacheWatch()
  const modelKey = ({ source, forkOf }: SentRequest): string => parentKey(source, forkOf) ?? watchKey(source)
  const watcher: Watcher = {
    send(sent, said = {}) {
      watcher.record(sent)
      const usage = cache.answer(sent)
      return { outcome: watcher.answer({ ...said, source: sent.source, usage }), usage }
    },
    record(sent) {
      const forecast = forecastSent(models.get(modelKey(sent)) ?? NO_LINEAGE, sent, rules.profile)
      underWay.set(watchKey(sent.source), { sent, forecast })
      watch = takeSnapshot(watch, sent, forecast, rules.policy)
    },
    answer(answer) {
      const compared = compareAnswer(watch, answer, rules)
      watch = compared.watch
      const call = underWay.get(watchKey(answer.source))
      if (call !== undefined && answer.usage !== null) {
        const key = modelKey(call.sent)
        const model = models.get(key) ?? NO_LINEAGE
        const isFork = parentKey(call.sent.source, call.sent.forkOf) !== null
        const learnt = isFork
          ? learnFromFork(model, call.forecast, answer.usage)
          : learnFromResponse(model, call.forecast, answer.usage, answer.isEdited)
        models.set(key, learnt)
      }
      return compared.outcome
    },
    exchange(sent, usage) {
      watcher.record(sent)
      return watcher.answer({ source: sent.source, usage })
    },
    announce(source, announcement) {
      watch = announceAct(watch, source, announcement)
    },
    cache,
    get watch() {
      return watch
    },
  }
  return watcher
}

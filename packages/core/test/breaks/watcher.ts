/** A detector and a provider, side by side: each request goes to both, and the cache model learns from the answer. */
import { createUsage, type TestUsage } from '@tidemark/core/testing'
import type { RewriteAnnouncement } from '../../src/cache/cache-break-types.ts'
import {
  type CacheForecast,
  forecastLoggedCacheRead,
  updateCacheModelFromFork,
  updateCacheModelFromResponse,
} from '../../src/cache/cache-forecast.ts'
import { type CacheModel, EMPTY_CACHE_MODEL } from '../../src/cache/cache-model.ts'
import {
  type CacheBreakRules,
  type CacheCheckInput,
  type CacheCheckOutcome,
  type CacheMonitor,
  createCacheMonitor,
  findForkParentKey,
  toCallerKey,
  withAnnouncedRewrite,
  withSentRequest,
} from '../../src/cache/cache-monitor.ts'
import { judgeCacheRead } from '../../src/cache/detect-break.ts'
import type { SentRequest } from '../../src/cache/sent-request.ts'
import type { TokenUsage } from '../../src/log/reply-report.ts'
import { ProviderCache, type ProviderCacheOptions } from '../provider-cache.ts'
import { RULES } from './rules.ts'

export interface Watcher {
  /** Sends a request to the provider and compares its answer. */
  send(sent: SentRequest, said?: Omit<CacheCheckInput, 'source' | 'usage'>): Sent
  /** A request under way, or one that never reaches the provider. */
  record(sent: SentRequest): void
  /** The answer to the request of a source that was recorded last. */
  answer(answer: CacheCheckInput): CacheCheckOutcome
  /** A request with the usage that it is answered with. */
  exchange(sent: SentRequest, usage: TestUsage): CacheCheckOutcome
  announce(source: string, announcement: RewriteAnnouncement): void
  readonly cache: ProviderCache
  readonly watch: CacheMonitor
}

export interface Sent {
  readonly outcome: CacheCheckOutcome
  readonly usage: TokenUsage
}

const countTokens = (text: string): number => Math.ceil(text.length / 4)

export function createWatcher(rules: CacheBreakRules = RULES, options: ProviderCacheOptions = {}): Watcher {
  const cache = new ProviderCache({ countTokens, ...options })
  const models = new Map<string, CacheModel>()
  const underWay = new Map<string, { readonly sent: SentRequest; readonly forecast: CacheForecast }>()
  let watch = createCacheMonitor()
  const modelKey = ({ source, forkOf }: SentRequest): string =>
    findForkParentKey(source, forkOf) ?? toCallerKey(source)
  const watcher: Watcher = {
    send(sent, said = {}) {
      watcher.record(sent)
      const usage = cache.answer(sent)
      return { outcome: watcher.answer({ ...said, source: sent.source, usage }), usage }
    },
    record(sent) {
      const forecast = forecastLoggedCacheRead(
        models.get(modelKey(sent)) ?? EMPTY_CACHE_MODEL,
        sent,
        rules.profile,
      )
      underWay.set(toCallerKey(sent.source), { sent, forecast })
      watch = withSentRequest(watch, sent, forecast, rules.policy)
    },
    answer(answer) {
      const compared = judgeCacheRead(watch, answer, rules)
      watch = compared.monitor
      const call = underWay.get(toCallerKey(answer.source))
      if (call !== undefined && answer.usage !== null) {
        const key = modelKey(call.sent)
        const model = models.get(key) ?? EMPTY_CACHE_MODEL
        const isFork = findForkParentKey(call.sent.source, call.sent.forkOf) !== null
        const learnt = isFork
          ? updateCacheModelFromFork(model, call.forecast, answer.usage)
          : updateCacheModelFromResponse(model, call.forecast, answer.usage, compared.isEdited)
        models.set(key, learnt)
      }
      return compared.outcome
    },
    exchange(sent, usage) {
      watcher.record(sent)
      return watcher.answer({ source: sent.source, usage: createUsage(usage) })
    },
    announce(source, announcement) {
      watch = withAnnouncedRewrite(watch, source, announcement)
    },
    cache,
    get watch() {
      return watch
    },
  }
  return watcher
}

/** A detector and a provider, side by side: each request goes to both. */
import type { Announcement } from '../../src/cache/cache-break.ts'
import {
  announceAct,
  type BreakRules,
  type CacheAnswer,
  type CacheOutcome,
  type CacheWatch,
  emptyCacheWatch,
  takeSnapshot,
} from '../../src/cache/cache-monitor.ts'
import { compareAnswer } from '../../src/cache/detect-break.ts'
import type { SentRequest } from '../../src/cache/sent-request.ts'
import type { Usage } from '../../src/log/record.ts'
import { createHonestCache, type HonestCache } from './honest-cache.ts'
import { RULES } from './rules.ts'

export interface Watcher {
  send(sent: SentRequest, said?: Omit<CacheAnswer, 'source' | 'usage'>): Sent
  /** A request that never reaches the provider. */
  lose(sent: SentRequest): void
  announce(source: string, announcement: Announcement): void
  readonly cache: HonestCache
  readonly watch: CacheWatch
}

export interface Sent {
  readonly outcome: CacheOutcome
  readonly usage: Usage
}

export function createWatcher(rules: BreakRules = RULES, cache: HonestCache = createHonestCache()): Watcher {
  let watch = emptyCacheWatch()
  return {
    send(sent, said = {}) {
      watch = takeSnapshot(watch, sent, rules.policy)
      const usage = cache.answer(sent)
      const done = compareAnswer(watch, { ...said, source: sent.source, usage }, rules)
      watch = done.watch
      return { outcome: done.outcome, usage }
    },
    lose(sent) {
      watch = takeSnapshot(watch, sent, rules.policy)
    },
    announce(source, announcement) {
      watch = announceAct(watch, source, announcement)
    },
    cache,
    get watch() {
      return watch
    },
  }
}

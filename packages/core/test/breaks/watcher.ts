/** A detector and a provider, side by side: each request goes to both. */
import type { Announcement } from '../../src/breaks/announcement.ts'
import { compare } from '../../src/breaks/compare.ts'
import type { Answer, CompareRules, Outcome } from '../../src/breaks/outcome.ts'
import type { SentRequest } from '../../src/breaks/sent.ts'
import { announce, type CacheWatch, emptyWatch, snapshot } from '../../src/breaks/watch.ts'
import type { Usage } from '../../src/conversation/record.ts'
import { createHonestCache, type HonestCache } from './honest-cache.ts'
import { RULES } from './rules.ts'

export interface Watcher {
  send(sent: SentRequest, said?: Omit<Answer, 'source' | 'usage'>): Sent
  announce(source: string, announcement: Announcement): void
  readonly cache: HonestCache
  readonly watch: CacheWatch
}

export interface Sent {
  readonly outcome: Outcome
  readonly usage: Usage
}

export function createWatcher(
  rules: CompareRules = RULES,
  cache: HonestCache = createHonestCache(),
): Watcher {
  let watch = emptyWatch()
  return {
    send(sent, said = {}) {
      watch = snapshot(watch, sent, rules.policy)
      const usage = cache.answer(sent)
      const done = compare(watch, { ...said, source: sent.source, usage }, rules)
      watch = done.watch
      return { outcome: done.outcome, usage }
    },
    announce(source, announcement) {
      watch = announce(watch, source, announcement)
    },
    cache,
    get watch() {
      return watch
    },
  }
}

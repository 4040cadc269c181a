/** What breaks are judged by in tests: the default policy, a provider that counts tool runs as one, known prices. */
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import type { CacheBreakRules } from '../../src/cache/cache-monitor.ts'
import { DEFAULT_POLICY } from '../../src/policy/create-policy.ts'

export const RULES: CacheBreakRules = {
  policy: DEFAULT_POLICY.cache.breaks,
  profile: defineMessagesProfile({ cache: { collapsesToolRuns: true, lookBack: 20 } }),
  prices: { input: 2, cacheRead: 0.2, writeShort: 2.5, writeLong: 4, output: 10 },
}

/** What breaks are judged by in tests: the default policy, a provider that counts tool runs as one, known prices. */
import type { CacheBreakRules } from '../../src/cache/cache-monitor.ts'
import { DEFAULT_POLICY } from '../../src/policy/create-policy.ts'
import { defineProviderProfile } from '../../src/policy/provider-profile.ts'

export const RULES: CacheBreakRules = {
  policy: DEFAULT_POLICY.cache.breaks,
  profile: defineProviderProfile({ cache: { collapsesToolRuns: true, lookBack: 20 } }),
  prices: { input: 2, cacheRead: 0.2, write5m: 2.5, write1h: 4, output: 10 },
}

/** Named policies: sets of settings that belong together, to be used as they are or as a start. */
import type { PolicyOverrides } from './create-policy.ts'

/** Names of the policies that come with the library. */
export type PresetName = 'default' | 'economy' | 'claude-code-like' | 'nothing'

/**
 * - `default`: the defaults.
 * - `economy`: compacts earlier (under a client, before its window is full where that costs nothing), attaches less of
 *   the files again and keeps fewer messages. Cheaper; more edits have to read their lines again.
 * - `claude-code-like`: compacts at the auto-compact threshold only, with five files of 5,000 tokens, notes of 2,000
 *   tokens a section and 12,000 in all, 10,000 to 40,000 tokens of kept messages, half of the threshold as its target, and one
 *   cache lifetime for all.
 * - `nothing`: nothing is cleared, summarized or noted. A session ends where the context window does.
 *
 * @example
 * ```ts
 * createTidemark({ policy: presets['claude-code-like'] })
 * createTidemark({ policy: { ...presets.economy, cache: { ttl: 'short' } } }) // a group replaces the preset's group
 * ```
 */
export const presets: Readonly<Record<PresetName, PolicyOverrides>> = {
  default: {},
  economy: {
    compact: {
      notesLine: { conversationTokens: 45_000, growthTokens: 20_000, rootFactor: 1, coldTokens: 20_000 },
    },
    rehydrate: { files: { eachTokens: 3_000, middleTokens: 1_500, lastTokens: 700, totalTokens: 12_000 } },
    notes: { totalTokens: 8_000, kept: { minimumTokens: 1_000, maximumTokens: 2_000 } },
    dropIn: { freeRewrites: true },
  },
  'claude-code-like': {
    cache: { tailTtl: 'same' },
    clear: { keptFiles: 0 },
    compact: { notesLine: { enabled: false }, target: { percentOfAutoCompact: 50, countsPrefix: true } },
    rehydrate: {
      files: { count: 5, eachTokens: 5_000, middleTokens: 5_000, lastTokens: 5_000, totalTokens: 50_000 },
    },
    notes: {
      decisionTokens: 0,
      totalTokens: 12_000,
      kept: { minimumTokens: 10_000, minimumMessages: 5, maximumTokens: 40_000 },
    },
    dropIn: { notesLine: { enabled: false }, leastUsePercent: 0, notesTokens: 12_000 },
  },
  nothing: {
    cache: { tailTtl: 'same' },
    clear: { ways: [] },
    notes: { enabled: false },
    switches: { autoCompactEnabled: false, microcompactEnabled: false },
  },
}

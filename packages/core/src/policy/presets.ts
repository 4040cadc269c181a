/** Named policies: sets of settings that belong together, to be used as they are or as a start. */
import type { PolicyOverrides } from './create-policy.ts'

/** Names of the policies that come with the library. */
export type PresetName = 'default' | 'economy' | 'claude-code-like' | 'nothing'

/**
 * - `default`: the defaults.
 * - `economy`: compacts with the notes as soon as that costs least, and brings back up to 20 files by rank. Cheaper, and edits
 *   see their lines as often, but less of what the model wrote stays in view.
 * - `claude-code-like`: five files of 5,000 tokens, and 10,000 to 40,000 tokens of kept messages, at the auto-compact
 *   threshold.
 * - `nothing`: nothing is cleared, summarized or noted. A session ends where the context window does.
 *
 * @example
 * ```ts
 * createTidemark({ policy: presets['claude-code-like'] })
 * createTidemark({ policy: { ...presets.economy, cache: { ttl: '5m' } } }) // a group replaces the preset's group
 * ```
 */
export const presets: Readonly<Record<PresetName, PolicyOverrides>> = {
  default: {},
  economy: {
    compact: { notesLine: { enabled: true }, target: { countsPrefix: false } },
    rehydrate: {
      files: { count: 20, eachTokens: 7_000, middleTokens: 3_000, lastTokens: 1_200, totalTokens: 30_000 },
    },
    notes: { kept: { minimumTokens: 2_000, maximumTokens: 6_000 } },
  },
  'claude-code-like': {
    compact: { notesLine: { enabled: false }, target: { countsPrefix: true } },
    rehydrate: {
      files: { count: 5, eachTokens: 5_000, middleTokens: 5_000, lastTokens: 5_000, totalTokens: 50_000 },
    },
    notes: { kept: { minimumTokens: 10_000, maximumTokens: 40_000 } },
  },
  nothing: {
    clear: { ways: [] },
    notes: { enabled: false },
    switches: { autoCompactEnabled: false, microcompactEnabled: false },
  },
}

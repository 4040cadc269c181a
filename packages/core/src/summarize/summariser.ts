/** Who writes a summary on a call of its own, and the settings that keep thinking from eating the answer. */
import type { JsonObject } from '../conversation/json.ts'
import type { Profile } from '../policy/profile.ts'
import type { Payload } from '../view/payload.ts'

export interface Summariser {
  readonly model: string
  readonly profile: Profile
  /** Context window in tokens; null where nobody knows it. */
  readonly window: number | null
  /** Tokens that a summary may take: 20,000 by policy, less in a small window. */
  readonly outputTokens: number
}

/** Tokens for thinking that cannot be turned off, beside those for the summary. */
const THINKING_ROOM = 8_000
const LOWEST_EFFORT = 'low'

export type AnswerSettings = Pick<Payload, 'max_tokens' | 'thinking'> & {
  readonly output_config?: JsonObject
}

/** Thinking off where the model allows it; otherwise at the lowest effort, with room for it. */
export function answerSettings(
  { profile, outputTokens }: Summariser,
  tokens: number = outputTokens,
): AnswerSettings {
  const { modes, whenAbsent, minimumBudget, disabledEfforts } = profile.thinking
  if (whenAbsent === 'disabled') return { max_tokens: within(tokens, profile) }
  if (modes.includes('disabled')) {
    const effort = disabledEfforts === null ? {} : effortOf(disabledEfforts[0] ?? LOWEST_EFFORT, profile)
    return { max_tokens: within(tokens, profile), thinking: { type: 'disabled' }, ...effort }
  }
  const room = Math.max(minimumBudget, Math.min(THINKING_ROOM, tokens))
  const max_tokens = within(tokens + room, profile)
  if (!modes.includes('adaptive') && modes.includes('enabled')) {
    return {
      max_tokens,
      thinking: { type: 'enabled', budget_tokens: Math.min(minimumBudget, max_tokens - 1) },
    }
  }
  return { max_tokens, ...effortOf(LOWEST_EFFORT, profile) }
}

/** Tokens of a window that are not for input. */
export function answerTokens(summariser: Summariser): number {
  return answerSettings(summariser).max_tokens ?? summariser.outputTokens
}

function within(tokens: number, { maxOutput }: Profile): number {
  return maxOutput === null ? tokens : Math.min(tokens, maxOutput)
}

function effortOf(effort: string, { refusedFields }: Profile): { readonly output_config?: JsonObject } {
  const refused = refusedFields.some((path) => path === 'output_config' || path === 'output_config.effort')
  return refused ? {} : { output_config: { effort } }
}

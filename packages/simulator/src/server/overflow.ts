/** A prompt too large for the window, in the words clients parse. */
import type { SimulatedModel } from '../models.ts'
import { invalid, type Refusal } from '../refusal.ts'

export function overflowOf(
  model: SimulatedModel,
  tokens: number,
  maxTokens: number | undefined,
): Refusal | null {
  const { window } = model
  if (tokens > window) return invalid(`prompt is too long: ${tokens} tokens > ${window} maximum`)
  if (model.overflow === 'stop' || maxTokens === undefined || tokens + maxTokens <= window) return null
  return invalid(
    `input length and \`max_tokens\` exceed context limit: ${tokens} + ${maxTokens} > ${window}, decrease input length or \`max_tokens\` and try again`,
  )
}

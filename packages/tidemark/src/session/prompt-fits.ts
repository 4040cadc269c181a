/** A prompt that no compaction could make room for is refused before it is in the log, where it would stay. */
import { type Content, type Halt, prefixTokens, sizeOf, startCalibration } from '@tidemark/core'
import { type Desk, hostOf } from './desk.ts'

/** Null where it fits, or where nobody knows the window. */
export function tooLarge(desk: Desk, prompt: Content): Halt | null {
  const { estimator, scaled, choice } = desk.fitted
  if (!scaled.known) return null
  const { effective } = scaled.lines
  const start = startCalibration(estimator.weights.start)
  const size = (tokens: number): number => sizeOf(start, tokens, desk.settings.policy.estimate).expected
  const said = size(estimator.content(prompt))
  const before = size(prefixTokens(desk.shared.state, hostOf(desk), estimator))
  if (said + before <= effective) return null
  const message = `The prompt has about ${counted(said)} tokens, and ${counted(before)} of the system prompt and tools stand before it: ${choice.id} takes ${counted(effective)}. It was not added to the session. Give it in parts, or where a tool can read it.`
  return { ok: false, reason: 'full', message }
}

function counted(tokens: number): string {
  return Math.ceil(tokens).toLocaleString('en-US')
}

/**
 * The bill for a prompt. A is the highest position read, B the highest 1-hour breakpoint behind it, C the
 * last breakpoint: read up to A, written for an hour from A to B, for five minutes from B to C, and plain
 * input after that. Breakpoints on a prefix shorter than the model's minimum do not count.
 */
import type { Prompt } from './prompt.ts'

export interface CacheSplit {
  readonly read: number
  readonly write5m: number
  readonly write1h: number
  readonly input: number
}

export function totalTokens({ positions }: Prompt): number {
  return positions.at(-1)?.tokens ?? 0
}

export function tokensAt({ positions }: Prompt, position: number): number {
  return positions[position]?.tokens ?? 0
}

export function splitOf(prompt: Prompt, hit: number | null, minimum: number): CacheSplit {
  const total = totalTokens(prompt)
  const a = hit === null ? 0 : tokensAt(prompt, hit)
  let b = a
  let c = a
  for (const { position, ttl } of prompt.breakpoints) {
    const tokens = tokensAt(prompt, position)
    if (tokens < minimum) continue
    c = Math.max(c, tokens)
    if (ttl === '1h') b = Math.max(b, tokens)
  }
  return { read: a, write1h: b - a, write5m: Math.max(0, c - b), input: total - Math.max(b, c) }
}

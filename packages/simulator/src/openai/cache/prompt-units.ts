/**
 * A prompt as a list of units. A unit is a tool, the instructions, or a part of a message. Prompt caches compare the
 * texts of units, so every prefix has an exact number of tokens.
 */
import { hashText } from '../../protocol/clock-and-ids.ts'

export type BreakpointTtl = '30m' | '12h'

export interface PromptUnit {
  /** Path of the unit in the request: `tools[0]`, `input[3].content[0]`. */
  readonly path: string
  readonly text: string
  readonly tokens: number
  /** The explicit breakpoint at the end of the unit. `ttl` is null if the breakpoint has the TTL of the request. */
  readonly breakpoint?: { readonly ttl: BreakpointTtl | null }
}

/** A prompt as a list of units. The three lists have the same length. */
export interface UnitPrompt {
  readonly units: readonly PromptUnit[]
  /** Hash of the prefix that ends with each unit. */
  readonly chains: readonly string[]
  /** Tokens of the prefix that ends with each unit. */
  readonly ends: readonly number[]
  readonly tokens: number
}

export function createUnitPrompt(units: readonly PromptUnit[]): UnitPrompt {
  const chains: string[] = []
  const ends: number[] = []
  let chain = ''
  let tokens = 0
  for (const unit of units) {
    chain = hashText(`${chain}\n${unit.text}`)
    tokens += unit.tokens
    chains.push(chain)
    ends.push(tokens)
  }
  return { units, chains, ends, tokens }
}

/** Tokens of a prompt by price class. */
export interface OpenaiTokenSplit {
  readonly read: number
  readonly write30m: number
  readonly write12h: number
  readonly input: number
}

/** What a request reads from a prompt cache of OpenAI, and what it will write. */
export interface OpenaiCacheResult {
  readonly split: OpenaiTokenSplit
  /** Position of the last unit that was read at least partly; null if nothing was read. */
  readonly hit: number | null
  /** What happened to each breakpoint. */
  readonly breakpoints: readonly {
    readonly position: number
    readonly ttl: BreakpointTtl
    readonly tokens: number
    readonly fate: 'read' | 'refreshed' | 'written' | 'below-minimum'
  }[]
  /** Makes the cache entries of this request visible to other requests. `answer`: what the model generated. */
  commit(answer: readonly PromptUnit[]): void
}

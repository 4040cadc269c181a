/** Tier 1: clearing old tool results with no model call. */
import { count, either, flag, listOf, name, oneOf } from '../check.ts'
import { type Fields, field } from '../field.ts'

export type ClearingWay = 'idle' | 'budget' | 'cached' | 'native'

/** The cache has expired, so that rewriting is free. */
export interface IdlePolicy {
  /** Minutes since the last answer; `ttl` takes the lifetime in force. */
  readonly afterMinutes: number | 'ttl'
  /** Newest results kept. */
  readonly keep: number
  /** Tokens below which a clearing is not worth a rewrite. */
  readonly minimumFreedTokens: number
}

/** Usage is above the warning line. */
export interface BudgetPolicy {
  /** Newest results kept, whatever their size. */
  readonly keep: number
  /** Tokens of clearable results to leave: the low-water mark. */
  readonly targetTokens: number
  /** Tokens. Nothing is cleared unless this much is freed. */
  readonly minimumFreedTokens: number
}

/** The provider deletes from its cached prefix; the messages stay as they are. */
export interface CachedPolicy {
  /** Results not yet deleted at which it fires. */
  readonly fireAt: number
  /** Newest results kept. */
  readonly keep: number
}

/** The provider clears by itself, as the request tells it to. */
export interface NativePolicy {
  /** Input tokens, or the warning line where that is lower. */
  readonly triggerTokens: number
  /** Tokens that the newest results kept must fit in … */
  readonly keepTokens: number
  /** … but never fewer results than this. */
  readonly keepAtLeast: number
  /** Tokens: a clearing that frees less is not done. */
  readonly clearAtLeastTokens: number
  /** Minutes idle after which only the newest thinking is kept. */
  readonly thinkingAfterMinutes: number
  /** Thinking turns kept then. */
  readonly thinkingTurns: number
}

export interface ClearPolicy {
  /** Tools whose results can be had again. Nothing else is ever cleared. */
  readonly tools: readonly string[]
  /** Those of `tools` whose inputs hold whole files, and may be cleared too. */
  readonly writeTools: readonly string[]
  /** MCP tools: clearable where their annotations say read-only, or never. */
  readonly mcp: 'read-only' | 'never'
  /** The ways in use. Which of them acts is decided by what the provider can do and the cache's state. */
  readonly ways: readonly ClearingWay[]
  /** Clear only where the saving pays for writing the cache again; need overrides it. */
  readonly priceGate: boolean
  /** Calls expected before a 5-minute cache goes cold, until the session's own gaps tell. */
  readonly expectedCallsFiveMinutes: number
  /** The same for a 1-hour cache. */
  readonly expectedCallsOneHour: number
  /** Results that a later call made worthless go before merely old ones. */
  readonly supersededFirst: boolean
  /** Clear large inputs of `writeTools`. */
  readonly inputs: boolean
  /** Tokens from which an input is large. */
  readonly largeInputTokens: number
  /** Thinking bound to a prefix that is rewritten: remove it here, oldest first, or let the provider drop it. */
  readonly boundThinking: 'remove' | 'provider'
  readonly idle: IdlePolicy
  readonly budget: BudgetPolicy
  readonly cached: CachedPolicy
  readonly native: NativePolicy
}

const tools = ['Read', 'Bash', 'Grep', 'Glob', 'WebFetch', 'WebSearch', 'Edit', 'Write']
const ways: readonly ClearingWay[] = ['idle', 'budget', 'cached', 'native']

export const clearFields: Fields<ClearPolicy> = {
  tools: field<readonly string[]>(tools, listOf(name())),
  writeTools: field<readonly string[]>(['Edit', 'Write'], listOf(name())),
  mcp: field('read-only', oneOf('read-only', 'never')),
  ways: field(ways, listOf(oneOf('idle', 'budget', 'cached', 'native'))),
  priceGate: field(true, flag()),
  expectedCallsFiveMinutes: field(27, count(1)),
  expectedCallsOneHour: field(200, count(1)),
  supersededFirst: field(true, flag()),
  inputs: field(true, flag()),
  largeInputTokens: field(1_000, count(1)),
  boundThinking: field('remove', oneOf('remove', 'provider')),
  idle: {
    afterMinutes: field<number | 'ttl'>(60, either(count(5), oneOf('ttl'))),
    keep: field(5, count()),
    minimumFreedTokens: field(5_000, count()),
  },
  budget: {
    keep: field(3, count()),
    targetTokens: field(40_000, count()),
    minimumFreedTokens: field(20_000, count(1)),
  },
  cached: { fireAt: field(12, count(1)), keep: field(5, count()) },
  native: {
    triggerTokens: field(180_000, count(1)),
    keepTokens: field(40_000, count()),
    keepAtLeast: field(3, count()),
    clearAtLeastTokens: field(20_000, count()),
    thinkingAfterMinutes: field(60, count(1)),
    thinkingTurns: field(1, count(1)),
  },
}

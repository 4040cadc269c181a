/** A session to clear: calls with results of a given size, and the input that clearing is planned from. */

import { COLD_CACHE, EMPTY_PLAN_TRACKING, SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import type { CacheTemperature } from '../../src/cache/cache-model.ts'
import { NO_RETRIEVAL } from '../../src/clearing/clear-candidates.ts'
import type { ClearingDecisionInput } from '../../src/clearing/propose-clearing.ts'
import {
  createEmptyToolResultIndex,
  createToolResultRules,
  type ToolResultIndex,
  type ToolResultRules,
} from '../../src/clearing/tool-result-index.ts'
import { updateToolResultIndex } from '../../src/clearing/update-tool-result-index.ts'
import type { TokenRates } from '../../src/cost/prices.ts'
import type { JsonObject } from '../../src/log/json.ts'
import type { MicrocompactMetadata } from '../../src/log/record.ts'
import type { ContextPlanInput } from '../../src/planner/plan-input.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { DeepPartial } from '../../src/policy/policy-fields.ts'
import { computeScaledLimits } from '../../src/policy/scale-policy.ts'
import { type ContextMeter, createContextMeter, updateContextMeter } from '../../src/tokens/context-meter.ts'
import { createDefaultWeights, createEstimator, type Estimator } from '../../src/tokens/estimator.ts'
import { startCalibration } from '../../src/tokens/usage.ts'

export const POLICY: Policy = createPolicy({})
export const ESTIMATOR: Estimator = createEstimator(createDefaultWeights(POLICY.estimate))
/** Dollars as of a model whose reads cost a tenth of its input. */
export const RATES: TokenRates = { input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 50 }
export const PLAIN = defineMessagesProfile({ thinking: { binding: 'none', firstInModes: [] } })
export const BINDING = defineMessagesProfile({ thinking: { binding: 'prefix', firstInModes: [] } })

/** A text that the fixed rule counts as so many tokens. */
export function text(tokens: number): string {
  return 'abc '.repeat(tokens)
}

export function warm(overrides: Partial<CacheTemperature> = {}): CacheTemperature {
  return {
    isWarm: true,
    expiresAt: 1,
    ttlMs: 300_000,
    expectedCalls: 27,
    countTokensToRewrite: () => 0,
    ...overrides,
  }
}

export function rulesFor(policy: Policy = POLICY): ToolResultRules {
  const { clear } = policy
  return createToolResultRules({
    estimator: ESTIMATOR,
    policy: clear,
    largeInput: clear.largeInputTokens,
    host: { clearable: ['Ours'], readOnly: ['mcp__docs__find'] },
  })
}

interface Answer {
  readonly isError?: boolean
  readonly thinks?: boolean
}

export class Situation {
  readonly builder = new SessionBuilder('clear')
  readonly policy: Policy
  readonly rules: ToolResultRules
  #register: ToolResultIndex
  #meter: ContextMeter = createContextMeter(ESTIMATOR)

  /** `unfinished`: fields that a policy refuses until their feature is complete, which the planner knows already. */
  constructor(overrides: DeepPartial<Policy> = {}, unfinished: Partial<Policy['compact']> = {}) {
    // On 200,000 tokens a fifth of what is usable would hold the low-water mark down to 36,000.
    // The newest reads of many files would hold back what the tests clear.
    const clear = { keptFiles: 0, ...overrides.clear }
    const policy = createPolicy({ shares: { clearableResults: 25 }, ...overrides, clear })
    this.policy = { ...policy, compact: { ...policy.compact, ...unfinished } }
    this.rules = rulesFor(this.policy)
    this.#register = createEmptyToolResultIndex(this.rules)
    this.builder.user('begin')
  }

  /** One call and its result. Returns the id of the call. */
  call(tool: string, input: JsonObject, content: string, answer: Answer = {}): string {
    return this.builder.call(tool, input, content, answer)
  }

  read(path: string, tokens: number, answer: Answer = {}): string {
    return this.call('Read', { file_path: path }, text(tokens), answer)
  }

  /** Different files, so that no result supersedes another. */
  reads(count: number, tokens: number, answer: Answer = {}): readonly string[] {
    return Array.from({ length: count }, () => this.read(`/${this.builder.id('file')}`, tokens, answer))
  }

  say(words = 'done'): void {
    this.builder.assistant(this.builder.id('msg'), words)
  }

  /** A response after which the window holds so many tokens by the provider's count. */
  measure(tokens: number, words = 'done'): void {
    const id = this.builder.id('msg')
    const usage = { input: tokens - 10, output: 10 }
    this.builder.assistant(id, words, {
      message: { id, role: 'assistant', model: 'model-a', content: words, usage },
    })
  }

  get register(): ToolResultIndex {
    this.#register = updateToolResultIndex(this.#register, this.builder.view)
    return this.#register
  }

  get meter(): ContextMeter {
    this.#meter = updateContextMeter(this.#meter, this.builder.view)
    return this.#meter
  }

  question(overrides: Partial<ClearingDecisionInput> = {}): ClearingDecisionInput {
    return {
      register: this.register,
      policy: this.policy,
      scaled: computeScaledLimits(this.policy, { window: 200_000, maxOutput: 64_000 }),
      profile: PLAIN,
      pins: this.builder.pins,
      cache: COLD_CACHE,
      prices: { rates: RATES, write: 'writeShort' },
      retrieval: NO_RETRIEVAL,
      context: { expected: 150_000, high: 150_000 },
      scale: 1,
      idleMs: 0,
      thinkingMode: null,
      tools: ['Read', 'Bash', 'Edit', 'Write', 'TodoWrite', 'Ours'],
      thinks: false,
      ...overrides,
    }
  }

  planContext(overrides: Partial<ContextPlanInput> = {}): ContextPlanInput {
    const { register, policy, scaled, profile, pins, cache, retrieval, idleMs, tools, thinks } =
      this.question()
    return {
      register,
      meter: this.meter,
      pins,
      policy,
      scaled,
      profile,
      calibration: startCalibration({ scale: 1, offset: 0, weight: 2_000 }),
      prefixTokens: 10_000,
      source: 'repl_main_thread',
      moment: 'call',
      cache,
      rates: RATES,
      write: 'writeShort',
      idleMs,
      retrieval,
      tools,
      thinks,
      thinkingMode: null,
      tracking: EMPTY_PLAN_TRACKING,
      ...overrides,
    }
  }

  /** What the engine does with a proposal. */
  clear(microcompactMetadata: MicrocompactMetadata): void {
    this.builder.notice('microcompact_boundary', { content: 'Context microcompacted', microcompactMetadata })
  }
}

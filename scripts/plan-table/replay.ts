/**
 * A recorded session led again by the planner, call by call: its acts are carried out on a copy in memory, and
 * each call is priced by a plain model of the cache. Sizes are estimates throughout.
 */

import type { CacheTemperature } from '@tidemark/core/cache/cache-model'
import { findFirstClearableCallId, NO_RETRIEVAL } from '@tidemark/core/clearing/clear-candidates'
import {
  createEmptyToolResultIndex,
  createToolResultRules,
  type ToolResultIndex,
} from '@tidemark/core/clearing/tool-result-index'
import { updateToolResultIndex } from '@tidemark/core/clearing/update-tool-result-index'
import { type ContextView, emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { findTierRates, type ModelPrices, priceUsage } from '@tidemark/core/cost/prices'
import type { KnownRecord, SessionRecord } from '@tidemark/core/log/record'
import { appendRecord, emptySessionLog, type SessionLog } from '@tidemark/core/log/session-log'
import { type ContextPlan, makeContextPlan } from '@tidemark/core/planner/context-plan'
import type { Policy } from '@tidemark/core/policy/policy'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import { computeScaledLimits } from '@tidemark/core/policy/scale-policy'
import { EMPTY_PLAN_TRACKING } from '@tidemark/core/testing'
import {
  type ContextMeter,
  createContextMeter,
  measureContextTokens,
  updateContextMeter,
} from '@tidemark/core/tokens/context-meter'
import { createEstimator } from '@tidemark/core/tokens/estimator'
import {
  readReportedContextTokens,
  startCalibration,
  type TokensByPriceClass,
} from '@tidemark/core/tokens/usage'
import { unmeasured } from './linear.ts'

export interface ReplayRules {
  readonly policy: Policy
  readonly profile: ProviderProfile
  readonly prices: ModelPrices
  readonly window: number
  readonly weights: Parameters<typeof createEstimator>[0]
}

export interface Replayed {
  readonly calls: number
  readonly cleared: { readonly idle: number; readonly budget: number }
  readonly freedTokens: number
  readonly compacted: { readonly soft: number; readonly hard: number }
  /** Dollars that the clearings were said to cost beforehand. */
  readonly clearingCost: number
  /** Dollars, compactions included. */
  readonly money: number
  readonly peakTokens: number
}

const OWN = 'act-'
const TTL_MS = 300_000
const SUMMARY = { tokens: 3_000, carried: 20_000 }

export function replay(records: readonly KnownRecord[], rules: ReplayRules): Replayed {
  const led = new LedSession(rules, records)
  let response: string | null = null
  for (const record of records) {
    const begins = record.type === 'assistant' && record.message.id !== response
    if (record.type === 'assistant') response = record.message.id
    if (begins) led.call(Date.parse(record.timestamp))
    led.take(unmeasured(record))
  }
  return led.result()
}

class LedSession {
  readonly #rules: ReplayRules
  readonly #scaled: ReturnType<typeof computeScaledLimits>
  readonly #prefix: number
  #session: SessionLog = emptySessionLog()
  #view: ContextView = emptyContextView()
  #register: ToolResultIndex
  #meter: ContextMeter
  #last: string | null = null
  #edge: string | null = null
  #at: number | null = null
  /** Tokens that the last request left in the cache and this one still repeats. */
  #kept = 0
  /** Tokens said so far, by anybody and by the model. */
  #said = 0
  #outputs = 0
  #written = 0
  #count = 0
  #totals = { calls: 0, idle: 0, budget: 0, freed: 0, soft: 0, hard: 0, clearing: 0, money: 0, peak: 0 }

  constructor(rules: ReplayRules, records: readonly KnownRecord[]) {
    this.#rules = rules
    const estimator = createEstimator(rules.weights)
    this.#scaled = computeScaledLimits(rules.policy, { window: rules.window, maxOutput: 64_000 })
    const { largeInput } = this.#scaled.budgets.clear
    this.#register = createEmptyToolResultIndex(
      createToolResultRules({ estimator, policy: rules.policy.clear, largeInput }),
    )
    this.#meter = createContextMeter(estimator)
    this.#prefix = prefixOf(records, (record) => estimator.entry({ record, index: 0 }))
  }

  take(record: SessionRecord & { readonly uuid: string }): void {
    const follows = { ...record, parentUuid: this.#last } as SessionRecord
    this.#session = appendRecord(this.#session, follows)
    this.#view = updateContextView(this.#view, this.#session)
    this.#register = updateToolResultIndex(this.#register, this.#view)
    this.#meter = updateContextMeter(this.#meter, this.#view)
    this.#last = record.uuid
    if (record.uuid.startsWith(OWN)) return
    this.#said += this.#tokensOfLast()
    if (record.type === 'assistant') this.#outputs += this.#tokensOfLast()
  }

  /** Before a response: what the plan says is done, then the request is priced. */
  call(now: number): void {
    this.#edge ??= findFirstClearableCallId(this.#register, [])
    const planned = makeContextPlan(this.#context(now))
    if (planned.act === 'clear') this.#clear(planned)
    if (planned.act === 'compact') this.#compact(planned, now)
    const context = this.#size()
    const isWarm = this.#isWarm(now)
    const read = isWarm ? Math.min(this.#kept, context) : 0
    this.#pay({ cacheRead: read, writeShort: context - read, output: this.#outputs - this.#written })
    this.#written = this.#outputs
    this.#totals.calls += 1
    this.#totals.peak = Math.max(this.#totals.peak, context)
    this.#kept = context
    this.#at = now
  }

  result(): Replayed {
    const { calls, idle, budget, freed, soft, hard, clearing, money, peak } = this.#totals
    const tail = priceTokens({ output: this.#outputs - this.#written }, this.#rules.prices)
    return {
      calls,
      cleared: { idle, budget },
      freedTokens: freed,
      compacted: { soft, hard },
      clearingCost: clearing,
      money: money + tail,
      peakTokens: peak,
    }
  }

  #isWarm(now: number): boolean {
    return this.#at !== null && now - this.#at < TTL_MS
  }

  #size(): number {
    const { policy, profile } = this.#rules
    return measureContextTokens(this.#meter, {
      calibration: startCalibration(this.#rules.weights.start),
      policy: policy.estimate,
      stripsThinking: profile.thinking.stripsFinishedTurns,
      prefix: () => this.#prefix,
      deleted: 0,
    }).expected
  }

  #context(now: number): Parameters<typeof makeContextPlan>[0] {
    const { policy, profile, prices, weights } = this.#rules
    return {
      register: this.#register,
      meter: this.#meter,
      pins: [],
      policy,
      scaled: this.#scaled,
      profile,
      calibration: startCalibration(weights.start),
      prefixTokens: this.#prefix,
      source: 'repl_main_thread',
      moment: this.#register.lastPromptPlace > this.#register.lastResponsePlace ? 'prompt' : 'call',
      cache: this.#temperature(now),
      rates: findTierRates(prices, this.#size()),
      write: 'writeShort',
      idleMs: this.#at === null ? null : now - this.#at,
      retrieval: NO_RETRIEVAL,
      tools: [],
      thinks: false,
      thinkingMode: null,
      tracking: EMPTY_PLAN_TRACKING,
      hasPreparedSummary: true,
      expectedResult: {
        after: this.#prefix + SUMMARY.tokens + SUMMARY.carried,
        summary: SUMMARY.tokens,
        reattached: SUMMARY.carried,
      },
      ...this.#growth(),
    }
  }

  #growth(): { readonly growthPerCall?: number } {
    return this.#totals.calls < 2 ? {} : { growthPerCall: this.#said / this.#totals.calls }
  }

  #temperature(now: number): CacheTemperature {
    return {
      isWarm: this.#isWarm(now),
      expiresAt: this.#at === null ? null : this.#at + TTL_MS,
      ttlMs: TTL_MS,
      expectedCalls: this.#rules.policy.clear.expectedCallsFiveMinutes,
      countTokensToRewrite: () => this.#size() - this.#edgeTokens(),
    }
  }

  /** An entry stands right before the first result that could be cleared when the view was last rewritten. */
  #edgeTokens(): number {
    const { results, resultPlaces } = this.#register
    const index = this.#edge === null ? undefined : resultPlaces.get(this.#edge)
    const place = index === undefined ? 0 : (results.at(index)?.place ?? 0)
    return this.#prefix + (this.#meter.tokensBefore.at(place) ?? 0)
  }

  #clear({ clear }: ContextPlan): void {
    if (clear === undefined) return
    this.#kept = Math.min(this.#kept, this.#edgeTokens())
    this.#totals[clear.way === 'idle' ? 'idle' : 'budget'] += 1
    this.#totals.freed += clear.freedTokens
    this.#totals.clearing += clear.cost ?? 0
    this.take(
      this.#own({ type: 'system', subtype: 'microcompact_boundary', microcompactMetadata: clear.metadata }),
    )
    this.#edge = findFirstClearableCallId(this.#register, [])
  }

  #compact({ compact }: ContextPlan, now: number): void {
    const context = this.#size()
    const asked = this.#isWarm(now) ? { cacheRead: context } : { input: context }
    this.#pay({ ...asked, output: SUMMARY.tokens })
    this.#totals[compact?.hard === true ? 'hard' : 'soft'] += 1
    const compactMetadata = { trigger: 'auto', preTokens: context }
    this.take(this.#own({ type: 'system', subtype: 'compact_boundary', compactMetadata }))
    const text = 'word '.repeat(SUMMARY.tokens + SUMMARY.carried)
    this.take(this.#own({ type: 'user', isCompactSummary: true, message: { role: 'user', content: text } }))
    this.#kept = this.#prefix
    this.#edge = null
  }

  #pay(tokens: Parameters<typeof priceTokens>[0]): void {
    this.#totals.money += priceTokens(tokens, this.#rules.prices)
  }

  #own(body: object): SessionRecord & { readonly uuid: string } {
    this.#count += 1
    const links = { uuid: `${OWN}${this.#count}`, parentUuid: this.#last, timestamp: '', sessionId: '' }
    return { ...links, ...body } as unknown as SessionRecord & { readonly uuid: string }
  }

  #tokensOfLast(): number {
    const { tokensBefore: before } = this.#meter
    return (before.last ?? 0) - (before.at(-2) ?? 0)
  }
}

/** What stood in front of the messages: what the first call was said to hold, less what was said before it. */
function prefixOf(records: readonly KnownRecord[], estimate: (record: KnownRecord) => number): number {
  let said = 0
  for (const record of records) {
    const context = record.type === 'assistant' ? readReportedContextTokens(record.usage) : 0
    if (context > 0) return Math.max(1_000, context - said)
    said += estimate(record)
  }
  return 10_000
}

/** Returns the price of the tokens of one request. */
function priceTokens(tokens: Partial<TokensByPriceClass>, prices: ModelPrices): number {
  const { input = 0, cacheRead = 0, writeShort = 0, writeLong = 0, output = 0 } = tokens
  const usage = {
    input,
    read: cacheRead,
    writes: { short: writeShort, long: writeLong },
    output,
  }
  return priceUsage(usage, prices).priced
}

/** What a call may cost at most, before it is sent, and what it did cost, by the catalogue's prices. */
import { findTierRates, type ModelPrices, priceUsage, UNKNOWN_RATES } from '@tidemark/core/cost/prices'
import { estimateBilledUsage } from '@tidemark/core/engine/call-model'
import type { Reply } from '@tidemark/core/engine/reply'
import { isObject } from '@tidemark/core/log/json'
import type { TokenUsage } from '@tidemark/core/log/model-report'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import { createEstimator, type Estimator } from '@tidemark/core/tokens/estimator'
import { lookUpModel, modelCatalogue, pricesAtDate } from '@tidemark/wire/catalogue/catalogue'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { createModelOfClient } from 'tidemark/internal'

/** The fields of a request that decide its price. */
export interface PricedRequest {
  readonly model: string
  /** Most output tokens that it asks for; null if it does not say. */
  readonly maxOutput: number | null
  /** Number of answers that it asks for. */
  readonly answers: number
  readonly isStream: boolean
}

/** Names of the field for the largest output in the protocols. */
const OUTPUT_FIELDS = ['max_tokens', 'max_output_tokens', 'max_completion_tokens'] as const

/** Reads a request; null if it is no JSON object with a model. */
export function readPricedRequest(body: unknown): PricedRequest | null {
  if (!isObject(body) || typeof body.model !== 'string') return null
  const limits = OUTPUT_FIELDS.map((name) => body[name]).filter((value) => typeof value === 'number')
  const { n = 1 } = body
  return {
    model: body.model,
    maxOutput: limits.length === 0 ? null : Math.max(...limits),
    answers: typeof n === 'number' && n >= 1 ? n : 1,
    isStream: body.stream === true,
  }
}

/** Tokens that the provider may add to a prompt, such as its instructions for tools. */
const ADDED_TOKENS = 1_000
/** Bytes of JSON that a token has at least on average. Text has about four, dense code and numbers between two and three. */
const LEAST_BYTES_PER_TOKEN = 2
/** Answers of a model whose limit is not known. */
const ASSUMED_OUTPUT = 128_000

/**
 * Returns the most dollars that a call can cost: its prompt written to the cache at the highest price, and the largest output.
 * Null if a price is not known.
 */
export function boundCallCost({ model, maxOutput, answers }: PricedRequest, bytes: number): number | null {
  const found = lookUpModel(modelCatalogue, model)
  if (!found.found) return null
  const { window, maxOutput: limit } = found.model
  const prompt = Math.min(
    Math.ceil(bytes / LEAST_BYTES_PER_TOKEN) + ADDED_TOKENS,
    window ?? Number.POSITIVE_INFINITY,
  )
  const output = Math.min(maxOutput ?? limit ?? ASSUMED_OUTPUT, limit ?? Number.POSITIVE_INFINITY)
  const prices = pricesAtDate(found.model, new Date().toISOString())
  const { input, writeShort, writeLong, output: rate } = findTierRates(prices, prompt)
  const dearest = Math.max(input ?? 0, writeShort ?? 0, writeLong ?? 0)
  if (input === null || rate === null) return null
  return ((prompt * dearest + output * answers * rate) * findLargestFactor(prices)) / 1e6
}

/** The largest factor on all rates that a request can ask for, such as that of a faster service. */
function findLargestFactor({ factors = {} }: ModelPrices): number {
  return Object.values(factors)
    .map((byValue) => Math.max(1, ...Object.values(byValue).map((factor) => factor ?? 1)))
    .reduce((product, factor) => product * factor, 1)
}

/** What a call cost, with its tokens. */
export interface CallCost {
  /** Dollars; 0 if the model has no known price. */
  readonly cost: number
  /** True if the provider did not report all of it. */
  readonly isEstimated: boolean
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
}

export const FREE_CALL: CallCost = {
  cost: 0,
  isEstimated: false,
  input: 0,
  cacheRead: 0,
  cacheWrite: 0,
  output: 0,
}

/** Returns what a reply cost. One that broke off is charged with the prompt that was reported and the output that arrived. */
export function priceReply(reply: Reply, model: string, codec: ProviderCodec): CallCost | null {
  const estimator = reply.stop === undefined ? findEstimator(model, codec) : undefined
  const usage = estimateBilledUsage(reply, estimator)
  return usage === undefined ? null : toCost(usage, model, reply.stop === undefined)
}

/** Returns the cost of a call of which nothing arrived although the provider has it: that of its prompt, as estimated. */
export function estimateLostCall(model: string, bytes: number): CallCost {
  const usage = { input: Math.ceil(bytes / 4), read: 0, writes: { short: 0, long: 0 }, output: 0 }
  return toCost(usage, model, true)
}

function toCost(usage: TokenUsage, model: string, isEstimated: boolean): CallCost {
  const at = new Date().toISOString()
  const findPrices = (name: string): ModelPrices | null => {
    const found = lookUpModel(modelCatalogue, name)
    return found.found ? pricesAtDate(found.model, at) : null
  }
  const { priced } = priceUsage(usage, findPrices(model) ?? UNKNOWN_RATES, findPrices)
  const { input, read, writes, output } = usage
  return {
    cost: priced,
    isEstimated,
    input,
    cacheRead: read,
    cacheWrite: writes.short + writes.long,
    output,
  }
}

function findEstimator(model: string, codec: ProviderCodec): Estimator | undefined {
  try {
    return createEstimator(createModelOfClient(codec, model, null).weights(createPolicy({}).estimate))
  } catch {
    // No catalogue has the model: what arrived cannot be priced either.
    return undefined
  }
}

/** The maximum cost of a call before it is sent, and its cost afterwards, by the catalogue's prices. */
import { findTierRates, type ModelPrices, priceUsage, UNKNOWN_RATES } from '@tidemark/core/cost/prices'
import { estimateBilledUsage } from '@tidemark/core/engine/call-model'
import type { Reply } from '@tidemark/core/engine/reply'
import { isObject } from '@tidemark/core/log/json'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import { createEstimator, type Estimator } from '@tidemark/core/tokens/estimator'
import { lookUpModel, modelCatalogue, pricesAtDate } from '@tidemark/wire/catalogue/catalogue'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { createClientNamedModel } from 'tidemark/internal'

/** The fields of a request that decide its price. */
export interface PricingInput {
  readonly model: string
  /** Maximum output tokens in the request; null if it has no limit. */
  readonly maxOutput: number | null
  /** Number of answers that the request asks for. */
  readonly answers: number
  readonly isStream: boolean
  /** Maximum tokens of images, whose number does not follow from the bytes of the body. */
  readonly imageTokens: number
  /** True if the provider adds content that the body only refers to: stored responses, files, URLs, results of its tools. */
  readonly namesOtherContent: boolean
}

/** Names of the field for the output limit, by protocol. */
const OUTPUT_FIELDS = ['max_tokens', 'max_output_tokens', 'max_completion_tokens'] as const

/** Highest `n` (number of choices that a request asks for) that any provider allows. */
const MOST_ANSWERS = 128
/** Upper bound for the tokens of one image with any provider. */
const MOST_IMAGE_TOKENS = 10_000

/** Reads the fields from a parsed body. Null without a model or with invalid limits: its price would have no upper bound. */
export function readPricingInput(body: unknown): PricingInput | null {
  if (!isObject(body) || typeof body.model !== 'string' || !/^[\x20-\x7e]{1,200}$/.test(body.model))
    return null
  const limits = OUTPUT_FIELDS.flatMap((name) => body[name] ?? [])
  const answers = body.n ?? 1
  if (!limits.every(isCount) || !isCount(answers) || answers > MOST_ANSWERS) return null
  const content = measureContent(body)
  return {
    model: body.model,
    maxOutput: limits.length === 0 ? null : Math.max(...limits),
    answers: Math.max(1, answers),
    isStream: body.stream === true,
    imageTokens: content.images * MOST_IMAGE_TOKENS,
    namesOtherContent: content.isNamed || STORED_FIELDS.some((name) => (body[name] ?? null) !== null),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Fields of a request that stand for content which the provider keeps, or fetches. */
const STORED_FIELDS = [
  'previous_response_id',
  'conversation',
  'prompt',
  'container',
  'mcp_servers',
  'web_search_options',
] as const
const IMAGE_TYPES: ReadonlySet<unknown> = new Set(['image', 'input_image', 'image_url'])
/** Types of content whose tokens are limited neither by the bytes in the body nor by a maximum for each, such as documents. */
const NAMED_TYPES: ReadonlySet<unknown> = new Set([
  'document',
  'file',
  'input_file',
  'item_reference',
  'input_audio',
  'container_upload',
])
/** Matches tools that the client runs. Results of other tools are added by the provider. */
const CLIENT_TOOLS = /^(?:function|custom|namespace|(?:bash|text_editor|computer|memory)_\d+)$/

interface ContentMeasure {
  readonly images: number
  readonly isNamed: boolean
}

function measureContent({ tools, ...rest }: Readonly<Record<string, unknown>>): ContentMeasure {
  const isServerTool = (tool: unknown): boolean =>
    isObject(tool) && typeof tool.type === 'string' && !CLIENT_TOOLS.test(tool.type)
  let [images, isNamed] = [0, Array.isArray(tools) && tools.some(isServerTool)]
  const waiting: unknown[] = [rest]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value !== 'object' || value === null) continue
    if (!Array.isArray(value)) {
      const { type } = value as { readonly type?: unknown }
      if (IMAGE_TYPES.has(type)) images += 1
      if (NAMED_TYPES.has(type)) isNamed = true
    }
    for (const each of Object.values(value)) waiting.push(each)
  }
  return { images, isNamed }
}

/** Tokens that the provider may add to a prompt, such as instructions for tools. */
const ADDED_TOKENS = 1_000
/** Lower bound for the average bytes of JSON per token. Text has about four, dense code and numbers two to three. */
const LEAST_BYTES_PER_TOKEN = 2
/** Assumed output limit, in tokens, of a model for which the catalogue has none. */
const ASSUMED_OUTPUT = 128_000
/** Assumed context window, in tokens, of a model for which the catalogue has none. */
const ASSUMED_WINDOW = 1_000_000

/**
 * Returns the maximum cost of a call in dollars: the whole prompt written to the cache at the highest price, and the
 * maximum output. `bytes`: size of the body. Null if the model or its price is unknown.
 */
export function computeMaxCallCost(call: PricingInput, bytes: number): number | null {
  const { model, maxOutput, answers, imageTokens, namesOtherContent } = call
  const found = lookUpModel(modelCatalogue, model)
  if (!found.found) return null
  const { window, maxOutput: limit } = found.model
  const sent = Math.ceil(bytes / LEAST_BYTES_PER_TOKEN) + ADDED_TOKENS + imageTokens
  const prompt = namesOtherContent
    ? (window ?? Math.max(sent, ASSUMED_WINDOW))
    : Math.min(sent, window ?? sent)
  const output = Math.min(maxOutput ?? limit ?? ASSUMED_OUTPUT, limit ?? Number.POSITIVE_INFINITY)
  const prices = pricesAtDate(found.model, new Date().toISOString())
  const { input, writeShort, writeLong, output: rate } = findTierRates(prices, prompt)
  const dearest = Math.max(input ?? 0, writeShort ?? 0, writeLong ?? 0)
  if (input === null || rate === null) return null
  return ((prompt * dearest + output * answers * rate) * findLargestFactor(prices)) / 1e6
}

/** Returns the largest price factor that a request can select, such as that of a faster service. */
function findLargestFactor({ factors = {} }: ModelPrices): number {
  return Object.values(factors)
    .map((byValue) => Math.max(1, ...Object.values(byValue).map((factor) => factor ?? 1)))
    .reduce((product, factor) => product * factor, 1)
}

/** What a call cost, with its tokens. */
export interface CallCost {
  /** Dollars; 0 if the model has no known price. */
  readonly cost: number
  /** True if part of the cost was not reported by the provider. */
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

/**
 * Returns the cost of a reply. For one that broke off: the reported prompt tokens, and an estimate of the output that
 * arrived. Null if no usage is known.
 */
export function priceReply(reply: Reply, model: string, codec: ProviderCodec): CallCost | null {
  const estimator = reply.stop === undefined ? findEstimator(model, codec) : undefined
  const usage = estimateBilledUsage(reply, estimator)
  return usage === undefined ? null : toCost(usage, model, reply.stop === undefined)
}

/**
 * Returns the reserved amount, which is the maximum, as the cost of a call whose real cost is unknown, so that no
 * budget is exceeded.
 */
export function toReservedCost(reserved: number, bytes: number): CallCost {
  return { ...FREE_CALL, cost: reserved, isEstimated: true, input: Math.ceil(bytes / 4) }
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
    return createEstimator(createClientNamedModel(codec, model, null).weights(createPolicy({}).estimate))
  } catch {
    // No catalogue has the model, so the received output cannot be priced, either.
    return undefined
  }
}

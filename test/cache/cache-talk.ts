/**
 * A conversation on the simulator with the cache watched: told record by record, assembled, spelled and sent by the
 * same code as the engine's, and each answer compared. What a test changes under way is a `Change`.
 */
import {
  type CacheForecast,
  forecastCacheRead,
  updateCacheModelFromFork,
  updateCacheModelFromResponse,
} from '@tidemark/core/cache/cache-forecast'
import { type CacheModel, EMPTY_CACHE_MODEL } from '@tidemark/core/cache/cache-model'
import {
  type CacheCheckOutcome,
  type CacheMonitor,
  createCacheMonitor,
  withSentRequest,
} from '@tidemark/core/cache/cache-monitor'
import { judgeCacheRead } from '@tidemark/core/cache/detect-break'
import {
  type SentRequest,
  type SentRequestWithPrefix,
  toSentRequest,
} from '@tidemark/core/cache/sent-request'
import type { ModelPrices } from '@tidemark/core/cost/prices'
import type { Block } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import { type AssembledRequest, listExactBlockTexts, toPayload } from '@tidemark/core/request/build-request'
import type { PriceClass } from '@tidemark/core/tokens/usage'
import {
  type Coder,
  createCoder,
  createManualClock,
  createSimulator,
  type ManualClock,
  type RequestRecord,
  type Simulator,
  type SimulatorOptions,
} from '@tidemark/simulator'
import { encodeRequestFragments, joinRequestFragments } from '@tidemark/wire/anthropic/encode-request'
import { toRequestHeaders } from '@tidemark/wire/anthropic/headers'
import { lookUpModel, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { readAnthropicUsage } from '@tidemark/wire/providers/message-usage'
import { type Ask, ToldSide } from './told-side.ts'

const MODEL = 'claude-opus-5'
export const MAIN = 'repl_main_thread'
const POLICY = createPolicy({})

export interface CacheTalkOptions {
  readonly model?: string
  readonly ttl?: '5m' | '1h'
  /** Tier 1 is on. */
  readonly clears?: boolean
  readonly parameters?: JsonObject
  /** Fields of each request that are no parameters of the epoch. */
  readonly extra?: JsonObject
  /** The provider can be asked to delete from the cached prefix. */
  readonly cacheEdits?: boolean
  /** Its own explanation of a miss is asked for. */
  readonly asksProvider?: boolean
  readonly simulator?: SimulatorOptions
}

/** What is done to one request, and by whom. */
export interface Change extends Ask {
  readonly touched?: SentRequest['touched']
}

/** A call as all sides saw it. */
export interface Seen {
  readonly request: AssembledRequest
  readonly forecast: CacheForecast
  readonly usage: TokenUsage
  /** The simulator's own account of it. */
  readonly record: RequestRecord
  readonly outcome: CacheCheckOutcome
  readonly content: readonly Block[]
}

export class CacheTalk {
  readonly clock: ManualClock = createManualClock()
  readonly coder: Coder = createCoder({
    turns: Number.POSITIVE_INFINITY,
    resultTokens: 1_200,
    thinkingTokens: 40,
  })
  readonly simulator: Simulator
  readonly profile: ProviderProfile
  readonly told: ToldSide
  readonly ttl: '5m' | '1h'
  readonly #asksProvider: boolean
  readonly #extra: JsonObject
  watch: CacheMonitor = createCacheMonitor()
  lineage: CacheModel = EMPTY_CACHE_MODEL
  last: Seen | null = null
  #watched: SentRequestWithPrefix | undefined
  #messageId: string | null = null

  constructor(options: CacheTalkOptions = {}) {
    this.ttl = options.ttl ?? '5m'
    this.#asksProvider = options.asksProvider ?? false
    this.#extra = options.extra ?? {}
    this.simulator = createSimulator({ script: this.coder.script, clock: this.clock, ...options.simulator })
    const { model = MODEL, cacheEdits = false } = options
    const profile = createProviderProfile(entryOf(model))
    this.profile = { ...profile, capabilities: { ...profile.capabilities, cacheEdits } }
    this.told = new ToldSide({
      profile: this.profile,
      ttl: this.ttl,
      clears: options.clears ?? true,
      tools: this.coder.tools,
      model,
      parameters: { max_tokens: 4_000, thinking: { type: 'adaptive' }, ...options.parameters },
    })
  }

  /** Says something, or answers the calls of the last response, and asks; so many times. */
  async goOn(calls: number, change: Change = {}): Promise<Seen> {
    for (let call = 1; call < calls; call += 1) await this.goOn(1)
    if (this.last === null) this.told.builder.user('Raise the limits.')
    else this.answerCalls()
    await this.clock.advance(10_000)
    return this.ask(change)
  }

  answerCalls(): void {
    for (const { id, name, input } of callsIn(this.last?.content ?? [])) {
      const { content } = this.coder.toolResult({ id, name, input })
      this.told.builder.result(id, String(content))
    }
  }

  /** The next request of the conversation, its answer in the log. */
  async ask(change: Change = {}): Promise<Seen> {
    const asked = this.#asksProvider ? { diagnostics: { previous_message_id: this.#messageId } } : {}
    const request = this.told.request({ ...change, extra: { ...this.#extra, ...asked } })
    const seen = await this.send(request, { source: MAIN, touched: change.touched })
    this.told.respond(seen)
    this.last = seen
    return seen
  }

  /** A request to the simulator, watched; a fork (`compact`) leaves the conversation as it is. */
  async send(
    request: AssembledRequest,
    { source, touched }: { readonly source: string; readonly touched?: SentRequest['touched'] },
  ): Promise<Seen> {
    const { clock, profile } = this
    const isFork = source === 'compact'
    const sent = toSentRequest(request, {
      source,
      at: clock.now(),
      profile,
      ...(touched === undefined ? {} : { touched }),
      ...(this.#watched === undefined ? {} : { previous: this.#watched }),
    })
    const forecast = forecastCacheRead(this.lineage, { request, now: clock.now(), profile })
    this.watch = withSentRequest(this.watch, sent, forecast, POLICY.cache.breaks)
    const { body, record } = await this.#post(request)
    const rules = { policy: POLICY.cache.breaks, profile, prices: pricesOf(request.front.model) }
    const usage = readAnthropicUsage(body.usage)
    if (usage === null) throw new Error('The simulator sent no usage.')
    const answer = { source, usage, word: profile.spelling.readDiagnosis({ ...body }) }
    const { monitor: watch, outcome } = judgeCacheRead(this.watch, answer, rules)
    this.watch = watch
    this.lineage = (isFork ? updateCacheModelFromFork : updateCacheModelFromResponse)(
      this.lineage,
      forecast,
      usage,
    )
    if (!isFork) [this.#watched, this.#messageId] = [sent, body.id]
    return { request, forecast, usage, record, outcome, content: body.content }
  }

  /** The provider loses all it has kept. */
  async evict(): Promise<void> {
    await this.simulator.fetch('http://simulator/_simulator/cache', { method: 'DELETE' })
  }

  async #post(request: AssembledRequest): Promise<{ readonly body: Answer; readonly record: RequestRecord }> {
    const encoded = encodeRequestFragments(toPayload(request), {
      raw: { messages: listExactBlockTexts(request) },
    })
    const credentials = { style: 'key', secret: 'any' } as const
    const response = await this.simulator.fetch('http://simulator/v1/messages', {
      method: 'POST',
      headers: toRequestHeaders({ version: '2026-10-21', betas: encoded.betas, credentials }),
      body: joinRequestFragments(encoded),
    })
    const text = await response.text()
    if (response.status !== 200) throw new Error(text)
    const record = this.simulator.requests.at(-1)
    if (record === undefined) throw new Error('the simulator keeps a record of each request')
    return { body: JSON.parse(text), record }
  }
}

interface Answer {
  readonly id: string
  readonly content: readonly Block[]
  readonly usage: unknown
  readonly diagnostics?: unknown
}

interface Called {
  readonly id: string
  readonly name: string
  readonly input: JsonObject
}

function callsIn(content: readonly Block[]): readonly Called[] {
  return content.flatMap(({ type, id, name, input }) =>
    type === 'tool_use' ? [{ id: String(id), name: String(name), input: input as JsonObject }] : [],
  )
}

function entryOf(model: string) {
  const looked = lookUpModel(modelCatalogue, model)
  if (!looked.found) throw new Error(looked.reason)
  return looked.model
}

function pricesOf(model: string): ModelPrices {
  return entryOf(model).prices
}

/** Dollars per million tokens, in force for that call. */
export function ratesOf({ request }: Seen): Readonly<Record<PriceClass, number>> {
  const prices = pricesOf(request.front.model)
  const factor = request.front.parameters.speed === 'fast' ? FAST_FACTOR : 1
  const rate = (name: PriceClass): number => (prices[name] ?? Number.NaN) * factor
  return {
    input: rate('input'),
    cacheRead: rate('cacheRead'),
    writeShort: rate('writeShort'),
    writeLong: rate('writeLong'),
    output: rate('output'),
  }
}

const FAST_FACTOR = 2

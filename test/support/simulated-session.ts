/** A session of the engine with the simulator as its model: prompt by prompt, with an observation of every call. */
import type { CacheBreak, OwnRewriteCost } from '@tidemark/core/cache/cache-break-types'
import type { CacheForecast } from '@tidemark/core/cache/cache-forecast'
import type { CacheCheckOutcome } from '@tidemark/core/cache/cache-monitor'
import { compact } from '@tidemark/core/compaction/compact'
import type { TracedMessage } from '@tidemark/core/context/flatten-context'
import type { Payload } from '@tidemark/core/context/payload'
import type { CostTotals } from '@tidemark/core/cost/session-cost'
import type { RewriteEvent, TurnEvent } from '@tidemark/core/engine/events'
import type { TurnHost } from '@tidemark/core/engine/host'
import type { Journal } from '@tidemark/core/engine/ports'
import { readSessionState, type SessionState } from '@tidemark/core/engine/session-state'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { toBlocks } from '@tidemark/core/log/block'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { type AssembledRequest, listExactBlockTexts, toPayload } from '@tidemark/core/request/build-request'
import {
  createFakeClock,
  createFakeJournal,
  type FakeClock,
  runSingleTurn,
  runToEnd,
} from '@tidemark/core/testing'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { undoRewrite } from '@tidemark/core/turn/undo'
import type { RequestRecord, Simulator } from '@tidemark/simulator'
import { encodeRequestFragments, joinRequestFragments } from '@tidemark/wire/anthropic/encode-request'
import { toRequestHeaders } from '@tidemark/wire/anthropic/headers'
import { createSimulatedHost, type SimulatedHostOptions, type World } from './simulated-host.ts'

export type ClearEvent = Extract<RewriteEvent, { readonly type: 'microcompact' }>

/** One call to the model: what was done before it, what was sent, and what it cost. */
export interface ObservedCall {
  /** Clearings before it was sent. */
  readonly cleared: readonly ClearEvent[]
  /** Clearings by the provider, reported with its response. */
  noted: readonly ClearEvent[]
  readonly compacted: boolean
  /** Tokens of deletions that were dropped before it, or null. */
  readonly dropped: number | null
  /** The prefix changed and the engine announced it. */
  readonly isDeclared: boolean
  /** Tools, system and messages of the call before are sent again unchanged (markers aside). */
  readonly isExtended: boolean
  readonly messages: number
  readonly at: number
  readonly usage: TokenUsage
  readonly record: RequestRecord
  readonly broke: CacheBreak | null
  readonly paid: OwnRewriteCost | null
  /** How its cache read was judged, where it was neither a break nor the price of a rewrite. */
  readonly judged: CacheCheckOutcome | null
  readonly forecast: CacheForecast
  /** Tokens of the context of the call before, if its cache entry is still alive: the most that can be read. */
  readonly ceiling: number
  /** Deletions that were sent, each with its place. */
  readonly edits: readonly PlacedEdit[]
  /** `context_management` as it was sent; undefined where it was not. */
  readonly management: unknown
  /** Tool calls in the request. */
  readonly toolUses: number
  /** Tokens of the messages of the call before as they are sent now; set only after a clearing. */
  readonly resent: number | null
}

export interface PlacedEdit {
  readonly path: string
  readonly text: string
}

export interface SimulatedSessionOptions extends SimulatedHostOptions {
  readonly journal?: Journal
  readonly clock?: FakeClock
  /** Milliseconds before the prompt of that number. */
  readonly pause?: (prompt: number) => number
  readonly promptText?: (prompt: number) => string
  /** Called before the prompt of that number, to change the world. */
  readonly beforePrompt?: (prompt: number, world: World) => void
}

export const SESSION = 'simulated'
const LIFE_MS = { '5m': 300_000, '1h': 3_600_000 }

export class SimulatedSession {
  readonly calls: ObservedCall[] = []
  readonly options: SimulatedSessionOptions
  readonly clock: FakeClock
  readonly journal: Journal
  readonly host: TurnHost
  readonly simulator: Simulator
  readonly world: World
  /** Every request, as the simulator accounts for it. */
  readonly requests: RequestRecord[] = []
  /** Dollars by the simulator's own account. */
  readonly billed = { total: 0, saved: 0 }
  /** The engine's newest totals. */
  totals: CostTotals | null = null
  state: SessionState | null = null
  /** Receives the block texts of each request, and whether they extend those before. */
  onSend: (sent: readonly string[], isExtended: boolean) => void = () => undefined
  /** The messages of the last request, block by block, without markers. */
  sent: readonly string[] = []
  #front: AssembledRequest['front'] | null = null
  #prompts = 0
  #pending: PendingCall = NO_PENDING
  #last = { at: Number.NEGATIVE_INFINITY, tokens: 0 }

  constructor(options: SimulatedSessionOptions) {
    this.options = options
    this.clock = options.clock ?? createFakeClock()
    this.journal = options.journal ?? createFakeJournal()
    this.world = options.world ?? { commits: 0, extraTools: 0, hasToolChoice: false }
    const onRequest = (record: RequestRecord): void => {
      this.requests.push(record)
      this.billed.total += record.cost?.total ?? 0
      this.billed.saved += record.cost?.saved ?? 0
    }
    const ports = { journal: this.journal, clock: this.clock, onRequest }
    const { host, simulator } = createSimulatedHost(options, ports)
    this.host = host
    this.simulator = simulator
  }

  /** Prompts until so many calls have been answered in all. */
  async until(calls: number): Promise<this> {
    const { pause = () => 45_000, promptText = (prompt) => `Go on with part ${prompt}.` } = this.options
    while (this.calls.length < calls) {
      this.options.beforePrompt?.(this.#prompts, this.world)
      await this.clock.advance(pause(this.#prompts))
      await this.prompt(promptText(this.#prompts))
    }
    return this
  }

  /** One turn. Throws where it fails. */
  async prompt(prompt: string, host: TurnHost = this.host): Promise<void> {
    this.#prompts += 1
    for await (const event of runSingleTurn(await this.open(), { prompt }, host)) {
      if (event.type === 'turn-ended') this.state = event.outcome.state
      if (event.type === 'turn-ended' && !event.outcome.ok) {
        const last = this.requests.at(-1)?.error
        throw new Error(JSON.stringify({ ...event.outcome, state: null, last }).slice(0, 2_000))
      }
      await this.#observe(event)
    }
  }

  /** The state so far; the journal's where nothing was sent yet. */
  async open(): Promise<SessionState> {
    return this.state ?? readSessionState(this.journal, SESSION)
  }

  /** A compaction that the user asks for. */
  async compact(): Promise<void> {
    await this.#act((run) => compact(run, { trigger: 'manual', cause: 'person', isForced: true }))
  }

  /** Undoes the newest clearing or compaction. */
  async undo(): Promise<void> {
    await this.#act((run) => undoRewrite(run, {}))
  }

  async #act(act: (run: TurnContext) => AsyncGenerator<TurnEvent, { readonly ok: boolean }>): Promise<void> {
    const { state, host } = this
    if (state === null) throw new Error('there is nothing to act on')
    const run: TurnContext = { state, host, signal: undefined }
    const outcome = await runToEnd(act(run))
    this.state = run.state
    if (!outcome.ok) throw new Error(JSON.stringify(outcome))
  }

  /** The body of the request that a prompt would lead to. It is not sent, though what comes before it is done. */
  async nextBody(prompt: string, host: TurnHost = this.host): Promise<string> {
    for await (const event of runSingleTurn(await this.open(), { prompt }, host))
      if (event.type === 'request-sent') return joinRequestFragments(encode(event.request))
    throw new Error('a turn sends a request')
  }

  async #observe(event: TurnEvent): Promise<void> {
    const pending = this.#pending
    if (event.type === 'microcompact' && event.way === 'native') {
      const last = this.calls.at(-1)
      if (last !== undefined) last.noted = [...last.noted, event]
    } else if (event.type === 'microcompact')
      this.#pending = { ...pending, cleared: [...pending.cleared, event] }
    if (event.type === 'prefix-changed' && event.change.kind === 'epoch')
      this.#pending = { ...pending, isDeclared: true }
    if (event.type === 'compact') this.#pending = { ...pending, compacted: true }
    if (event.type === 'cache-edits-dropped') this.#pending = { ...pending, dropped: event.tokens }
    if (event.type === 'cache-break') this.#pending = { ...pending, broke: event.event }
    if (event.type === 'cache-judged') this.#pending = { ...pending, judged: event.outcome }
    if (event.type === 'act-paid') this.#pending = { ...pending, paid: event.act }
    if (event.type === 'priced') this.totals = event.totals
    if (event.type === 'request-sent') await this.#observeRequest(event.request)
    if (event.type === 'answered' && event.reply.usage !== undefined)
      this.#observeAnswer(event.reply.usage, event.forecast)
  }

  async #observeRequest(request: AssembledRequest): Promise<void> {
    const messages = [...request.messages.frozen.toArray(), ...request.messages.tail]
    const sent = messages.flatMap(blockTexts)
    const { front } = request
    const isSameFront =
      this.#front === null || this.#front === front || frontText(this.#front) === frontText(front)
    const isExtended = isSameFront && this.sent.every((text, index) => text === sent[index])
    this.#front = front
    this.sent = sent
    this.onSend(sent, isExtended)
    const before = this.calls.at(-1)
    const isRewritten = this.#pending.cleared.some(({ way }) => way !== 'cached') && before !== undefined
    this.#pending = {
      ...this.#pending,
      isExtended,
      resent: isRewritten ? await this.#count(request, before.messages) : null,
      messages: messages.length,
      at: this.clock.now(),
      edits: messages.flatMap((message, index) => editsIn(message, index)),
      management: toPayload(request).context_management,
      toolUses: sent.filter((text) => text.includes('"type":"tool_use"')).length,
    }
  }

  /** Tokens of the first so many messages of a request, by the simulator's own count. */
  async #count(request: AssembledRequest, messages: number): Promise<number> {
    const payload = toPayload(request)
    const { model, system, tools, thinking, betas } = payload
    const fields: Payload = JSON.parse(JSON.stringify({ model, system, tools, thinking, betas }))
    const body = encodeRequestFragments(
      { ...fields, messages: payload.messages.slice(0, messages) },
      { raw: { messages: listExactBlockTexts(request).slice(0, messages) } },
    )
    const response = await this.simulator.fetch('http://simulator.test/v1/messages/count_tokens', {
      method: 'POST',
      headers: toRequestHeaders({
        version: '2023-06-01',
        betas: body.betas,
        credentials: { style: 'key', secret: 'any' },
      }),
      body: joinRequestFragments(body),
    })
    const text = await response.text()
    this.requests.pop()
    if (response.status !== 200) throw new Error(text)
    return JSON.parse(text).input_tokens
  }

  #observeAnswer(usage: TokenUsage, forecast: CacheForecast): void {
    const record = this.requests.at(-1)
    if (record === undefined) throw new Error('the simulator records each request')
    const lifeMs = LIFE_MS[this.options.policy?.cache?.ttl === '1h' ? '1h' : '5m']
    const { at, tokens } = this.#last
    const ceiling = forecast.basis.now - at < lifeMs ? tokens : 0
    this.calls.push({ ...this.#pending, noted: [], usage, record, forecast, ceiling })
    this.#last = { at: forecast.basis.now, tokens: readReportedContextTokens(usage) }
    this.#pending = NO_PENDING
  }
}

type PendingCall = Omit<ObservedCall, 'usage' | 'record' | 'forecast' | 'noted' | 'ceiling'>

const NO_PENDING: PendingCall = {
  cleared: [],
  compacted: false,
  dropped: null,
  isDeclared: false,
  isExtended: true,
  messages: 0,
  at: 0,
  broke: null,
  paid: null,
  judged: null,
  edits: [],
  resent: null,
  management: undefined,
  toolUses: 0,
}

/** Tools and system prompt as they are sent, without markers. */
function frontText({ tools, system }: AssembledRequest['front']): string {
  return JSON.stringify([tools, system.map(({ block }) => block)])
}

const texts = new WeakMap<TracedMessage, readonly string[]>()

/** The blocks of a message as they are spelled, without markers. */
function blockTexts(message: TracedMessage): readonly string[] {
  const { role, content } = message.message
  const known =
    texts.get(message) ??
    toBlocks(content).map((block, index) => `${role} ${message.raw?.get(index) ?? JSON.stringify(block)}`)
  texts.set(message, known)
  return known
}

function editsIn(message: TracedMessage, index: number): readonly PlacedEdit[] {
  return blockTexts(message).flatMap((text, block) =>
    text.startsWith('user {"type":"cache_edits"') ? [{ path: `messages.${index}.${block}`, text }] : [],
  )
}

function encode(request: AssembledRequest): ReturnType<typeof encodeRequestFragments> {
  return encodeRequestFragments(toPayload(request), { raw: { messages: listExactBlockTexts(request) } })
}

/** Tokens of the prompt that were read from the cache. */
export const tokensRead = ({ usage }: Pick<ObservedCall, 'usage'>): number => usage.read
/** Tokens of the whole context. */
export const contextTokens = ({ usage }: Pick<ObservedCall, 'usage'>): number =>
  readReportedContextTokens(usage)

/** A conversation of the engine with the simulator: prompt by prompt, every call seen; people pause between them. */
import {
  type BreakEvent,
  contextOf,
  type Forecast,
  type Model,
  type ModelCall,
  type MoneyTotals,
  openSession,
  type Payload,
  payloadOf,
  rawTextsOf,
  runTurn,
  type SessionState,
  type TurnEvent,
  type TurnHost,
  type TurnOutcome,
  type Usage,
} from '@tidemark/core'
import { createFakeClock, type FakeClock } from '@tidemark/core/testing'
import { bodyText, type EncodedRequest, encodeRequest } from '@tidemark/wire'
import { type HostOptions, simulatedHost, type World } from './simulated-host.ts'

export interface TalkOptions extends HostOptions {
  /** Once under way, a parameter changes that the cache is kept under. */
  readonly breaks?: boolean
  readonly clock?: FakeClock
  readonly world?: World
}

/** What was seen of one call. */
export interface SeenCall {
  readonly forecast: Forecast
  readonly usage: Usage
  /** What an append-only prompt could have read at best: all that the call before said, while it lives. */
  readonly ceiling: number
  /** The prefix changed, and the engine had said that it would. */
  readonly isDeclared: boolean
  /** Tools, system and messages, markers removed, go on from those of the call before. */
  readonly isExtended: boolean
  /** What was told of the cache, where it broke. */
  readonly broke: BreakEvent | null
}

export const SESSION = 'first-turn'
const LIFE_MS = { '5m': 300_000, '1h': 3_600_000 }

export class Talk {
  readonly calls: SeenCall[] = []
  /** Dollars by the simulator's own account. */
  readonly billed = { total: 0, saved: 0 }
  /** What the engine told last. */
  totals: MoneyTotals | null = null
  readonly clock: FakeClock
  readonly world: World
  readonly #options: TalkOptions
  readonly host: TurnHost
  #prompts = 0
  #fragments: readonly string[] = []
  #isExtended = true
  #isDeclared = false
  #broke: BreakEvent | null = null
  #left = { at: Number.NEGATIVE_INFINITY, tokens: 0 }

  constructor(options: TalkOptions) {
    this.#options = options
    this.clock = options.clock ?? createFakeClock()
    this.world = options.world ?? { commits: 0, extraTools: 0, isKeyed: false }
    const onRequest: HostOptions['onRequest'] = (record) => {
      this.billed.total += record.cost?.total ?? 0
      this.billed.saved += record.cost?.saved ?? 0
      options.onRequest?.(record)
    }
    const host = simulatedHost({ ...options, onRequest }, this.world, this.clock)
    this.host = { ...host, model: this.#listening(host.model) }
  }

  /** Opens the session and prompts until `calls` responses have come in all; each prompt finds the world changed. */
  async until(calls: number): Promise<SessionState> {
    let state = await openSession(this.host.journal, SESSION)
    for (; this.calls.length < calls; this.#prompts += 1) {
      const prompt = this.#prompts
      if (this.#options.isStill !== true) this.world.extraTools = prompt >> 1
      this.world.isKeyed = this.#options.breaks === true && prompt >= 3
      const outcome = await this.turn(state, `Go on with part ${prompt}. ${'please '.repeat(prompt * 7)}`)
      if (!outcome.ok) throw new Error(JSON.stringify({ ...outcome, state: null }))
      state = outcome.state
      await this.clock.advance(prompt % 3 === 1 ? 420_000 : 45_000)
    }
    return state
  }

  /** The body of the request that a prompt would lead to; it is not sent. */
  async nextBody(state: SessionState, prompt: string): Promise<string> {
    for await (const event of runTurn(state, { prompt }, this.host)) {
      if (event.type === 'request-sent')
        return bodyText(encoded(payloadOf(event.request), rawTextsOf(event.request)))
    }
    throw new Error('a turn sends a request')
  }

  /** One turn, every call of it seen. */
  async turn(state: SessionState, prompt: string): Promise<TurnOutcome> {
    for await (const event of runTurn(state, { prompt }, this.host)) {
      if (event.type === 'turn-ended') return event.outcome
      this.#watch(event)
    }
    throw new Error('a turn ends with its outcome')
  }

  #watch(event: TurnEvent): void {
    if (event.type === 'prefix-changed' && event.change.kind === 'epoch') this.#isDeclared = true
    if (event.type === 'cache-broke') this.#broke = event.event
    if (event.type === 'priced') this.totals = event.totals
    if (event.type !== 'answered' || event.usage === null) return
    const { forecast, usage } = event
    const { at, tokens } = this.#left
    const ceiling = forecast.asked.now - at < LIFE_MS[this.#options.ttl] ? tokens : 0
    const [isDeclared, isExtended, broke] = [this.#isDeclared, this.#isExtended, this.#broke]
    this.calls.push({ forecast, usage, ceiling, isDeclared, isExtended, broke })
    this.#left = { at: forecast.asked.now, tokens: contextOf(usage) }
    this.#isDeclared = false
    this.#broke = null
  }

  #listening(model: Model): Model {
    return {
      stream: (call, signal) => {
        const { fragments } = encoded(call.payload, call.raw)
        const bare = fragments.filter(({ zone }) => zone !== 'parameters').map((fragment) => fragment.bare)
        this.#isExtended = this.#fragments.every((fragment, index) => fragment === bare[index])
        this.#fragments = bare
        return model.stream(call, signal)
      },
    }
  }
}

function encoded(payload: Payload, raw: ModelCall['raw'] = []): EncodedRequest {
  return encodeRequest(payload, { raw: { messages: raw } })
}

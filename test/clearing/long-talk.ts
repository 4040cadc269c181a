/** A long conversation of a host that makes room: every call seen, with what was done before it and what it was billed. */
import {
  type ActPaid,
  type AssembledRequest,
  type BreakEvent,
  blocksOf,
  compact,
  contextOf,
  type FlatMessage,
  type Journal,
  openSession,
  type Payload,
  payloadOf,
  type RewriteEvent,
  type Room,
  rawTextsOf,
  runTurn,
  type SessionState,
  type TurnEvent,
  type TurnHost,
  type TurnRun,
  type Usage,
  undoAct,
} from '@tidemark/core'
import { createFakeClock, type FakeClock } from '@tidemark/core/testing'
import type { RequestRecord, Simulator } from '@tidemark/simulator'
import { bodyText, encodeRequest, toHeaders } from '@tidemark/wire'
import { createMemoryJournal } from 'tidemark/testing'
import { clearingHost, type SetUp } from './clearing-host.ts'

export type Cleared = Extract<RewriteEvent, { readonly type: 'microcompact' }>

export interface SeenCall {
  /** Done before it was sent. */
  readonly cleared: readonly Cleared[]
  /** Noted after its answer: what the provider cleared by itself. */
  noted: readonly Cleared[]
  readonly compacted: boolean
  /** Tokens of deletions that were dropped before it, or null. */
  readonly dropped: number | null
  /** The messages sent before are sent again as they were. */
  readonly isExtended: boolean
  readonly messages: number
  readonly at: number
  readonly usage: Usage
  readonly record: RequestRecord
  readonly broke: BreakEvent | null
  readonly paid: ActPaid | null
  readonly forecast: number
  /** Deletions that were sent, each with its place. */
  readonly edits: readonly PlacedEdit[]
  /** `context_management` as it was sent; undefined where it was not. */
  readonly management: unknown
  /** Calls of tools in the request. */
  readonly toolUses: number
  /** Tokens of the messages that the call before sent, as they are sent now; told where something was cleared. */
  readonly resent: number | null
}

export interface PlacedEdit {
  readonly path: string
  readonly text: string
}

export interface TalkOptions {
  readonly journal?: Journal
  readonly clock?: FakeClock
}

export const SESSION = 'clearing'

export class LongTalk {
  readonly calls: SeenCall[] = []
  readonly clock: FakeClock
  readonly journal: Journal
  readonly host: TurnHost
  readonly simulator: Simulator
  readonly setUp: SetUp
  state: SessionState | null = null
  /** Told the messages of each request, and whether they go on from those before. */
  onSend: (sent: readonly string[], isExtended: boolean) => void = () => undefined
  #prompts = 0
  /** The messages of the last request, block by block, without markers. */
  sent: readonly string[] = []
  #records: RequestRecord[] = []
  #since: Since = NOTHING

  constructor(setUp: SetUp, options: TalkOptions = {}) {
    this.setUp = setUp
    this.clock = options.clock ?? createFakeClock()
    this.journal = options.journal ?? createMemoryJournal()
    const machine = {
      journal: this.journal,
      clock: this.clock,
      onRequest: (record: RequestRecord) => this.#records.push(record),
    }
    const { host, simulator } = clearingHost(setUp, machine)
    this.host = host
    this.simulator = simulator
  }

  /** Prompts until so many calls have been answered in all. */
  async until(calls: number): Promise<this> {
    while (this.calls.length < calls) {
      await this.clock.advance(this.setUp.pause?.(this.#prompts) ?? 45_000)
      await this.prompt(`Go on with part ${this.#prompts}.`)
    }
    return this
  }

  async prompt(prompt: string, host: TurnHost = this.host): Promise<void> {
    this.#prompts += 1
    const state = this.state ?? (await openSession(this.journal, SESSION))
    for await (const event of runTurn(state, { prompt }, host)) {
      if (event.type === 'turn-ended') this.state = event.outcome.state
      if (event.type === 'turn-ended' && !event.outcome.ok)
        throw new Error(
          JSON.stringify({ ...event.outcome, state: null, last: this.#records.at(-1)?.error }).slice(
            0,
            2_000,
          ),
        )
      await this.#watch(event)
    }
  }

  /** A compaction by a person's word. */
  async compact(): Promise<void> {
    await this.#act((run, room) => compact(run, room, { trigger: 'manual', cause: 'person', isForced: true }))
  }

  /** Takes the newest act back. */
  async undo(): Promise<void> {
    await this.#act((run, room) => undoAct(run, room, {}))
  }

  async #act(
    act: (run: TurnRun, room: Room) => AsyncGenerator<TurnEvent, { readonly ok: boolean }>,
  ): Promise<void> {
    const { state, host } = this
    if (state === null || host.room === undefined) throw new Error('there is nothing to act on')
    const run: TurnRun = { state, host, signal: undefined }
    const outcome = await endOf(act(run, host.room))
    this.state = run.state
    if (!outcome.ok) throw new Error(JSON.stringify(outcome))
  }

  /** The body of the request that a prompt would lead to. It is not sent, though what comes before it is done. */
  async nextBody(prompt: string): Promise<string> {
    const state = this.state ?? (await openSession(this.journal, SESSION))
    for await (const event of runTurn(state, { prompt }, this.host))
      if (event.type === 'request-sent') return bodyText(encoded(event.request))
    throw new Error('a turn sends a request')
  }

  async #watch(event: TurnEvent): Promise<void> {
    const since = this.#since
    if (event.type === 'microcompact' && event.way === 'native') {
      const last = this.calls.at(-1)
      if (last !== undefined) last.noted = [...last.noted, event]
    } else if (event.type === 'microcompact') this.#since = { ...since, cleared: [...since.cleared, event] }
    if (event.type === 'compact') this.#since = { ...since, compacted: true }
    if (event.type === 'cache-edits-dropped') this.#since = { ...since, dropped: event.tokens }
    if (event.type === 'cache-broke') this.#since = { ...since, broke: event.event }
    if (event.type === 'act-paid') this.#since = { ...since, paid: event.act }
    if (event.type === 'request-sent') await this.#sending(event.request)
    if (event.type === 'answered' && event.usage !== null) this.#answered(event.usage, event.forecast.read)
  }

  async #sending(request: AssembledRequest): Promise<void> {
    const messages = [...request.messages.frozen.toArray(), ...request.messages.tail]
    const said = messages.flatMap(blockTexts)
    const isExtended = this.sent.every((text, index) => text === said[index])
    this.sent = said
    this.onSend(said, isExtended)
    const before = this.calls.at(-1)
    const resent =
      this.#since.cleared.some(({ way }) => way !== 'cached') && before !== undefined
        ? await this.count(request, before.messages)
        : null
    this.#since = {
      ...this.#since,
      isExtended,
      resent,
      messages: messages.length,
      at: this.clock.now(),
      edits: messages.flatMap((message, index) => editsIn(message, index)),
      management: payloadOf(request).context_management,
      toolUses: said.filter((text) => text.includes('"type":"tool_use"')).length,
    }
  }

  /** Tokens of the first so many messages of a request, by the simulator's own count. */
  async count(request: AssembledRequest, messages: number): Promise<number> {
    const payload = payloadOf(request)
    const { model, system, tools, thinking, betas } = payload
    const named = { model, system, tools, thinking, betas }
    const cut: Payload = { ...definedOnly(named), messages: payload.messages.slice(0, messages) }
    const body = encodeRequest(cut, { raw: { messages: rawTextsOf(request).slice(0, messages) } })
    const response = await this.simulator.fetch('http://simulator.test/v1/messages/count_tokens', {
      method: 'POST',
      headers: toHeaders({
        version: '2023-06-01',
        betas: body.betas,
        credentials: { style: 'key', secret: 'any' },
      }),
      body: bodyText(body),
    })
    const text = await response.text()
    this.#records.pop()
    if (response.status !== 200) throw new Error(text)
    return JSON.parse(text).input_tokens
  }

  #answered(usage: Usage, forecast: number): void {
    const record = this.#records.at(-1)
    if (record === undefined) throw new Error('the simulator tells of each request')
    this.calls.push({ ...this.#since, noted: [], usage, record, forecast })
    this.#since = NOTHING
  }
}

type Since = Omit<SeenCall, 'usage' | 'record' | 'forecast' | 'noted'>

const NOTHING: Since = {
  cleared: [],
  compacted: false,
  dropped: null,
  isExtended: true,
  messages: 0,
  at: 0,
  broke: null,
  paid: null,
  edits: [],
  resent: null,
  management: undefined,
  toolUses: 0,
}

const texts = new WeakMap<FlatMessage, readonly string[]>()

/** What a message says, block by block, without markers; each is spelled once. */
function blockTexts(message: FlatMessage): readonly string[] {
  const { role, content } = message.message
  const known = texts.get(message) ?? blocksOf(content).map((block) => `${role} ${JSON.stringify(block)}`)
  texts.set(message, known)
  return known
}

function editsIn(message: FlatMessage, index: number): readonly PlacedEdit[] {
  return blockTexts(message).flatMap((text, block) =>
    text.startsWith('user {"type":"cache_edits"') ? [{ path: `messages.${index}.${block}`, text }] : [],
  )
}

function encoded(request: AssembledRequest): ReturnType<typeof encodeRequest> {
  return encodeRequest(payloadOf(request), { raw: { messages: rawTextsOf(request) } })
}

async function endOf<T>(events: AsyncGenerator<unknown, T>): Promise<T> {
  for (;;) {
    const step = await events.next()
    if (step.done === true) return step.value
  }
}

/** As JSON has it: what is undefined is not there. */
function definedOnly(fields: object): Payload {
  return JSON.parse(JSON.stringify(fields))
}

export const readIn = ({ usage }: SeenCall): number => usage.cache_read_input_tokens ?? 0
export const contextIn = ({ usage }: SeenCall): number => contextOf(usage)

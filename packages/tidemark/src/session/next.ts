/** The next request for a loop of your own: room is made first, and what goes out is ready to be sent. */
import {
  append,
  type CallerPrompt,
  type ContextTokens,
  callOf,
  type Forecast,
  type Halt,
  isPrompt,
  measureNow,
  messagesOf,
  type OpenedCall,
  openCalls,
  type Payload,
  placeSections,
  readyRequest,
  type SystemPrompt,
  settlingRecord,
  type TurnEvent,
  type TurnRun,
} from '@tidemark/core'
import { bodyText, encodeRequest } from '@tidemark/wire'
import { checkNames } from '../platform/argument-errors.ts'
import { drain } from './events.ts'
import { actRun, claim, type Desk, hostOf, takeIn, told } from './open-session.ts'
import { haltWords } from './run.ts'
import { type ToolDefinitions, type Tools, toolsetOf } from './tools.ts'

export interface NextOptions {
  /** As the API takes them, or by name; those of the request before unless given. */
  readonly tools?: Tools | ToolDefinitions
  /** The system prompt from now on; that of the session unless given. */
  readonly system?: SystemPrompt | CallerPrompt
  /** Calls that have no result are answered by a word that says so; without it they have to be answered first. */
  readonly settle?: boolean
  readonly signal?: AbortSignal
}

/** The body of a request: parameters, tools, system and messages. */
export type RequestBody = Omit<Payload, 'betas'>

/** `Body` is for the types of an SDK, as in `next<Anthropic.MessageCreateParamsNonStreaming>()`. */
export type NextOutcome<Body = RequestBody> =
  | ReadyRequest<Body>
  | OpenCalls
  | (Halt & { readonly message: string })

/** Calls of the newest response wait for their results. Nothing was changed. */
export interface OpenCalls {
  readonly ok: false
  readonly reason: 'open-calls'
  /** Their ids. */
  readonly calls: readonly string[]
  readonly message: string
}

export interface ReadyRequest<Body = RequestBody> {
  readonly ok: true
  /** For `client.messages.create(body, { headers })`. */
  readonly body: Body
  /** The betas that the body needs, as the header that names them; empty where there are none. */
  readonly headers: Readonly<Record<string, string>>
  readonly betas: readonly string[]
  /** How much of it the provider's cache will answer. */
  readonly forecast: Forecast
  /** Tokens of it, before it is sent. */
  readonly context: ContextTokens
  /** The exact text of the body, for those who send it themselves: blocks that JSON cannot repeat stay as they were. */
  readonly text: string
}

export async function nextRequest<Body>(desk: Desk, options: NextOptions = {}): Promise<NextOutcome<Body>> {
  checkNames('next', options, ['tools', 'system', 'settle', 'signal'])
  const tools = options.tools === undefined ? null : toolsetOf({ tools: options.tools })
  const sections = options.system === undefined ? null : placeSections(options.system)
  const release = claim(desk, 'next')
  try {
    if (tools !== null) desk.tools = tools
    if (sections !== null) desk.sections = sections
    const run = actRun(desk, options.signal)
    await takeIn(desk, run)
    const open = openCalls(desk.shared.state.flat)
    if (open.length > 0 && options.settle !== true) return waiting(open)
    const ready = await drain({ events: requestEvents(run), onEvent: (event) => told(desk, event) })
    if ('ok' in ready) return { ...ready, message: haltWords(ready, messagesOf(desk.shared.state.flat)) }
    desk.pending = ready
    return readyOf<Body>(desk, ready)
  } finally {
    release()
  }
}

function waiting(open: ReturnType<typeof openCalls>): OpenCalls {
  const calls = open.map(({ id }) => id)
  const message = `next: no result for ${calls.join(', ')}. Append toolResult(id, …) for each, or give { settle: true } to go on without.`
  return { ok: false, reason: 'open-calls', calls, message }
}

async function* requestEvents(run: TurnRun): AsyncGenerator<TurnEvent, OpenedCall | Halt> {
  const calls = openCalls(run.state.flat)
  if (calls.length > 0) {
    yield { type: 'calls-settled', calls }
    const halt = yield* append(run, [settlingRecord(calls)])
    if (halt !== null) return halt
  }
  const ready = yield* readyRequest(run, isPrompted(run) ? 'prompt' : 'call')
  if (!('ok' in ready)) yield { type: 'request-sent', request: ready.request, forecast: ready.forecast }
  return ready
}

/** The person has spoken last. */
function isPrompted({ state }: TurnRun): boolean {
  const { entries } = state.view
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const record = entries.at(place)?.record
    if (record?.type === 'user' || record?.type === 'assistant') return isPrompt(record)
  }
  return true
}

function readyOf<Body>(desk: Desk, { request, forecast }: OpenedCall): ReadyRequest<Body> {
  const call = callOf(request)
  const { betas = [], ...body } = call.payload
  const host = hostOf(desk)
  return {
    ok: true,
    // What the API takes, in whatever words its SDK has for it.
    body: body as unknown as Body,
    headers: betas.length === 0 ? {} : { 'anthropic-beta': betas.join(',') },
    betas,
    forecast,
    context: measureNow(desk.shared.state, host, host.room),
    get text() {
      return bodyText(encodeRequest(call.payload, { raw: { messages: call.raw } }))
    },
  }
}

/**
 * Sends the provider calls of one client request, both its own and those of the engine. Before a billed call its maximum cost is
 * reserved; after it the key is charged by the reported usage, else the reserved amount. Streams are passed on as they arrive.
 */
import type { Reply } from '@tidemark/core/engine/reply'
import { isObject, parseJson } from '@tidemark/core/log/json'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import {
  copyResponseHead,
  createRefusalResponse,
  findRouteByPath,
  isEventStream,
  LIMIT_STATUS,
  sendUpstream,
  withUsageRequested,
} from 'tidemark/internal'
import { allowsModel, type GatewayKey } from '../keys/keys.ts'
import { type Reservation, WARNING_SHARE } from './budget.ts'
import {
  type CallCost,
  computeMaxCallCost,
  FREE_CALL,
  type PricingInput,
  priceReply,
  readPricingInput,
  toReservedCost,
} from './call-price.ts'

/** Reserves, charges and counts the calls of keys. `ProcessAccounts` implements it on Postgres. */
export interface CallAccounts {
  /** Reserves dollars; null if the budget is too small or the key was revoked. Throws if the database does not answer. */
  reserve(key: GatewayKey, amount: number, model: string): Promise<Reservation | null>
  /** Charges the cost of a call. Never rejects: a cost that cannot be stored now is stored later. */
  settle(key: GatewayKey, reservation: Reservation, cost: CallCost): Promise<void>
  /** Called for a call that is not sent. */
  onRefused(key: GatewayKey, reason: RefusalReason): void
}

type RefusalReason = 'budget' | 'model' | 'no-price' | 'unreadable' | 'database' | 'session'

interface MeteredRequest {
  readonly key: GatewayKey
  readonly accounts: CallAccounts
  /** Returns why the session of the request could not be read or written; null if it could. */
  readonly readFailure: () => string | null
  /** Sends a request that is admitted. Default: over the network. */
  readonly fetch?: typeof globalThis.fetch
}

/**
 * Returns the `fetch` through which all calls of one client request go. Answers with a refusal (see `RewriteRefusalReason`)
 * instead of sending a call that the key may not make. Requests that cost nothing are sent without a reservation.
 */
export function createMeteredSend(given: MeteredRequest): typeof globalThis.fetch {
  const { fetch = sendUpstream, readFailure, accounts, key } = given
  return async (input, init) => {
    const url = input instanceof Request ? input.url : String(input)
    const route = findRouteByPath(new URL(url).pathname)
    if (route === null || init?.method !== 'POST') return fetch(input, init)
    const refuse = (status: number, reason: RefusalReason, message: string): Response => {
      accounts.onRefused(key, reason)
      return refuseCall(route.codec, status, message)
    }
    const failure = readFailure()
    // Without its session, the request would be sent unmanaged and not recorded. The client should retry instead.
    if (failure !== null) return refuse(503, 'session', `The session cannot be used now: ${failure}`)
    const text = typeof init.body === 'string' ? init.body : ''
    const body = parseJson(text)
    const call = readPricingInput(body)
    if (call === null)
      return refuse(
        400,
        'unreadable',
        'The body is no JSON object with a model, and with limits that are whole numbers.',
      )
    // The response of a background call is fetched later by other requests, so its cost would never be known here.
    if (isObject(body) && body.background === true)
      return refuse(
        400,
        'unreadable',
        'The gateway does not take background responses: send it without `background`.',
      )
    if (!allowsModel(key, call.model)) return refuse(403, 'model', describeModels(key, call.model))
    if (route.kind === 'count') return fetch(input, init)
    const bytes = Buffer.byteLength(text)
    const bound = computeMaxCallCost(call, bytes)
    if (bound === null && key.budget !== null)
      return refuse(403, 'no-price', `No price is known for ${call.model}, and this key has a budget.`)
    let held: Reservation | null
    try {
      held = await accounts.reserve(key, bound ?? 0, call.model)
    } catch {
      return refuse(503, 'database', 'The accounts of the gateway cannot be read now.')
    }
    if (held === null) return refuse(LIMIT_STATUS, 'budget', describeBudget(key, bound ?? 0))
    const charge = createCharge(given, held)
    const request = withUsageRequested(init, route.codec, body)
    return sendHeld(() => fetch(input, request), { codec: route.codec, call, bytes, charge, init, held, key })
  }
}

/** Refuses a call. Only a refusal that may succeed later, here or in another process, has a status that SDKs retry. */
function refuseCall(codec: ProviderCodec, status: number, message: string): Response {
  const refusal = createRefusalResponse(codec, status, message)
  if (status === 503) {
    refusal.headers.set('x-should-retry', 'true')
    refusal.headers.set('retry-after', '1')
  }
  return refusal
}

function describeModels({ name, models }: GatewayKey, model: string): string {
  return `The key ${name} may not call ${model}. It may call ${models?.join(', ')}.`
}

function describeBudget({ name, budget, period }: GatewayKey, bound: number): string {
  const when = period === 'total' ? 'in total' : `for this ${period}`
  return `The budget of the key ${name} has too little left of its $${budget} ${when}: this call could cost up to $${bound.toFixed(4)}. Ask its operator for more, or ask for fewer output tokens.`
}

/** Charges a call once: later calls of the function change nothing. */
type Charge = (cost: CallCost) => Promise<void>

function createCharge({ accounts, key }: MeteredRequest, held: Reservation): Charge {
  let charged: Promise<void> | null = null
  return (cost) => {
    charged ??= accounts.settle(key, held, cost)
    return charged
  }
}

interface HeldCall {
  readonly codec: ProviderCodec
  readonly call: PricingInput
  readonly bytes: number
  readonly charge: Charge
  readonly init: RequestInit
  readonly held: Reservation
  readonly key: GatewayKey
}

/** Codes of errors before a connection existed: the provider has received nothing. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

async function sendHeld(send: () => Promise<Response>, held: HeldCall): Promise<Response> {
  const { charge, bytes, codec } = held
  const lost = toReservedCost(held.held.amount, bytes)
  let response: Response
  try {
    response = await send()
  } catch (thrown) {
    // The provider still processes and bills the request, although the client has left.
    const cause =
      thrown instanceof Error ? (thrown.cause as { readonly code?: unknown } | undefined) : undefined
    await charge(NOT_SENT.has(cause?.code) ? FREE_CALL : lost)
    throw thrown
  }
  const headers = listBudgetHeaders(held)
  if (!response.ok || response.body === null) {
    await charge(FREE_CALL)
    return withHeaders(response, response.body, headers)
  }
  if (isEventStream(response)) return withHeaders(response, meterStream(response.body, held), headers)
  const text = await response.text().catch(async (thrown: unknown) => {
    await charge(lost)
    throw thrown
  })
  const read = codec.decodeBody(text)
  await charge(priceOrEstimate(read.ok ? read.reply : null, held))
  return withHeaders(response, text, headers)
}

/** Returns headers with the spending of the key, and a warning if its budget is nearly used up. */
function listBudgetHeaders({ key, held }: HeldCall): Readonly<Record<string, string>> {
  if (key.budget === null) return {}
  const spent = { 'x-tidemark-budget': String(key.budget), 'x-tidemark-spent': held.spent.toFixed(4) }
  const share = held.spent / key.budget
  if (share < WARNING_SHARE) return spent
  return { ...spent, 'x-tidemark-warning': `${Math.floor(share * 100)}% of the budget is used or reserved` }
}

function withHeaders(
  response: Response,
  body: ReadableStream<Uint8Array> | string | null,
  added: Readonly<Record<string, string>>,
): Response {
  const head = copyResponseHead(response)
  for (const [name, value] of Object.entries(added)) (head.headers as Headers).set(name, value)
  return new Response(body, head)
}

function priceOrEstimate(reply: Reply | null, { call, codec, bytes, held }: HeldCall): CallCost {
  const priced = reply === null ? null : priceReply(reply, call.model, codec)
  return priced ?? toReservedCost(held.amount, bytes)
}

/** Returns the stream. The cost is charged before the end is passed on, when the stream breaks, or when reading stops. */
function meterStream(body: ReadableStream<Uint8Array>, held: HeldCall): ReadableStream<Uint8Array> {
  const { charge, codec, init } = held
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  const finish = (): Promise<void> => charge(priceOrEstimate(readStreamedReply(chunks, codec), held))
  // When the client leaves, the reader may drop the stream without cancelling it.
  init.signal?.addEventListener('abort', () => void finish(), { once: true })
  return new ReadableStream(
    {
      async pull(controller) {
        const step = await reader.read().catch(async (thrown: unknown) => {
          await finish()
          throw thrown
        })
        if (!step.done) {
          chunks.push(step.value)
          return controller.enqueue(step.value)
        }
        await finish()
        controller.close()
      },
      async cancel(reason) {
        await finish()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Returns the part of the reply that arrived; null if nothing did. The session already parses the whole stream, so only
 * frames with usage are parsed here. All frames are parsed only after a stream broke off, to estimate its output.
 */
function readStreamedReply(chunks: readonly Uint8Array[], codec: ProviderCodec): Reply | null {
  const text = new TextDecoder().decode(Buffer.concat(chunks))
  const frames = text.split(/(?<=\n\r?\n)/)
  const figures = frames.filter((frame, index) => frame.includes('"usage"') || index >= frames.length - 2)
  const short = decodeFrames(figures.join(''), codec)
  return short?.isEnded === true && short.reply.usage !== undefined && short.reply.stop !== undefined
    ? short.reply
    : (decodeFrames(text, codec)?.reply ?? null)
}

function decodeFrames(
  text: string,
  { decode: decoder }: ProviderCodec,
): { readonly reply: Reply; readonly isEnded: boolean } | null {
  const [state, events] = decoder.step(decoder.initial, Buffer.from(text))
  const all = [...events, ...decoder.finish(state)]
  const end = all.find((event) => event.type === 'reply-ended' || event.type === 'reply-failed')
  if (end?.type === 'reply-ended') return { reply: end.reply, isEnded: true }
  return end?.type === 'reply-failed' && end.reply !== null ? { reply: end.reply, isEnded: false } : null
}

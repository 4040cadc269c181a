/**
 * Implements `tidemark.fetch`: a `fetch` for clients that send their whole conversation with every request. In the mode
 * `manage`, each request of a conversation is replaced by one of its session; everything else goes through unchanged.
 */
import { listUnansweredCalls, toApiMessages } from '@tidemark/core/context/flatten-context'
import type { Reply } from '@tidemark/core/engine/reply'
import { describeThrown } from '@tidemark/core/errors'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import type { ClientMessage } from '@tidemark/wire/providers/client-request'
import type { ProviderCodec, RouteKind } from '@tidemark/wire/providers/provider-codec'
import { currentClientConnection } from '../models/client-connection.ts'
import { type ClientRoute, findCodec, findRouteByPath, PROVIDERS } from '../models/providers.ts'
import { NO_REDIRECTS } from '../models/redirects.ts'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { pauseIfLarge } from '../platform/node-ports.ts'
import type { OpenSession } from '../session/open-session.ts'
import { checkSessionId } from '../storage/home-paths.ts'
import { passAndCount } from './client-billing.ts'
import type { ClientConversation, ClosableSession } from './client-conversation.ts'
import {
  type ClientConversations,
  createClientConversations,
  type SessionSelector,
  type SessionSource,
} from './client-conversations.ts'
import {
  type ClientCall,
  exchangeCompaction,
  exchangeManaged,
  exchangeObserved,
  type Fetch,
  refuseCompacted,
} from './client-exchange.ts'
import { matchRequest } from './client-history.ts'
import { refuseIfAtLimit, refuseUncounted } from './client-limits.ts'
import { withPings } from './client-response.ts'

/** Options of `tidemark.fetch`. `session` is here the open session, where the public option has the `Session` object. */
export interface ClientFetchOptions {
  /** See `FetchOptions`. */
  readonly session?: ClosableSession | SessionSelector
  /** `manage`: the session's requests are sent. `observe`: the client's are sent unchanged, and recorded. `off`: only sent. */
  readonly mode?: 'manage' | 'observe' | 'off'
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: Fetch
  /** Seconds without a response after which a stream begins with pings, and between two of them. Default: 5. */
  readonly pingSeconds?: number
  /**
   * Seconds without a request after which a session that `fetch` has opened is closed. The next request of the
   * conversation opens it again. Default: it stays open until `close`.
   */
  readonly idleSeconds?: number
}

const OPTION_NAMES: readonly (keyof ClientFetchOptions)[] = [
  'session',
  'mode',
  'fetch',
  'pingSeconds',
  'idleSeconds',
]
const MODES: ReadonlySet<unknown> = new Set(['manage', 'observe', 'off'])

/** What `tidemark.fetch` needs of the object that it belongs to. */
export interface FetchServices extends SessionSource {
  /** The protocol of the model with which sessions are opened. */
  readonly codec: ProviderCodec
  /** True if sessions have limits. A request whose cost cannot be counted is then refused instead of passed on. */
  readonly hasLimits: boolean
  /** Called if a request that belongs to no session is passed on. */
  readonly onPassed: (reason: 'side-call' | 'failed' | 'unreadable', message: string) => void
  /** Called for each reply to a request without a session, or whose session has not begun. */
  readonly onPassedReply: (reply: Reply) => void
}

export function createClientFetch(options: ClientFetchOptions, services: FetchServices): Fetch {
  checkFetchOptions('fetch', options)
  const { session, mode = 'manage', fetch: given = globalThis.fetch, pingSeconds = 5 } = options
  if (mode === 'off') return given
  // With `observe`, even the handling of redirects stays as the client asked for it.
  const upstream: Fetch =
    mode === 'observe' ? given : (input, init) => given(input, { ...NO_REDIRECTS, ...init })
  const idleMs = options.idleSeconds === undefined ? null : options.idleSeconds * 1000
  const conversations = createClientConversations(session, services, idleMs)
  const findOwnCodec = (): ProviderCodec =>
    typeof session === 'object' ? findCodec(session.open.model.choice) : services.codec
  const announceOther = createUnmanagedNotice((message) => services.onPassed('unreadable', message))
  const announceUnread = createOnce((message) => services.onPassed('unreadable', message))
  const announceChain = createOnce((message) => services.onPassed('side-call', message))
  return async (input, init) => {
    const route = findRoute(input, init, findOwnCodec())
    if (route === null) announceOther(input, init)
    if (route === null) return given(input, init)
    const read = await readCall(route.codec, input, init, upstream)
    if (read === null) {
      if (services.hasLimits || (typeof session === 'object' && session.open.limits.own.length > 0))
        return refuseUncounted(route.codec, 'It is no request that the engine can read.')
      announceUnread(
        `The request to ${route.codec.title} cannot be managed, as one that names a conversation at the provider: it is passed on untouched, and neither recorded nor counted, as are all like it.`,
      )
      return upstream(input, init)
    }
    const call = route.kind === 'compact' ? withCompaction(read) : read
    if (route.kind === 'count') return countForClient(conversations, call)
    if (route.kind === 'compact' && mode === 'observe') return upstream(input, init)
    const { codec, url, headers } = call
    const connection = currentClientConnection.getStore() ?? { codec, url, headers, send: upstream }
    const answer = currentClientConnection.run(connection, () =>
      answerClient(conversations, call, { kind: route.kind, mode, announceChain }, services),
    )
    return call.request.isStream && mode === 'manage'
      ? withPings(answer, codec.client, pingSeconds * 1000, pingSeconds * 1000)
      : answer
  }
}

function withCompaction(call: ClientCall): ClientCall {
  return { ...call, request: { ...call.request, asksCompaction: true } }
}

/** Throws `bad-option` for wrong options. `place`: name of the function that got them, for the message. */
export function checkFetchOptions(place: string, options: object): void {
  if (!isObject(options))
    throw badOptionError('options', `${place}: expected options, as in { session: "fix-login" }.`)
  checkOptionNames(place, options, OPTION_NAMES)
  const { mode = 'manage', pingSeconds = 1, idleSeconds = 1, session } = options
  if (typeof session === 'string') checkSessionId(session)
  if (!MODES.has(mode)) throw badOptionError('mode', `${place}: mode: expected "manage", "observe" or "off".`)
  for (const [name, seconds] of Object.entries({ pingSeconds, idleSeconds }))
    if (typeof seconds !== 'number' || !(seconds > 0))
      throw badOptionError(name, `${place}: ${name}: expected a number above 0.`)
}

/** Returns protocol and kind of a POST request by its path; null for others. `own`: the session's protocol, tried first. */
export function findRoute(
  input: Parameters<Fetch>[0],
  init: Parameters<Fetch>[1],
  own: ProviderCodec | null,
): ClientRoute | null {
  const path = findPostPath(input, init)
  return path === null ? null : findRouteByPath(path, own)
}

/** Returns the path of a request that sends something; null for others. */
function findPostPath(input: Parameters<Fetch>[0], init: Parameters<Fetch>[1]): string | null {
  const method = init?.method ?? (input instanceof Request ? input.method : 'GET')
  const url = input instanceof Request ? input.url : String(input)
  if (method.toUpperCase() !== 'POST') return null
  return URL.canParse(url) ? new URL(url).pathname : ''
}

/**
 * Returns a function that reports, once for each path, that requests of another API are passed on unchanged. A client
 * that uses only such an API is not managed at all.
 */
export function createUnmanagedNotice(
  report: (message: string) => void,
): (input: Parameters<Fetch>[0], init: Parameters<Fetch>[1]) => void {
  const known = new Set<string>()
  return (input, init) => {
    const path = findPostPath(input, init)
    if (path === null || known.has(path) || known.size >= MAX_NOTICES) return
    known.add(path)
    report(
      `POST ${path} is no request of ${API_NAMES}: it is passed on untouched, and neither recorded nor counted, as are all like it.`,
    )
  }
}

/** Returns a function that reports its first message only. */
function createOnce(report: (message: string) => void): (message: string) => void {
  let isDone = false
  return (message) => {
    if (!isDone) report(message)
    isDone = true
  }
}

const API_NAMES = PROVIDERS.map(({ codec }) => codec.title).join(' or ')

/** Maximum number of paths that are reported. Without it, paths that contain an id would each be reported. */
const MAX_NOTICES = 5

/** Reads the body of a request without using it up; null if the engine cannot take it. */
async function readCall(
  codec: ProviderCodec,
  input: Parameters<Fetch>[0],
  init: Parameters<Fetch>[1],
  upstream: Fetch,
): Promise<ClientCall | null> {
  const isRequest = input instanceof Request
  const given = init?.body
  let text: string | null = null
  if (typeof given === 'string') text = given
  else if (given instanceof Uint8Array || given instanceof ArrayBuffer) text = new TextDecoder().decode(given)
  else if (given === undefined && isRequest) text = await input.clone().text()
  if (text === null) return null
  await pauseIfLarge(text)
  const body = parseObject(text)
  await pauseIfLarge(text)
  const headers = new Headers(init?.headers ?? (isRequest ? input.headers : {}))
  const request = body === null ? null : codec.client.readRequest({ body, headers, text })
  if (body === null || request === null) return null
  await pauseIfLarge(text)
  return {
    codec,
    input,
    init,
    upstream,
    body,
    request,
    headers,
    url: isRequest ? input.url : String(input),
    signal: init?.signal ?? (isRequest ? input.signal : undefined),
  }
}

function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? (value as JsonObject) : null
  } catch {
    return null
  }
}

/** How a request is answered. `announceChain`: reports a request that continues a response which no log has. */
interface AnswerWay {
  readonly kind: RouteKind
  readonly mode: 'manage' | 'observe'
  readonly announceChain: (message: string) => void
}

async function answerClient(
  conversations: ClientConversations,
  call: ClientCall,
  { kind, mode, announceChain }: AnswerWay,
  services: FetchServices,
): Promise<Response> {
  const conversation = await enterConversation(conversations, call, services, announceChain)
  if (conversation instanceof Response) return conversation
  if (conversation === null) {
    if (call.request.compacted !== undefined && mode === 'manage')
      return refuseCompacted(call, 'its log is not here, or no longer has that place.')
    const refusal = services.hasLimits ? await refuseForOwner(conversations, call) : null
    if (refusal !== null) return refusal
    const response = await call.upstream(call.input, call.init)
    return response.ok
      ? passAndCount(response, call.codec, (reply) => countPassed(conversations, call, reply, services))
      : response
  }
  const free = (): void => conversation.release()
  call.signal?.addEventListener('abort', free, { once: true })
  try {
    const refusal = conversation.open.limits.isInForce ? await refuseIfAtLimit(conversation.open, call) : null
    if (refusal !== null) {
      free()
      return refusal
    }
    if (mode === 'observe') return await exchangeObserved(conversation, call)
    if (call.request.asksCompaction !== true) return await exchangeManaged(conversation, call)
    return await exchangeCompaction(conversation, call, kind === 'compact' ? 'compact' : 'reply')
  } catch (thrown) {
    free()
    throw thrown
  }
}

/** Returns a refusal for a request outside all conversations if the session that it names has reached a limit. */
async function refuseForOwner(
  conversations: ClientConversations,
  call: ClientCall,
): Promise<Response | null> {
  const owner = await conversations.findOwner(call).catch(() => null)
  return owner === null ? null : refuseIfAtLimit(owner.open, call)
}

/** Counts the reply to a request outside all conversations: in the session that the request names, else in separate totals. */
async function countPassed(
  conversations: ClientConversations,
  call: ClientCall,
  reply: Reply | null,
  { onPassedReply }: FetchServices,
): Promise<void> {
  if (reply === null) return
  const countLater = (begun: ClientConversation): void => void begun.countCost(reply, true)
  const owner = await conversations.findOwner(call, countLater).catch(() => null)
  if (owner === null) onPassedReply(reply)
  else await owner.countCost(reply)
}

/** Returns the conversation of a request. Null, with an event, if there is none; a refusal if its cost could not be counted. */
async function enterConversation(
  conversations: ClientConversations,
  call: ClientCall,
  { onPassed, hasLimits }: FetchServices,
  announceChain: (message: string) => void,
): Promise<ClientConversation | Response | null> {
  try {
    const conversation = await conversations.enter(call)
    if (conversation !== null) return conversation
    if (call.request.continues !== null && call.request.compacted === undefined)
      announceChain(
        'The request continues a response that was never seen here: it is passed on, as are all like it.',
      )
    else onPassed('side-call', 'The request belongs to no conversation.')
    return null
  } catch (thrown) {
    if (hasLimits) return refuseUncounted(call.codec, describeThrown(thrown))
    onPassed('failed', `The session could not be opened: ${describeThrown(thrown)}`)
    return null
  }
}

/** Counts the tokens of the engine's request. The count of the client's list would make the client compact once more. */
async function countForClient(conversations: ClientConversations, call: ClientCall): Promise<Response> {
  const { codec, input, init, url, headers, upstream, request } = call
  const conversation = await conversations.find(call).catch(() => null)
  const state = conversation?.open.state
  const match = conversation === null ? null : matchRequest(conversation.open, request)
  if (request.compacted !== undefined && match === null)
    return refuseCompacted(call, 'its log is not here, or no longer has that place.')
  const isOwn = state === undefined || (state.view.rewrites.length === 0 && request.compacted === undefined)
  if (isOwn || match === null || !match.isKnown || match.divergesAt !== null) return upstream(input, init)
  const sent = new Headers(headers)
  sent.delete('content-length')
  const messages = [...listShownMessages(state), ...match.news]
  return upstream(url, {
    ...init,
    method: 'POST',
    headers: sent,
    body: JSON.stringify(codec.client.writeCount(call.body, messages)),
  })
}

/** Returns the messages that the model is shown, without placeholders for tool results that have not arrived yet. */
function listShownMessages({ flat }: OpenSession['state']): readonly ClientMessage[] {
  const messages = toApiMessages(flat) as readonly ClientMessage[]
  if (listUnansweredCalls(flat).length === 0) return messages
  return messages.slice(0, messages.findLastIndex(({ role }) => role === 'assistant') + 1)
}

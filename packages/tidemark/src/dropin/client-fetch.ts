/**
 * Implements `tidemark.fetch`: a `fetch` for clients that send their whole conversation with every request. Requests
 * for messages become those of a session; everything else goes through unchanged.
 */
import { listUnansweredCalls, toApiMessages } from '@tidemark/core/context/flatten'
import type { Reply } from '@tidemark/core/engine/reply'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { clientConnections } from '../models/client-connection.ts'
import { NO_REDIRECTS } from '../models/redirects.ts'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { pauseIfLarge } from '../platform/node-ports.ts'
import type { OpenSession } from '../session/open-session.ts'
import { checkSessionId } from '../storage/home-paths.ts'
import { countReply, countResponse } from './client-billing.ts'
import {
  type ClientConversation,
  type ClientConversations,
  createClientConversations,
  type OpenedSession,
  type SessionChoice,
  type SessionSource,
} from './client-conversations.ts'
import {
  type ClientCall,
  describeThrown,
  exchangeManaged,
  exchangeObserved,
  type Fetch,
  withPings,
} from './client-exchange.ts'
import { matchHistory } from './client-history.ts'
import { readClientRequest } from './client-request.ts'
import { readBetaNames } from './take.ts'

/** Options of `tidemark.fetch`, with the session as the library knows it. */
export interface ClientFetchOptions {
  /**
   * The session: its id, an open session, or a function that returns the id for a request. Further conversations under
   * one id get `id.2`, `id.3` … Default: the id that the request names in a header or in its metadata, else a new one.
   */
  readonly session?: OpenedSession | SessionChoice
  /** `manage`: requests are those of the session. `observe`: no byte is changed, all is recorded. `off`: neither. */
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
  /** Called if a request that belongs to no session is passed on. */
  readonly onPassed: (reason: 'side-call' | 'failed' | 'unreadable', message: string) => void
  /** Called for the reply to a request that belongs to no session, or to none that has begun. */
  readonly onPassedReply: (reply: Reply) => void
}

export function createClientFetch(options: ClientFetchOptions, services: FetchServices): Fetch {
  checkFetchOptions('fetch', options)
  const { session, mode = 'manage', fetch: given = globalThis.fetch, pingSeconds = 5 } = options
  if (mode === 'off') return given
  // What is only observed goes out as the client made it.
  const upstream: Fetch =
    mode === 'observe' ? given : (input, init) => given(input, { ...NO_REDIRECTS, ...init })
  const idleMs = options.idleSeconds === undefined ? null : options.idleSeconds * 1000
  const conversations = createClientConversations(session, services, idleMs)
  const announceOther = createOtherNotice((message) => services.onPassed('unreadable', message))
  return async (input, init) => {
    const route = findRoute(input, init)
    if (route === null) announceOther(input, init)
    if (route === null) return given(input, init)
    const call = await readCall(input, init, upstream)
    if (call === null) return upstream(input, init)
    if (route === 'count') return countForClient(conversations, call)
    const { url, headers } = call
    const connection = clientConnections.getStore() ?? { url, headers, send: upstream }
    const answer = clientConnections.run(connection, () => answerClient(conversations, call, mode, services))
    return call.isStream && mode === 'manage'
      ? withPings(answer, pingSeconds * 1000, pingSeconds * 1000)
      : answer
  }
}

/** Throws `bad-option`, with the name of the function that got the options. */
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

type Route = 'messages' | 'count'

/** Returns what a request asks for; null for everything that goes through unchanged. */
export function findRoute(input: Parameters<Fetch>[0], init: Parameters<Fetch>[1]): Route | null {
  const path = findPostPath(input, init)
  if (path === null) return null
  if (path.endsWith('/v1/messages')) return 'messages'
  return path.endsWith('/v1/messages/count_tokens') ? 'count' : null
}

/** Returns the path of a request that sends something; null for others. */
function findPostPath(input: Parameters<Fetch>[0], init: Parameters<Fetch>[1]): string | null {
  const method = init?.method ?? (input instanceof Request ? input.method : 'GET')
  const url = input instanceof Request ? input.url : String(input)
  if (method.toUpperCase() !== 'POST') return null
  return URL.canParse(url) ? new URL(url).pathname : ''
}

/**
 * Returns a function that reports, once for each path, that requests of another API are passed on untouched: a client
 * that uses only that API is not managed at all.
 */
export function createOtherNotice(
  report: (message: string) => void,
): (input: Parameters<Fetch>[0], init: Parameters<Fetch>[1]) => void {
  const known = new Set<string>()
  return (input, init) => {
    const path = findPostPath(input, init)
    if (path === null || known.has(path) || known.size >= MAX_NOTICES) return
    known.add(path)
    report(
      `POST ${path} is no request of the Messages API: it is passed on untouched, and neither recorded nor counted, as are all like it.`,
    )
  }
}

/** Paths that are reported: some have an id in them. */
const MAX_NOTICES = 5

type ReadCall = ClientCall & { readonly isStream: boolean }

/** Reads the body of a request without using it up; null if it is no Messages request. */
async function readCall(
  input: Parameters<Fetch>[0],
  init: Parameters<Fetch>[1],
  upstream: Fetch,
): Promise<ReadCall | null> {
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
  const request =
    body === null ? null : readClientRequest(body, readBetaNames(headers.get('anthropic-beta') ?? ''))
  if (body === null || request === null) return null
  await pauseIfLarge(text)
  return {
    input,
    init,
    upstream,
    body,
    request,
    headers,
    url: isRequest ? input.url : String(input),
    signal: init?.signal ?? (isRequest ? input.signal : undefined),
    isStream: body.stream === true,
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

async function answerClient(
  conversations: ClientConversations,
  call: ReadCall,
  mode: 'manage' | 'observe',
  services: FetchServices,
): Promise<Response> {
  const conversation = await enterConversation(conversations, call, services)
  if (conversation === null) {
    const response = await call.upstream(call.input, call.init)
    return response.ok
      ? countResponse(response, (reply) => countPassed(conversations, call, reply, services))
      : response
  }
  const free = (): void => {
    conversation.isInFlight = false
  }
  call.signal?.addEventListener('abort', free, { once: true })
  try {
    return await (mode === 'observe' ? exchangeObserved : exchangeManaged)(conversation, call)
  } catch (thrown) {
    free()
    throw thrown
  }
}

/** Counts the reply to a request of no conversation, in the session that the request names or for itself. */
async function countPassed(
  conversations: ClientConversations,
  call: ReadCall,
  reply: Reply | null,
  { onPassedReply }: FetchServices,
): Promise<void> {
  if (reply === null) return
  const countLater = (begun: ClientConversation): void => void countReply(begun, reply, true)
  const owner = await conversations.findOwner(call, countLater).catch(() => null)
  if (owner === null) onPassedReply(reply)
  else await countReply(owner, reply)
}

/** Returns the conversation of a request; null if there is none, which is told. */
async function enterConversation(
  conversations: ClientConversations,
  call: ReadCall,
  { onPassed }: FetchServices,
): Promise<ClientConversation | null> {
  try {
    const conversation = await conversations.enter(call, call.request)
    if (conversation === null) onPassed('side-call', 'The request belongs to no conversation.')
    return conversation
  } catch (thrown) {
    onPassed('failed', `The session could not be opened: ${describeThrown(thrown)}`)
    return null
  }
}

/** Counts the tokens of the request that would be sent, so that a client does not compact what is compacted already. */
async function countForClient(conversations: ClientConversations, call: ReadCall): Promise<Response> {
  const { input, init, url, headers, upstream, request } = call
  const conversation = await conversations.find(call, request).catch(() => null)
  const state = conversation?.open.state
  if (conversation === null || state === undefined || state.view.rewrites.length === 0)
    return upstream(input, init)
  const match = matchHistory(conversation.open, request)
  if (!match.isKnown || match.divergesAt !== null) return upstream(input, init)
  const sent = new Headers(headers)
  sent.delete('content-length')
  const messages = [...listShownMessages(state), ...match.news]
  return upstream(url, {
    ...init,
    method: 'POST',
    headers: sent,
    body: JSON.stringify({ ...call.body, messages }),
  })
}

/** Returns the messages that the model is shown, without the results that stand in for those still to come. */
function listShownMessages({ flat }: OpenSession['state']): readonly object[] {
  const messages = toApiMessages(flat)
  if (listUnansweredCalls(flat).length === 0) return messages
  return messages.slice(0, messages.findLastIndex(({ role }) => role === 'assistant') + 1)
}

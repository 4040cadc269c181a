/** Compares what reaches the provider with the request of the client that it is sent for, on whichever way it goes. */
import { findRequestChanges, type RequestBody } from '../../test/drop-in/request-changes.ts'
import type { Fetch } from './client.ts'

/** The part of the middleware of the official client that is used here. */
type Middleware = (
  request: RequestInit & { readonly url: string },
  next: (request: RequestInit & { readonly url: string }) => Promise<Response>,
) => Promise<Response>

export interface RequestComparison {
  /** Returns how what was sent differs from the client's own requests, one sentence each. */
  readonly readChanges: () => readonly string[]
  /** Reads the requests of a client on their way into a `fetch`. */
  readonly watchClient: (fetch: Fetch) => Fetch
  /** Reads the requests of a client that takes middleware; to be the first in its list. */
  readonly clientMiddleware: Middleware
  /** Compares what is sent with the requests of the client that wait for an answer. */
  readonly watchProvider: (fetch: Fetch) => Fetch
}

/** `isRewritten`: whether the context has been cleared or compacted, so that the messages are others. */
export function createComparison(isRewritten: () => boolean): RequestComparison {
  const changes: string[] = []
  const waiting = new Set<RequestBody>()
  const readWhole = createThreadReader()
  // A proxy reports a compaction in a line of its output, which is read at some time before the next request.
  let judge = (): void => {}
  const judgeLast = (): void => {
    judge()
    judge = () => {}
  }
  const wait = async (body: unknown, answer: () => Promise<Response>): Promise<Response> => {
    const read = readRequest(body)
    const given = read === null ? null : readWhole(read)
    if (given !== null) waiting.add(given)
    try {
      return await answer()
    } finally {
      if (given !== null) waiting.delete(given)
    }
  }
  return {
    readChanges: () => {
      judgeLast()
      return changes
    },
    watchClient: (fetch) => (input, init) => wait(init?.body, () => fetch(input, init)),
    clientMiddleware: (request, next) => wait(request.body, () => next(request)),
    watchProvider: (fetch) => (input, init) => {
      judgeLast()
      const sent = readRequest(init?.body)
      // A call of the engine itself, as for a summary, has other output limits.
      const candidates = [...waiting].filter(({ max_tokens }) => max_tokens === sent?.max_tokens)
      judge = () => {
        const isOther = isRewritten()
        const found = candidates.map((given) => compare(given, sent as RequestBody, isOther))
        // Clients send several requests at the same time: what is sent belongs to the one that it is most like.
        const [least = []] = found.toSorted((one, other) => one.length - other.length)
        changes.push(...least)
      }
      return fetch(input, init)
    },
  }
}

function readRequest(body: unknown): RequestBody | null {
  const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : body
  if (typeof text !== 'string') return null
  const value = JSON.parse(text) as Partial<RequestBody>
  // Requests that count tokens have no output limit.
  return Array.isArray(value.messages) && value.max_tokens !== undefined ? (value as RequestBody) : null
}

/** A request that has only the messages after a response of a thread, with the other fields as the thread has them. */
interface LaterRequest extends RequestBody {
  readonly isLater?: true
}

/** Returns a function that adds what the provider knows of a thread to a request that has only what is new. */
function createThreadReader(): (request: RequestBody) => LaterRequest {
  let first: RequestBody | null = null
  return (request) => {
    const { thread, ...given } = request
    const isLater = Object(thread).previous_message_id != null && first !== null
    if (!isLater && thread !== undefined) first = given as RequestBody
    return isLater ? { ...first, ...(given as RequestBody), isLater: true } : (given as RequestBody)
  }
}

/** What is sent is always the whole conversation, and never names a thread. */
function compare(
  { isLater, ...given }: LaterRequest,
  sent: RequestBody,
  isRewritten: boolean,
): readonly string[] {
  const whole = given as RequestBody
  const messages = isLater === true ? sent.messages.slice(-whole.messages.length) : sent.messages
  return findRequestChanges(whole, { ...sent, messages }, { received: new Set(), isRewritten })
}

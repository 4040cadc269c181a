/** Compares what reaches the provider with the request of the client that it is sent for, on whichever way it goes. */
import { isDeepStrictEqual } from 'node:util'
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
      const candidates =
        sent === null ? [] : [...waiting].filter((given) => readLimit(given) === readLimit(sent))
      judge = () => {
        const isOther = isRewritten()
        const found = candidates.map((given) =>
          (isOfOpenai(given) ? compareOpenai : compare)(given, sent as RequestBody, isOther),
        )
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
  const isOfClaude = Array.isArray(value.messages) && value.max_tokens !== undefined
  return isOfClaude || isOfOpenai(value) ? (value as RequestBody) : null
}

/** Chat Completions has tools of a type; the Messages API has a limit with every request, which these clients do not set. */
function isOfOpenai({ input, messages, max_tokens }: Partial<RequestBody>): boolean {
  return input !== undefined || (Array.isArray(messages) && max_tokens === undefined)
}

function readLimit(body: RequestBody): unknown {
  return body.max_tokens ?? body.max_output_tokens ?? body.max_completion_tokens
}

/** A request of OpenAI's APIs is sent as it is until the context is rewritten, and keeps its fields and tools after that. */
function compareOpenai(given: RequestBody, sent: RequestBody, isRewritten: boolean): readonly string[] {
  const list = given.input === undefined ? 'messages' : 'input'
  // A request that names the one before is sent whole once the context was rewritten.
  const isChained = given.previous_response_id !== undefined && sent.previous_response_id === undefined
  const left = new Set([list, ...(isChained ? ['previous_response_id'] : [])])
  const names = new Set([...Object.keys(given), ...Object.keys(sent)])
  const fields = [...names]
    .filter((name) => !left.has(name) && !isDeepStrictEqual(readField(given, name), readField(sent, name)))
    .map((name) => `another ${name}: ${JSON.stringify(sent[name])?.slice(0, 200)}`)
  if (isRewritten) return fields
  const [wanted, whole] = [given[list], sent[list]].map(toItems)
  if (wanted === undefined || whole === undefined) return fields
  const shown = isChained ? whole.slice(-wanted.length) : whole
  const at = wanted.findIndex((item, index) => !isAsWritten(item, shown[index]))
  if (at === -1 && wanted.length === shown.length) return fields
  const place = at === -1 ? wanted.length : at
  const [one = '', other = ''] = [wanted[place], shown[place]].map((item) => JSON.stringify(item))
  let same = 0
  while (same < one.length && one[same] === other[same]) same += 1
  const [start, end] = [Math.max(0, same - 100), same + 200]
  return [...fields, `${list} ${place}: ${other.slice(start, end)} instead of ${one.slice(start, end)}`]
}

/** The engine may ask the provider for the reason of a cache miss. */
function readField(body: RequestBody, name: string): unknown {
  if (name !== 'prompt_cache_options') return body[name]
  const { comparison_response_id: _, ...options } = Object(body[name])
  return Object.keys(options).length === 0 ? undefined : options
}

/** A text alone is a list of one message. */
function toItems(list: unknown): readonly unknown[] {
  return Array.isArray(list) ? list.map(withoutMark) : [list]
}

/** The engine may mark the end of the system prompt for the cache, which makes a text a part. */
function withoutMark(item: unknown): unknown {
  const { role, content } = Object(item)
  if ((role !== 'system' && role !== 'developer') || !Array.isArray(content)) return item
  const parts = content.map(({ prompt_cache_breakpoint: _, ...part }) => part)
  return { ...Object(item), content: parts }
}

/** True if an item went out as the client wrote it. */
function isAsWritten(given: unknown, sent: unknown): boolean {
  if (isDeepStrictEqual(given, sent)) return true
  const { role, content } = Object(given)
  const isMarked = (role === 'system' || role === 'developer') && typeof content === 'string'
  return (
    isMarked &&
    isDeepStrictEqual({ ...Object(given), content: [{ type: 'input_text', text: content }] }, sent)
  )
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

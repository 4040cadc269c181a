/** What requests of clients of both of OpenAI's APIs have in common: whose conversation they are, and their own fields. */
import { type Block, isTextBlock } from '@tidemark/core/log/block'
import { isJsonObject, isObject, type Json, type JsonObject } from '@tidemark/core/log/json'
import type { ClientList, ClientMessage, ClientRequest } from '../providers/client-request.ts'
import type {
  EncodedRequest,
  HeaderReader,
  StreamFilter,
  WrittenRequest,
} from '../providers/provider-codec.ts'
import { OPENAI } from './openai-errors.ts'
import { SYSTEM_ROLE } from './request-settings.ts'

/** Fields of one request, which no later request repeats. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'stream',
  'stream_options',
  'metadata',
  'user',
  'safety_identifier',
])

/** Splits the fields beside model, tools and messages into those of this request and those of the conversation. */
export function splitFields(rest: JsonObject): Pick<ClientRequest, 'parameters' | 'ownFields'> {
  const fields = Object.entries(rest)
  return {
    parameters: Object.fromEntries(fields.filter(([name]) => !OWN_FIELDS.has(name))),
    ownFields: Object.fromEntries(fields.filter(([name]) => OWN_FIELDS.has(name))),
  }
}

/** Returns the parameter for the role of a client's system prompt; empty if it is the usual one. */
export function readSystemRole(first: Json | undefined, usual: string): JsonObject {
  const role = isJsonObject(first) ? first.role : undefined
  const isOther = (role === 'system' || role === 'developer') && role !== usual
  return isOther ? { [SYSTEM_ROLE]: role } : {}
}

/** Returns the blocks of a message of the system within a conversation; they keep its role if it is not the usual one. */
export function withSystemRole(blocks: readonly Block[], role: string, usual: string): readonly Block[] {
  if (role === usual) return blocks
  return blocks.map((block) =>
    isTextBlock(block) && block.origin === undefined
      ? { ...block, origin: { vendor: OPENAI, item: { role } } }
      : block,
  )
}

/** Splits a client's list as it wrote it where its system prompt ends, which has a message for each item. */
export function splitList(items: readonly JsonObject[] | string, system: readonly string[]): ClientList {
  if (typeof items === 'string') return { system: [], items }
  return { system: items.slice(0, system.length), items: items.slice(system.length) }
}

/**
 * The messages of the system at the beginning are the system prompt. What a part has beside its text, such as an image or a mark
 * for the cache, goes back with the client's own list.
 */
export function splitSystem(
  messages: readonly ClientMessage[],
): Pick<ClientRequest, 'messages'> & { readonly system: readonly string[] } {
  const first = messages.findIndex(({ role }) => role !== 'system')
  const count = first === -1 ? messages.length : first
  return { system: messages.slice(0, count).map(readPlainText), messages: messages.slice(count) }
}

function readPlainText({ content }: ClientMessage): string {
  if (typeof content === 'string') return content
  return content.map((block) => (isTextBlock(block) ? String(block.text) : `[${block.type}]`)).join('\n')
}

/** A conversation begins with a request that may go on: with tools or an answer. */
export function isSideCall({ tools, messages, continues }: ClientRequest): boolean {
  if (continues !== null) return true
  const hasTools = tools !== null && tools.length > 0
  return !hasTools && messages.every(({ role }) => role !== 'assistant')
}

const SESSION_HEADERS = ['x-tidemark-session', 'session-id', 'session_id', 'thread-id', 'x-session-id']
const SESSION_FIELDS = ['session_id', 'conversation_id']

export function readConversationNames(headers: HeaderReader, body: JsonObject): readonly string[] {
  const metadata = isObject(body.metadata) ? body.metadata : {}
  return [
    ...SESSION_HEADERS.map((name) => headers.get(name)),
    ...SESSION_FIELDS.map((name) => metadata[name]),
    body.prompt_cache_key,
  ].filter((value): value is string => typeof value === 'string' && value !== '')
}

export function writeRequest(engine: EncodedRequest, { ownFields }: ClientRequest): WrittenRequest {
  const added = JSON.stringify(ownFields).slice(1, -1)
  return { text: added === '' ? engine.text : `{${added},${engine.text.slice(1)}`, headers: engine.headers }
}

/** Every client of these APIs sends a bearer token, as do clients of other providers, which are asked before. */
export function hasAuthorization(headers: HeaderReader): boolean {
  return (headers.get('authorization') ?? '') !== ''
}

/** A comment of the stream: SDKs skip it, where an event that they do not know may make them throw. */
export const PING = ': ping\n\n'

/** Reasoning stays where it is: the client decides what it sends back. */
export const KEEPS_BYTES: StreamFilter<null> = { initial: null, step: (state, chunk) => [state, chunk] }

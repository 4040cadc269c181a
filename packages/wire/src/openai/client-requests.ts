/**
 * What the codecs of OpenAI's two APIs share for clients' requests: system prompt, fields of one request,
 * conversations, side calls.
 */
import { type Block, isTextBlock } from '@tidemark/core/log/block'
import { isJsonObject, isObject, type Json, type JsonObject } from '@tidemark/core/log/json'
import type { ClientMessage, ClientRequest, SplitClientList } from '../providers/client-request.ts'
import type {
  EncodedRequest,
  HeaderReader,
  RewrittenRequest,
  StreamFilter,
} from '../providers/provider-codec.ts'
import { OPENAI_VENDOR } from './openai-errors.ts'
import { SYSTEM_ROLE_PARAMETER } from './request-settings.ts'

/** Fields that belong to one request and are not repeated by later ones. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'stream',
  'stream_options',
  'metadata',
  'user',
  'safety_identifier',
])

/** Splits fields other than model, tools and messages into those of this request only and those of the whole conversation. */
export function splitRequestFields(rest: JsonObject): Pick<ClientRequest, 'parameters' | 'ownFields'> {
  const fields = Object.entries(rest)
  return {
    parameters: Object.fromEntries(fields.filter(([name]) => !OWN_FIELDS.has(name))),
    ownFields: Object.fromEntries(fields.filter(([name]) => OWN_FIELDS.has(name))),
  }
}

/** Returns the parameter `SYSTEM_ROLE_PARAMETER` with the role of the client's system prompt; empty if the role is the usual one. */
export function createRoleParameter(first: Json | undefined, usual: string): JsonObject {
  const role = isJsonObject(first) ? first.role : undefined
  const isOther = (role === 'system' || role === 'developer') && role !== usual
  return isOther ? { [SYSTEM_ROLE_PARAMETER]: role } : {}
}

/** Returns the blocks of a system message within a conversation. If its role is not the usual one, the blocks keep it. */
export function withSystemRole(blocks: readonly Block[], role: string, usual: string): readonly Block[] {
  if (role === usual) return blocks
  return blocks.map((block) =>
    isTextBlock(block) && block.origin === undefined
      ? { ...block, origin: { vendor: OPENAI_VENDOR, item: { role } } }
      : block,
  )
}

/** Splits a client's list at the end of its system prompt, whose texts are `system`, one for each item. Items stay as written. */
export function splitListAtSystemPrompt(
  items: readonly JsonObject[] | string,
  system: readonly string[],
): SplitClientList {
  if (typeof items === 'string') return { system: [], items }
  return { system: items.slice(0, system.length), items: items.slice(system.length) }
}

/**
 * Splits off the system messages at the beginning as system prompt. Only their text is read. Other content, such as an
 * image or a cache breakpoint, is kept in the client's own list, which is sent.
 */
export function splitSystemPrompt(
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

/** True if the request begins no conversation: it continues another one, or has neither tools nor an answer of the model. */
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

export function addClientFields(engine: EncodedRequest, { ownFields }: ClientRequest): RewrittenRequest {
  const added = JSON.stringify(ownFields).slice(1, -1)
  return { text: added === '' ? engine.text : `{${added},${engine.text.slice(1)}`, headers: engine.headers }
}

/**
 * True if the request has an `authorization` header, as clients of these APIs send with a key. Other providers' clients
 * may send it, too, so their codecs are asked first.
 */
export function hasAuthorization(headers: HeaderReader): boolean {
  return (headers.get('authorization') ?? '') !== ''
}

/** A comment in the stream, which SDKs ignore. An event of an unknown type may make an SDK throw. */
export const STREAM_PING = ': ping\n\n'

/** A filter that keeps reasoning: a client of these APIs decides itself what it sends back. */
export const UNCHANGED_STREAM_FILTER: StreamFilter<null> = {
  initial: null,
  step: (state, chunk) => [state, chunk],
}

/**
 * Handles requests of clients of the Messages API: tells their kind and session; reads system prompt, tools,
 * parameters, betas and conversation, with the client's cache markers removed and listed; and writes answers in the
 * format of the API.
 */
import { type Block, isBlock, isToolUse, type MessageContent } from '@tidemark/core/log/block'
import {
  findUnstableJsonText,
  formatJsonObject,
  isObject,
  type JsonObject,
  parseJson,
  splitJsonMembers,
  splitJsonObject,
  withJsonMember,
} from '@tidemark/core/log/json'
import { stripMessageMarkers } from '@tidemark/core/request/build-request'
import type { ClientMarker } from '@tidemark/core/request/cache-markers'
import { replaceLoneSurrogates } from '@tidemark/core/text/truncate-text'
import { encodeSseFrame } from '../http/sse.ts'
import type { ClientMessage, ClientRequest } from '../providers/client-request.ts'
import type {
  ClientCodec,
  EncodedRequest,
  HeaderReader,
  ReceivedRequest,
  RewrittenRequest,
} from '../providers/provider-codec.ts'
import { toAnthropicErrorType } from './anthropic-errors.ts'
import { BETA_HEADER, VERSION_HEADER } from './headers.ts'
import { removeThinking, thinkingFilter } from './hide-thinking.ts'
import { encodeReplyFrames } from './reply-frames.ts'
import { encodeResponseBody } from './response-body.ts'
import { anthropicSpelling } from './spelling.ts'

export const anthropicClientCodec: ClientCodec = {
  findRouteKind(path) {
    if (path.endsWith('/v1/messages')) return 'reply'
    return path.endsWith('/v1/messages/count_tokens') ? 'count' : null
  },
  // A credential of Anthropic must not reach another provider, even if the client omits the version header.
  isOwnClient: (headers) =>
    headers.get(VERSION_HEADER) !== null ||
    headers.get('x-api-key') !== null ||
    headers.get('authorization')?.startsWith('Bearer sk-ant-') === true,
  readRequest: readMessagesRequest,
  writeRequest,
  writeCount: (body, messages) => ({ ...body, messages: messages as unknown as readonly JsonObject[] }),
  betaHeader: BETA_HEADER,
  bodyHeaders: ['content-type', 'accept', BETA_HEADER],
  argumentsAs: 'value',
  readConversationNames,
  isSideCall,
  ping: encodeSseFrame({ event: 'ping', data: '{"type": "ping"}' }),
  createErrorBody: (status, message) => ({
    type: 'error',
    error: { type: toAnthropicErrorType(status), message },
  }),
  writeErrorEvent: (body) => encodeSseFrame({ event: 'error', data: toErrorData(body) }),
  writeReply: (reply, isStream) =>
    isStream ? encodeReplyFrames(reply).map(encodeSseFrame).join('') : encodeResponseBody(reply),
  removeThinking,
  thinkingFilter,
}

function writeRequest(engine: EncodedRequest, { ownFields }: ClientRequest): RewrittenRequest {
  const added = JSON.stringify(ownFields).slice(1, -1)
  const text = added === '' ? engine.text : `{${added},${engine.text.slice(1)}`
  return { text, headers: { [BETA_HEADER]: null, ...engine.headers } }
}

/** True if the request begins no conversation: it continues another one, or has no tools, no answer and no cache markers. */
function isSideCall({ tools, messages, ttl, continues }: ClientRequest): boolean {
  if (continues !== null) return true
  const hasTools = tools !== null && tools.length > 0
  return !hasTools && ttl === undefined && messages.every(({ role }) => role !== 'assistant')
}

const SESSION_HEADERS = [
  'x-tidemark-session',
  'x-claude-code-session-id',
  'x-claude-session-id',
  'x-session-id',
]
const SESSION_FIELDS = ['session_id', 'conversation_id']

function readConversationNames(headers: HeaderReader, body: JsonObject): readonly string[] {
  const metadata = isObject(body.metadata) ? body.metadata : {}
  const user = typeof metadata.user_id === 'string' ? metadata.user_id : ''
  return [
    ...SESSION_HEADERS.map((name) => headers.get(name)),
    ...SESSION_FIELDS.map((name) => metadata[name]),
    /_session_([\w-]+)$/.exec(user)?.[1],
    /"session_id":"([\w-]+)"/.exec(user)?.[1],
    body.prompt_cache_key,
  ].filter((value): value is string => typeof value === 'string' && value !== '')
}

/** Returns the body of an error response as the data of an error event, in one line. */
function toErrorData(text: string): string {
  const body = parseJson(text)
  // Text that is not an error of the API comes from a proxy between here and the provider.
  return JSON.stringify(
    isObject(body) && body.type === 'error'
      ? body
      : { type: 'error', error: { type: 'api_error', message: text } },
  )
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['stream', 'metadata'])

/**
 * Betas of message threads. They are removed, because a request of a thread cannot be rewritten; the log has the
 * conversation.
 */
const THREAD_BETA = /^message-threads-/

/**
 * Returns the parts of a request body, with the betas of the header among the parameters. Null if the body is not a
 * Messages request that the engine can handle.
 */
function readMessagesRequest({ body, headers, text }: ReceivedRequest): ClientRequest | null {
  const betas = splitBetas(headers.get(BETA_HEADER) ?? '')
  if (typeof body.model !== 'string') return null
  const { model, system, tools, messages, thread, ...rest } = replaceLoneSurrogates(body) as JsonObject
  const texts = readSystemTexts(system)
  const list = readMessages(messages)
  const isToolList = tools === undefined || (Array.isArray(tools) && tools.every(isObject))
  if (texts === null || list === null || !isToolList) return null
  const fields = Object.entries(rest)
  const continues =
    isObject(thread) && typeof thread.previous_message_id === 'string' ? thread.previous_message_id : null
  const kept = betas.filter((beta) => !THREAD_BETA.test(beta))
  const isDelta = continues !== null
  const markers = listMarkers(rest.cache_control, tools, system, list)
  const last = markers.at(-1)
  return {
    model: String(model),
    system: isDelta && system === undefined ? null : texts,
    tools: isDelta && tools === undefined ? null : ((tools ?? []) as readonly JsonObject[]),
    messages: list.map((message) => stripMessageMarkers({ message, origins: [] }).message as ClientMessage),
    parameters: {
      ...Object.fromEntries(fields.filter(([name]) => !OWN_FIELDS.has(name) && name !== 'cache_control')),
      ...(kept.length === 0 ? {} : { betas: [...kept] }),
    },
    ownFields: Object.fromEntries(fields.filter(([name]) => OWN_FIELDS.has(name))),
    markers,
    ttl: last === undefined ? undefined : (last.ttl ?? '5m'),
    isStream: rest.stream === true,
    continues,
    findExactBlock: text === undefined ? null : createExactBlocks(text),
  }
}

function readSystemTexts(system: unknown): readonly string[] | null {
  if (system === undefined || system === null) return []
  if (typeof system === 'string') return [system]
  if (!Array.isArray(system)) return null
  const texts = system.map((block: unknown) =>
    isBlock(block) && block.type === 'text' && typeof block.text === 'string' ? block.text : null,
  )
  return texts.every((text) => text !== null) ? texts : null
}

const ROLES: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system'])

function readMessages(messages: unknown): readonly ClientMessage[] | null {
  if (!Array.isArray(messages) || messages.length === 0) return null
  const isContent = (content: unknown): content is MessageContent =>
    typeof content === 'string' || (Array.isArray(content) && content.every(isBlock))
  const isMessage = (message: unknown): message is ClientMessage =>
    isObject(message) && ROLES.has(message.role) && isContent(message.content ?? [])
  return messages.every(isMessage)
    ? messages.map((message) => ({ ...message, content: message.content ?? [] }))
    : null
}

/** Lists the cache markers of a request: the top-level marker first, then those on blocks in the order of the prompt. */
function listMarkers(
  automatic: unknown,
  tools: unknown,
  system: unknown,
  messages: readonly ClientMessage[],
): readonly ClientMarker[] {
  const markers: ClientMarker[] = []
  const toObjects = (list: unknown): readonly JsonObject[] =>
    Array.isArray(list) ? (list as readonly unknown[]).filter(isObject).map((item) => item as JsonObject) : []
  if (isObject(automatic)) markers.push({ zone: 'end', ...toMarker(automatic as JsonObject) })
  for (const tool of toObjects(tools)) {
    const control = findControl(tool)
    if (control !== null)
      markers.push({ zone: 'tools', name: String(tool.name ?? tool.type), ...toMarker(control) })
  }
  for (const [index, block] of toObjects(system).entries()) {
    const control = findControl(block)
    if (control !== null) markers.push({ zone: 'system', index, ...toMarker(control) })
  }
  for (const message of messages)
    for (const block of typeof message.content === 'string' ? [] : message.content) {
      const control = findControl(block)
      if (control !== null) markers.push({ zone: 'messages', block: stripBlock(block), ...toMarker(control) })
    }
  return markers
}

/** Returns a marker as the client wrote it, with the lifetime and scope that it requests. */
function toMarker(control: JsonObject): Pick<ClientMarker, 'ttl' | 'scope' | 'control'> {
  return { ...anthropicSpelling.readMarker(control), control }
}

/** Returns the marker of a block, or the last marker inside a tool result; null if there is none. */
function findControl(block: Readonly<Record<string, unknown>>): JsonObject | null {
  const { cache_control: control, type, content } = block
  if (isObject(control)) return control as JsonObject
  if (type !== 'tool_result' || !Array.isArray(content)) return null
  return (
    (content as readonly unknown[])
      .filter(isObject)
      .map(findControl)
      .findLast((found) => found !== null) ?? null
  )
}

function stripBlock(block: Block): Block {
  const stripped = stripMessageMarkers({ message: { role: 'user', content: [block] }, origins: [] }).message
  return (stripped.content as readonly Block[])[0] ?? block
}

function splitBetas(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

// The exact text of tool calls in the body of a request. Parsing and stringifying their inputs would change numbers
// such as `1.0`, long integers and repeated keys, which the client itself would send unchanged.

/**
 * Returns a function that finds the exact text of a call in the text of a body, as `findExactBlock` of a request. It is
 * fastest for calls near the end, and for calls in the order of the body.
 */
function createExactBlocks(body: string): (block: Block) => string | undefined {
  let last = -1
  return (block) => {
    if (!isToolUse(block)) return undefined
    const id = JSON.stringify(block.id)
    const later = last === -1 ? -1 : findIdMember(body, id, last, 'indexOf')
    const at = later === -1 ? findIdMember(body, id, body.length, 'lastIndexOf') : later
    if (at === -1) return undefined
    last = at
    // Fast path: most clients write the same text as JSON.stringify.
    const plain = `"input":${JSON.stringify(block.input)}`
    if (body.slice(at, at + plain.length + NAME_ROOM).includes(plain)) return undefined
    const input = splitJsonMembers(body, at).findLast(({ key }) => key === 'input')?.text
    if (input === undefined || findUnstableJsonText(input) === undefined) return undefined
    // Another object may have the same id, and invalid Unicode may have been replaced, so the values are compared.
    if (JSON.stringify(parseJson(input)) !== JSON.stringify(block.input)) return undefined
    return formatJsonObject(withJsonMember(splitJsonObject(JSON.stringify(block)), 'input', input))
  }
}

const ID_KEY = /"id"\s*:\s*$/

/**
 * Returns where the member `id` with this value begins; -1 if there is none. Text inside a string cannot match: its
 * quotes are escaped.
 */
function findIdMember(body: string, id: string, from: number, search: 'indexOf' | 'lastIndexOf'): number {
  const step = search === 'indexOf' ? 1 : -1
  for (let at = body[search](id, from); at !== -1; at = at + step < 0 ? -1 : body[search](id, at + step)) {
    const start = Math.max(0, at - MOST_SPACE)
    const key = ID_KEY.exec(body.slice(start, at))
    if (key !== null) return start + key.index
  }
  return -1
}

/** Maximum characters between the id of a call and its input. The name of the tool is between them. */
const NAME_ROOM = 200

/** Characters before the value that are searched for its key. */
const MOST_SPACE = 60

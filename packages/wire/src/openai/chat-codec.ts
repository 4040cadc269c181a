/** Chat Completions as a codec, for models and for clients that speak it. One codec for each dialect. */
import type { Reply } from '@tidemark/core/engine/reply'
import { type Block, isTextBlock, isToolUse, PROVIDER_ITEM_TYPE, toBlocks } from '@tidemark/core/log/block'
import { isJsonObject, type Json, type JsonObject, parseJson } from '@tidemark/core/log/json'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { replaceLoneSurrogates } from '@tidemark/core/text/truncate-text'
import { encodeSseFrame } from '../http/sse.ts'
import type { ClientMessage, ClientRequest } from '../providers/client-request.ts'
import type { ClientCodec, ProviderCodec, ReceivedRequest } from '../providers/provider-codec.ts'
import { encodeChatCall } from './chat-request.ts'
import { CUSTOM_TOOL_ORIGIN, createChatDecoder, decodeChatBody } from './chat-stream.ts'
import {
  addClientFields,
  createRoleParameter,
  hasAuthorization,
  isSideCall,
  readConversationNames,
  STREAM_PING,
  splitListAtSystemPrompt,
  splitRequestFields,
  splitSystemPrompt,
  UNCHANGED_STREAM_FILTER,
  withSystemRole,
} from './client-requests.ts'
import { DIALECTS, type Dialect } from './dialects.ts'
import { OPENAI_VENDOR, readOpenaiFailure, toOpenaiErrorBody } from './openai-errors.ts'
import { keepNonObjectArguments, withCallInput } from './output-blocks.ts'
import { LIMIT_FIELD_PARAMETER } from './request-settings.ts'

/** Asks a server to report usage at the end of a stream. Without this field, there is none. */
const USAGE_OPTIONS: JsonObject = { stream_options: { include_usage: true } }

export function createChatCodec(dialect: Dialect): ProviderCodec {
  return {
    name: dialect.name === 'openai' ? 'openai-chat' : `openai-chat (${dialect.name})`,
    vendor: dialect.name,
    title: 'Chat Completions',
    baseUrl: 'https://api.openai.com/v1',
    paths: { reply: '/chat/completions' },
    createHeaders: ({ secret }) => ({
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
    }),
    encode(call, options) {
      const fields =
        options.fields?.stream === true ? { ...USAGE_OPTIONS, ...options.fields } : options.fields
      return encodeChatCall(call, fields === undefined ? options : { ...options, fields }, dialect)
    },
    toBody: (payload) =>
      parseJson(runStepsAtOnce(encodeChatCall({ payload }, {}, dialect)).text) as JsonObject,
    toBodyHeaders: () => ({}),
    decode: createChatDecoder(dialect),
    decodeBody: (text) => decodeChatBody(text, dialect),
    toFailure: readOpenaiFailure,
    client: createChatClient(dialect),
  }
}

export const chatCodec: ProviderCodec = createChatCodec(DIALECTS.openai)

function createChatClient(dialect: Dialect): ClientCodec {
  return {
    findRouteKind: (path) => (path.endsWith('/chat/completions') ? 'reply' : null),
    isOwnClient: hasAuthorization,
    readRequest: (given) => readRequest(given, dialect),
    writeRequest: addClientFields,
    writeCount: (body) => body,
    betaHeader: null,
    bodyHeaders: ['content-type', 'accept'],
    argumentsAs: 'text',
    readConversationNames,
    isSideCall,
    mayRefuseInStream: true,
    ping: STREAM_PING,
    createErrorBody: toOpenaiErrorBody,
    writeErrorEvent: (body) => encodeSseFrame({ data: body.replaceAll('\n', ' ') }),
    writeReply: (reply, isStream) => (isStream ? writeStream(reply) : JSON.stringify(toCompletion(reply))),
    removeThinking: (body) => body,
    thinkingFilter: UNCHANGED_STREAM_FILTER,
  }
}

function readRequest({ body }: ReceivedRequest, dialect: Dialect): ClientRequest | null {
  const { model, messages, tools, ...rest } = replaceLoneSurrogates(body) as JsonObject
  const isToolList =
    tools === undefined || tools === null || (Array.isArray(tools) && tools.every(isJsonObject))
  if (typeof model !== 'string' || !Array.isArray(messages) || !isToolList) return null
  if (!messages.every(isJsonObject) || (typeof rest.n === 'number' && rest.n > 1)) return null
  const exactCalls = new Map<string, string>()
  const { system, messages: conversation } = splitSystemPrompt(joinSides(messages, exactCalls, dialect))
  return {
    model,
    system,
    tools: (tools ?? []) as readonly JsonObject[],
    messages: conversation,
    ...splitRequestFields({
      ...rest,
      ...createRoleParameter(messages[0], dialect.system),
      ...readLimitField(rest, dialect),
    }),
    isStream: rest.stream === true,
    markers: [],
    ttl: undefined,
    continues: null,
    list: splitListAtSystemPrompt(messages, system),
    findExactBlock: ({ id }) => exactCalls.get(String(id)),
  }
}

/** A server may know only the older of the two names for the largest output, so the client's stays. */
function readLimitField({ max_tokens: most }: JsonObject, { maxOutput }: Dialect): JsonObject {
  return typeof most === 'number' && maxOutput !== 'max_tokens'
    ? { [LIMIT_FIELD_PARAMETER]: 'max_tokens' }
    : {}
}

/** Joins tool messages and the user message after them to one message with the role `user`. */
function joinSides(
  messages: readonly JsonObject[],
  exactCalls: Map<string, string>,
  dialect: Dialect,
): readonly ClientMessage[] {
  const joined: { role: ClientMessage['role']; content: Block[]; isResults: boolean }[] = []
  for (const message of messages) {
    const { role } = message
    const side = role === 'assistant' ? 'assistant' : role === 'tool' || role === 'user' ? 'user' : 'system'
    const last = joined.at(-1)
    const isLeading = joined.every((each) => each.role === 'system')
    const read = side === 'assistant' ? readAnswer(message, exactCalls, dialect) : readInput(message)
    const content =
      side === 'system' && !isLeading ? withSystemRole(read, String(role), dialect.system) : read
    if (side === 'user' && last?.role === 'user' && last.isResults) {
      last.content.push(...content)
      last.isResults = role === 'tool'
    } else joined.push({ role: side, content: [...content], isResults: role === 'tool' })
  }
  return joined.map(({ role, content }) => ({ role, content }))
}

function readInput({ role, content, tool_call_id: call }: JsonObject): readonly Block[] {
  if (role === 'tool')
    return [
      {
        type: 'tool_result',
        tool_use_id: String(call),
        content: typeof content === 'string' ? content : readParts(content),
      },
    ]
  return readParts(content)
}

function readParts(content: Json | undefined): readonly Block[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isJsonObject).map(readPart) : []
}

/** Reads a content part. A part with fields besides its text is kept whole, so that it is sent again unchanged. */
function readPart(part: JsonObject): Block {
  const { type, text, image_url: image } = part
  if (type === 'text' && typeof text === 'string' && Object.keys(part).length === 2)
    return { type: 'text', text }
  if (typeof part.refusal === 'string') return { type: 'text', text: part.refusal }
  const origin = { vendor: OPENAI_VENDOR, item: part }
  if (type === 'text' && typeof text === 'string') return { type: 'text', text, origin }
  const url = isJsonObject(image) ? image.url : undefined
  if (type !== 'image_url' || typeof url !== 'string') return { type: PROVIDER_ITEM_TYPE, origin }
  const [, media, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
  const source =
    media === undefined ? { type: 'url', url } : { type: 'base64', media_type: media, data: data ?? '' }
  return { type: 'image', source, origin }
}

function readAnswer(
  message: JsonObject,
  exactCalls: Map<string, string>,
  dialect: Dialect,
): readonly Block[] {
  const { tool_calls: calls } = message
  const thought = dialect.reasoning === null ? undefined : message[dialect.reasoning]
  const details = dialect.details === null ? undefined : message[dialect.details]
  const item =
    dialect.details === null || details === undefined ? {} : { item: { [dialect.details]: details } }
  const reasoning: readonly Block[] =
    typeof thought === 'string' && thought !== ''
      ? [{ type: 'thinking', thinking: thought, origin: { vendor: dialect.name, ...item } }]
      : []
  const answered = (Array.isArray(calls) ? calls.filter(isJsonObject) : []).map((call) => {
    if (isJsonObject(call.custom)) return toCustomCall(call, call.custom)
    const fn = isJsonObject(call.function) ? call.function : {}
    const written = typeof fn.arguments === 'string' ? fn.arguments : ''
    const named = { type: 'tool_use', id: String(call.id), name: String(fn.name), input: {} }
    const { block, raw } = withCallInput(keepNonObjectArguments(named, written), written)
    if (raw !== undefined) exactCalls.set(String(block.id), raw)
    return block
  })
  const said = readParts(message.content ?? message.refusal ?? undefined)
  return [...reasoning, ...said, ...answered]
}

/** Reads a call of a custom tool, whose input is free text. */
function toCustomCall(call: JsonObject, { name, input }: JsonObject): Block {
  return {
    type: 'tool_use',
    id: String(call.id),
    name: String(name),
    input: { input: String(input) },
    origin: CUSTOM_TOOL_ORIGIN,
  }
}

// Writes a reply that the engine itself gives, as a chat completion.

function toCompletion({ message }: Reply): JsonObject {
  const { id, model, usage } = message
  const choice = { index: 0, message: toMessage(message.content), logprobs: null, finish_reason: 'stop' }
  return {
    id,
    object: 'chat.completion',
    created: 0,
    model,
    choices: [choice],
    ...(usage === undefined ? {} : { usage: usage as JsonObject }),
  }
}

function toMessage(content: Reply['message']['content']): JsonObject {
  const blocks = toBlocks(content)
  const calls = blocks.filter(isToolUse).map(({ id, name, input }) => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }))
  return {
    role: 'assistant',
    content: blocks
      .filter(isTextBlock)
      .map(({ text }) => text)
      .join('\n\n'),
    refusal: null,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}

function writeStream(reply: Reply): string {
  const { id, model, usage } = reply.message
  const head = { id, object: 'chat.completion.chunk', created: 0, model }
  const { tool_calls: calls, ...delta } = toMessage(reply.message.content)
  const numbered = Array.isArray(calls)
    ? { tool_calls: calls.filter(isJsonObject).map((call, index): JsonObject => ({ index, ...call })) }
    : {}
  const chunks: readonly JsonObject[] = [
    { ...head, choices: [{ index: 0, delta: { ...delta, ...numbered }, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    ...(usage === undefined ? [] : [{ ...head, choices: [], usage: usage as JsonObject }]),
  ]
  return [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]']
    .map((data) => encodeSseFrame({ data }))
    .join('')
}

/** The Responses API as a codec, for models and for clients that speak it. */
import type { Reply } from '@tidemark/core/engine/reply'
import { toBlocks } from '@tidemark/core/log/block'
import { isJsonObject, type Json, type JsonObject, parseJson } from '@tidemark/core/log/json'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { replaceLoneSurrogates } from '@tidemark/core/text/truncate-text'
import { encodeSseFrame } from '../http/sse.ts'
import type { ClientMessage, ClientRequest } from '../providers/client-request.ts'
import type { ClientCodec, ProviderCodec, ReceivedRequest } from '../providers/provider-codec.ts'
import { readClientItems } from './client-items.ts'
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
} from './client-requests.ts'
import {
  createCompactedResponseId,
  createCompactionBody,
  createCompactionItem,
  isCompactionTrigger,
  NO_COMPACTION_USAGE,
  readCompactedPlace,
  readCompactedResponseId,
} from './compaction-items.ts'
import { toInputItems } from './input-items.ts'
import { OPENAI_VENDOR, readOpenaiFailure, toOpenaiErrorBody } from './openai-errors.ts'
import { encodeResponsesCall } from './responses-request.ts'
import { createResponsesDecoder, decodeResponsesBody } from './responses-stream.ts'

const client: ClientCodec = {
  findRouteKind(path) {
    if (path.endsWith('/responses')) return 'reply'
    if (path.endsWith('/responses/compact')) return 'compact'
    return path.endsWith('/responses/input_tokens') ? 'count' : null
  },
  isOwnClient: hasAuthorization,
  readRequest,
  writeRequest: addClientFields,
  writeCount({ previous_response_id: _, ...body }, messages) {
    const given = Array.isArray(body.input) ? body.input : []
    const end = given.findIndex((item) => !isSystemMessage(item))
    return { ...body, input: [...given.slice(0, end === -1 ? given.length : end), ...listItems(messages)] }
  },
  betaHeader: null,
  bodyHeaders: ['content-type', 'accept'],
  argumentsAs: 'text',
  readConversationNames,
  isSideCall,
  storesResponses: true,
  mayRefuseInStream: true,
  ping: STREAM_PING,
  createErrorBody: toOpenaiErrorBody,
  writeErrorEvent: (body) => encodeSseFrame({ event: 'error', data: JSON.stringify(toErrorEvent(body)) }),
  writeReply: (reply, isStream) =>
    isStream ? writeEvents(toResponse(reply)) : JSON.stringify(toResponse(reply)),
  writeCompaction(answer) {
    if (answer.kind === 'compact') return JSON.stringify(createCompactionBody(answer))
    const response = createResponse(createCompactedResponseId(answer.place), String(answer.body.model), [
      createCompactionItem(answer.place),
    ])
    const whole = { ...response, usage: NO_COMPACTION_USAGE }
    return answer.body.stream === true ? writeEvents(whole) : JSON.stringify(whole)
  },
  removeThinking: (body) => body,
  thinkingFilter: UNCHANGED_STREAM_FILTER,
}

/** `account`: name of the account to which encrypted reasoning is bound; without it, only the vendor counts. */
export function createResponsesCodec(account?: string): ProviderCodec {
  return {
    name: 'openai-responses',
    vendor: OPENAI_VENDOR,
    title: 'the Responses API',
    baseUrl: 'https://api.openai.com/v1',
    paths: { reply: '/responses', count: '/responses/input_tokens', compact: '/responses/compact' },
    createHeaders: ({ secret }) => ({
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
    }),
    encode: encodeResponsesCall,
    toBody: (payload) => parseJson(runStepsAtOnce(encodeResponsesCall({ payload }, {})).text) as JsonObject,
    toBodyHeaders: () => ({}),
    decode: createResponsesDecoder(account),
    decodeBody: (text) => decodeResponsesBody(text, account),
    toFailure: readOpenaiFailure,
    client,
  }
}

export const responsesCodec: ProviderCodec = createResponsesCodec()

/** Reads a request. Null if it names a conversation at the provider, whose messages were never seen here. */
function readRequest({ body }: ReceivedRequest): ClientRequest | null {
  const clean = replaceLoneSurrogates(body) as JsonObject
  const { model, input, tools, previous_response_id: previous, ...rest } = clean
  const asks = Array.isArray(input) && isCompactionTrigger(input.at(-1))
  const listed = asks ? input.slice(0, -1) : input
  const at = Array.isArray(listed) ? listed.findLastIndex(isOurCompaction) : -1
  if (Array.isArray(listed) && at !== -1) return readCompactedRequest(clean, listed, at, asks)
  // A request to compact a stored response may have no input.
  const read = readClientItems(listed ?? (typeof previous === 'string' ? [] : undefined))
  const isToolList =
    tools === undefined || tools === null || (Array.isArray(tools) && tools.every(isJsonObject))
  if (typeof model !== 'string' || read === null || !isToolList || rest.conversation != null) return null
  const compacted = readCompactedResponseId(previous)
  const continues = compacted?.record ?? (typeof previous === 'string' ? previous : null)
  const { system, messages } =
    continues === null ? splitSystemPrompt(read.messages) : { system: null, messages: read.messages }
  return {
    model,
    system,
    tools: continues !== null && tools === undefined ? null : ((tools ?? []) as readonly JsonObject[]),
    messages,
    ...splitRequestFields({
      ...rest,
      ...createRoleParameter(Array.isArray(listed) ? listed[0] : undefined, 'developer'),
    }),
    isStream: rest.stream === true,
    markers: [],
    ttl: undefined,
    continues,
    ...(read.namesItems ? { namesItems: true as const } : {}),
    ...(system === null
      ? {}
      : { list: splitListAtSystemPrompt(listed as readonly JsonObject[] | string, system) }),
    ...(compacted === null ? {} : { compacted }),
    findExactBlock: ({ id }) => read.exactCalls.get(String(id)),
    ...(asks ? { asksCompaction: true as const } : {}),
  }
}

function isSystemMessage(item: Json): boolean {
  return isJsonObject(item) && (item.role === 'developer' || item.role === 'system')
}

function isOurCompaction(item: Json): boolean {
  return isJsonObject(item) && readCompactedPlace(item) !== null
}

/** Reads a request with a compaction item of Tidemark at `at`, which stands for the log up to a record. */
function readCompactedRequest(
  body: JsonObject,
  items: readonly Json[],
  at: number,
  asks: boolean,
): ClientRequest | null {
  const item = items[at]
  const place = isJsonObject(item) ? readCompactedPlace(item) : null
  const before = readRequest({ body: { ...body, input: items.slice(0, at) }, headers: NO_HEADERS })
  const after = readClientItems(items.slice(at + 1))
  if (place === null || before === null || after === null) return null
  return {
    ...before,
    ...(after.namesItems ? { namesItems: true as const } : {}),
    list: { system: before.list?.system ?? null, items: null },
    messages: after.messages,
    continues: place.record,
    compacted: { ...place, messages: before.messages },
    findExactBlock: ({ id }) => after.exactCalls.get(String(id)),
    ...(asks ? { asksCompaction: true as const } : {}),
  }
}

const NO_HEADERS = { get: () => null }

function listItems(messages: readonly ClientMessage[]): readonly JsonObject[] {
  return messages.flatMap((message, index) => toInputItems({ message }, messages[index - 1]))
}

function toErrorEvent(text: string): JsonObject {
  const body = parseJson(text)
  const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : { message: text }
  const { message, code = null, param = null } = error
  return { type: 'error', sequence_number: 0, code, message: message ?? text, param }
}

// Writes a reply that the engine itself gives, in the format of a response.

function toResponse({ message }: Reply): JsonObject {
  const items = toInputItems(
    { message: { role: 'assistant', content: toBlocks(message.content) } },
    undefined,
  )
  return {
    ...createResponse(message.id, message.model, items),
    ...(message.usage === undefined ? {} : { usage: message.usage as JsonObject }),
  }
}

function createResponse(id: string, model: string, items: readonly JsonObject[]): JsonObject {
  return {
    id,
    object: 'response',
    created_at: 0,
    status: 'completed',
    model,
    output: items.map((item, index) => ({ id: `item_${index}`, status: 'completed', ...item })),
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    error: null,
    incomplete_details: null,
  }
}

/** Returns the events of a stream with a response that is already complete. */
function writeEvents(response: JsonObject): string {
  const output = (response.output as readonly JsonObject[]) ?? []
  const events: readonly JsonObject[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    ...output.flatMap((item, index) => listItemEvents(item, index)),
    { type: 'response.completed', response },
  ]
  return events
    .map((event, index) => ({ ...event, sequence_number: index }))
    .map((event: JsonObject) => encodeSseFrame({ event: String(event.type), data: JSON.stringify(event) }))
    .join('')
}

function listItemEvents(item: JsonObject, index: number): readonly JsonObject[] {
  const at = { output_index: index, item_id: item.id ?? '' }
  const parts = Array.isArray(item.content) ? item.content.filter(isJsonObject) : []
  return [
    { type: 'response.output_item.added', output_index: index, item: startItem(item) },
    ...parts.flatMap((part, content): readonly JsonObject[] => [
      { type: 'response.content_part.added', ...at, content_index: content, part: { ...part, text: '' } },
      {
        type: 'response.output_text.delta',
        ...at,
        content_index: content,
        delta: part.text ?? '',
        logprobs: [],
      },
      {
        type: 'response.output_text.done',
        ...at,
        content_index: content,
        text: part.text ?? '',
        logprobs: [],
      },
      { type: 'response.content_part.done', ...at, content_index: content, part },
    ]),
    { type: 'response.output_item.done', output_index: index, item },
  ]
}

function startItem(item: JsonObject): JsonObject {
  return item.type === 'message' ? { ...item, content: [] } : item
}

/**
 * Reads a whole Messages request as clients send it with every call: system prompt, tools, parameters, betas and the whole
 * conversation. The client's own cache markers are taken off the messages and listed.
 */
import { type Block, isBlock, type MessageContent } from '@tidemark/core/log/block'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { stripMessageMarkers } from '@tidemark/core/request/build-request'
import type { ClientMarker } from '@tidemark/core/request/cache-markers'
import { replaceLoneSurrogates } from '@tidemark/core/text/truncate-text'
import type { ClientMessage } from '../session/messages.ts'

export interface ClientRequest {
  readonly model: string
  /** The texts of the blocks of the system prompt; null if the request has none because its thread has it. */
  readonly system: readonly string[] | null
  readonly tools: readonly JsonObject[] | null
  readonly messages: readonly ClientMessage[]
  /** Fields that describe how the model answers, with the betas of the header. */
  readonly parameters: JsonObject
  /** Fields of this one request, which no later request repeats: `stream` and `metadata`. */
  readonly ownFields: JsonObject
  readonly markers: readonly ClientMarker[]
  /** The lifetime that the client's last cache marker asks for; undefined if the request has no markers. */
  readonly ttl: string | undefined
  /** Id of the response that the request continues if it sends only what is new; null if it has all messages. */
  readonly continues: string | null
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['stream', 'metadata'])

/** Betas of message threads, which would keep a request from being rewritten; the conversation is in the log anyway. */
const THREAD_BETA = /^message-threads-/

/** Returns the parts of a request body; null if it is no Messages request that the engine can take. */
export function readClientRequest(body: unknown, betas: readonly string[]): ClientRequest | null {
  if (!isObject(body) || typeof body.model !== 'string') return null
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
    ttl: last === undefined ? undefined : typeof last.control.ttl === 'string' ? last.control.ttl : '5m',
    continues,
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

/** Lists the cache markers of a request: that of the request itself, then in the order of the prompt. */
function listMarkers(
  automatic: unknown,
  tools: unknown,
  system: unknown,
  messages: readonly ClientMessage[],
): readonly ClientMarker[] {
  const markers: ClientMarker[] = []
  const toObjects = (list: unknown): readonly JsonObject[] =>
    Array.isArray(list) ? (list as readonly unknown[]).filter(isObject).map((item) => item as JsonObject) : []
  if (isObject(automatic)) markers.push({ zone: 'end', control: automatic as JsonObject })
  for (const tool of toObjects(tools)) {
    const control = findControl(tool)
    if (control !== null) markers.push({ zone: 'tools', name: String(tool.name ?? tool.type), control })
  }
  for (const [index, block] of toObjects(system).entries()) {
    const control = findControl(block)
    if (control !== null) markers.push({ zone: 'system', index, control })
  }
  for (const message of messages)
    for (const block of typeof message.content === 'string' ? [] : message.content) {
      const control = findControl(block)
      if (control !== null) markers.push({ zone: 'messages', block: stripBlock(block), control })
    }
  return markers
}

/** Returns the marker of a block, or the last one of the blocks in a tool result; null if there is none. */
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

/**
 * Reads a whole Messages request as hosts send it with every call: system prompt, tools, parameters, betas and the whole
 * conversation. The host's own cache markers are taken off; only the lifetime that they ask for is kept.
 */
import {
  type Block,
  isBlock,
  isObject,
  type JsonObject,
  type MessageContent,
  replaceLoneSurrogates,
  stripMessageMarkers,
} from '@tidemark/core'
import type { HostMessage } from './messages.ts'

export interface HostRequest {
  readonly model: string
  /** The texts of the blocks of the system prompt; null if the request has none because its thread has it. */
  readonly system: readonly string[] | null
  readonly tools: readonly JsonObject[] | null
  readonly messages: readonly HostMessage[]
  /** Fields that describe how the model answers, with the betas of the header. */
  readonly parameters: JsonObject
  /** Fields of this one request, which no later request repeats: `stream` and `metadata`. */
  readonly ownFields: JsonObject
  /** The lifetime that the host's last cache marker asks for; undefined if the request has no markers. */
  readonly ttl: string | undefined
  /** Id of the response that the request continues if it sends only what is new; null if it has all messages. */
  readonly continues: string | null
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['stream', 'metadata'])

/** Betas of message threads, which would keep a request from being rewritten; the conversation is in the log anyway. */
const THREAD_BETA = /^message-threads-/

/** Returns the parts of a request body; null if it is no Messages request that the engine can take. */
export function readHostRequest(body: unknown, betas: readonly string[]): HostRequest | null {
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
  return {
    model: String(model),
    system: isDelta && system === undefined ? null : texts,
    tools: isDelta && tools === undefined ? null : ((tools ?? []) as readonly JsonObject[]),
    messages: list.map((message) => stripMessageMarkers({ message, origins: [] }).message as HostMessage),
    parameters: {
      ...Object.fromEntries(fields.filter(([name]) => !OWN_FIELDS.has(name) && name !== 'cache_control')),
      ...(kept.length === 0 ? {} : { betas: [...kept] }),
    },
    ownFields: Object.fromEntries(fields.filter(([name]) => OWN_FIELDS.has(name))),
    ttl: findMarkerTtl([rest.cache_control, tools, system, ...list.map(({ content }) => content)]),
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

function readMessages(messages: unknown): readonly HostMessage[] | null {
  if (!Array.isArray(messages) || messages.length === 0) return null
  const isContent = (content: unknown): content is MessageContent =>
    typeof content === 'string' || (Array.isArray(content) && content.every(isBlock))
  const isMessage = (message: unknown): message is HostMessage =>
    isObject(message) && ROLES.has(message.role) && isContent(message.content ?? [])
  return messages.every(isMessage)
    ? messages.map((message) => ({ ...message, content: message.content ?? [] }))
    : null
}

/** Returns the lifetime of the last cache marker in these parts of a request; undefined if there is none. */
function findMarkerTtl(parts: readonly unknown[]): string | undefined {
  let found: string | undefined
  const search = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) search(each)
    else if (isObject(value)) {
      const marker = value.type === 'ephemeral' ? value : value.cache_control
      if (isObject(marker)) found = typeof marker.ttl === 'string' ? marker.ttl : '5m'
      if (value.type === 'tool_result') search((value as Block).content)
    }
  }
  for (const part of parts) search(part)
  return found
}

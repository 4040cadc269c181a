/** The message object of a reply, whole or just begun, apart from its content. */
import { type AssistantMessage, isObject, type Json, type JsonObject, type Usage } from '@tidemark/core'

export interface Head {
  /** Without content, and without usage unless both totals are there. */
  readonly message: AssistantMessage
  /** Figures that make no usage yet. */
  readonly figures: JsonObject
}

/** Null where it is no message: without an id the parts of a reply could not be told to belong together. */
export function readHead(value: Json | undefined): Head | null {
  if (!isObject(value)) return null
  const { usage, id, model, ...fields } = value
  if (typeof id !== 'string' || id === '' || typeof model !== 'string') return null
  const figures = isObject(usage) ? usage : {}
  const message: AssistantMessage = { id, ...fields, role: 'assistant', model, content: [] }
  return isUsage(figures) ? { message: { ...message, usage: figures }, figures: {} } : { message, figures }
}

function isUsage(figures: JsonObject): figures is JsonObject & Usage {
  return typeof figures.input_tokens === 'number' && typeof figures.output_tokens === 'number'
}

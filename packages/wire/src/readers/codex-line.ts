/**
 * Parses a line of a Codex rollout (Codex's session log). A line is `{timestamp, type, payload}`. Until September 2025,
 * the first line was a header and the others were response items without this envelope.
 */
import { isObject } from '@tidemark/core/log/json'

export type JsonFields = { readonly [field: string]: unknown }

export interface CodexLine {
  readonly type: string
  readonly timestamp: string | null
  readonly payload: JsonFields
}

/** Types of response items that older Codex versions logged without the envelope `{timestamp, type, payload}`. */
const BARE_ITEM_TYPES = new Set([
  'message',
  'reasoning',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'local_shell_call',
  'web_search_call',
])

/** Parses a line of a Codex rollout. Returns null if the line is in no known format. */
export function parseCodexLine(value: JsonFields): CodexLine | null {
  const timestamp = typeof value.timestamp === 'string' ? value.timestamp : null
  const { type, payload } = value
  if (typeof type === 'string' && isObject(payload)) return { type, timestamp, payload }
  if (isBareHeader(value)) return { type: 'session_meta', timestamp, payload: value }
  if (isBareState(value)) return { type: 'state', timestamp, payload: value }
  return isBareItem(value) ? { type: 'response_item', timestamp, payload: value } : null
}

function isBareHeader({ type, id, timestamp }: JsonFields): boolean {
  return type === undefined && typeof id === 'string' && typeof timestamp === 'string'
}

function isBareState(value: JsonFields): boolean {
  return typeof value.record_type === 'string'
}

function isBareItem({ type, payload, uuid }: JsonFields): boolean {
  return typeof type === 'string' && BARE_ITEM_TYPES.has(type) && payload === undefined && uuid === undefined
}

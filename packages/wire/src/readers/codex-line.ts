/**
 * Parses a line of a Codex rollout (Codex's session log). A line is `{timestamp, type, payload}`. Until September 2025,
 * the first line was a header and the others were response items without this envelope.
 */
import { isObject } from '@tidemark/core'

export type JsonFields = { readonly [field: string]: unknown }

export interface CodexLine {
  readonly type: string
  readonly timestamp: string | null
  readonly payload: JsonFields
}

/**
 * Line types that identify a log as a Codex rollout. `parseCodexLine` also accepts other types if the line has a
 * payload.
 */
const CODEX_LINE_TYPES = new Set([
  'session_meta',
  'turn_context',
  'response_item',
  'event_msg',
  'compacted',
  'world_state',
  'inter_agent_communication',
  'inter_agent_communication_metadata',
  'token_usage_record',
  'rollout_reference',
])

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

/** Checks whether a log line was written by Codex and not by another program. */
export function isCodexLine(value: JsonFields): boolean {
  if (typeof value.uuid === 'string') return false
  if (isObject(value.payload)) return typeof value.type === 'string' && CODEX_LINE_TYPES.has(value.type)
  return isBareHeader(value) || isBareState(value) || isBareItem(value)
}

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

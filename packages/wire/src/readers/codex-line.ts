/**
 * A line of a Codex rollout, in one shape. Today a line is `{timestamp, type, payload}`; until September 2025 the first
 * line was a bare header and the others were bare response items.
 */
import { isObject } from '@tidemark/core'

export type Fields = { readonly [field: string]: unknown }

export interface CodexLine {
  readonly type: string
  readonly timestamp: string | null
  readonly payload: Fields
}

/** Line types that Codex writes. There may be more: `parseCodexLine` accepts any line with a payload. */
const LINE_TYPES = new Set([
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

/** Item types that were written without an envelope. */
const BARE_TYPES = new Set([
  'message',
  'reasoning',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'local_shell_call',
  'web_search_call',
])

/** Whether the line is recognisable as Codex's, against those of other programs. */
export function isCodexLine(value: Fields): boolean {
  if (typeof value.uuid === 'string') return false
  if (isObject(value.payload)) return typeof value.type === 'string' && LINE_TYPES.has(value.type)
  return isBareHeader(value) || isState(value) || isBareItem(value)
}

/** Null if it is not a line of a rollout. */
export function codexLineOf(value: Fields): CodexLine | null {
  const timestamp = typeof value.timestamp === 'string' ? value.timestamp : null
  const { type, payload } = value
  if (typeof type === 'string' && isObject(payload)) return { type, timestamp, payload }
  if (isBareHeader(value)) return { type: 'session_meta', timestamp, payload: value }
  if (isState(value)) return { type: 'state', timestamp, payload: value }
  return isBareItem(value) ? { type: 'response_item', timestamp, payload: value } : null
}

function isBareHeader({ type, id, timestamp }: Fields): boolean {
  return type === undefined && typeof id === 'string' && typeof timestamp === 'string'
}

function isState(value: Fields): boolean {
  return typeof value.record_type === 'string'
}

function isBareItem({ type, payload, uuid }: Fields): boolean {
  return typeof type === 'string' && BARE_TYPES.has(type) && payload === undefined && uuid === undefined
}

/**
 * The usage and stop reasons of the fake provider in tests: usage as flat fields, all optional, and neutral stop reasons. The
 * field names and stop reasons of the Messages API are understood too.
 */
import { isObject } from '../src/log/json.ts'
import { isReplyStop, type ReplyReport, type ReplyStop, type TokenUsage } from '../src/log/reply-report.ts'

/** Usage as tests write it. */
export type TestUsage = Partial<TokenUsage> & {
  /** Tokens written to the cache for the short lifetime, and for the long one. */
  readonly short?: number
  readonly long?: number
}

const OTHER_NAMES: Readonly<Record<string, string>> = {
  input_tokens: 'input',
  output_tokens: 'output',
  cache_read_input_tokens: 'read',
  cache_creation_input_tokens: 'short',
  cache_deleted_input_tokens: 'removed',
}

const OTHER_STOPS: Readonly<Record<string, ReplyStop>> = {
  end_turn: 'done',
  stop_sequence: 'sequence',
  tool_use: 'tools',
  max_tokens: 'cut',
  pause_turn: 'paused',
  model_context_window_exceeded: 'window',
  refusal: 'refused',
  compaction: 'compacted',
}

/** Creates usage from flat fields; missing ones are 0. */
export function createUsage(given: TestUsage): TokenUsage {
  const { short = 0, long = 0, ...fields } = toTestUsage(given)
  return { input: 0, read: 0, writes: { short, long }, output: 0, ...fields }
}

/** Renames usage fields of the Messages API to those of the fake provider, and drops null fields. */
export function toTestUsage(given: object): TestUsage {
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [OTHER_NAMES[name] ?? name, value]),
  )
}

/** Reads usage and stop reason from a message of the fake provider, as a codec does for a real one. */
export function readTestReport(message: { readonly [field: string]: unknown }): ReplyReport {
  const { usage, stop_reason: word } = message
  return {
    ...(isObject(usage) ? { usage: createUsage(usage) } : {}),
    ...(typeof word === 'string' ? { stop: readTestStop(word) } : {}),
  }
}

function readTestStop(word: string): ReplyStop {
  return isReplyStop(word) ? word : (OTHER_STOPS[word] ?? 'other')
}

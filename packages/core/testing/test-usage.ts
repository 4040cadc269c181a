/**
 * What the fake provider of these tests reports: usage as flat fields, all optional, and neutral words for the end of a
 * reply. It also understands the words of the Messages API, in which tests of applications may be written.
 */
import { isObject } from '../src/log/json.ts'
import { isReplyStop, type ModelReport, type ReplyStop, type TokenUsage } from '../src/log/model-report.ts'

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

export function createUsage(given: TestUsage): TokenUsage {
  const { short = 0, long = 0, ...fields } = toTestUsage(given)
  return { input: 0, read: 0, writes: { short, long }, output: 0, ...fields }
}

/** Returns usage with the names of the fake provider. */
export function toTestUsage(given: object): TestUsage {
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [OTHER_NAMES[name] ?? name, value]),
  )
}

/** Reads the report of the fake provider from its message. */
export function readTestReport(message: { readonly [field: string]: unknown }): ModelReport {
  const { usage, stop_reason: word } = message
  return {
    ...(isObject(usage) ? { usage: createUsage(usage) } : {}),
    ...(typeof word === 'string' ? { stop: readTestStop(word) } : {}),
  }
}

function readTestStop(word: string): ReplyStop {
  return isReplyStop(word) ? word : (OTHER_STOPS[word] ?? 'other')
}

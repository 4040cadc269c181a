/** Builds Codex rollouts for tests, line by line, and describes what a reader makes of them. */
import type { Damage } from '@tidemark/core/log/decode-log'
import type { SessionRecord, UserRecord } from '@tidemark/core/log/record'
import { createLogReader } from '../src/readers/log-format.ts'
import type { LogFormat, LogMeta, RecordWithLine } from '../src/readers/log-reader.ts'

type Payload = Readonly<Record<string, unknown>>

export function line(type: string, payload: Payload, timestamp = '2026-01-02T03:04:05.000Z'): string {
  return JSON.stringify({ timestamp, type, payload })
}

export function session(id: string, more: Payload = {}): string {
  return line('session_meta', { id, cwd: '/projects/boat', cli_version: '0.1.0', ...more })
}

export function turn(model: string): string {
  return line('turn_context', { model, cwd: '/projects/boat' })
}

export function item(type: string, payload: Payload): string {
  return line('response_item', { type, ...payload })
}

export function event(type: string, payload: Payload = {}): string {
  return line('event_msg', { type, ...payload })
}

export function message(role: string, text: string): string {
  return item('message', {
    role,
    content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }],
  })
}

export function call(id: string, name = 'shell'): string {
  return item('function_call', { name, arguments: '{"command":"ls"}', call_id: id })
}

export function output(id: string, text = 'done'): string {
  return item('function_call_output', { call_id: id, output: text })
}

export interface Tokens {
  readonly input: number
  readonly cached?: number
  readonly output: number
}

/** Usage of a call, with totals that continue from `before`. */
export function count(last: Tokens, before: Tokens = { input: 0, output: 0 }): string {
  const total = {
    input: last.input + before.input,
    cached: (last.cached ?? 0) + (before.cached ?? 0),
    output: last.output + before.output,
  }
  return event('token_count', { info: { total_token_usage: usage(total), last_token_usage: usage(last) } })
}

function usage({ input, cached = 0, output }: Tokens): Payload {
  return {
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: output,
    reasoning_output_tokens: 0,
    total_tokens: input + output,
  }
}

export interface ReadLogResult {
  readonly records: readonly RecordWithLine[]
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
}

export function readAll(lines: readonly string[], format: LogFormat = 'codex'): ReadLogResult {
  const reader = createLogReader(format)
  const records = lines.flatMap((text) => reader.readLine(text))
  const { records: last, ...end } = reader.finish()
  return { records: [...records, ...last], ...end }
}

/** One line for each record: its line number, type, content, and the response it is part of. */
export function describeRecords(read: readonly RecordWithLine[]): readonly string[] {
  const responses: string[] = []
  return read.flatMap(({ record, line: at }) => {
    const said = describeRecord(record)
    if (said === null) return []
    if (record.type !== 'assistant') return [`${at} ${said}`]
    const { message: answer } = record as SessionRecord & {
      message: { id: string; usage?: { input_tokens: number } }
    }
    if (!responses.includes(answer.id)) responses.push(answer.id)
    return [`${at} ${said} [${responses.indexOf(answer.id) + 1}: ${answer.usage?.input_tokens ?? '?'}]`]
  })
}

function describeRecord(record: SessionRecord): string | null {
  if (record.type === 'system') return 'boundary'
  if (record.type !== 'user' && record.type !== 'assistant') return null
  const { message: said, isMeta, isCompactSummary } = record as UserRecord
  const texts = Array.isArray(said.content) ? said.content.map(blockText) : [said.content]
  const mark = isCompactSummary === true ? ' summary' : isMeta === true ? ' meta' : ''
  return `${record.type}${mark}: ${texts.join(', ')}`
}

function blockText(block: Readonly<Record<string, unknown>>): string {
  const { type, text, id, tool_use_id: answered } = block
  return typeof text === 'string'
    ? text
    : [type, id ?? answered].filter((part) => part !== undefined).join(' ')
}

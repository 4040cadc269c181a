/** Small logs and notes for the tests of the examiner: raw lines, as the program would have written them. */

import { type Answer, examine, type Question } from './examiner.ts'

/** A log of Claude Code, one chain of records. Every method returns the log, so that a session reads top to bottom. */
export class ClaudeLog {
  readonly lines: string[] = []
  readonly #cwd: string
  #parent: string | null = null
  #count = 0

  constructor(cwd = '/srv/shop') {
    this.#cwd = cwd
  }

  /** A record with a place on the branch. Fields given here win. */
  record(fields: object): this {
    this.#count += 1
    const uuid = `record-${this.#count}`
    const timestamp = new Date(Date.UTC(2026, 2, 9, 9) + this.#count * 1000).toISOString()
    const place = { uuid, parentUuid: this.#parent, isSidechain: false, timestamp }
    const record = { ...place, cwd: this.#cwd, sessionId: 'exam', version: '2.1.36', ...fields }
    this.#parent = record.uuid
    return this.raw(record)
  }

  /** A record without a place, such as a queue operation. */
  raw(fields: object): this {
    this.lines.push(JSON.stringify(fields))
    return this
  }

  user(content: unknown, fields: object = {}): this {
    return this.record({ type: 'user', message: { role: 'user', content }, ...fields })
  }

  /** A call with its result. */
  call(
    name: string,
    input: object,
    text = 'done',
    result: { isError?: boolean; fields?: object } = {},
  ): this {
    const id = `call-${this.#count}`
    const block = { type: 'tool_result', tool_use_id: id, content: text, is_error: result.isError ?? false }
    return this.start(name, input, id).user([block], result.fields)
  }

  /** A call that is still without a result. */
  start(name: string, input: object, id = `call-${this.#count}`): this {
    const content = [{ type: 'tool_use', id, name, input }]
    const usage = { input_tokens: 10, output_tokens: 10 }
    const message = { id: `response-${id}`, type: 'message', role: 'assistant', model: 'claude-opus-4-6' }
    return this.record({ type: 'assistant', message: { ...message, content, usage } })
  }

  bash(command: string, text = '', isError = false): this {
    return this.call('Bash', { command }, text, { isError })
  }
}

/** A rollout of Codex. */
export class CodexLog {
  readonly lines: string[] = []
  #count = 0

  constructor(cwd = '/srv/shop') {
    this.#add('session_meta', { id: 'session', cwd })
  }

  user(text: string): this {
    return this.#add('response_item', {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text }],
    })
  }

  call(name: string, input: object, output: string): this {
    this.#count += 1
    const call = { call_id: `call-${this.#count}`, name, arguments: JSON.stringify(input) }
    this.#add('response_item', { type: 'function_call', ...call })
    return this.#add('response_item', { type: 'function_call_output', call_id: call.call_id, output })
  }

  patch(input: string, output: string): this {
    this.#count += 1
    const call = { call_id: `call-${this.#count}`, name: 'apply_patch', input }
    this.#add('response_item', { type: 'custom_tool_call', ...call })
    return this.#add('response_item', { type: 'custom_tool_call_output', call_id: call.call_id, output })
  }

  #add(type: string, payload: object): this {
    this.lines.push(JSON.stringify({ timestamp: '2026-03-09T09:14:02.000Z', type, payload }))
    return this
  }
}

/** The items of one question that were judged at all. */
export function ask(
  question: Question,
  log: { readonly lines: readonly string[] },
  notes: string,
): Partial<Answer> {
  const judged = Object.entries(examine(log.lines, notes)[question])
  return Object.fromEntries(judged.filter(([, items]) => items.length > 0))
}

export const state = (...lines: string[]) =>
  ['# Current state', '_What is open._', '', ...lines, '', '# Worklog'].join('\n')
export const files = (...lines: string[]) => ['# Files and functions', ...lines].join('\n')
export const workflow = (...lines: string[]) => ['# Workflow', ...lines].join('\n')
export const errors = (...lines: string[]) => ['# Errors and corrections', ...lines].join('\n')

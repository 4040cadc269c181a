/** Codex's rollout as the examiner of the notes sees it: one branch, calls and results as `response_item` records. */

import {
  type ExamCall,
  type ExamLog,
  type ExamResult,
  type Fields,
  isNotice,
  type TypedText,
  toContentText,
  toFields,
  toText,
} from './exam-records.ts'

export function readCodexLog(records: readonly Fields[]): ExamLog {
  const results = new Map<unknown, ExamResult>()
  for (const { payload } of records) {
    const { type, call_id: id, output } = toFields(payload)
    if (typeof type === 'string' && type.endsWith('_call_output')) results.set(id, toResult(output))
  }
  const calls: ExamCall[] = []
  const typed: TypedText[] = []
  let cwd = ''
  for (const record of records) {
    const payload = toFields(record.payload)
    if (record.type === 'session_meta' || record.type === 'turn_context') cwd = toText(payload.cwd) || cwd
    if (record.type !== 'response_item') continue
    if (payload.type === 'message' && payload.role === 'user') typed.push(...readMessage(payload))
    const result = results.get(payload.call_id)
    const call = result === undefined ? null : toCall(payload, cwd, result)
    if (call !== null) calls.push(call)
  }
  return { calls, typed }
}

function readMessage(payload: Fields): readonly TypedText[] {
  const text = toContentText(payload.content).trim()
  return text === '' || isNotice(text) ? [] : [{ kind: 'prompt', text }]
}

function toCall(payload: Fields, cwd: string, result: ExamResult): ExamCall | null {
  const id = toText(payload.call_id)
  const name = toText(payload.name)
  switch (payload.type) {
    case 'function_call': {
      const input = parseArguments(payload.arguments)
      return { id, name, input, cwd: toText(input.workdir) || cwd, result }
    }
    case 'custom_tool_call':
      return { id, name, input: { input: payload.input }, cwd, result }
    case 'local_shell_call': {
      const action = toFields(payload.action)
      return {
        id,
        name: 'local_shell',
        input: action,
        cwd: toText(action.working_directory) || cwd,
        result,
      }
    }
    default:
      return null
  }
}

function parseArguments(value: unknown): Fields {
  try {
    return toFields(JSON.parse(toText(value)))
  } catch {
    return {}
  }
}

function toResult(output: unknown): ExamResult {
  const fields = toFields(output)
  const text = toContentText(output) || toContentText(fields.content)
  return { text, isError: fields.success === false ? true : undefined, isUnfinished: false }
}

/**
 * Logs in which one field of one record has another type than expected: whatever it is, the log can be read, inspected,
 * compacted and summarized in notes.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TidemarkError } from '@tidemark/core/errors'
import { isFullRun } from '@tidemark/core/testing'
import { expect, it } from 'vitest'
import { compactLog } from '../src/compact/compact-log.ts'
import { findNamedLogs, inspectFiles } from '../src/inspect/inspect-files.ts'
import { exportLog } from '../src/logs/export-log.ts'
import { createLogNotes } from '../src/logs/log-notes.ts'
import { readLog } from '../src/logs/read-log.ts'

type Value = null | boolean | number | string | readonly Value[] | { readonly [field: string]: Value }

/** Values to put in place of a field. `undefined` leaves it out. */
const WRONG: readonly (Value | undefined)[] = [
  undefined,
  null,
  7,
  'text',
  true,
  [],
  {},
  [null],
  [7],
  ['text'],
  [{}],
  { a: null },
]

const LONG = `1→${'const value = 1; '.repeat(200)}`

const use = (id: string, name: string, input: Value): Value => ({ type: 'tool_use', id, name, input })
const result = (id: string, content: Value, more: object = {}): Value => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...more,
})
const assistant = (id: string, content: Value, more: object = {}): { [field: string]: Value } => ({
  type: 'assistant',
  requestId: 'r1',
  message: {
    id,
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content,
    stop_reason: 'tool_use',
    usage: {
      input_tokens: 10,
      output_tokens: 20,
      cache_creation_input_tokens: 5,
      cache_read_input_tokens: 900,
      cache_creation: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 0 },
      server_tool_use: { web_search_requests: 1 },
      service_tier: 'standard',
    },
    ...more,
  },
})
const user = (content: Value, more: object = {}): { [field: string]: Value } => ({
  type: 'user',
  message: { role: 'user', content },
  ...more,
})

const CLAUDE_CODE: readonly { [field: string]: Value }[] = [
  { type: 'summary', summary: 'A title', leafUuid: 'u1' },
  user('Build the thing.', { origin: { kind: 'human' }, userType: 'external', gitBranch: 'main' }),
  assistant('m1', [
    { type: 'thinking', thinking: 'Let me see.', signature: 'abc' },
    { type: 'text', text: 'I ask first.' },
    use('c1', 'AskUserQuestion', {
      questions: [{ question: 'Which?', header: 'H', options: [{ label: 'One', description: 'd' }] }],
    }),
  ]),
  user([result('c1', 'User has answered your questions: "Which?"="One".')], {
    toolUseResult: {
      questions: [{ question: 'Which?', options: [{ label: 'One' }] }],
      answers: { 'Which?': 'One' },
      annotations: { 'Which?': { notes: 'really' } },
    },
    sourceToolAssistantUUID: 'u2',
  }),
  assistant('m2', [use('c2', 'Bash', { command: 'npm test', description: 'Tests' })]),
  user([result('c2', 'Exit code 1\nfailed', { is_error: true })], {
    toolUseResult: { stdout: '', stderr: 'failed', interrupted: false, backgroundTaskId: 'b1' },
  }),
  assistant('m3', [
    use('c3', 'Edit', { file_path: '/app/a.ts', old_string: 'a', new_string: 'b', replace_all: false }),
    use('c4', 'TodoWrite', { todos: [{ content: 'Do it', status: 'pending', activeForm: 'Doing' }] }),
  ]),
  user([result('c3', [{ type: 'text', text: 'edited' }])], {
    toolUseResult: {
      filePath: '/app/a.ts',
      oldString: 'a',
      newString: 'b',
      structuredPatch: [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ['-a', '+b'] }],
    },
  }),
  user([result('c4', 'ok')], { toolUseResult: { oldTodos: [], newTodos: [{ content: 'Do it' }] } }),
  { type: 'attachment', attachment: { type: 'queued_command', prompt: 'Also this.', commandMode: 'prompt' } },
  {
    type: 'attachment',
    attachment: { type: 'file', filename: '/app/b.ts', content: { type: 'text', file: { content: 'x' } } },
  },
  {
    type: 'attachment',
    attachment: { type: 'plan_file_reference', planFilePath: '/p', planContent: 'Plan' },
  },
  { type: 'attachment', attachment: { type: 'task_status', status: 'running', items: { a: 'b' } } },
  { type: 'attachment', attachment: { type: 'invoked_skills', skills: [{ name: 's', content: 'c' }] } },
  assistant('m4', [use('c5', 'Read', { file_path: '/app/b.ts', offset: 1, limit: 5 })]),
  user(
    [
      result('c5', [
        { type: 'text', text: LONG },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aaaa' } },
      ]),
    ],
    { toolUseResult: { type: 'text', file: { filePath: '/app/b.ts', content: 'x', numLines: 1 } } },
  ),
  assistant('m5', [use('c6', 'Task', { subagent_type: 'x', prompt: 'Go', description: 'd' })]),
  user([result('c6', 'done')], { toolUseResult: { agentId: 'a1', status: 'completed', content: [] } }),
  { type: 'queue-operation', operation: 'enqueue', content: 'Waiting one.' },
  { type: 'system', subtype: 'turn_duration', content: 'x', level: 'info', durationMs: 3 },
  { type: 'system', subtype: 'api_error', error: { status: 529 }, retryAttempt: 1 },
  {
    type: 'system',
    subtype: 'microcompact_boundary',
    microcompactMetadata: {
      trigger: 'auto',
      preTokens: 10,
      tokensSaved: 2,
      compactedToolIds: ['c2'],
      clearedAttachmentUUIDs: [],
    },
  },
  {
    type: 'system',
    subtype: 'compact_boundary',
    logicalParentUuid: 'u15',
    compactMetadata: {
      trigger: 'auto',
      preTokens: 100,
      postTokens: 20,
      preservedMessages: { anchorUuid: 'u20', uuids: [] },
      clearedThinking: ['m1'],
    },
  },
  user('This session is being continued. Summary: things.', { isCompactSummary: true }),
  user([
    { type: 'text', text: 'Go on.' },
    { type: 'document', source: { type: 'text', data: 'Doc' } },
  ]),
  assistant('m6', [{ type: 'text', text: 'Done.' }], { stop_reason: 'end_turn' }),
  { type: 'progress', data: { type: 'hook_progress', hookName: 'SessionStart:x' } },
  { type: 'cost-state', totalCostUSD: 1, modelUsage: { a: { costUSD: 1, inputTokens: 2 } } },
  { type: 'file-history-snapshot', messageId: 'u1', snapshot: { trackedFileBackups: {} } },
].map((line, index) => ({
  ...line,
  uuid: `u${index}`,
  parentUuid: index === 0 ? null : `u${index - 1}`,
  sessionId: 's',
  cwd: '/app',
  version: '2.0.1',
  isSidechain: false,
  timestamp: new Date(Date.UTC(2026, 2, 9) + index * 1000).toISOString(),
}))

const item = (payload: object): { [field: string]: Value } => ({
  type: 'response_item',
  payload: payload as Value,
})
const CODEX: readonly { [field: string]: Value }[] = [
  {
    type: 'session_meta',
    payload: {
      id: 's1',
      cwd: '/app',
      cli_version: '0.1.0',
      git: { branch: 'main' },
      instructions: 'Be good.',
    },
  },
  { type: 'turn_context', payload: { model: 'gpt-5.5', cwd: '/app', effort: 'high' } },
  item({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Build the thing.' }] }),
  { type: 'event_msg', payload: { type: 'user_message', message: 'Build the thing.', images: [] } },
  item({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'x' }),
  item({ type: 'function_call', name: 'shell', arguments: '{"command":["ls"]}', call_id: 'c1' }),
  item({ type: 'function_call_output', call_id: 'c1', output: '{"output":"a","metadata":{"exit_code":1}}' }),
  item({ type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin Patch', call_id: 'c2' }),
  item({ type: 'custom_tool_call_output', call_id: 'c2', output: 'rejected by user' }),
  item({ type: 'function_call', name: 'update_plan', arguments: '{"plan":[{"step":"a"}]}', call_id: 'c3' }),
  item({ type: 'function_call_output', call_id: 'c3', output: 'Plan updated' }),
  {
    type: 'event_msg',
    payload: {
      type: 'token_count',
      info: {
        total_token_usage: { input_tokens: 9, cached_input_tokens: 1, output_tokens: 2, total_tokens: 11 },
        last_token_usage: { input_tokens: 9, cached_input_tokens: 1, output_tokens: 2, total_tokens: 11 },
        model_context_window: 200000,
      },
    },
  },
  item({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }),
  { type: 'compacted', payload: { message: 'Summary.', replacement_history: [] } },
  item({ type: 'message', role: 'user', content: [{ type: 'input_text', text: LONG }] }),
  item({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Yes.' }] }),
].map((line, index) => ({ timestamp: new Date(Date.UTC(2026, 2, 9) + index * 1000).toISOString(), ...line }))

/** Lists the places of a value, each as the way from its root. */
function listPlaces(
  value: Value,
  way: readonly (string | number)[] = [],
): readonly (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [way]
  const inner = Object.entries(value).flatMap(([key, part]) =>
    listPlaces(part as Value, [...way, Array.isArray(value) ? Number(key) : key]),
  )
  return way.length === 0 ? inner : [way, ...inner]
}

function replaceAt(value: Value, [key, ...rest]: readonly (string | number)[], by: Value | undefined): Value {
  if (key === undefined) return by as Value
  if (Array.isArray(value))
    return value.map((part, index) => (index === key ? replaceAt(part, rest, by) : part))
  const fields = value as { readonly [field: string]: Value }
  return { ...fields, [key]: replaceAt(fields[key] ?? null, rest, by) }
}

/** Does everything that is done with a log. */
async function useLog(path: string): Promise<void> {
  const log = await readLog(path)
  if (!log.ok) return
  await inspectFiles((await findNamedLogs([path])).logs)
  const exported = await exportLog(path)
  if (exported.ok) for await (const _ of exported.pieces);
  await compactLog(log, { target: 20_000 })
  await createLogNotes(path)
}

/** Tries every value in every field, which takes minutes; otherwise one value in every third field, or every twentieth in a short run. */
const isWhole = process.env.TIDEMARK_ALL_TYPES === '1'
const STEP = isFullRun() ? 3 : 20

it.each([
  ['Claude Code', CLAUDE_CODE],
  ['Codex', CODEX],
] as const)(
  'a log of %s with a field of another type is still read, inspected, compacted and noted',
  async (_, lines) => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-types-'))
    const path = join(folder, 'log.jsonl')
    const failed = new Map<string, string>()
    try {
      let turn = 0
      for (const [at, line] of lines.entries()) {
        for (const way of listPlaces(line)) {
          turn += 1
          if (!isWhole && turn % STEP !== 0) continue
          const values = isWhole ? WRONG : [WRONG[turn % WRONG.length]]
          for (const value of values) {
            const changed = lines.map((one, index) => (index === at ? replaceAt(one, way, value) : one))
            writeFileSync(path, `${changed.map((one) => JSON.stringify(one)).join('\n')}\n`)
            const why = await useLog(path).catch((error: unknown) =>
              error instanceof TidemarkError
                ? null
                : String((error as Error).stack)
                    .split('\n')
                    .slice(0, 3)
                    .join(' '),
            )
            if (typeof why === 'string')
              failed.set(`${line.type} ${way.join('.')} = ${JSON.stringify(value)}`, why)
          }
        }
      }
    } finally {
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
    }
    expect(Object.fromEntries(failed)).toEqual({})
  },
  600_000,
)

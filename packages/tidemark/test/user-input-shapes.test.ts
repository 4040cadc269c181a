/** What the user typed in any shape is in the context after a compaction without a model, or on its receipt. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { compactLog } from '../src/compact/compact-log.ts'
import { readLog } from '../src/logs/read-log.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-shapes-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

type Line = Readonly<Record<string, unknown>>

const user = (content: unknown, more: object = {}): Line => ({
  type: 'user',
  message: { role: 'user', content },
  ...more,
})
const assistant = (...content: readonly object[]): Line => ({
  type: 'assistant',
  message: { id: 'm', role: 'assistant', model: 'claude-sonnet-4-5', content },
})
let calls = 0
function run(
  name: string,
  input: object,
  result: string,
  more: object = {},
  beside: object = {},
): readonly Line[] {
  calls += 1
  const id = `call-${calls}`
  const block = { type: 'tool_result', tool_use_id: id, content: result, ...more }
  return [assistant({ type: 'tool_use', id, name, input }), user([block], beside)]
}
const asked = { questions: [{ question: 'Which database should it be?' }] }

const SHAPES: Readonly<Record<string, readonly Line[]>> = {
  'Answer one, in an object': run(
    'AskUserQuestion',
    asked,
    'ok',
    {},
    {
      toolUseResult: { answers: { 'Which database should it be?': { answer: 'Answer one, in an object' } } },
    },
  ),
  'Answer two, in a list': run(
    'AskUserQuestion',
    asked,
    JSON.stringify([{ question: 'Which database should it be?', answer: 'Answer two, in a list' }]),
  ),
  'Answer three, in an error': run('AskUserQuestion', asked, 'Answer three, in an error', { is_error: true }),
  'Answer four, to an MCP tool': run(
    'mcp__ui__ask_user',
    { question: 'Why?' },
    'Answer four, to an MCP tool',
  ),
  'Refusal five, told otherwise': run(
    'Bash',
    { command: 'git push' },
    'User rejected: Refusal five, told otherwise',
    {
      is_error: true,
    },
  ),
  'Document six, attached as text': [
    user([
      {
        type: 'document',
        source: { type: 'text', media_type: 'text/plain', data: 'Document six, attached as text' },
      },
    ]),
  ],
  'Prompt seven, of another origin': [user('Prompt seven, of another origin', { origin: { kind: 'user' } })],
  'Queued eight, in an object': [
    {
      type: 'attachment',
      attachment: { type: 'queued_command', prompt: { text: 'Queued eight, in an object' } },
    },
  ],
  'Queued nine, in blocks': [
    {
      type: 'attachment',
      attachment: { type: 'queued_command', prompt: [{ type: 'text', text: 'Queued nine, in blocks' }] },
    },
  ],
  'Quoted ten <skill>\nname: deploy\n</skill> and its end': [
    user('Quoted ten <skill>\nname: deploy\n</skill> and its end'),
  ],
}
const WAITING = 'Waiting eleven, never removed'

it('everything that the user typed is in the new context', async () => {
  const text = { type: 'text', text: 'Done with this step.' }
  const work = Array.from({ length: 40 }, (_, index) =>
    run('Read', { file_path: `/app/${index}.ts` }, `1→${`const value${index} = 1; `.repeat(200)}`),
  ).flat()
  const lines = [
    user('Build the thing.'),
    ...Object.values(SHAPES).flatMap((shape) => [...shape, assistant(text)]),
    ...work,
    assistant(text),
  ].map((line, index) => ({
    ...line,
    uuid: `u${index}`,
    parentUuid: index === 0 ? null : `u${index - 1}`,
    sessionId: 's',
    timestamp: new Date(Date.UTC(2026, 2, 9) + index * 1000).toISOString(),
  }))
  const waiting = {
    type: 'queue-operation',
    operation: 'enqueue',
    sessionId: 's',
    timestamp: '',
    content: WAITING,
  }
  const path = join(folder, 'shapes.jsonl')
  writeFileSync(path, `${[...lines, waiting].map((line) => JSON.stringify(line)).join('\n')}\n`)
  const log = await readLog(path)
  if (!log.ok) throw new Error(log.message)
  const outcome = await compactLog(log, { target: 20_000 })
  if (!outcome.ok) throw new Error(outcome.message)
  const { messages, receipt } = outcome.report
  const view = JSON.stringify(messages)
  const wanted = [...Object.keys(SHAPES), WAITING].map((one) => JSON.stringify(one).slice(1, -1))
  expect(wanted.filter((one) => !view.includes(one))).toEqual([])
  expect(receipt.lost.userMessages).toEqual([])
  expect(view).toContain('(refusing Bash `git push`)')
})

/** A made-up session of Claude Code in which work is done: files read and changed, a command that fails, a todo list. */
import { writeFileSync } from 'node:fs'

export const PROMPTS: readonly string[] = [
  'Please rename the tide tables, and keep the old names readable.',
  'Now the harbour list. Bitte nichts löschen.',
  'Run the tests again, then stop.',
]

export const FAILURE = 'FAIL tide-3.test.ts: expected 4 to be 3'

export interface WorkingLine {
  readonly uuid: string
  readonly [field: string]: unknown
}

/** One round a prompt; the last prompt is answered. */
export function workingSession(): readonly WorkingLine[] {
  const lines: WorkingLine[] = []
  const common = { sessionId: 'working-0000', cwd: '/home/user/tides', version: '2.1.0', isSidechain: false }
  const push = (type: string, message: object): void => {
    const count = lines.length
    const timestamp = new Date(Date.UTC(2026, 2, 9, 9, 0, count)).toISOString()
    const parentUuid = lines.at(-1)?.uuid ?? null
    lines.push({ type, uuid: uuidOf(count), parentUuid, timestamp, ...common, message })
  }
  const user = (content: unknown): void => push('user', { role: 'user', content })
  const model = (...content: readonly object[]): void => push('assistant', answer(lines.length, content))
  const run = (name: string, input: object, result: object): void => {
    const id = `toolu_${lines.length}`
    model({ type: 'tool_use', id, name, input })
    user([{ type: 'tool_result', tool_use_id: id, ...result }])
  }
  PROMPTS.forEach((prompt, round) => {
    user(prompt)
    const file_path = `/home/user/tides/src/tide-${round}.ts`
    run('Read', { file_path }, { content: tideTable(round) })
    run(
      'Edit',
      { file_path, old_string: `row0x${round}`, new_string: `line0x${round}` },
      { content: 'Edited.' },
    )
    run(
      'Bash',
      { command: 'cd src && npm test | tail -5' },
      { content: `${FAILURE} (${round})`, is_error: true },
    )
    model({ type: 'text', text: `Round ${round} is done.` })
  })
  return lines
}

export function writeWorkingSession(path: string): readonly WorkingLine[] {
  const lines = workingSession()
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return lines
}

function uuidOf(count: number): string {
  return `${String(count).padStart(8, '0')}-0000-4000-8000-000000000000`
}

function answer(count: number, content: readonly object[]): object {
  const usage = {
    input_tokens: 5,
    output_tokens: 50,
    cache_read_input_tokens: 12_000 + 900 * count,
    cache_creation_input_tokens: 900,
  }
  return { id: `msg_${count}`, role: 'assistant', model: 'claude-sonnet-4-5', content, usage }
}

/** As models are shown files: every line with its number. */
function tideTable(round: number): string {
  const rows = Array.from(
    { length: 300 },
    (_, row) => `export const row${row}x${round} = ${row * 17 + round}`,
  )
  return rows.map((row, index) => `${String(index + 1).padStart(6)}→${row}`).join('\n')
}

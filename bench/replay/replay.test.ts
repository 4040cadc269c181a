import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-bench-replay-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Writes a log of Claude Code in which three files are read and edited, under these ids of calls. */
function writeLog(name: string, createId: (number: number) => string): void {
  const lines: object[] = []
  const add = (type: 'user' | 'assistant', content: unknown, fields: object = {}): void => {
    const number = lines.length + 1
    lines.push({
      type,
      uuid: `${name}-${number}`,
      parentUuid: number === 1 ? null : `${name}-${number - 1}`,
      timestamp: new Date(Date.parse('2026-03-09T09:00:00Z') + number * 5_000).toISOString(),
      ...{ sessionId: name, cwd: '/shop', version: '2.1.0' },
      message: { role: type, content, ...fields },
    })
  }
  const callTool = (tool: string, input: object, result: string): void => {
    const id = createId(lines.length)
    const usage = { input_tokens: 20_000 + lines.length * 500, output_tokens: 40 }
    const reply = { id: `${name}-m${lines.length}`, model: 'claude-opus-4-6', usage }
    add('assistant', [{ type: 'tool_use', id, name: tool, input }], reply)
    add('user', [{ type: 'tool_result', tool_use_id: id, content: result }])
  }
  add('user', 'Please rename the values.')
  for (const file_path of ['/shop/a.ts', '/shop/b.ts', '/shop/c.ts']) {
    callTool('Read', { file_path }, 'const value = compute(7)\n'.repeat(60))
    callTool(
      'Edit',
      { file_path, old_string: 'const value = compute(7)', new_string: 'const seven = 7' },
      'ok',
    )
  }
  writeFileSync(join(folder, `${name}.jsonl`), lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

writeLog('claude-a', (number) => `call-${number}`)
writeLog('d2719b1a', () => 'call-1')
writeFileSync(join(folder, 'e-broken.jsonl'), '{"half')

async function runBench(...options: readonly string[]) {
  const args = ['--conditions=tidemark-source', join(import.meta.dirname, 'replay.ts'), folder, ...options]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
  return { lines: stdout.trim().split('\n'), stderr }
}

it('every log that can be read is replayed under every policy, whatever its file is called, one with a repeated call id too; a broken one is named', async () => {
  const { lines, stderr } = await runBench('--policy', 'default', '--policy', 'economy')
  expect(stderr).toMatch(/^left out: e-broken\.jsonl: .*\n$/)
  expect(lines[0]).toBe(`${folder}: 2 sessions, 12 recorded calls`)
  const rows = lines.flatMap((line) => /^(.*?\S) {2,}\S/.exec(line)?.[1] ?? [])
  const names = [
    'policy',
    'nothing, unbounded window, 5m',
    'claude-code-like',
    'claude-code-like, clears when cold',
    "provider's clearing at 100k, keep 3",
    "provider's compaction at 150k",
    'keep the last half',
    'tidemark default',
    'tidemark economy',
  ]
  expect(rows.filter((row) => !row.startsWith('-'))).toEqual([...names, ...names])
  expect(lines.filter((line) => line.includes('100.0% (0/6)'))).toHaveLength(names.length - 1)
  expect(lines.at(-1)).toMatch(/^replay: \d+\.\d\d s per MB of unpacked log/)
})

it('each half has every second log, so that one can be held back', async () => {
  const count = async (half: string): Promise<string | undefined> =>
    (await runBench('--half', half, '--no-peers')).lines[0]
  expect([await count('tuned'), await count('held')]).toEqual(
    Array(2).fill(`${folder}: 1 sessions, 6 recorded calls`),
  )
})

it('the halves of a folder are also reported apart, with the whole, from one replay', async () => {
  const { lines } = await runBench('--half', 'apart', '--no-peers')
  expect(lines.filter((line) => line.startsWith(folder))).toEqual([
    `${folder}, tuned: 1 sessions, 6 recorded calls`,
    `${folder}, held: 1 sessions, 6 recorded calls`,
    `${folder}: 2 sessions, 12 recorded calls`,
  ])
})

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NO_RETRIEVAL } from '@tidemark/core/clearing/clear-candidates'
import { runHistoryTool } from '@tidemark/core/history/history-tool'
import { spillLargeResult } from '@tidemark/core/history/spill-results'
import { createLogHeader } from '@tidemark/core/log/decode-log'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { SessionBuilder } from '@tidemark/core/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBlobFolder } from '../storage/blob-folder.ts'
import { exportLog, exportLogToFile } from './export-log.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-export-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function logOf(builder: SessionBuilder): string {
  const path = join(folder, 'session.jsonl')
  writeFileSync(
    path,
    [createLogHeader('told', '2026-01-01T00:00:00.000Z'), ...builder.records]
      .map((record) => `${JSON.stringify(record)}\n`)
      .join(''),
  )
  return path
}

async function textOf(path: string, options: object = {}): Promise<string> {
  const log = await exportLog(path, { home: folder, ...options })
  if (!log.ok) return log.message
  let text = ''
  for await (const piece of log.pieces) text += piece
  return text
}

describe('a session file', () => {
  it('is exported without its credentials, or with them on request', async () => {
    const builder = new SessionBuilder()
    builder.user('use AKIAIOSFODNN7EXAMPLE please')
    const path = logOf(builder)
    expect((await textOf(path)).split('\n').at(-2)).toBe('use [redacted] please')
    expect((await textOf(path, { redacts: false })).split('\n').at(-2)).toBe(
      'use AKIAIOSFODNN7EXAMPLE please',
    )
  })

  it('is written completely to a new file and never over an existing one', async () => {
    const builder = new SessionBuilder()
    builder.user('hello')
    const [path, out] = [logOf(builder), join(folder, 'out.md')]
    expect(await exportLogToFile(path, out, { home: folder })).toEqual({
      ...{ ok: true, path, out },
      ...{ records: 1, missingBlobs: [] },
    })
    expect(readFileSync(out, 'utf8')).toBe(await textOf(path))
    expect(await exportLogToFile(path, out)).toEqual({
      ok: false,
      path: out,
      message: `${out} exists already, and files are never overwritten: choose another name.`,
    })
    expect(readdirSync(folder).sort()).toEqual(['out.md', 'session.jsonl'])
  })

  it('that is not a log is refused with a one-line message', async () => {
    expect(await textOf(join(folder, 'none.jsonl'))).toBe(`${join(folder, 'none.jsonl')} does not exist.`)
  })
})

describe('a large result on a real disk', () => {
  it('is stored as a blob, read back by the history tool and complete in the export', async () => {
    const blobs = createBlobFolder({ home: folder })
    const content = 'Zeile ✓ \r\n'.repeat(4_000)
    const measure = (text: string): number => Math.ceil(text.length / 4)
    const { result, spilled } = await spillLargeResult({
      result: { type: 'tool_result', tool_use_id: 'call-1', content },
      ...{ tool: 'Bash', policy: DEFAULT_POLICY.spill, measure, blobs },
      budgets: { threshold: 5_000, head: 100, tail: 100 },
      paths: { ...NO_RETRIEVAL, historyTool: 'history' },
    })
    const builder = new SessionBuilder()
    builder.assistant('m1', [{ type: 'tool_use', id: 'call-1', name: 'Bash', input: {} }])
    builder.user([result], { spilled })
    expect(measure(JSON.stringify(result))).toBeLessThan(400)
    const source = {
      session: builder.session,
      blobs,
      policy: DEFAULT_POLICY.history,
      pageTokens: 4_000,
      measure,
    }
    const id = spilled[0]?.blob
    let [text, cursor] = ['', null as string | null]
    do {
      const { body, next } = await runHistoryTool({ id, cursor }, source)
      text += body
      cursor = next
    } while (cursor !== null)
    expect(text).toBe(content)
    expect((await textOf(logOf(builder))).includes(content)).toBe(true)
  })
})

it('control characters of a session are exported as symbols, so that no terminal executes them', async () => {
  const builder = new SessionBuilder()
  builder.user('a\u001b[2Jb\u0007\u009b31m\rc\r\nd\te\u202ef\u007f')
  const path = logOf(builder)
  for (const redacts of [true, false])
    expect((await textOf(path, { redacts })).split('\n').slice(-3)).toEqual([
      'a␛[2Jb␇\ufffd31m␍c\r',
      'd\te\ufffdf␡',
      '',
    ])
})

import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { findNamedLogs, type InspectProgress, inspectFiles, type NamedLog } from './inspect-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-inspect-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A log of Claude Code with these responses, last changed `age` minutes ago. */
function write(name: string, answers: readonly string[], age: number): string {
  const path = join(folder, name)
  const lines = answers.map((id, index) => ({
    type: 'assistant',
    uuid: `${name}-${id}`,
    parentUuid: index === 0 ? null : `${name}-${answers[index - 1]}`,
    timestamp: '2026-03-09T09:00:00.000Z',
    sessionId: name,
    requestId: `request of ${id}`,
    message: {
      id,
      role: 'assistant',
      model: 'claude-opus-4-5',
      content: 'x',
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  }))
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  utimesSync(path, new Date(), new Date(Date.now() - age * 60_000))
  return path
}

mkdirSync(join(folder, 'old', 'subagents'), { recursive: true })
const old = write('old.jsonl', ['m1', 'm2'], 30)
const recent = write('recent.jsonl', ['m1', 'm2', 'm3'], 10)
write('old/subagents/agent-scout.jsonl', ['s1'], 20)
const empty = join(folder, 'empty.jsonl')
writeFileSync(empty, '')

describe('findNamedLogs', () => {
  it('keeps the order given and lists nothing twice', async () => {
    const { logs, unreadable } = await findNamedLogs([recent, old, recent])
    expect([logs.map(({ file }) => file), unreadable]).toEqual([[recent, old], []])
  })

  it('lists a folder newest first, with side agents under their session', async () => {
    const { logs } = await findNamedLogs([folder])
    expect(logs.map(({ file, agentPaths }) => [file, agentPaths.length])).toEqual([
      [empty, 0],
      [recent, 0],
      [old, 1],
    ])
  })

  it('reports a missing file in one sentence', async () => {
    const missing = join(folder, 'nope.jsonl')
    const { logs, unreadable } = await findNamedLogs([missing, old])
    expect([logs.length, unreadable]).toEqual([1, [{ file: missing, why: `${missing} does not exist.` }]])
  })
})

it('findNamedLogs reports a folder without sessions, and still finds the others', async () => {
  const bare = join(folder, 'old', 'bare')
  mkdirSync(bare)
  const { logs, unreadable } = await findNamedLogs([bare, old])
  expect([logs.length, unreadable]).toEqual([1, [{ file: bare, why: `${bare} has no session in it.` }]])
})

describe('inspectFiles', () => {
  it('counts a copied response in the oldest file, in whatever order the files are given', async () => {
    const counts = async (logs: readonly NamedLog[]) => {
      const { sessions } = await inspectFiles(logs)
      return sessions.map(({ file, apiCalls, copiedCalls }) => [file, apiCalls, copiedCalls])
    }
    const { logs } = await findNamedLogs([old, recent])
    const expected = [
      [recent, 1, 2],
      [old, 3, 0],
    ]
    expect(await counts(logs)).toEqual(expected)
    expect(await counts(logs.toReversed())).toEqual(expected.toReversed())
  })

  it('reports what can be read, and says why the rest cannot', async () => {
    const { logs } = await findNamedLogs([empty, old])
    const { sessions, unreadable } = await inspectFiles(logs)
    expect([sessions.map(({ file }) => file), unreadable]).toEqual([
      [old],
      [{ file: empty, why: `${empty} is empty.` }],
    ])
  })

  it('reports its progress', async () => {
    const updates: InspectProgress[] = []
    const { logs } = await findNamedLogs([old, recent])
    await inspectFiles(logs, { onProgress: (progress) => updates.push(progress) })
    const lastOf = (file: string) => updates.findLast((progress) => progress.file === file)
    expect(lastOf(recent)).toEqual({
      file: recent,
      number: 2,
      of: 2,
      readBytes: lastOf(recent)?.totalBytes,
      totalBytes: expect.any(Number),
    })
  })

  it('stops when it is aborted', async () => {
    const { logs } = await findNamedLogs([old])
    await expect(inspectFiles(logs, { signal: AbortSignal.abort() })).rejects.toThrow('aborted')
  })
})

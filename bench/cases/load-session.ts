/** Opening a long session: read, parse and fold 20 MB, against splitting the text into lines and parsing each. */
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ContextView, emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { createLogHeader } from '@tidemark/core/log/decode-log'
import { appendRecord, emptySessionLog, type SessionLog } from '@tidemark/core/log/session-log'
import { createFileJournal } from '../../packages/tidemark/src/storage/file-journal.ts'
import type { BenchCase } from '../harness/bench-case.ts'

const SIZE_BYTES = 20_000_000
/** Most of the heap that a loaded session may keep, as a multiple of its file. */
const MOST_HEAP = 3
const SESSION = 's'

export const benchCase: BenchCase = {
  name: 'load-session',
  compares:
    'read, parse and fold of 20 MB with line split and JSON.parse alone; at most 3 x the file in heap',
  bound: { atMost: 2 },
  rounds: 7,
  async prepare() {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
    const path = writeSession(home)
    await checkHeap(home, statSync(path).size)
    return {
      subject: () => load(home),
      baseline: () => splitAndParse(path),
      calls: { subject: 1, baseline: 1 },
      close: () => rmSync(home, { recursive: true, force: true }),
    }
  },
}

async function load(home: string): Promise<{ readonly session: SessionLog; readonly view: ContextView }> {
  let session = emptySessionLog()
  let view = emptyContextView()
  const { damage } = await createFileJournal({ home }).read(SESSION, (records) => {
    for (const record of records) {
      session = appendRecord(session, record)
      view = updateContextView(view, session)
    }
  })
  if (damage.length > 0) throw new Error(`the session is damaged: ${damage[0]?.why}`)
  return { session, view }
}

function splitAndParse(path: string): readonly unknown[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line): unknown => JSON.parse(line))
}

async function checkHeap(home: string, sizeBytes: number): Promise<void> {
  const before = heapUsed()
  const loaded = await load(home)
  const ratio = (heapUsed() - before) / sizeBytes
  console.error(`  heap kept: ${ratio.toFixed(2)} x the file, ${loaded.session.records.length} records`)
  if (ratio > MOST_HEAP) throw new Error(`a loaded session keeps ${ratio.toFixed(2)} x its file in heap`)
}

function heapUsed(): number {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc')
  globalThis.gc()
  return process.memoryUsage().heapUsed
}

/** Rounds of a coding agent: a prompt, then calls and results of a few kilobytes, some of it not ASCII. */
function writeSession(home: string): string {
  mkdirSync(join(home, 'sessions'))
  const path = join(home, 'sessions', `${SESSION}.jsonl`)
  appendFileSync(path, `${JSON.stringify(createLogHeader(SESSION, '2026-01-01T00:00:00.000Z'))}\n`)
  let written = 0
  for (let seq = 1; written < SIZE_BYTES; seq += 1) {
    const line = `${JSON.stringify(recordAt(seq))}\n`
    appendFileSync(path, line)
    written += Buffer.byteLength(line)
  }
  return path
}

function recordAt(seq: number): object {
  const links = { seq, uuid: uuidAt(seq), parentUuid: seq === 1 ? null : uuidAt(seq - 1), sessionId: SESSION }
  const common = {
    ...links,
    timestamp: '2026-01-01T00:00:00.000Z',
    cwd: '/home/user/project',
    isSidechain: false,
  }
  if (seq % 21 === 1) return { ...common, type: 'user', message: { role: 'user', content: textOf(seq, 400) } }
  return seq % 2 === 0 ? { ...common, ...callAt(seq) } : { ...common, ...resultAt(seq) }
}

function callAt(seq: number): object {
  const input = { file_path: `/home/user/project/src/file-${seq}.ts`, limit: 200, note: textOf(seq, 150) }
  const content = [
    { type: 'text', text: textOf(seq, 300) },
    { type: 'tool_use', id: `call-${seq}`, name: 'Read', input },
  ]
  const usage = { input_tokens: 12, cache_read_input_tokens: seq * 900, output_tokens: 210 }
  return {
    type: 'assistant',
    message: { id: `message-${seq}`, role: 'assistant', model: 'model-a', content, usage },
  }
}

function resultAt(seq: number): object {
  const content = [{ type: 'tool_result', tool_use_id: `call-${seq - 1}`, content: textOf(seq, 3_500) }]
  return { type: 'user', message: { role: 'user', content } }
}

function uuidAt(seq: number): string {
  return `00000000-0000-4000-8000-${String(seq).padStart(12, '0')}`
}

const CODE = `  const found = items.filter((item) => item.name === "x\\t")\n  return found.length > 0 ? found[0] : null\n`
const PROSE = 'The lock is taken by the first append and held until release – naïve readers need none. '

function textOf(seq: number, length: number): string {
  const piece = seq % 3 === 0 ? PROSE : CODE
  return `${seq}: ${piece.repeat(Math.ceil(length / piece.length))}`.slice(0, length)
}

/**
 * Closing a long session after an append: the conversation is measured and its notes are brought up to date from the
 * whole log, either of which is given up after two seconds. Against splitting the text of the log into lines and parsing
 * each. CPU time of the thread counts.
 */
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogHeader } from '@tidemark/core/log/decode-log'
import { anthropic, createTidemark, type Session, user } from 'tidemark'
import type { BenchCase } from '../harness/bench-case.ts'
import { type EventLoopHold, measureEventLoopHold } from '../harness/event-loop-hold.ts'

const SIZE_BYTES = 40_000_000
const SESSION = 's'
const MODEL_ID = 'claude-sonnet-5-5'

function createCase(
  given: Pick<BenchCase, 'name' | 'compares' | 'bound'>,
  select: (closing: EventLoopHold) => number,
): BenchCase {
  return {
    ...given,
    rounds: 3,
    async prepare() {
      const home = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
      const path = join(home, 'sessions', `${SESSION}.jsonl`)
      mkdirSync(join(home, 'sessions'))
      writeSession(path)
      const fetch = () => Promise.reject(new Error('offline'))
      const tide = createTidemark({ model: anthropic(MODEL_ID, { apiKey: 'any', fetch }), home, env: {} })
      let session: Session
      return {
        isSelfTimed: true,
        before: {
          async subject() {
            // With notes that exist, only what is new would be read.
            rmSync(join(home, 'sessions', SESSION), { recursive: true, force: true })
            session = await tide.open(SESSION)
            await session.append(user('Stop here.'))
          },
          baseline: () => {},
        },
        subject: async () => select(await measureEventLoopHold(() => session.close())),
        baseline: async () => (await measureEventLoopHold(async () => splitAndParse(path))).totalMs,
        calls: { subject: 1, baseline: 1 },
        async close() {
          await tide.close()
          rmSync(home, { recursive: true, force: true })
        },
      }
    },
  }
}

export const benchCases: readonly BenchCase[] = [
  createCase(
    {
      name: 'close-session',
      compares: `close of a session of ${SIZE_BYTES / 1e6} MB after an append with line split and JSON.parse of its log`,
      bound: { atMost: 5 },
    },
    ({ totalMs }) => totalMs,
  ),
  createCase(
    {
      name: 'close-session-hold',
      compares: `longest hold of the event loop by the same close with line split and JSON.parse of the log`,
      bound: { atMost: 0.5 },
    },
    ({ longestMs }) => longestMs,
  ),
]

function splitAndParse(path: string): readonly unknown[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line): unknown => JSON.parse(line))
}

/** A coding agent without compactions: prompts, edits of many files, and commands of which some fail. */
function writeSession(path: string): void {
  appendFileSync(path, `${JSON.stringify(createLogHeader(SESSION, '2026-01-01T00:00:00.000Z'))}\n`)
  let written = 0
  for (let seq = 1; written < SIZE_BYTES; ) {
    const lines = Array.from({ length: 500 }, () => {
      const line = JSON.stringify(recordAt(seq))
      seq += 1
      return `${line}\n`
    })
    appendFileSync(path, lines.join(''))
    written += Buffer.byteLength(lines.join(''))
  }
}

function recordAt(seq: number): object {
  const common = {
    seq,
    uuid: uuidAt(seq),
    parentUuid: seq === 1 ? null : uuidAt(seq - 1),
    sessionId: SESSION,
    timestamp: new Date(Date.UTC(2026, 0, 1) + seq * 2_000).toISOString(),
    cwd: '/home/user/project',
    isSidechain: false,
  }
  if (seq % 21 === 1) return { ...common, type: 'user', message: { role: 'user', content: textOf(seq, 400) } }
  return seq % 2 === 0 ? { ...common, ...callAt(seq) } : { ...common, ...resultAt(seq) }
}

function callAt(seq: number): object {
  const content = [
    { type: 'text', text: textOf(seq, 300) },
    { type: 'tool_use', id: `call-${seq}`, ...toolAt(seq) },
  ]
  const usage = { input_tokens: 12, cache_read_input_tokens: 90_000, output_tokens: 210 }
  return {
    type: 'assistant',
    message: {
      id: `message-${seq}`,
      role: 'assistant',
      model: MODEL_ID,
      stop_reason: 'tool_use',
      content,
      usage,
    },
  }
}

function toolAt(seq: number): { readonly name: string; readonly input: object } {
  const file_path = `/home/user/project/src/file-${seq % 3_001}.ts`
  if (seq % 6 === 0) return { name: 'Bash', input: { command: `npm test -- file-${seq % 3_001}` } }
  if (seq % 6 === 2) return { name: 'Read', input: { file_path } }
  return {
    name: 'Edit',
    input: { file_path, old_string: textOf(seq, 300), new_string: textOf(seq + 1, 400) },
  }
}

function resultAt(seq: number): object {
  const isFailed = seq % 26 === 1
  const text = textOf(seq, 3_500)
  const result = { type: 'tool_result', tool_use_id: `call-${seq - 1}`, content: text, is_error: isFailed }
  return { type: 'user', message: { role: 'user', content: [result] } }
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

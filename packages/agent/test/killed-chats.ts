/**
 * Kills `tidemark chat` at random moments of a long task, resumes it each time, and checks what each kill leaves. The
 * task goes on as if nothing had happened, because every step is in the log before the next one begins.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { MISSING_RESULT_TEXT } from '@tidemark/core/context/message-repair'
import { createRandomNumbers } from '@tidemark/core/testing'
import { createCoder } from '@tidemark/simulator'
import { expect } from 'vitest'
import { type SimulateProcess, startSimulateProcess, TIDEMARK_COMMAND } from './simulate-process.ts'
import { createFaultCycle, listWrongFiles } from './unattended-run.ts'

export interface KillOptions {
  readonly kills: number
  readonly turns: number
  readonly window: number
  readonly resultTokens: number
  /** The same seed gives the same task and the same delays before the kills. */
  readonly seed: number
  /** The kill comes at most so many milliseconds after the process has begun to work. */
  readonly longestMs: number
}

export interface KillFigures {
  readonly kills: number
  /** Tool calls that a kill left without a result. */
  readonly interruptedCalls: number
  readonly compactions: number
  /** Lines of the log at the end. */
  readonly lines: number
}

export async function killChats(options: KillOptions): Promise<KillFigures> {
  const { kills, turns, window, resultTokens, seed, longestMs } = options
  const root = mkdtempSync(join(tmpdir(), 'tidemark-killed-'))
  const settings = { turns, resultTokens, seed: `killed-${seed}` }
  const script = `coder?turns=${turns}&resultTokens=${resultTokens}&seed=${settings.seed}`
  const simulator = await startSimulateProcess({ script, window })
  await simulator.scheduleFaults(createFaultCycle(20))
  const random = createRandomNumbers(seed)
  const world = { root, simulator, window }
  try {
    let id: string | null = null
    const interrupted: string[] = []
    let compactions = 0
    for (let number = 0; number < kills; number += 1) {
      const chat = startChat(world, id)
      id = await chat.working
      await wait(random() * longestMs)
      chat.child.kill('SIGKILL')
      expect(await chat.ended, `the task ended before kill ${number + 1}`).toBe('SIGKILL')
      interrupted.push(...checkLog(readLog(root, id), chat.printed).openCalls)
      compactions += countCompactions(chat.printed)
    }
    const last = startChat(world, id)
    expect(await last.ended).toBe('0')
    const log = readLog(root, id ?? '')
    const { openCalls, results } = checkLog(log, last.printed)
    expect(openCalls).toEqual([])
    // The model is told of each call that a kill interrupted: it may have run, and it was not run again.
    expect(interrupted.filter((id) => results.get(id) !== MISSING_RESULT_TEXT)).toEqual([])
    expect(last.printed.at(-1)).toMatchObject({ type: 'result', subtype: 'success' })
    const wanted = createCoder(settings).clientFiles(turns)
    expect(listWrongFiles(join(root, 'tidemark-coder'), wanted)).toEqual([])
    await expectValidRequests(simulator)
    compactions += countCompactions(last.printed)
    return { kills, interruptedCalls: interrupted.length, compactions, lines: log.length }
  } finally {
    await simulator.close()
    rmSync(root, { recursive: true, force: true, maxRetries: 10 })
  }
}

function countCompactions(printed: readonly PrintedLine[]): number {
  return printed.filter(({ subtype }) => subtype === 'compact_boundary').length
}

/** The provider refused nothing except by a fault: each request after a kill was valid. */
async function expectValidRequests(simulator: SimulateProcess): Promise<void> {
  const refused = (await simulator.readRequests()).filter(
    ({ status, fault }) => status >= 400 && fault === null,
  )
  expect(refused).toEqual([])
}

interface PrintedLine {
  readonly type: string
  readonly subtype?: string
  readonly uuid?: string
  readonly session_id?: string
}

interface RunningChat {
  readonly child: ChildProcess
  readonly printed: readonly PrintedLine[]
  /** Resolves with the id of the session when the prompt, or what is continued, is in the log. */
  readonly working: Promise<string>
  /** Resolves with the signal or exit code. */
  readonly ended: Promise<string>
}

/** Starts the task, or goes on with a session. */
function startChat(
  world: { readonly root: string; readonly simulator: SimulateProcess; readonly window: number },
  id: string | null,
): RunningChat {
  const { root, simulator, window } = world
  const what = id === null ? ['-p', 'Raise the limits.'] : ['--resume', id, '-p', '']
  const options = [
    '--window',
    String(window),
    '--permission-mode',
    'allow-all',
    '--output-format',
    'stream-json',
  ]
  const child = spawn(
    process.execPath,
    [...TIDEMARK_COMMAND, 'chat', ...what, ...options, '--base-url', simulator.url, '--cwd', root],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        HOME: root,
        TIDEMARK_HOME: join(root, '.home'),
      },
    },
  )
  const printed: PrintedLine[] = []
  const begun = Promise.withResolvers<string>()
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (text) => {
    const line = tryParse(text)
    if (line === null) return
    printed.push(line)
    if (id !== null || line.type === 'user') begun.resolve(line.session_id ?? '')
  })
  const ended = Promise.all([once(child, 'exit'), once(lines, 'close')]).then(([[code, signal]]) => {
    begun.reject(new Error(`chat ended with ${signal ?? code} before it began to work`))
    return String(signal ?? code)
  })
  begun.promise.catch(() => {})
  return { child, printed, working: begun.promise, ended }
}

/** Parses a line; null if a kill tore it. */
function tryParse(text: string): PrintedLine | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

interface LogLine {
  readonly uuid?: string
  readonly subtype?: string
  /** Id of the reply that a record with the subtype `reply_dropped` takes out of the conversation. */
  readonly response?: string
  readonly message?: { readonly id?: string; readonly content?: unknown }
}

function readLog(root: string, id: string): readonly LogLine[] {
  const text = readFileSync(join(root, '.home', 'sessions', `${id}.jsonl`), 'utf8')
  return text.split('\n').flatMap((line) => (tryParse(line) as LogLine | null) ?? [])
}

interface Block {
  readonly type: string
  readonly id?: string
  readonly tool_use_id?: string
  readonly content?: unknown
}

/**
 * Everything that was printed is in the log, and no call has two results. Returns the results, and calls without one, but for
 * those of a reply that was cut and dropped: they were never run.
 */
function checkLog(
  log: readonly LogLine[],
  printed: readonly PrintedLine[],
): { readonly openCalls: readonly string[]; readonly results: ReadonlyMap<string, unknown> } {
  const known = new Set(log.map(({ uuid }) => uuid))
  const messages = printed.filter(({ type }) => type === 'user' || type === 'assistant')
  expect(messages.filter(({ uuid }) => !known.has(uuid))).toEqual([])
  const dropped = new Set(
    log.flatMap(({ subtype, response }) => (subtype === 'reply_dropped' ? (response ?? []) : [])),
  )
  const blocks = log.flatMap(({ message }) =>
    Array.isArray(message?.content) && !dropped.has(message.id ?? '')
      ? (message.content as readonly Block[])
      : [],
  )
  const answered = blocks.filter(({ type }) => type === 'tool_result')
  const results = new Map(answered.map(({ tool_use_id: id = '', content }) => [id, content]))
  expect(answered.length - results.size, 'calls with two results').toBe(0)
  const calls = blocks.flatMap(({ type, id = '' }) => (type === 'tool_use' ? [id] : []))
  return { openCalls: calls.filter((id) => !results.has(id)), results }
}

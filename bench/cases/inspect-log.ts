/**
 * Inspecting logs of Claude Code: reading, pricing, replaying and reporting 32 MB in eight files, against splitting the
 * text into lines and parsing each. Beside it, each in a process of its own and without the time of its start: inspect,
 * and ccusage, which only adds up usage. ccusage is 18.0.11: later versions are no JavaScript.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findNamedLogs, inspectFiles } from '../../packages/tidemark/src/inspect/inspect-files.ts'
import type { BenchCase } from '../harness/bench-case.ts'
import { median } from '../harness/measure.ts'

const FILES = 8
const FILE_BYTES = 4_000_000
const PROCESS_ROUNDS = 5
const INSPECT = new URL('../../packages/tidemark/src/inspect/inspect-files.ts', import.meta.url).href
const INSPECT_SCRIPT = `
  const { findNamedLogs, inspectFiles } = await import(${JSON.stringify(INSPECT)})
  const start = performance.now()
  const { logs } = await findNamedLogs([process.argv[1]])
  JSON.stringify(await inspectFiles(logs))
  console.log(performance.now() - start)
`
const CCUSAGE = fileURLToPath(new URL('../node_modules/ccusage/dist/index.js', import.meta.url))

export const benchCase: BenchCase = {
  name: 'inspect-log',
  compares: 'inspect of 32 MB of logs with line split and JSON.parse alone (aim: 2)',
  bound: { atMost: 4 },
  rounds: 7,
  async prepare() {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
    const folder = writeLogs(home)
    compareProcesses(home, folder)
    const { logs } = await findNamedLogs([folder])
    return {
      subject: async () => {
        const { sessions } = await inspectFiles(logs)
        if (sessions.length !== FILES) throw new Error(`${sessions.length} of ${FILES} logs were inspected`)
      },
      baseline: () => logs.map(({ path }) => splitAndParse(path)),
      calls: { subject: 1, baseline: 1 },
      close: () => rmSync(home, { recursive: true, force: true }),
    }
  },
}

function splitAndParse(path: string): readonly unknown[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line): unknown => JSON.parse(line))
}

/** Prints the medians of inspect and ccusage over the same files, or how to install ccusage. */
function compareProcesses(home: string, folder: string): void {
  if (!existsSync(CCUSAGE)) {
    console.error('  ccusage is not installed: npm install --prefix bench --ignore-scripts')
    return
  }
  const env = { ...process.env, CLAUDE_CONFIG_DIR: home }
  const rounds = Array.from({ length: PROCESS_ROUNDS }, () => ({
    ccusage:
      runNode([CCUSAGE, 'session', '--offline', '--json'], env).ms - runNode([CCUSAGE, '--version'], env).ms,
    inspect: Number(
      runNode(
        ['--conditions=tidemark-source', '--input-type=module', '--eval', INSPECT_SCRIPT, '--', folder],
        env,
      ).output,
    ),
  }))
  const [inspect, ccusage] = [rounds.map((round) => round.inspect), rounds.map((round) => round.ccusage)]
  const ratio = median(rounds.map((round) => round.inspect / round.ccusage))
  console.error(
    `  in processes of their own: inspect ${median(inspect).toFixed()} ms, ccusage ${median(ccusage).toFixed()} ms, ratio ${ratio.toFixed(2)} (goal: 1)`,
  )
}

/** Runs Node, and returns what it printed and the milliseconds that it took. */
function runNode(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): { readonly output: string; readonly ms: number } {
  const start = performance.now()
  const { status, error, stdout, stderr } = spawnSync(process.execPath, args, { env, maxBuffer: 1 << 28 })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`)
  return { output: String(stdout), ms: performance.now() - start }
}

/** Sessions of a coding agent: prompts, then calls and results of a few kilobytes, with usage, some of it not ASCII. */
function writeLogs(home: string): string {
  const folder = join(home, 'projects', 'shop')
  mkdirSync(folder, { recursive: true })
  for (let file = 0; file < FILES; file += 1) {
    const lines: string[] = []
    let bytes = 0
    for (let line = 0; bytes < FILE_BYTES; line += 1) {
      const text = JSON.stringify(recordAt(file, line))
      lines.push(text)
      bytes += Buffer.byteLength(text) + 1
    }
    writeFileSync(join(folder, `${uuidAt(file, 0)}.jsonl`), `${lines.join('\n')}\n`)
  }
  if (readdirSync(folder).length !== FILES) throw new Error('the logs were not written')
  return folder
}

function recordAt(file: number, line: number): object {
  const common = {
    uuid: uuidAt(file, line + 1),
    parentUuid: line === 0 ? null : uuidAt(file, line),
    sessionId: uuidAt(file, 0),
    timestamp: new Date(Date.UTC(2026, 0, 1 + file) + line * 2_000).toISOString(),
    cwd: '/home/user/shop',
    version: '2.1.0',
    isSidechain: false,
  }
  if (line % 41 === 0)
    return { ...common, type: 'user', message: { role: 'user', content: textOf(line, 400) } }
  const id = `toolu_${file}_${line - (line % 2)}`
  if (line % 2 === 0) {
    const content = [{ type: 'tool_result', tool_use_id: id, content: textOf(line, 12_000) }]
    return { ...common, type: 'user', message: { role: 'user', content } }
  }
  return { ...common, ...responseAt(file, line, id) }
}

function responseAt(file: number, line: number, callBefore: string): object {
  const id = callBefore.replace(/\d+$/, String(line + 1))
  const input = { file_path: `/home/user/shop/src/file-${line % 90}.ts`, note: textOf(line, 200) }
  const content = [
    { type: 'text', text: textOf(line, 300) },
    { type: 'tool_use', id, name: 'Read', input },
  ]
  // Every 200 lines the cache is lost.
  const [cached, isLost] = [20_000 + 200 * line, line % 200 === 1]
  const usage = {
    input_tokens: 4,
    output_tokens: 180,
    cache_read_input_tokens: isLost ? 0 : cached,
    cache_creation_input_tokens: isLost ? cached + 400 : 400,
  }
  const message = { id: `msg_${file}_${line}`, role: 'assistant', model: 'claude-opus-4-5-20251101' }
  return { type: 'assistant', requestId: `req_${file}_${line}`, message: { ...message, content, usage } }
}

function uuidAt(file: number, line: number): string {
  return `${String(file).padStart(8, '0')}-0000-4000-8000-${String(line).padStart(12, '0')}`
}

const CODE = `  const found = items.filter((item) => item.name === "x\\t")\n  return found.length > 0 ? found[0] : null\n`
const PROSE = 'The lock is taken by the first append and held until release – naïve readers need none. '

function textOf(line: number, length: number): string {
  const piece = line % 3 === 0 ? PROSE : CODE
  return `${line}: ${piece.repeat(Math.ceil(length / piece.length))}`.slice(0, length)
}

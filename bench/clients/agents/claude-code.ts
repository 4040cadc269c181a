/** Claude Code without a terminal: a process of its own, with its own tools, a home of its own and no other network. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Client, ClientTask } from '../client.ts'

/** npm installs one of these; the package's own install script, which links it, is not run. */
const PROGRAM = ['', '-musl']
  .map((libc) => `claude-code-${process.platform}-${process.arch}${libc}`)
  .map((name) => fileURLToPath(new URL(`../node_modules/@anthropic-ai/${name}/`, import.meta.url)))
  .map((folder) => join(folder, process.platform === 'win32' ? 'claude.exe' : 'claude'))
  .find((path) => existsSync(path))

async function run(task: ClientTask): Promise<string> {
  if (PROGRAM === undefined) throw new Error('Claude Code has no program for this platform')
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-dropin-'))
  try {
    return await runProgram(PROGRAM, task, folder)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function runProgram(program: string, task: ClientTask, folder: string): Promise<string> {
  const [home, work] = [join(folder, 'home'), join(folder, 'work')]
  await Promise.all([mkdir(home), mkdir(work)])
  const child = spawn(
    program,
    [
      '-p',
      task.prompt,
      ...['--model', task.model, '--output-format', 'stream-json', '--verbose'],
      ...['--allowedTools', 'Read,Write,Edit,Bash,Grep,Glob,TodoWrite'],
    ],
    { cwd: work, env: createEnvironment(home, task), stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const errors: string[] = []
  child.stderr.on('data', (data) => errors.push(String(data)))
  let result: ResultLine | null = null
  // The folder has another name in each run.
  for await (const line of createInterface({ input: child.stdout }))
    result = readLine(line.replaceAll(work, ''), task) ?? result
  const status = await ended
  if (result === null || result.is_error || status !== 0)
    throw new Error(result?.result ?? (errors.join('').trim() || `ended with ${status}`))
  return result.result ?? ''
}

/** Nothing of this machine's environment but what a program needs to start: no proxy, no key, no settings. */
function createEnvironment(home: string, { baseUrl }: ClientTask): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    HOME: home,
    USERPROFILE: home,
    ANTHROPIC_BASE_URL: baseUrl,
    ANTHROPIC_API_KEY: 'any',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    DISABLE_TELEMETRY: '1',
    DISABLE_ERROR_REPORTING: '1',
  }
}

interface ResultLine {
  readonly result?: string
  readonly is_error?: boolean
}

/** Records the tool calls of a line. Returns the result if the line is the last one. */
function readLine(line: string, { recordCall }: ClientTask): ResultLine | null {
  const event = JSON.parse(line)
  if (event.type === 'result') return event
  if (event.type !== 'assistant') return null
  for (const { type, id, name, input } of event.message.content)
    if (type === 'tool_use') recordCall({ id, name, input })
  return null
}

export const claudeCodeClients: readonly Client[] = [
  { name: 'Claude Code, -p', door: 'url', caches: true, isStream: true, run },
]

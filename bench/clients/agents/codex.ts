/** Codex CLI without a terminal: a process of its own, with its own tools, a home of its own and no other network. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Client, ClientProvider, ClientTask } from '../client.ts'

const FOLDER = fileURLToPath(new URL('../codex/', import.meta.url))

async function run(task: ClientTask): Promise<string> {
  const program = join(FOLDER, 'node_modules/@openai/codex/bin/codex.js')
  if (!existsSync(program)) throw new Error('Codex CLI is not installed')
  // Not in the temporary folder, where it takes no home.
  const folder = await mkdtemp(join(FOLDER, 'node_modules/.run-'))
  try {
    return await runProgram(program, task, folder)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function runProgram(program: string, task: ClientTask, folder: string): Promise<string> {
  const [home, work, temporary] = ['home', 'work', 'tmp'].map((name) => join(folder, name))
  if (home === undefined || work === undefined || temporary === undefined) throw new Error('no folders')
  await Promise.all([home, work, temporary].map((path) => mkdir(path)))
  const provider = `{name="simulator",base_url="${task.baseUrl}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}`
  const child = spawn(
    process.execPath,
    [
      ...[program, 'exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
      ...['-c', `model_providers.simulator=${provider}`, '-c', 'model_provider="simulator"'],
      ...['--model', task.model, task.prompt],
    ],
    {
      cwd: work,
      // Nothing of this machine's environment but what a program needs to start.
      env: { PATH: process.env.PATH, HOME: home, CODEX_HOME: home, TMPDIR: temporary, OPENAI_API_KEY: 'any' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const errors: string[] = []
  child.stderr.on('data', (data) => errors.push(String(data)))
  const end = { text: '', failure: null as string | null }
  // The folder has another name in each run.
  for await (const line of createInterface({ input: child.stdout }))
    readLine(line.replaceAll(work, ''), end, task)
  const status = await ended
  if (end.failure !== null || status !== 0)
    throw new Error(end.failure ?? (errors.join('').trim() || `ended with ${status}`))
  return end.text
}

/** Records the commands of a line, its last text and its failure. */
function readLine(
  line: string,
  end: { text: string; failure: string | null },
  { recordCall }: ClientTask,
): void {
  const { type, item, error, message } = JSON.parse(line)
  if (type === 'turn.failed' || type === 'error') end.failure = String(error?.message ?? message)
  if (type === 'item.completed' && item.type === 'agent_message') end.text = item.text
  // Its ids are its own, not those of the calls. Commands of one answer begin in their order, and end in any.
  if (type === 'item.started' && item.type === 'command_execution')
    recordCall({ id: item.id, name: item.type, input: item.command })
}

const provider: ClientProvider = { api: 'responses', model: 'gpt-5.4', thinkingTokens: 120 }

export const codexClients: readonly Client[] = [
  { name: 'Codex CLI, exec', door: 'url', caches: true, isStream: true, provider, run },
]

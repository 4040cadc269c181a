/** `tidemark chat` as a process: Ctrl-C, kills, and what is left of the commands that it runs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { findUserSettingsPath } from '../src/agent/settings.ts'
import { type ChatWorld, createChatWorld, playSteps } from './chat-world.ts'
import { TIDEMARK_COMMAND } from './simulate-process.ts'

interface ChatProcess {
  readonly child: ChildProcess
  readonly printed: () => string
  readonly warned: () => string
  /** Resolves with the exit code or signal. */
  readonly ended: Promise<string>
}

function startChat({ env, folder }: ChatWorld, ...args: readonly string[]): ChatProcess {
  const child = spawn(process.execPath, [...TIDEMARK_COMMAND, 'chat', '--cwd', folder, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => {
    out += String(chunk)
  })
  child.stderr.on('data', (chunk) => {
    err += String(chunk)
  })
  const ended = once(child, 'close').then(([code, signal]) => String(signal ?? code))
  return { child, printed: () => out, warned: () => err, ended }
}

/** Waits until the command that the model started has written its process id to the file `pid`. */
async function readStartedPid({ read }: ChatWorld): Promise<number> {
  for (;;) {
    const pid = Number(read('pid') ?? '')
    if (pid > 0) return pid
    await wait(20)
  }
}

async function waitUntilGone(pid: number): Promise<void> {
  await expect.poll(() => isRunning(pid)).toBe(false)
}

/** Returns false for a process that has ended, also if its parent has not read its exit code yet. */
function isRunning(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false
  return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
}

const SLEEP = { Bash: { command: 'echo $$ > pid; sleep 60; echo woke > woke' } }
const ALLOWED = ['--permission-mode', 'allow-all']

describe.skipIf(process.platform !== 'linux')('Ctrl-C', () => {
  it('ends the command and the turn with 130, and says how to go on; the model then learns of it', async () => {
    const world = await createChatWorld(playSteps(SLEEP, 'Slept enough.'))
    const chat = startChat(world, '-p', 'Sleep.', ...ALLOWED)
    const pid = await readStartedPid(world)
    chat.child.kill('SIGINT')
    expect(await chat.ended).toBe('130')
    await waitUntilGone(pid)
    const id = /To go on: tidemark chat --resume (\S+) -p ""/.exec(chat.warned())?.[1] ?? ''
    expect([chat.printed(), id]).toEqual(['', expect.stringMatching(/^chat-/)])
    const resumed = startChat(world, '--resume', id, '-p', '', ...ALLOWED)
    expect([await resumed.ended, resumed.printed()]).toEqual(['0', 'Slept enough.\n'])
    expect(world.lastResults().join()).toMatch(/interrupted|aborted|ended/i)
    expect(world.read('woke')).toBeNull()
  })

  it('while the model answers, ends with 130 and leaves a session that goes on', async () => {
    const world = await createChatWorld(({ messages }) =>
      JSON.stringify(messages.at(-1)).includes('And?')
        ? { blocks: [{ type: 'text', text: 'Here.' }] }
        : { blocks: [{ type: 'text', text: 'word '.repeat(2_000) }], delays: { pieceMs: 20 } },
    )
    const chat = startChat(world, '-p', 'Talk.', '--output-format', 'stream-json')
    while (!chat.printed().includes('"user"')) await wait(20)
    await wait(300)
    chat.child.kill('SIGINT')
    expect(await chat.ended).toBe('130')
    const last = JSON.parse(chat.printed().trimEnd().split('\n').at(-1) ?? '')
    expect(last).toMatchObject({ type: 'result', is_error: true, stop_reason: 'aborted' })
    const resumed = startChat(world, '--resume', last.session_id, '-p', 'And?')
    expect([await resumed.ended, resumed.printed()]).toEqual(['0', 'Here.\n'])
  })
})

describe.skipIf(process.platform !== 'linux')('commands', () => {
  it('that still run in the background when the turn ends are ended with it', async () => {
    const step = { Bash: { command: 'echo $$ > pid; sleep 60', run_in_background: true } }
    const world = await createChatWorld(
      playSteps(step, { Bash: { command: 'while [ ! -s pid ]; do sleep 0.05; done' } }, 'Done.'),
    )
    const chat = startChat(world, '-p', 'Start it.', ...ALLOWED)
    expect(await chat.ended).toBe('0')
    await waitUntilGone(await readStartedPid(world))
  })

  it('that a kill interrupted are not run again: the model is told, and decides', async () => {
    const step = { Bash: { command: 'echo run >> runs; echo $$ > pid; sleep 60' } }
    const world = await createChatWorld(playSteps(step, 'I leave it.'))
    const chat = startChat(world, '-p', 'Run it.', '--output-format', 'stream-json', ...ALLOWED)
    const pid = await readStartedPid(world)
    chat.child.kill('SIGKILL')
    expect(await chat.ended).toBe('SIGKILL')
    process.kill(pid)
    const { session_id: id } = JSON.parse(chat.printed().split('\n')[0] ?? '')
    const resumed = startChat(world, '--resume', id, '-p', '', ...ALLOWED)
    expect([await resumed.ended, resumed.printed()]).toEqual(['0', 'I leave it.\n'])
    expect(world.read('runs')).toBe('run\n')
    expect(world.lastResults()).toEqual(['The tool call was interrupted and returned no result.'])
  })
})

it('a session that cannot be opened ends the program, although an MCP server hangs', async () => {
  const world = await createChatWorld(playSteps('Done.'))
  const path = findUserSettingsPath(world.env)
  mkdirSync(dirname(path), { recursive: true })
  const hangs = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'] }
  writeFileSync(path, JSON.stringify({ policy: { nonsense: 1 }, mcpServers: { hangs } }))
  const chat = startChat(world, '-p', 'Go.')
  expect([await chat.ended, chat.warned().trimEnd()]).toEqual([
    '1',
    expect.stringMatching(/^tidemark: .*nonsense.*$/),
  ])
})

/** How the screen ends: whatever happens, the terminal works afterwards, and the session can be gone on with. */
import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { playSteps } from './chat-world.ts'
import { createScreenWorld, hasTmux, type ScreenWorld } from './screen-world.ts'

const READY = '% left'
/** A duration that no other process on the machine sleeps for. */
const SLEEP = `sleep ${(200 + Math.random()).toFixed(9)}`
const script = playSteps('Hello.')

async function openWithRunningCommand(command = SLEEP): Promise<ScreenWorld> {
  const steps = playSteps({ Bash: { command } }, 'Woken.', 'Done.')
  const world = await createScreenWorld(steps, { args: ['--permission-mode', 'allow-all'] })
  await world.see(READY)
  await world.send('Sleep.')
  await world.see(`◐ Bash ${command}`)
  return world
}

/** The shell waits for a command. What is typed before that, while it ends another one, may be lost. */
const PROMPT = /\n[#$]\s*$/

/** The state of the terminal, as a program that is started next finds it. */
async function readTerminalState({ see, tmux, type, press }: ScreenWorld) {
  await see(PROMPT)
  const [cursor, second, title] = tmux(
    'display-message',
    '-t',
    's',
    '-p',
    '#{cursor_flag} #{alternate_on} #{pane_title}',
  )
    .trim()
    .split(' ')
  // A terminal marks what is pasted only if it was asked to.
  await type('cat -v')
  press('Enter')
  tmux('set-buffer', 'pasted text')
  tmux('paste-buffer', '-p', '-t', 's')
  press('Enter')
  // The second one is written by `cat`. Ctrl+C before it runs would reach the shell alone, and `cat` would not end.
  const screen = await see(/pasted text.*\n.*pasted text/)
  press('C-c')
  await see(PROMPT)
  return {
    isCursorShown: cursor === '1',
    isOnSecondScreen: second === '1',
    marksPastes: screen.includes('^[[200~'),
    title,
  }
}

/** Lets the next frame fail. */
const BREAK_COLUMNS = `process.on("SIGUSR2", () => Object.defineProperty(process.stdout, "columns", {
  get() { throw new Error("no columns") }
}))`

/** Lets the main thread never answer again, as a fault in a loop would, but without using a core. */
const HANG = 'process.on("SIGUSR2", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))'

const AS_BEFORE = { isCursorShown: true, isOnSecondScreen: false, marksPastes: false }

/** Listing all processes of a machine takes a while. */
const LISTING = { interval: 200 }

function countProcesses(command: string): number {
  const all = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
  return all.split('\n').filter((line) => line === command).length
}

describe.skipIf(!hasTmux)('the terminal is as before, and the session goes on', () => {
  it.each([
    ['SIGTERM', 143, 'a command runs', SLEEP],
    ['SIGHUP', 129, 'a command runs', SLEEP],
    ['SIGTERM', 143, 'a command runs that ignores the signal', `trap '' TERM; ${SLEEP}`],
  ] as const)('after %s (%i) while %s', async (signal, code, _what, command) => {
    const world = await openWithRunningCommand(command)
    process.kill(world.findPid(), signal)
    await world.see(new RegExp(`EXIT ${code}\\n icanon`))
    expect(await readTerminalState(world)).toMatchObject(AS_BEFORE)
    await expect.poll(() => countProcesses(SLEEP), LISTING).toBe(0)
  })

  it('after SIGTERM while a panel is open', async () => {
    const world = await createScreenWorld(script)
    await world.see(READY)
    await world.send('/help')
    await world.see('Commands')
    process.kill(world.findPid(), 'SIGTERM')
    await world.see(/EXIT 143\n icanon/)
    expect(await readTerminalState(world)).toMatchObject(AS_BEFORE)
  })

  it('after an exception while a frame is drawn', async () => {
    const world = await createScreenWorld(script, {
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(BREAK_COLUMNS)}` },
    })
    await world.see(READY)
    process.kill(world.findPid(), 'SIGUSR2')
    const screen = await world.see(/EXIT 1\n icanon/)
    expect(screen).toContain('tidemark: the screen failed: Error: no columns')
    expect(await readTerminalState(world)).toMatchObject(AS_BEFORE)
  })

  it('after the chat has hung for ten seconds: it says what was under way, how to go on, and is gone', async () => {
    // The watchdog does not end commands, so this one ends by itself.
    const command = 'sleep 30.5'
    const world = await createScreenWorld(playSteps({ Bash: { command } }, 'Woken.', 'Done.'), {
      args: ['--permission-mode', 'allow-all'],
      columns: 120,
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(HANG)}` },
    })
    await world.see(READY)
    await world.send('Sleep.')
    await world.see(`◐ Bash ${command}`)
    const pid = world.findPid()
    process.kill(pid, 'SIGUSR2')
    // Neither a key nor a signal reaches a chat that hangs.
    world.press('Escape')
    process.kill(pid, 'SIGTERM')
    const screen = await world.see(/EXIT 137\n icanon/)
    expect(screen).toContain('tidemark: nothing has moved for 10 s, so the command was ended. Under way: ')
    expect(screen).toContain(`Bash ${command}`)
    const [, resume = ''] = /To go on: tidemark (chat --resume \S+)/.exec(screen) ?? []
    expect(() => process.kill(pid, 0)).toThrow()
    // The key that the chat never read goes to the shell, and would be part of the next command.
    await world.see(PROMPT)
    world.press('Enter')
    await world.see(/not found\n[#$]\s*$/)
    expect(await readTerminalState(world)).toMatchObject(AS_BEFORE)
    world.restart(...resume.split(' ').slice(1))
    await world.see('Its last turn was interrupted: /retry continues it.')
  })

  it('a killed screen is gone on with where it was', async () => {
    const { findPid, see, send, tmux, restart } = await openWithRunningCommand('sleep 9.1')
    process.kill(findPid(), 'SIGKILL')
    await see('EXIT 137')
    // Nobody could give the terminal back, so the user opens another one.
    tmux('respawn-pane', '-k', '-t', 's', 'exec sh')
    restart('--continue')
    await see('Its last turn was interrupted: /retry continues it.')
    await send('Go on.')
    await see(/Woken\.|Done\./)
    await send('/exit')
    await see('EXIT 0')
  })

  it('nothing is left running if the terminal is closed', async () => {
    const { findPid, tmux } = await openWithRunningCommand()
    const pid = findPid()
    tmux('kill-session', '-t', 's')
    const isAlive = (): boolean => {
      try {
        return process.kill(pid, 0)
      } catch {
        return false
      }
    }
    await expect.poll(() => [isAlive(), countProcesses(SLEEP)], LISTING).toEqual([false, 0])
  })
})

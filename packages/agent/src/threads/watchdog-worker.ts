/** The watchdog's thread: restores the terminal, reports the running work, and ends the process. */
import { spawnSync } from 'node:child_process'
import { writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { WatchdogData } from './watchdog.ts'

const { beats, resumeCommand, isOnScreen, limitMs } = workerData as WatchdogData

/**
 * Milliseconds per tick. Time is counted in ticks of this thread, which also stop or slow down while the process is stopped, or the machine
 * is asleep or busy.
 */
const TICK_MS = 250
let work = 'the start'
let known = -1
let ticks = 0

parentPort?.on('message', (reported: string) => {
  work = reported
})
setInterval(() => {
  const beat = Atomics.load(beats, 0)
  ticks = beat === known ? ticks + 1 : 0
  known = beat
  if (ticks * TICK_MS >= limitMs) endProcess()
}, TICK_MS)

/** Leaves the second screen, ends key reports and the like, and goes to the last line of the terminal. */
const LEAVE_SCREEN =
  '\u001b[?1049l\u001b[?2026l\u001b[?2004l\u001b[<u\u001b[>4;0m\u001b[?25h\u001b[0m\u001b[999;1H\r\n'

function endProcess(): void {
  try {
    if (isOnScreen) {
      writeSync(1, LEAVE_SCREEN)
      // A thread cannot set the modes of the terminal itself, so `stty` does.
      spawnSync('stty', ['sane'], { stdio: [0, 'ignore', 'ignore'], timeout: 2_000 })
    }
    writeSync(
      2,
      `tidemark: nothing has moved for ${Math.round(limitMs / 1000)} s, so the command was ended. Under way: ${work}\nTo go on: ${resumeCommand}\n`,
    )
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

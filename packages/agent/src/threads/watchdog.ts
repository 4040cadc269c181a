/**
 * Ends the process if its main thread does not answer for a long time, as in a loop that never ends: then no key and no
 * signal but SIGKILL would, and the terminal would stay as the screen has set it.
 */
import { url as inspectorUrl } from 'node:inspector'
import { startWorker } from './start-worker.ts'

interface Watchdog {
  /** Notes what is under way, for the message. */
  report(work: string): void
  stop(): void
}

export interface WatchdogData {
  /** Counts up while the main thread answers. */
  readonly beats: Int32Array
  /** How the session can be continued. */
  readonly resumeCommand: string
  /** True if the terminal shows a screen, which must be left. */
  readonly isOnScreen: boolean
  readonly limitMs: number
}

const BEAT_MS = 500
const DEFAULT_LIMIT_MS = 10_000

/** Starts to watch. In a debugger, where the main thread stops at breakpoints, nothing is watched. */
export function startWatchdog(
  options: Pick<WatchdogData, 'resumeCommand' | 'isOnScreen'> & { readonly limitMs?: number },
): Watchdog {
  if (inspectorUrl() !== undefined) return { report() {}, stop() {} }
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const data: WatchdogData = { limitMs: DEFAULT_LIMIT_MS, ...options, beats }
  const worker = startWorker('watchdog-worker', data)
  // Without the thread the command works as well, unwatched.
  worker.on('error', () => undefined).unref()
  const timer = setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS)
  timer.unref()
  return {
    report: (work) => worker.postMessage(work),
    stop() {
      clearInterval(timer)
      void worker.terminate()
    },
  }
}

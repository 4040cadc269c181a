/**
 * Ends the process if its main thread does not respond for a long time, for example in an endless loop. Otherwise only SIGKILL would end
 * it, and the terminal would stay in the modes of the screen.
 */
import { url as inspectorUrl } from 'node:inspector'
import { startWorker } from './start-worker.ts'

interface Watchdog {
  /** Stores a description of the running work, for the message. */
  report(work: string): void
  stop(): void
}

/** What the thread of the watchdog gets. */
export interface WatchdogData {
  /** A counter that grows while the main thread responds. */
  readonly beats: Int32Array
  /** The command with which the session can be continued. */
  readonly resumeCommand: string
  /** True if the terminal shows a screen, which must be left. */
  readonly isOnScreen: boolean
  readonly limitMs: number
}

const BEAT_MS = 500
const DEFAULT_LIMIT_MS = 10_000

/**
 * Starts to watch. `limitMs`: time without a response after which the process is ended. Does nothing under a debugger, which
 * stops the thread.
 */
export function startWatchdog(
  options: Pick<WatchdogData, 'resumeCommand' | 'isOnScreen'> & { readonly limitMs?: number },
): Watchdog {
  if (inspectorUrl() !== undefined) return { report() {}, stop() {} }
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const data: WatchdogData = { limitMs: DEFAULT_LIMIT_MS, ...options, beats }
  const worker = startWorker('watchdog-worker', data)
  // If the thread fails, the command continues without a watchdog.
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

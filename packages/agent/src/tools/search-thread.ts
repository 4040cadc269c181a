/**
 * Runs file searches in a thread. The repository decides how long a search takes: its ignore files, names and texts may be made to be slow.
 * The main thread stays responsive meanwhile, and can end the search at any time.
 */
import type { Worker } from 'node:worker_threads'
import { startWorker } from '../threads/start-worker.ts'
import type { SearchTask } from './search-task.ts'
import type { SearchMessage } from './search-worker.ts'
import { ToolError } from './tool-definition.ts'

export interface SearchLimits {
  readonly signal: AbortSignal
  /** Time at which the search ends, in milliseconds like `now`. */
  readonly deadline: number
  readonly now: () => number
}

/** Idle threads, which are reused, because starting one takes longer than most searches. */
const idle: Worker[] = []
const MAX_IDLE = 2
/** Milliseconds that a thread gets at least, because its start alone takes a part of them. */
const LEAST_MS = 2_000

/**
 * Runs a task and calls `takeItem` with each result until it returns false. `isCut`: the search ended early. Throws a `ToolError` if the
 * task cannot be run, and the abort reason of the signal.
 */
export async function runSearchInThread<T>(
  task: SearchTask,
  { signal, deadline, now }: SearchLimits,
  takeItem: (item: T) => boolean,
): Promise<{ readonly isCut: boolean }> {
  signal.throwIfAborted()
  const worker = idle.pop() ?? startWorker('search-worker')
  const ended = Promise.withResolvers<{ readonly isCut: boolean }>()
  const endEarly = (): void => ended.resolve({ isCut: true })
  const abort = (): void => ended.reject(signal.reason)
  const read = (message: SearchMessage): void => {
    if (message.type === 'end') {
      if (message.problem === null) ended.resolve({ isCut: false })
      else ended.reject(new ToolError(message.problem))
    } else if (!message.items.every((item) => now() <= deadline && takeItem(item as T))) endEarly()
  }
  const fail = (error: unknown): void => ended.reject(error)
  const timer = setTimeout(endEarly, Math.max(LEAST_MS, deadline - now()))
  signal.addEventListener('abort', abort)
  worker.on('message', read).on('error', fail).ref()
  worker.postMessage(task)
  let isIdle = false
  try {
    const result = await ended.promise
    isIdle = !result.isCut
    return result
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    worker.off('message', read).off('error', fail).unref()
    if (isIdle && idle.length < MAX_IDLE) idle.push(worker)
    else void worker.terminate()
  }
}

/**
 * Reads logs of sessions for the page in a separate thread, so that the process does not delay the responses that it
 * passes on to agents. Reads one log at a time. A log that needs too much memory ends only the thread.
 */
import { Worker } from 'node:worker_threads'
import type { PageAnswer, SessionApiRequest } from '@tidemark/page/server/page-routes'
import type { SessionOwner } from 'tidemark/internal'

/** A question about the log of one session, with what the answer shows about the session. */
export interface LogQuestion {
  /** Names the session. */
  readonly id: string
  /** Number of lines of its log. */
  readonly version: number
  readonly modifiedMs: number
  readonly isLive: boolean
  readonly owner: SessionOwner
  /** The question of the page; null for a summary of the log. */
  readonly ask: SessionApiRequest | null
}

/** What is stored of a log, as JSON texts: its entry in the list of sessions (`listed`), and its cache breaks (`losses`). */
export interface LogSummary {
  readonly listed: string
  readonly losses: string
}

type LogAnswer<Ask> = Ask extends null ? LogSummary : PageAnswer

export interface LogReaderThread {
  /** Answers a question about a log. Calls `readLines` if the thread lacks the log. Rejects if the log cannot be read. */
  ask<Ask extends SessionApiRequest | null>(
    question: LogQuestion & { readonly ask: Ask },
    readLines: ReadLines,
  ): Promise<LogAnswer<Ask>>
  close(): Promise<void>
}

/** Returns the lines of a log in pieces, each small enough that other requests can wait for it. */
type ReadLines = () => AsyncIterable<readonly string[]>

/** A message to the thread: lines of a log that it lacks, or a question. `isNew`: the lines sent before are a new log. */
export type WorkerTask =
  | { readonly type: 'lines'; readonly lines: readonly string[] }
  | { readonly type: 'question'; readonly question: LogQuestion; readonly isNew: boolean }

/** A message from the thread: an answer, or the reason why there is none. */
export type WorkerReply =
  | { readonly ok: true; readonly answer: PageAnswer | LogSummary }
  | { readonly ok: false; readonly why: string }

/** Milliseconds without a question after which the thread ends and its log is freed. */
const IDLE_MS = 60_000
const MOST_HEAP_MB = 1_024
/** Maximum waiting questions; more are refused, so that one viewer cannot block all others. */
const MOST_WAITING = 20

/** Thrown if the log itself cannot be read, because it is damaged or too large. Asking again would give the same result. */
export class UnreadableLogError extends Error {}

/** Creates the reader. Its thread starts with the first question, and ends after a minute without one. */
export function createLogReaderThread(): LogReaderThread {
  let worker: Worker | null = null
  let held: { readonly id: string; readonly version: number } | null = null
  let last: Promise<unknown> = Promise.resolve()
  let idle: NodeJS.Timeout | undefined
  let waiting = 0
  let isClosed = false

  async function stop(): Promise<void> {
    const ending = worker
    worker = null
    held = null
    await ending?.terminate()
  }

  async function run(question: LogQuestion, readLines: ReadLines): Promise<unknown> {
    if (isClosed) throw new Error('The gateway is ending.')
    clearTimeout(idle)
    try {
      const isHeld = worker !== null && held?.id === question.id && held.version === question.version
      worker ??= startWorker()
      held = null
      const reply = await askWorker(worker, question, isHeld ? null : readLines())
      if (!reply.ok) throw new UnreadableLogError(reply.why)
      held = { id: question.id, version: question.version }
      return reply.answer
    } catch (thrown) {
      await stop()
      throw thrown
    } finally {
      idle = setTimeout(() => void stop(), IDLE_MS)
      idle.unref()
    }
  }

  return {
    ask(question, readLines) {
      if (waiting >= MOST_WAITING)
        return Promise.reject(new Error('Too many sessions are being read. Try again soon.'))
      waiting += 1
      const answer = last
        .then(() => run(question, readLines))
        .finally(() => {
          waiting -= 1
        }) as Promise<never>
      last = answer.catch(() => {})
      return answer
    },
    async close() {
      isClosed = true
      clearTimeout(idle)
      await stop()
      await last
      await stop()
    },
  }
}

function startWorker(): Worker {
  const isSource = import.meta.url.endsWith('.ts')
  const entry = new URL(`./log-reader-worker.${isSource ? 'ts' : 'mjs'}`, import.meta.url)
  // A thread does not inherit the module hooks that resolve packages to their sources.
  const execArgv = isSource ? ['--conditions=tidemark-source'] : []
  const worker = new Worker(entry, {
    execArgv,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB },
  })
  worker.unref()
  return worker
}

/** Sends the lines, if given, then the question. Returns the answer; rejects if the thread ends before it. */
async function askWorker(
  worker: Worker,
  question: LogQuestion,
  log: AsyncIterable<readonly string[]> | null,
): Promise<WorkerReply> {
  const { promise, resolve, reject } = Promise.withResolvers<WorkerReply>()
  let hasEnded = false
  const onError = (error: Error & { readonly code?: string }): void => {
    hasEnded = true
    const isTooLarge = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    reject(isTooLarge ? new UnreadableLogError('its log is too large for the page.') : error)
  }
  const onExit = (): void => onError(new Error('The reader of logs was stopped.'))
  const post = (task: WorkerTask): void => worker.postMessage(task)
  // A thread may end before it has the question.
  promise.catch(() => {})
  worker.on('message', resolve).on('error', onError).on('exit', onExit)
  worker.ref()
  try {
    for await (const lines of log ?? []) {
      if (hasEnded) break
      post({ type: 'lines', lines })
    }
    post({ type: 'question', question, isNew: log !== null })
    return await promise
  } finally {
    worker.off('message', resolve).off('error', onError).off('exit', onExit)
    worker.unref()
  }
}

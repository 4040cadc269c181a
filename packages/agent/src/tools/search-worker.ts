/** The thread for file searches. Runs one task after the other, and posts the results. */
import { parentPort } from 'node:worker_threads'
import { runSearchTask, type SearchTask } from './search-task.ts'
import { ToolError } from './tool-definition.ts'

/** A message of the thread: results, or the end of the task, with an error for the model if it failed. */
export type SearchMessage =
  | { readonly type: 'found'; readonly items: readonly unknown[] }
  | { readonly type: 'end'; readonly problem: string | null }

/** Results are posted in batches of this many, or after `BATCH_MS` milliseconds. */
const BATCH_ITEMS = 200
const BATCH_MS = 50

parentPort?.on('message', (task: SearchTask) => {
  void run(task)
})

async function run(task: SearchTask): Promise<void> {
  const post = (message: SearchMessage): void => parentPort?.postMessage(message)
  try {
    let items: unknown[] = []
    let postedAt = performance.now()
    for await (const item of runSearchTask(task)) {
      items.push(item)
      if (items.length < BATCH_ITEMS && performance.now() - postedAt < BATCH_MS) continue
      post({ type: 'found', items })
      items = []
      postedAt = performance.now()
    }
    post({ type: 'found', items })
    post({ type: 'end', problem: null })
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    post({ type: 'end', problem: error.message })
  }
}

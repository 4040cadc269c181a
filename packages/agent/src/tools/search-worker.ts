/** The thread in which searches over files run. Takes tasks, one after the other, and posts what they find. */
import { parentPort } from 'node:worker_threads'
import { runSearch, type SearchTask } from './search-task.ts'
import { ToolError } from './tool-definition.ts'

/** What the thread posts: things that were found, or the end of the task with the error for the model, if there is one. */
export type SearchMessage =
  | { readonly type: 'found'; readonly items: readonly unknown[] }
  | { readonly type: 'end'; readonly problem: string | null }

/** Things found are posted together, so many or so many milliseconds later. */
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
    for await (const item of runSearch(task)) {
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

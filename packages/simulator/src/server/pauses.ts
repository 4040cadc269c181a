/** Runs steps in slices, with a pause between two slices in which other requests are served. */
import { setImmediate } from 'node:timers/promises'
import { runInSlices, type Steps } from '@tidemark/core/log/work-steps'

export async function runWithPauses<Result>(steps: Steps<Result>): Promise<Result> {
  // The cast is safe because no pause aborts the work.
  return (await runInSlices(steps, () => setImmediate(true))) as Result
}

/** Runs work on a request in slices, so that a large one does not hold up other requests for as long as all of it takes. */
import { setImmediate } from 'node:timers/promises'
import { runInSlices, type Steps } from '@tidemark/core/log/work-steps'

export async function runWithPauses<Result>(steps: Steps<Result>): Promise<Result> {
  // The cast is safe because no pause gives the work up.
  return (await runInSlices(steps, () => setImmediate(true))) as Result
}

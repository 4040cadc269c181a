/** Runs steps in slices, with a pause between two slices in which other requests are served. */
import { setImmediate } from 'node:timers/promises'
import { runStepsInSlices, type WorkInSteps } from '@tidemark/core/log/work-steps'

export async function runWithPauses<Result>(steps: WorkInSteps<Result>): Promise<Result> {
  // The cast is safe because no pause aborts the work.
  return (await runStepsInSlices(steps, () => setImmediate(true))) as Result
}

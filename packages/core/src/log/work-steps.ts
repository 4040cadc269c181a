/**
 * Long work in steps, so that a long session does not hold the event loop: between two slices of steps the host runs
 * other work. The work is cut by what is read, not by time, so that it is cut in the same places in every run.
 *
 * Steps read only what they were given, since messages may be appended during a pause.
 */

/**
 * Work that can be interrupted. Each `yield` tells how many characters were read since the last one, or as many as would
 * have taken the same time.
 */
export type Steps<Result> = Generator<number, Result, void>

/** Runs work to its end without a pause. */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** Characters that are read in one slice: a few milliseconds of work. */
const SLICE_CHARACTERS = 80_000

/** Runs work in slices, with a pause after each. Returns null if `pause` returns false: the work is then given up. */
export async function runInSlices<Result>(
  steps: Steps<Result>,
  pause: () => Promise<boolean>,
): Promise<Result | null> {
  let characters = 0
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    characters += step.value
    if (characters < SLICE_CHARACTERS) continue
    characters = 0
    if (!(await pause())) return null
  }
}

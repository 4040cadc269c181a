/**
 * Long work in steps, so that a long session does not block the event loop: the host runs other work between two slices of
 * steps. Slices are cut by the characters read and not by time, so that every run is cut in the same places.
 *
 * Steps read only what they were given, since messages may be appended during a pause.
 */

/**
 * Work that can be interrupted at each `yield`, which tells its cost: the characters read since the last one, or as many as
 * would have taken the same time. Nothing happens until it is run.
 */
export type WorkInSteps<Result> = Generator<number, Result, void>

/** Runs work to its end without a pause. */
export function runStepsAtOnce<Result>(steps: WorkInSteps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** Characters that are read in one slice: a few milliseconds of work. */
const SLICE_CHARACTERS = 80_000

/** Runs work in slices, with a pause after each. If `pause` returns false, the work is given up and null is returned. */
export async function runStepsInSlices<Result>(
  steps: WorkInSteps<Result>,
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

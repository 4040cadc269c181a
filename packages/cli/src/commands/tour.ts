/** `tidemark tour`: prints the tour, one screen at a time in a terminal, or as one JSON value. */
import { createScreen } from '../render/screen.ts'
import type { Terminal } from '../terminal.ts'
import { playTour } from '../tour/tour.ts'
import { renderTourStep, type TourStep } from '../tour/tour-steps.ts'
import { EXIT_CODES } from './exit-codes.ts'

/** Returns the exit code: `failed` if a statement about what survived turned out to be false. */
export async function runTourCommand(
  options: { readonly json?: boolean },
  terminal: Terminal,
): Promise<number> {
  const steps: TourStep[] = []
  const show = options.json === true ? async () => 'next' as const : createStepPrinter(terminal)
  for await (const step of playTour(terminal.interrupted)) {
    if (terminal.interrupted?.aborted === true) return EXIT_CODES.interrupted
    const answer = await show(step)
    if (answer !== 'next') return answer === 'stop' ? EXIT_CODES.done : EXIT_CODES.interrupted
    steps.push(step)
  }
  if (options.json === true) terminal.write(`${JSON.stringify({ steps }, null, 2)}\n`)
  return steps.every((step) => step.kind !== 'check' || step.isTrue) ? EXIT_CODES.done : EXIT_CODES.failed
}

type UserAnswer = 'next' | 'stop' | 'interrupted'

/** Creates a function that prints a step. Before each screen but the first, it waits for the user. */
function createStepPrinter(terminal: Terminal): (step: TourStep) => Promise<UserAnswer> {
  const screen = createScreen(terminal)
  let isFirst = true
  return async (step) => {
    const answer = step.kind === 'scene' && !isFirst ? await waitForUser(terminal) : 'next'
    isFirst = false
    if (answer === 'next') terminal.write(renderTourStep(step, screen))
    return answer
  }
}

/** Waits until the user wants the next screen. Without a terminal, nobody is asked. */
async function waitForUser(terminal: Terminal): Promise<UserAnswer> {
  if (!terminal.isTty || terminal.isInputTty !== true || terminal.ask === undefined) return 'next'
  const answer = await terminal.ask('\n  Enter: next screen   q: stop  ')
  if (answer === null) return 'interrupted'
  return /^q/i.test(answer.trim()) ? 'stop' : 'next'
}

/** `tidemark tour`: the sample session inspected, then brought past its window on a simulated model, act by act. */
import { screenFor } from '../render/screen.ts'
import { wrap } from '../render/text.ts'
import { SAMPLE_PATH } from '../sample-session.ts'
import type { Terminal } from '../terminal.ts'
import { playTour } from '../tour/play-tour.ts'
import { stepText, type TourStep } from '../tour/tour-steps.ts'
import { inspect } from './inspect.ts'

export async function tour(options: { readonly json?: boolean }, terminal: Terminal): Promise<number> {
  return options.json === true ? asJson(terminal) : shown(terminal)
}

async function shown(terminal: Terminal): Promise<number> {
  const code = await inspect([SAMPLE_PATH], {}, terminal)
  const screen = screenFor(terminal)
  for await (const step of playTour()) {
    terminal.write(stepText(step, screen))
    if (terminal.interrupted?.aborted === true) break
  }
  terminal.write(`\n${wrap(NEXT, screen.columns).join('\n')}\n`)
  return code
}

const NEXT =
  'Nothing of this cost anything or left this machine. Next: tidemark inspect (your own sessions), tidemark compact FILE, docs/library.md.'

async function asJson(terminal: Terminal): Promise<number> {
  const steps: TourStep[] = []
  for await (const step of playTour()) steps.push(step)
  terminal.write(`${JSON.stringify({ steps }, null, 2)}\n`)
  return 0
}

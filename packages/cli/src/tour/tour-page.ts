/** The steps of the tour as they are shown: scenes as headings, acts marked, long lines wrapped. */
import type { Screen } from '../render/screen.ts'
import { wrap } from '../render/wrap.ts'
import type { TourStep } from './tour-step.ts'

export function stepText({ kind, text }: TourStep, screen: Screen): string {
  const { colors } = screen
  if (kind === 'scene') return `\n${wrap(text, screen.columns).map(colors.bold).join('\n')}\n`
  const lines = wrap(text, screen.columns, kind === 'act' ? '  * ' : '  ')
  const shown = kind === 'act' ? lines.map((one) => colors.cyan(one)) : lines
  return `${shown.join('\n')}\n`
}

/** The lines around the input: what runs, the queue, the prompt sign, the meter and a hint. */
import { truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { sanitizeText } from '@tidemark/terminal/render/text'
import { drawMeter, type MeterReading } from './context-meter.ts'
import type { ScreenTheme } from './theme.ts'

/** What the lines around the input say at this moment. */
export interface ScreenState {
  /** What is being done, and for how long; null if nothing is. */
  readonly status: { readonly text: string; readonly progress: string } | null
  readonly queue: readonly string[]
  readonly meter: MeterReading | null
  /** A short remark below the input, such as that Ctrl-C exits. */
  readonly hint: string
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
/** Milliseconds of a step of the spinner. */
export const SPIN_MS = 120

/** Draws what is being done and what is queued. The seconds stay visible, however long the text is. */
export function drawStatus(
  { status, queue }: ScreenState,
  at: {
    readonly width: number
    readonly theme: ScreenTheme
    readonly now: number
    readonly isAsking: boolean
  },
): readonly string[] {
  const { width, now } = at
  const { colors } = at.theme
  const spinner = SPINNER[Math.floor(now / SPIN_MS) % SPINNER.length] ?? ''
  const end = `${status?.progress ?? ''} · esc interrupts`
  const text = truncateToWidth(status?.text ?? '', Math.max(1, width - visibleWidth(end) - 2), '…')
  const line = at.isAsking
    ? colors.dim('  waiting for your answer')
    : status === null
      ? ''
      : `${colors.cyan(spinner)} ${text}${colors.dim(end)}`
  const queued = queue.map((text) => {
    const [first = '', ...others] = text.trim().split('\n')
    const more = others.length === 0 ? '' : ` (+${formatCount(others.length, 'line')})`
    return colors.dim(`${truncateToWidth(`  queued: ${sanitizeText(first)}`, width - more.length)}${more}`)
  })
  return ['', ...(line === '' ? [] : [truncateToWidth(line, width)]), ...queued]
}

/** What the input says before the first prompt. */
export const PLACEHOLDER = 'Type a task, / for commands, @ for files'

/** Puts the prompt sign before the first line of the input, and what can be typed into an empty one. */
export function drawInput(
  lines: readonly string[],
  at: {
    readonly isEmpty: boolean
    readonly isAsking: boolean
    readonly hint: string
    readonly theme: ScreenTheme
  },
): readonly string[] {
  const { colors } = at.theme
  const [border = '', first = '', ...rest] = lines
  if (at.isAsking || !first.startsWith('  ')) return lines
  const sign = `${colors.cyan('❯')} `
  const text = first.slice(2)
  const room = visibleWidth(text) - 1
  if (!at.isEmpty || at.hint === '' || room < visibleWidth(at.hint))
    return [border, `${sign}${text}`, ...rest]
  return [border, `${sign}${text.trimEnd()}${colors.dim(at.hint)}`, ...rest]
}

/** Draws the meter and the hint below the input. */
export function drawFoot(
  state: ScreenState,
  width: number,
  theme: ScreenTheme,
  now: number,
): readonly string[] {
  const meter = state.meter === null ? [] : drawMeter(state.meter, now, width, theme)
  return [...meter, ...(state.hint === '' ? [] : [theme.colors.dim(truncateToWidth(state.hint, width))])]
}

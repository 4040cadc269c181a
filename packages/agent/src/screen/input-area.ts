/** The lines around the input: running work, the queue, the prompt sign, the meter and a hint. */
import { truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { toSafeLine } from '@tidemark/terminal/render/text'
import { drawMeter, type MeterReading } from './context-meter.ts'
import type { ScreenTheme } from './theme.ts'

/** The content of the lines around the input. */
export interface InputAreaState {
  /** The running work and its duration; null if nothing runs. */
  readonly status: { readonly text: string; readonly progress: string } | null
  readonly queue: readonly string[]
  readonly meter: MeterReading | null
  /** A short hint below the input, such as how to exit. */
  readonly hint: string
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
/** Milliseconds for each step of the spinner. */
export const SPIN_MS = 120

/** Draws running work and queued prompts. The seconds stay visible, even if the text must be cut. */
export function drawStatus(
  { status, queue }: InputAreaState,
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
    return colors.dim(`${truncateToWidth(`  queued: ${toSafeLine(first)}`, width - more.length)}${more}`)
  })
  return ['', ...(line === '' ? [] : [truncateToWidth(line, width)]), ...queued]
}

/** Shown in the empty input before the first prompt. */
export const INPUT_PLACEHOLDER = 'Type a task, / for commands, @ for files'

/** Adds the prompt sign before the first line of the drawn input, and `hint` to an empty input. A question is left as it is. */
export function decorateInputLines(
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
export function drawMeterAndHint(
  state: InputAreaState,
  width: number,
  theme: ScreenTheme,
  now: number,
): readonly string[] {
  const meter = state.meter === null ? [] : drawMeter(state.meter, now, width, theme)
  return [...meter, ...(state.hint === '' ? [] : [theme.colors.dim(truncateToWidth(state.hint, width))])]
}

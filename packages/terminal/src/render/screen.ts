/** Properties of the terminal screen that output is rendered for: width, colours, symbols and time zone. */
import type { Colors } from 'picocolors/types.js'
import { createColors, type Terminal } from '../terminal.ts'

export interface Screen {
  /** Width of a page, between `MIN_COLUMNS` and `MAX_COLUMNS`. */
  readonly columns: number
  readonly colors: Colors
  readonly symbols: ScreenSymbols
  readonly time: TimeFormat
}

/** Minimum width of a page, also on a narrower screen, because tables need it. */
const MIN_COLUMNS = 60
/** Maximum width of a page, because longer lines are hard to read. */
const MAX_COLUMNS = 160

export function createScreen(terminal: Terminal): Screen {
  return {
    columns: Math.min(MAX_COLUMNS, Math.max(MIN_COLUMNS, terminal.columns)),
    colors: createColors(terminal),
    symbols: chooseSymbols(terminal.env),
    time: createTimeFormat(terminal.env.TZ),
  }
}

/** Characters for lines, bars and marks: Unicode, or ASCII if the terminal may not support Unicode. */
export interface ScreenSymbols {
  /** Characters for a cell that is filled from the bottom, from one eighth to full. */
  readonly columns: readonly string[]
  /** Characters for a cell that is filled from the left: half and full. */
  readonly bars: readonly string[]
  readonly axis: string
  readonly corner: string
  readonly floor: string
  /** Symbol that draws the line at the auto-compact threshold. */
  readonly rule: string
  /** Symbol that draws the line at the size of the context window. */
  readonly edge: string
  readonly compacted: string
  readonly cleared: string
  readonly arrow: string
  readonly dot: string
  readonly dash: string
  readonly times: string
  readonly warning: string
  readonly more: string
  /** Mark for a statement that is true. */
  readonly yes: string
  /** Mark for a statement that is false. */
  readonly no: string
}

const UNICODE: ScreenSymbols = {
  columns: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
  bars: ['╸', '━'],
  axis: '┤',
  corner: '└',
  floor: '─',
  rule: '╌',
  edge: '─',
  compacted: '▲',
  cleared: '△',
  arrow: '→',
  dot: '·',
  dash: '–',
  times: '×',
  warning: '!',
  more: '…',
  yes: '✓',
  no: '✗',
}

const ASCII: ScreenSymbols = {
  columns: ['.', '.', '.', ':', ':', ':', '#', '#'],
  bars: ['-', '='],
  axis: '|',
  corner: '+',
  floor: '-',
  rule: '-',
  edge: '=',
  compacted: '^',
  cleared: '~',
  arrow: '->',
  dot: '-',
  dash: '-',
  times: 'x',
  warning: '!',
  more: '...',
  yes: 'ok',
  no: 'NO',
}

export function chooseSymbols(env: Readonly<Record<string, string | undefined>>): ScreenSymbols {
  return supportsUnicode(env) ? UNICODE : ASCII
}

/** Terminals without Unicode unless the locale says otherwise: consoles, and emulations of old hardware. */
const OLD_TERMINAL = /^(linux|vt\d|ansi|cons\d|sun)/

/**
 * Returns whether the terminal supports Unicode. False for a locale that is not UTF-8, for the Linux console, old
 * terminals and the old Windows console.
 */
export function supportsUnicode(env: Readonly<Record<string, string | undefined>>): boolean {
  const locale = [env.LC_ALL, env.LC_CTYPE, env.LANG].find((value) => value !== undefined && value !== '')
  if (locale !== undefined) return /utf-?8/i.test(locale)
  if (OLD_TERMINAL.test(env.TERM ?? '')) return false
  return env.OS !== 'Windows_NT' || env.WT_SESSION !== undefined || env.TERM_PROGRAM !== undefined
}

/** Formats timestamps in the user's time zone; a timestamp that cannot be read becomes `?`. */
interface TimeFormat {
  /** Formats the day: 2026-03-09. */
  day(at: string): string
  /** Formats the time of day: 09:14. */
  time(at: string): string
  /** Formats day and time: 2026-03-09 09:14. */
  full(at: string): string
}

/** Creates a formatter for timestamps. `zone`: a name such as `Europe/Berlin`; default: the machine's time zone. */
export function createTimeFormat(zone: string | undefined): TimeFormat {
  const format = new Intl.DateTimeFormat('en-CA', { ...toTimeZoneOption(zone), ...TIME_FIELDS })
  function parts(at: string): { readonly day: string; readonly time: string } {
    const moment = Date.parse(at)
    if (Number.isNaN(moment)) return { day: '?', time: '?' }
    const found = Object.fromEntries(format.formatToParts(moment).map(({ type, value }) => [type, value]))
    return {
      day: `${found.year}-${found.month}-${found.day}`,
      time: `${found.hour}:${found.minute}`,
    }
  }
  return {
    day: (at) => parts(at).day,
    time: (at) => parts(at).time,
    full: (at) => `${parts(at).day} ${parts(at).time}`,
  }
}

const TIME_FIELDS: Intl.DateTimeFormatOptions = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
}

/**
 * Returns the `timeZone` option for `Intl.DateTimeFormat`. Empty if JavaScript does not support the zone, such as a
 * POSIX value of `TZ`.
 */
function toTimeZoneOption(zone: string | undefined): Intl.DateTimeFormatOptions {
  if (zone === undefined || zone === '') return {}
  try {
    new Intl.DateTimeFormat('en-CA', { timeZone: zone })
    return { timeZone: zone }
  } catch {
    return {}
  }
}

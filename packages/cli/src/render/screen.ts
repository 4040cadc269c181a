/** What a page is drawn on: how wide, in which colours, with which characters, by whose clock. */
import type { Colors } from 'picocolors/types.js'
import { colorsFor, type Terminal } from '../terminal.ts'

export interface Screen {
  readonly columns: number
  readonly colors: Colors
  readonly symbols: Symbols
  readonly moments: Moments
}

/** Narrower than this no table reads well; wider than that no line does. */
const NARROWEST = 60
const WIDEST = 160

export function screenFor(terminal: Terminal): Screen {
  return {
    columns: Math.min(WIDEST, Math.max(NARROWEST, terminal.columns)),
    colors: colorsFor(terminal),
    symbols: symbolsFor(terminal.env),
    moments: momentsIn(terminal.env.TZ),
  }
}

/** What lines, bars and marks are drawn with: by choice Unicode, and ASCII where a terminal is not said to take it. */
export interface Symbols {
  /** Eighths of a cell, from below, from one to all. */
  readonly columns: readonly string[]
  /** Parts of a cell, from the left, the last of them all. */
  readonly bars: readonly string[]
  readonly axis: string
  readonly corner: string
  readonly floor: string
  /** The line at which a host compacts. */
  readonly rule: string
  /** The line at which the window ends. */
  readonly edge: string
  readonly compacted: string
  readonly cleared: string
  readonly arrow: string
  readonly dot: string
  readonly dash: string
  readonly times: string
  readonly warning: string
  readonly more: string
}

const UNICODE: Symbols = {
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
}

const ASCII: Symbols = {
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
}

export function symbolsFor(env: Readonly<Record<string, string | undefined>>): Symbols {
  return takesUnicode(env) ? UNICODE : ASCII
}

/** A locale that is named and is not UTF-8 says no; so do the Linux console and the old one of Windows. */
function takesUnicode(env: Readonly<Record<string, string | undefined>>): boolean {
  const locale = [env.LC_ALL, env.LC_CTYPE, env.LANG].find((value) => value !== undefined && value !== '')
  if (locale !== undefined) return /utf-?8/i.test(locale)
  if (env.TERM === 'linux') return false
  return env.OS !== 'Windows_NT' || env.WT_SESSION !== undefined || env.TERM_PROGRAM !== undefined
}

/** Moments as the person's own clock shows them. */
export interface Moments {
  /** 2026-03-09 */
  day(at: string): string
  /** 09:14 */
  time(at: string): string
  /** 2026-03-09 09:14 */
  full(at: string): string
}

/** `zone`: a name as in `Europe/Berlin`; without one, the machine's own. */
export function momentsIn(zone: string | undefined): Moments {
  const format = new Intl.DateTimeFormat('en-CA', { ...knownZone(zone), ...FIELDS })
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

const FIELDS: Intl.DateTimeFormatOptions = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
}

/** `TZ` may hold what only a C library understands. */
function knownZone(zone: string | undefined): Intl.DateTimeFormatOptions {
  if (zone === undefined || zone === '') return {}
  try {
    new Intl.DateTimeFormat('en-CA', { timeZone: zone })
    return { timeZone: zone }
  } catch {
    return {}
  }
}

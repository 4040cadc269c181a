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

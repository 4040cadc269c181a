/**
 * The context meter below the input: how full the window is and which thresholds lie ahead, how long the prompt cache
 * stays warm, what was spent and saved, and whether notes or a summary are ready for a compaction.
 */
import { truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import { isKnownRecord, type SessionRecord } from '@tidemark/core'
import type { ContextRemaining, CostTotals, Session, SessionEvent } from 'tidemark'
import { formatCost, formatDollars, formatLimit, formatTokens } from '../render/format-numbers.ts'
import { paintTone, type ScreenTheme, type Tone } from './theme.ts'

/** When the prompt cache expires, and how the notes stand, as the events of a session tell it. */
export interface CacheClock {
  apply(event: SessionEvent, now: number): void
  /** Adds records of a log that was written before. */
  replay(records: readonly SessionRecord[]): void
  /** Milliseconds since 1970; null before the first response and if nothing is cached. */
  readonly expiresAt: number | null
  readonly notes: 'none' | 'ready' | 'failing'
}

const TTL_MS: Readonly<Record<string, number>> = { '5m': 300_000, '1h': 3_600_000 }

export function createCacheClock(): CacheClock {
  let ttlMs: number | null = null
  let sentAt = 0
  let expiresAt: number | null = null
  let notes: CacheClock['notes'] = 'none'
  const readTtl = (name: string | undefined): void => {
    ttlMs = name === undefined ? null : (TTL_MS[name] ?? null)
  }
  const renew = (at: number): void => {
    if (ttlMs !== null) expiresAt = Math.max(expiresAt ?? 0, at + ttlMs)
  }
  return {
    get expiresAt() {
      return expiresAt
    },
    get notes() {
      return notes
    },
    apply(event, now) {
      if (event.type === 'epoch-opened') readTtl(event.epoch.ttl?.name)
      if (event.type === 'request-sent') sentAt = now
      if (event.type === 'answered') renew(sentAt)
      if (event.type === 'cache-kept-warm') expiresAt = event.expiresAt
      if (event.type === 'notes-updated') notes = 'ready'
      if (event.type === 'notes-failed') notes = 'failing'
    },
    replay(records) {
      for (const record of records.filter(isKnownRecord)) {
        if (record.type === 'system' && record.epoch !== undefined) readTtl(record.epoch.ttl?.name)
        if (record.type === 'assistant') renew(Date.parse(record.timestamp))
      }
    },
  }
}

export interface MeterReading {
  readonly remaining: ContextRemaining
  readonly money: CostTotals
  readonly prepared: ReturnType<Session['status']>['preparedSummary']
  readonly notes: CacheClock['notes']
  readonly expiresAt: number | null
  readonly model: string
  /** The permission mode, if it is not the usual one. */
  readonly mode: string | null
}

/** Returns the meter: one line, or two where the screen is narrow. */
export function drawMeter(
  reading: MeterReading,
  now: number,
  width: number,
  theme: ScreenTheme,
): readonly string[] {
  const { colors } = theme
  const parts = [
    drawWindow(reading, width, theme),
    describeCache(reading.expiresAt, now, theme),
    describeMoney(reading.money, theme),
    describePreparation(reading, theme),
    reading.mode === null ? '' : colors.magenta(reading.mode),
    colors.dim(reading.model),
  ].filter((part) => part !== '')
  const gap = colors.dim(' · ')
  const lines: string[] = []
  for (const part of parts) {
    const last = lines.at(-1)
    if (last !== undefined && visibleWidth(last) + visibleWidth(part) + 3 <= width)
      lines[lines.length - 1] = last + gap + part
    else lines.push(part)
  }
  return lines.slice(0, MAX_LINES).map((line) => truncateToWidth(line, width))
}

const MAX_LINES = 2

/** Columns from which the bar is drawn with more cells. */
const WIDE = 110

function drawWindow(
  { remaining }: MeterReading,
  width: number,
  { colors }: Pick<ScreenTheme, 'colors'>,
): string {
  const { lines, percentLeft, tokens } = remaining
  if (lines === null || percentLeft === null) return `${formatTokens(tokens)} tokens, window unknown`
  const tone = chooseTone(remaining)
  const bar = drawLadder(remaining, width >= WIDE ? 30 : 16, { colors })
  const paint = (text: string): string => paintTone(tone, text, colors)
  return `${bar} ${paint(`${percentLeft}% left`)} ${colors.dim(`${formatTokens(tokens)} of ${formatLimit(lines.limit)}`)}`
}

export function chooseTone({ ladder }: Pick<ContextRemaining, 'ladder'>): Tone {
  if (ladder === null) return 'plain'
  if (ladder.isAtBlockingLimit || ladder.isAboveErrorThreshold) return 'error'
  return ladder.isAboveWarningThreshold ? 'warning' : 'good'
}

/** Draws the window as a bar: what is used, and where the warning, the automatic compaction and the end lie. */
export function drawLadder(
  remaining: Pick<ContextRemaining, 'tokens' | 'lines' | 'ladder'>,
  cells: number,
  { colors }: Pick<ScreenTheme, 'colors'>,
): string {
  const { lines, tokens } = remaining
  if (lines === null) return ''
  const tone = chooseTone(remaining)
  const place = (amount: number): number =>
    Math.min(cells - 1, Math.max(0, Math.floor((amount / lines.window) * cells)))
  const marks = new Map([
    [place(lines.warning), colors.yellow('┊')],
    [place(lines.blocking), colors.red('┃')],
    [place(lines.limit), colors.cyan('▲')],
  ])
  const used = Math.min(cells, Math.round((tokens / lines.window) * cells))
  return Array.from({ length: cells }, (_, cell) => {
    if (cell < used || (cell === 0 && tokens > 0)) return paintTone(tone, '█', colors)
    return marks.get(cell) ?? colors.dim('░')
  }).join('')
}

function describeCache(expiresAt: number | null, now: number, { colors }: ScreenTheme): string {
  if (expiresAt === null) return ''
  const left = Math.ceil((expiresAt - now) / 1000)
  if (left <= 0) return colors.blue('cache cold')
  const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`
  return (left < 60 ? colors.yellow : colors.green)(`cache warm ${clock}`)
}

function describeMoney({ spent, savedByCache, calls }: CostTotals, { colors }: ScreenTheme): string {
  if (calls === 0) return ''
  const saved = savedByCache.known >= 0.005 ? colors.dim(`, ${formatDollars(savedByCache.known)} saved`) : ''
  return `${formatCost(spent.total, spent.priced)} spent${saved}`
}

function describePreparation({ prepared, notes }: MeterReading, { colors }: ScreenTheme): string {
  if (prepared === 'ready') return colors.green('summary ready')
  if (prepared === 'preparing') return colors.dim('preparing a summary')
  if (notes === 'none') return ''
  return notes === 'ready' ? colors.green('notes ready') : colors.yellow('notes failing')
}

/**
 * The context meter below the input: how full the window is, the next thresholds, when the prompt cache expires, what was spent and saved,
 * and whether notes or a summary are ready for a compaction.
 */

import { truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import {
  formatCost,
  formatDollars,
  formatTokenLimit,
  formatTokens,
} from '@tidemark/terminal/render/format-numbers'
import type { ContextRemaining, CostTotals, Session, SessionEvent } from 'tidemark'
import { isCompactBoundary, isKnownRecord, readCacheLifetime, type SessionRecord } from 'tidemark/records'
import { paintTone, type ScreenTheme, type Tone } from './theme.ts'

/** Follows the events of a session for two values of the meter: when the prompt cache expires, and the state of the notes. */
export interface MeterTracker {
  apply(event: SessionEvent, now: number): void
  /** Sets expiry and lifetime of the cache from the records of an existing log. */
  replay(records: readonly SessionRecord[]): void
  /** Milliseconds since 1970, in the past for a cold cache; null if unknown, as before the first response or after an undo. */
  readonly expiresAt: number | null
  readonly notes: 'none' | 'ready' | 'failing'
}

/** The two lifetimes that requests can choose from. A response reports which one it wrote. */
const ANTHROPIC_TTLS = { short: '5m', long: '1h' }
const OPENAI_TTLS = { short: '30m', long: '12h' }
/** Lifetimes in milliseconds. Providers that cache automatically guarantee none, so they are missing. */
const TTL_MS: Readonly<Record<string, number>> = {
  '5m': 300_000,
  '30m': 1_800_000,
  '1h': 3_600_000,
  '12h': 43_200_000,
}

/** `expiresAt` after a rewrite of the context, which is not in the cache yet. */
const COLD = 0

/** `hasNotes`: true if the session has stored notes already. */
export function createMeterTracker(hasNotes = false): MeterTracker {
  let ttl: string | null = null
  let sentAt = 0
  let expiresAt: number | null = null
  let notes: MeterTracker['notes'] = hasNotes ? 'ready' : 'none'
  const renew = (at: number, usage: Parameters<typeof readCacheLifetime>[0]): void => {
    const written = readCacheLifetime(usage)
    const own = Object.values(OPENAI_TTLS).includes(ttl ?? '') ? OPENAI_TTLS : ANTHROPIC_TTLS
    if (written !== null) ttl = own[written]
    const ttlMs = TTL_MS[ttl ?? '']
    if (ttlMs !== undefined) expiresAt = at + ttlMs
  }
  return {
    get expiresAt() {
      return expiresAt
    },
    get notes() {
      return notes
    },
    apply(event, now) {
      switch (event.type) {
        case 'request-sent':
          sentAt = now
          ttl = event.request.ttl
          break
        case 'answered':
          renew(sentAt, event.reply.usage)
          break
        case 'cache-kept-warm':
          expiresAt = event.expiresAt ?? COLD
          break
        case 'compact':
        case 'model-switched':
          if (expiresAt !== null) expiresAt = COLD
          break
        case 'undone':
        case 'branch-switched':
          // Whether the restored context is still cached is unknown.
          expiresAt = null
          break
        case 'notes-updated':
          notes = 'ready'
          break
        case 'notes-failed':
          notes = 'failing'
          break
      }
    },
    replay(records) {
      for (const record of records.filter(isKnownRecord)) {
        if (record.type === 'system' && record.epoch !== undefined) ttl = record.epoch.ttl?.name ?? null
        if (record.type === 'assistant') renew(Date.parse(record.timestamp), record.usage)
        if (isCompactBoundary(record)) expiresAt = COLD
      }
    },
  }
}

/** The values that the meter shows. */
export interface MeterReading {
  readonly remaining: ContextRemaining
  readonly money: CostTotals
  readonly prepared: ReturnType<Session['status']>['preparedSummary']
  readonly notes: MeterTracker['notes']
  readonly expiresAt: number | null
  readonly model: string
  /** The permission mode, if it is not the default. */
  readonly mode: string | null
}

/** Draws the meter: one line, or two on a narrow screen. What does not fit is left out, least important first. */
export function drawMeter(
  reading: MeterReading,
  now: number,
  width: number,
  theme: ScreenTheme,
): readonly string[] {
  const { colors } = theme
  const { spent, saved } = describeMoney(reading.money, theme)
  const ready = describePreparation(reading, theme)
  const most = width >= WIDE ? 1 : 2
  const join = (parts: readonly string[]): string =>
    parts.filter((part) => part !== '').join(colors.dim(' · '))
  for (const [cells, money, notes] of [
    [CELLS, spent + saved, ready],
    [SHORT_CELLS, spent + saved, ready],
    [SHORT_CELLS, spent, ready],
    [SHORT_CELLS, spent, ''],
  ] as const) {
    const first = [drawWindow(reading, cells, theme), describeCache(reading.expiresAt, now, theme)]
    const mode = reading.mode === null ? '' : colors.magenta(reading.mode)
    const second = [money, notes, mode, colors.dim(reading.model)]
    const whole = join([...first, ...second])
    const lines = visibleWidth(whole) <= width ? [whole] : [join(first), join(second)]
    const fits = lines.length <= most && lines.every((line) => visibleWidth(line) <= width)
    if (fits || (notes === '' && money === spent)) return lines.map((line) => truncateToWidth(line, width))
  }
  return []
}

/** Minimum columns for a meter on one line. */
const WIDE = 110
/** Cells of the bar on a wide screen, and on a narrow one. */
const CELLS = 16
const SHORT_CELLS = 10

/** Draws the part of the window until automatic compaction. Bar, percentage and figures use this one scale. */
function drawWindow(
  { remaining }: MeterReading,
  cells: number,
  { colors }: Pick<ScreenTheme, 'colors'>,
): string {
  const { lines, percentLeft, tokens, ladder } = remaining
  if (lines === null || percentLeft === null) return `${formatTokens(tokens)} tokens, window unknown`
  const isFull = tokens >= lines.limit
  const used = isFull ? cells : Math.min(cells - 1, Math.round((tokens / lines.limit) * cells))
  const paint = (text: string): string => paintTone(chooseMeterTone(remaining), text, colors)
  const filled = Math.max(used, tokens > 0 ? 1 : 0)
  const bar = `${paint('█'.repeat(filled))}${colors.dim('░'.repeat(cells - filled))}${colors.cyan('▲')}`
  const isCompacted = lines.limit === lines.autoCompact
  const limit = formatTokenLimit(lines.limit)
  const left = paint(`${percentLeft}% left`)
  if (isFull && isCompacted) return `${bar} ${left} ${formatTokens(tokens)}, over ${limit}: compacts next`
  // Automatic compaction is decided by an upper bound of the size, not by the shown size.
  const isDue = ladder?.isAboveAutoCompactThreshold === true
  const end = isDue ? 'compacts next' : isCompacted ? `compacts at ${limit}` : `window ${limit}`
  const figures = `${formatTokens(tokens)} used, ${end}`
  return `${bar} ${left} ${colors.dim(figures)}`
}

/** Returns how serious the fill of the window is, by its thresholds. */
export function chooseMeterTone({ ladder }: Pick<ContextRemaining, 'ladder'>): Tone {
  if (ladder === null) return 'plain'
  if (ladder.isAtBlockingLimit || ladder.isAboveErrorThreshold) return 'error'
  return ladder.isAboveWarningThreshold ? 'warning' : 'good'
}

function describeCache(expiresAt: number | null, now: number, { colors }: ScreenTheme): string {
  if (expiresAt === null) return ''
  const left = Math.ceil((expiresAt - now) / 1000)
  if (left <= 0) return colors.blue('cache cold')
  const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`
  return (left < 60 ? colors.yellow : colors.green)(`cache warm ${clock}`)
}

function describeMoney(
  { spent, savedByCache, calls }: CostTotals,
  { colors }: ScreenTheme,
): { readonly spent: string; readonly saved: string } {
  if (calls === 0) return { spent: '', saved: '' }
  const { known } = savedByCache
  return {
    spent: `${formatCost(spent.total, spent.priced)} spent`,
    saved: known < 0.005 ? '' : colors.dim(`, cache saved ${formatDollars(known)}`),
  }
}

function describePreparation({ prepared, notes }: MeterReading, { colors }: ScreenTheme): string {
  if (prepared === 'ready') return colors.green('summary ready')
  if (prepared === 'preparing') return colors.dim('preparing a summary')
  if (notes === 'none') return ''
  return notes === 'ready' ? colors.green('notes ready') : colors.yellow('notes failing')
}

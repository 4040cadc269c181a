import { stripVTControlCharacters } from 'node:util'
import { visibleWidth } from '@earendil-works/pi-tui'
import { describe, expect, it } from 'vitest'
import { chooseTone, createCacheClock, drawMeter, type MeterReading } from './context-meter.ts'
import { createTheme } from './theme.ts'

const theme = createTheme({ write() {}, warn() {}, env: {}, isTty: false, columns: 80 })
const LINES = {
  ...{ window: 200_000, effective: 180_000, autoCompact: 160_000, limit: 160_000 },
  ...{ warning: 140_000, error: 150_000, blocking: 177_000, target: 40_000 },
}

function readAt(tokens: number, more: Partial<MeterReading> = {}): MeterReading {
  const percentLeft = Math.round(((LINES.limit - tokens) / LINES.limit) * 100)
  const ladder = {
    ...{ used: tokens, percentLeft, isAboveWarningThreshold: tokens >= LINES.warning },
    ...{ isAboveErrorThreshold: tokens >= LINES.error, isAboveAutoCompactThreshold: false },
    isAtBlockingLimit: tokens >= LINES.blocking,
  }
  const money = { calls: 2, spent: { total: 0.5, priced: 0.5 }, savedByCache: { known: 1.25 } }
  return {
    remaining: { tokens, lines: LINES, percentLeft, ladder } as never,
    money: money as never,
    prepared: 'none',
    notes: 'ready',
    expiresAt: 90_000,
    model: 'model-x',
    mode: null,
    ...more,
  }
}

const draw = (reading: MeterReading, width = 140): readonly string[] =>
  drawMeter(reading, 0, width, theme).map((line) => stripVTControlCharacters(line))

describe('the context meter', () => {
  it('says what is left, how long the cache stays warm, what was spent and saved, and what is prepared', () => {
    expect(draw(readAt(80_000))).toEqual([
      '████████████░░░░░░░░░┊░░▲░┃░░░ 50% left 80.0k of 160k · cache warm 1:30 · $0.50 spent, $1.25 saved · notes ready · model-x',
    ])
  })

  it('takes two lines where the screen is narrow, and never more columns than it has', () => {
    for (const width of [20, 40, 80]) {
      const lines = draw(readAt(80_000), width)
      expect(lines.length).toBeLessThanOrEqual(2)
      for (const line of lines) expect(visibleWidth(line)).toBeLessThanOrEqual(width)
    }
    expect(draw(readAt(80_000), 80)[1]).toBe('$0.50 spent, $1.25 saved · notes ready · model-x')
  })

  it('warns in steps as the window fills', () => {
    const tones = [100_000, 145_000, 155_000, 178_000].map((tokens) => chooseTone(readAt(tokens).remaining))
    expect(tones).toEqual(['good', 'warning', 'error', 'error'])
  })

  it('says that the cache is cold once it has expired, and that a summary is being prepared', () => {
    const [line] = draw(readAt(80_000, { expiresAt: -1, prepared: 'preparing' }))
    expect(line).toContain('cache cold')
    expect(line).toContain('preparing a summary')
  })
})

describe('the countdown of the cache', () => {
  const epoch = { type: 'epoch-opened', epoch: { ttl: { name: '5m', because: 'x' } } } as never
  const answered = { type: 'answered' } as never

  it('begins when a request is sent that is answered, and is renewed by the next one', () => {
    const clock = createCacheClock()
    clock.apply(epoch, 0)
    clock.apply({ type: 'request-sent' } as never, 1_000)
    expect(clock.expiresAt).toBeNull()
    clock.apply(answered, 9_000)
    expect(clock.expiresAt).toBe(301_000)
    clock.apply({ type: 'cache-kept-warm', expiresAt: 500_000 } as never, 200_000)
    expect(clock.expiresAt).toBe(500_000)
  })

  it('goes on where it was when a session is resumed', () => {
    const clock = createCacheClock()
    const base = { uuid: 'u', parentUuid: null, sessionId: 's', timestamp: '2026-01-01T00:00:00.000Z' }
    clock.replay([
      { ...base, type: 'system', subtype: 'epoch', epoch: { ttl: { name: '1h', because: 'x' } } },
      { ...base, type: 'assistant', message: {} },
    ] as never)
    expect(clock.expiresAt).toBe(Date.parse('2026-01-01T01:00:00.000Z'))
  })
})

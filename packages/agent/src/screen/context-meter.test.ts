import { stripVTControlCharacters } from 'node:util'
import { visibleWidth } from '@earendil-works/pi-tui'
import { describe, expect, it } from 'vitest'
import { chooseMeterTone, createMeterTracker, drawMeter, type MeterReading } from './context-meter.ts'
import { createTheme } from './theme.ts'

const theme = createTheme({ write() {}, warn() {}, env: {}, isTty: false, columns: 80 })
const LINES = {
  ...{ window: 200_000, effective: 180_000, autoCompact: 160_000, limit: 160_000 },
  ...{ warning: 140_000, error: 150_000, blocking: 177_000, target: 40_000 },
}

function readAt(tokens: number, more: Partial<MeterReading> = {}): MeterReading {
  const percentLeft = Math.max(0, Math.round(((LINES.limit - tokens) / LINES.limit) * 100))
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
      '████████░░░░░░░░▲ 50% left 80.0k used, compacts at 160k · cache warm 1:30 · $0.50 spent, cache saved $1.25 · notes ready · model-x',
    ])
  })

  it('has one scale: the bar is as full as the percentage and the figures say, and over the limit it compacts next', () => {
    for (const tokens of [1, 16_000, 120_000, 159_000, 160_000, 175_000]) {
      const reading = readAt(tokens)
      const [line = ''] = draw(reading)
      const filled = line.split('█').length - 1
      const share = Math.min(1, tokens / LINES.limit)
      expect(Math.abs(filled / 16 - share)).toBeLessThanOrEqual(1 / 16)
      expect(filled === 16).toBe(tokens >= LINES.limit)
      expect(line.includes('compacts next')).toBe(tokens >= LINES.limit)
    }
    expect(draw(readAt(175_000))[0]).toContain(' 0% left 175k, over 160k: compacts next')
  })

  it('takes two lines where the screen is narrow, and never more columns than it has', () => {
    for (const width of [20, 40, 80]) {
      const lines = draw(readAt(80_000), width)
      expect(lines.length).toBeLessThanOrEqual(2)
      for (const line of lines) expect(visibleWidth(line)).toBeLessThanOrEqual(width)
    }
    const model = 'claude-sonnet-5-5'
    expect(draw(readAt(80_000, { model, expiresAt: 3_552_000 }), 80)).toEqual([
      '████████░░░░░░░░▲ 50% left 80.0k used, compacts at 160k · cache warm 59:12',
      `$0.50 spent, cache saved $1.25 · notes ready · ${model}`,
    ])
    expect(draw(readAt(80_000, { model, expiresAt: 3_552_000 }), 120)).toEqual([
      `█████░░░░░▲ 50% left 80.0k used, compacts at 160k · cache warm 59:12 · $0.50 spent · notes ready · ${model}`,
    ])
  })

  it('warns in steps as the window fills', () => {
    const tones = [100_000, 145_000, 155_000, 178_000].map((tokens) =>
      chooseMeterTone(readAt(tokens).remaining),
    )
    expect(tones).toEqual(['good', 'warning', 'error', 'error'])
  })

  it('says that the cache is cold once it has expired, and that a summary is being prepared', () => {
    const [line] = draw(readAt(80_000, { expiresAt: -1, prepared: 'preparing' }))
    expect(line).toContain('cache cold')
    expect(line).toContain('preparing a summary')
  })
})

describe('the countdown of the cache', () => {
  const send = (ttl: string | null) => ({ type: 'request-sent', request: { ttl } }) as never
  const usage = (short: number, long: number) => ({ input: 0, read: 0, writes: { short, long }, output: 1 })
  const answer = (short: number, long: number) => {
    return { type: 'answered', reply: { usage: usage(short, long) } } as never
  }
  const HOUR = 3_600_000

  it('begins when a request is sent that is answered, and is renewed by the next one', () => {
    const clock = createMeterTracker()
    clock.apply(send('5m'), 1_000)
    expect(clock.expiresAt).toBeNull()
    clock.apply({ type: 'answered', reply: {} } as never, 9_000)
    expect(clock.expiresAt).toBe(301_000)
    clock.apply({ type: 'cache-kept-warm', expiresAt: 500_000 } as never, 200_000)
    expect(clock.expiresAt).toBe(500_000)
  })

  it('has the lifetime of what the newest request has written', () => {
    const clock = createMeterTracker()
    clock.apply(send('1h'), 0)
    clock.apply(answer(0, 900), 1_000)
    expect(clock.expiresAt).toBe(HOUR)
    clock.apply(send('5m'), 10_000)
    clock.apply(answer(100, 0), 11_000)
    expect(clock.expiresAt).toBe(310_000)
    clock.apply(send('1h'), 20_000)
    clock.apply(answer(100, 0), 21_000)
    expect(clock.expiresAt).toBe(320_000)
  })

  it('is the half hour or the twelve hours of a model of OpenAI, also when its session is resumed', () => {
    const clock = createMeterTracker()
    clock.apply(send('30m'), 0)
    clock.apply(answer(900, 0), 1_000)
    expect(clock.expiresAt).toBe(HOUR / 2)
    clock.apply(send('12h'), 0)
    clock.apply(answer(0, 900), 1_000)
    expect(clock.expiresAt).toBe(12 * HOUR)
    const base = { uuid: 'u', parentUuid: null, sessionId: 's', timestamp: '2026-01-01T00:00:00.000Z' }
    const epoch = { ...base, type: 'system', subtype: 'epoch', epoch: { ttl: { name: '30m', because: 'x' } } }
    clock.replay([epoch, { ...base, type: 'assistant', message: {}, usage: usage(9, 0) }] as never)
    expect(clock.expiresAt).toBe(Date.parse('2026-01-01T00:30:00.000Z'))
  })

  it('is cold after a compaction and after a switch of the model, until the next answer', () => {
    for (const type of ['compact', 'model-switched']) {
      const clock = createMeterTracker()
      clock.apply(send('1h'), 0)
      clock.apply(answer(0, 900), 1_000)
      clock.apply({ type } as never, 2_000)
      expect(draw(readAt(80_000, { expiresAt: clock.expiresAt }))[0]).toContain('cache cold')
      clock.apply(send('1h'), 10_000)
      clock.apply(answer(0, 900), 11_000)
      expect(clock.expiresAt).toBe(10_000 + HOUR)
    }
  })

  it('goes on where it was when a session is resumed', () => {
    const clock = createMeterTracker()
    const base = { uuid: 'u', parentUuid: null, sessionId: 's', timestamp: '2026-01-01T00:00:00.000Z' }
    const epoch = { ...base, type: 'system', subtype: 'epoch', epoch: { ttl: { name: '1h', because: 'x' } } }
    clock.replay([epoch, { ...base, type: 'assistant', message: {} }] as never)
    expect(clock.expiresAt).toBe(Date.parse('2026-01-01T01:00:00.000Z'))
    clock.replay([epoch, { ...base, type: 'assistant', message: {}, usage: usage(9, 0) }] as never)
    expect(clock.expiresAt).toBe(Date.parse('2026-01-01T00:05:00.000Z'))
    const compactMetadata = { trigger: 'manual', preTokens: 9 }
    clock.replay([{ ...base, type: 'system', subtype: 'compact_boundary', compactMetadata }] as never)
    expect(clock.expiresAt).toBe(0)
  })
})

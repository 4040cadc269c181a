import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPolicy, DEFAULT_POLICY } from '../policy/create-policy.ts'
import {
  addGrowthObservation,
  type Calibration,
  calibrateGrowth,
  calibrateSize,
  computeCalibrationScale,
  computeSafetyFactor,
  type GrowthObservation,
  startCalibration,
} from './usage.ts'

const policy = DEFAULT_POLICY.estimate
const START = startCalibration({ scale: 1, offset: 0, weight: 10_000 })

function after(observations: readonly GrowthObservation[], from: Calibration = START): Calibration {
  return observations.reduce(addGrowthObservation, from)
}

const times = (count: number, observation: GrowthObservation): readonly GrowthObservation[] =>
  Array.from({ length: count }, () => observation)

describe('before the first observation', () => {
  it.each([
    [0, 0, 0],
    [1, 1, 2],
    [3, 3, 4],
    [10, 10, 14],
    [99, 99, 132],
    [100, 100, 134],
    [3_000_000, 3_000_000, 4_000_000],
  ])('%i tokens: %i expected, and × 4/3, rounded up, is %i', (tokens, expected, high) => {
    expect(calibrateSize(START, tokens, policy)).toEqual({ expected, high })
    expect(calibrateGrowth(START, tokens, policy)).toEqual({ expected, high })
  })

  it('starts with the given values', () => {
    const start = startCalibration({ scale: 1.5, offset: -20, weight: 1 })
    expect(calibrateSize(start, 100, policy)).toEqual({ expected: 150, high: 200 })
    expect(calibrateGrowth(start, 100, policy)).toEqual({ expected: 130, high: 174 })
  })

  it('never estimates 0 for a call that adds something', () => {
    const start = startCalibration({ scale: 1, offset: -20, weight: 1 })
    expect(calibrateGrowth(start, 5, policy)).toEqual({ expected: 1, high: 2 })
    expect(calibrateGrowth(start, 0, policy)).toEqual({ expected: 0, high: 0 })
  })
})

describe('learning', () => {
  const SIZES = [200, 1_000, 3_000]
  const told = (truth: (estimated: number) => number): Calibration =>
    after(
      Array.from({ length: 200 }, () =>
        SIZES.map((estimated) => ({ estimated, reported: truth(estimated) })),
      ).flat(),
    )

  it('finds the scale of a session', () => {
    const learnt = told((estimated) => 1.5 * estimated)
    expect(computeCalibrationScale(learnt)).toBeCloseTo(1.5, 1)
    for (const size of SIZES)
      expect(Math.abs(calibrateGrowth(learnt, size, policy).expected / size - 1.5)).toBeLessThan(0.05)
  })

  it('finds the fixed cost of every call', () => {
    const learnt = told((estimated) => estimated + 25)
    expect(learnt.offset).toBeGreaterThan(5)
    expect(Math.abs(calibrateGrowth(learnt, 1_000, policy).expected - 1_025)).toBeLessThan(10)
    expect(calibrateSize(learnt, 1_000, policy).expected).toBeLessThan(
      calibrateGrowth(learnt, 1_000, policy).expected,
    )
  })

  it('is not thrown off by one call with much that the log does not show', () => {
    const steady = times(50, { estimated: 500, reported: 500 })
    const learnt = after([...steady, { estimated: 500, reported: 20_000 }])
    expect(calibrateGrowth(learnt, 500, policy).expected - 500).toBeLessThan(20)
  })

  it.each([
    ['5 calls of 5 tokens that came to 1,000', { scale: 1, offset: 0, weight: 2_000 }, 5, 5, 1_000, 1.02],
    ['40 calls of 60 that came to 600', { scale: 1, offset: 0, weight: 4_000 }, 40, 60, 600, 1.5],
    ['calls beside a large offset', { scale: 1, offset: 94, weight: 1 }, 40, 1, 1, 1],
  ])(
    'small calls that are far out do not carry the scale away: %s',
    (_, start, count, estimated, reported, most) => {
      const scale = computeCalibrationScale(
        after(times(count, { estimated, reported }), startCalibration(start)),
      )
      expect(scale).toBeGreaterThanOrEqual(0.5 * start.scale)
      expect(scale).toBeLessThanOrEqual(most)
    },
  )

  it('stays within half and twice its start, and a step within the size of the call', () => {
    const start = fc.record({
      scale: fc.double({ min: 0.1, max: 4, noNaN: true }),
      offset: fc.integer({ min: -200, max: 200 }),
      weight: fc.integer({ min: 1, max: 20_000 }),
    })
    const tokens = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 1e6 }))
    const observation = fc.record({ estimated: tokens, reported: tokens })
    fc.assert(
      fc.property(start, fc.array(observation), tokens, (from, observations, size) => {
        let before = startCalibration(from)
        for (const one of observations) {
          const next = addGrowthObservation(before, one)
          const share = one.estimated / next.estimated
          expect(
            Math.abs(computeCalibrationScale(next) - computeCalibrationScale(before)),
          ).toBeLessThanOrEqual(share + 1e-9)
          expect(computeCalibrationScale(next) / from.scale).toBeGreaterThanOrEqual(0.5 - 1e-9)
          expect(computeCalibrationScale(next) / from.scale).toBeLessThanOrEqual(2 + 1e-9)
          before = next
        }
        expect(calibrateSize(before, size, policy).expected).toBeGreaterThanOrEqual(0)
        expect(calibrateGrowth(before, size, policy).expected).toBeGreaterThanOrEqual(1)
      }),
    )
  })

  it('is 0 for a negative size', () => {
    expect(calibrateSize(START, -5, policy)).toEqual({ expected: 0, high: 0 })
  })

  it.each([
    ['without end', { estimated: 500, reported: Number.POSITIVE_INFINITY }],
    ['that is none', { estimated: 500, reported: 0 }],
    ['that is negative', { estimated: 500, reported: -3_000 }],
    ['of nothing', { estimated: 0, reported: 300 }],
    ['that is not known', { estimated: 500, reported: Number.NaN }],
  ])('learns nothing from growth %s', (_, observation) => {
    expect(addGrowthObservation(START, observation)).toBe(START)
  })

  it('does not change the given state', () => {
    const before = { ...START }
    addGrowthObservation(START, { estimated: 10, reported: 20 })
    expect(START).toEqual(before)
  })
})

describe('the margin of the high figure', () => {
  it('narrows with good observations, but not beyond its limit', () => {
    const steps = Array.from({ length: 400 }, (_, count) =>
      computeSafetyFactor(after(times(count, { estimated: 1_000, reported: 1_000 })), policy),
    )
    expect(steps[0]).toBe(4 / 3)
    expect(steps.every((step, index) => step <= (steps[index - 1] ?? 4 / 3))).toBe(true)
    expect(steps.at(-1)).toBe(policy.narrowestHighFactor)
  })

  it('stays wide if estimates stay wrong', () => {
    const wild = [200, 1_800].map((reported) => ({ estimated: 1_000, reported }))
    expect(computeSafetyFactor(after(Array.from({ length: 100 }, () => wild).flat()), policy)).toBe(4 / 3)
  })

  it('stays unchanged if calibration is off', () => {
    const still = createPolicy({ estimate: { calibrate: false } }).estimate
    expect(computeSafetyFactor(after(times(400, { estimated: 1_000, reported: 1_000 })), still)).toBe(4 / 3)
  })

  it('keeps every figure valid, whatever is observed', () => {
    const observation = fc.record({
      estimated: fc.integer({ min: 0, max: 1e6 }),
      reported: fc.integer({ min: -1e6, max: 1e6 }),
    })
    fc.assert(
      fc.property(fc.array(observation), fc.integer({ min: 0, max: 1e6 }), (observations, tokens) => {
        const learnt = after(observations)
        for (const { expected, high } of [
          calibrateSize(learnt, tokens, policy),
          calibrateGrowth(learnt, tokens, policy),
        ]) {
          expect(Number.isInteger(expected) && Number.isInteger(high)).toBe(true)
          expect(expected).toBeGreaterThanOrEqual(0)
          expect(high).toBeGreaterThanOrEqual(expected)
          expect(high).toBeLessThanOrEqual(Math.ceil((expected * 4) / 3))
        }
        expect(JSON.parse(JSON.stringify(learnt))).toEqual(learnt)
      }),
    )
  })
})

import { describe, expect, it } from 'vitest'
import { Situation } from '../../test/clear/situation.ts'
import { derivePrefixTokens, measureContextTokens } from './context-meter.ts'
import { computeCalibrationScale } from './usage.ts'

/** The calibration after this many tokens were added and the context grew by this many. */
function taught(way: 'cached' | null, grown: number): number {
  const situation = new Situation()
  const [id] = situation.reads(1, 20_000)
  situation.measure(50_000)
  situation.reads(1, 20_000)
  if (way !== null)
    situation.clear({
      trigger: 'auto',
      way,
      anchorUuid: 'x',
      preTokens: 1,
      tokensSaved: 1,
      compactedToolIds: [id ?? ''],
      clearedAttachmentUUIDs: [],
    })
  situation.measure(50_000 + grown)
  return computeCalibrationScale(situation.meter.calibration)
}

describe('what the meter learns from a response', () => {
  it('is by how much the context grew', () => {
    expect(taught(null, 20_000)).toBeGreaterThan(taught(null, 10_000))
  })

  it('is nothing if the provider deleted content meanwhile: the growth is smaller than what was added', () => {
    const unknown = computeCalibrationScale(new Situation().meter.calibration)
    expect([taught('cached', 1_000), taught('cached', 20_000)]).toEqual([unknown, unknown])
  })
})

it('the size of system prompt and tools is what the first response reported, less its messages', () => {
  const situation = new Situation()
  situation.reads(1, 10_000)
  expect(derivePrefixTokens(situation.meter)).toBeNull()
  situation.measure(50_000)
  const first = derivePrefixTokens(situation.meter) ?? 0
  expect(first).toBeGreaterThan(30_000)
  expect(first).toBeLessThan(45_000)
  situation.reads(1, 20_000)
  situation.measure(50_000 + 20_000)
  expect(Math.abs((derivePrefixTokens(situation.meter) ?? 0) - first)).toBeLessThan(500)
})

describe('a rewrite that was undone', () => {
  function measured(situation: Situation): number {
    const { meter, calibration, policy } = situation.planContext()
    const reading = {
      calibration,
      policy: policy.estimate,
      stripsThinking: false,
      prefix: () => 0,
      deleted: 0,
    }
    return measureContextTokens(meter, reading).expected
  }

  it.each(['cleared', 'cleared and answered'])(
    '%s: an undo counts what was measured before, and what came since',
    (act) => {
      const situation = new Situation()
      const ids = situation.reads(3, 1_000)
      situation.measure(50_000)
      const before = measured(situation)
      situation.clear({
        trigger: 'auto',
        way: 'budget',
        preTokens: 9,
        tokensSaved: 9,
        compactedToolIds: ids,
        clearedAttachmentUUIDs: [],
      })
      const of = situation.builder.view.rewrites.at(-1)?.uuid ?? ''
      expect(measured(situation)).toBeLessThan(10_000)
      if (act === 'cleared and answered') situation.measure(7_000)
      const { calibration } = situation.meter
      situation.builder.notice('clear_undone', { of })
      expect(Math.abs(measured(situation) - before)).toBeLessThan(20)
      expect(situation.meter.calibration).toEqual(calibration)
      situation.builder.notice('epoch', {})
      expect(measured(situation)).toBeLessThan(10_000)
    },
  )
})

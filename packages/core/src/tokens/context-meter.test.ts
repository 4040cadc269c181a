import { describe, expect, it } from 'vitest'
import { Situation } from '../../test/clear/situation.ts'
import { readCalibrationScale } from './usage.ts'

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
  return readCalibrationScale(situation.meter.calibration)
}

describe('what the meter learns from a response', () => {
  it('is by how much the context grew', () => {
    expect(taught(null, 20_000)).toBeGreaterThan(taught(null, 10_000))
  })

  it('is nothing if the provider deleted content meanwhile: the growth is smaller than what was added', () => {
    const unknown = readCalibrationScale(new Situation().meter.calibration)
    expect([taught('cached', 1_000), taught('cached', 20_000)]).toEqual([unknown, unknown])
  })
})

import { countPropertyRuns } from '@tidemark/core/testing'
import { expect, it } from 'vitest'
import { killWriters } from './killed-writers.ts'

it('writers killed at random moments lose nothing they acknowledged', async () => {
  const kills = countPropertyRuns(24, 12)
  const killings = await killWriters(kills)
  expect(killings.kills).toBe(kills)
  expect(killings.acknowledged).toBeGreaterThan(kills)
  expect(killings.interrupted).toBeGreaterThan(0)
})

import { expect, it } from 'vitest'
import { killWriters } from './killed-writers.ts'

it('writers killed at random moments lose nothing they acknowledged', async () => {
  const killings = await killWriters(24)
  expect(killings.kills).toBe(24)
  expect(killings.acknowledged).toBeGreaterThan(24)
  expect(killings.interrupted).toBeGreaterThan(0)
})

import { expect, it } from 'vitest'
import { killWriters } from './killed-writers.ts'

it('writers killed at 200 random moments lose nothing they acknowledged', async () => {
  const killings = await killWriters(200)
  console.log(killings)
  expect(killings.kills).toBe(200)
  expect(killings.interrupted).toBeGreaterThan(20)
})

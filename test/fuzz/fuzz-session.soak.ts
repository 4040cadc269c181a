import { expect, it } from 'vitest'
import { runFuzzSession } from './fuzz-session.ts'

it('none of 5,000 random conversations dies', async () => {
  const deaths: string[] = []
  for (let seed = 1_000; seed < 6_000; seed += 1) {
    const { death, steps } = await runFuzzSession(seed)
    if (death !== null) deaths.push(`seed ${seed}: ${death}\n${steps.join('\n')}`)
  }
  expect(deaths).toEqual([])
})

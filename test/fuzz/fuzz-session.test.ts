import { expect, it } from 'vitest'
import { runFuzzSession } from './fuzz-session.ts'

it('random conversations stay alive, whatever happens in them', async () => {
  for (let seed = 0; seed < 60; seed += 1) {
    const { death, steps } = await runFuzzSession(seed)
    expect(death, `seed ${seed}:\n${steps.join('\n')}`).toBeNull()
  }
})

/** Ten thousand clean turns, and not one alarm. */
import { describe, expect, it } from 'vitest'
import { CleanSession, type Step } from './breaks/clean-session.ts'

const TURNS = 10_000

/** The same numbers every time. */
function createDice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

function stepBy(dice: (sides: number) => number): Step {
  const chance = dice(100)
  if (chance < 62)
    return { do: 'round', calls: 1 + dice(12), size: 10 + dice(1_500), thinking: dice(2) === 0 }
  if (chance < 78) return { do: dice(3) === 0 ? 'delta' : 'prompt', size: 10 + dice(3_000) }
  if (chance < 82) return { do: 'clear', results: 1 + dice(20) }
  if (chance < 85) return { do: 'rewind', back: dice(10) }
  if (chance < 92) return { do: 'agent', which: dice(14), size: 10 + dice(2_000) }
  if (chance < 95) return { do: 'compact' }
  return chance < 98 ? { do: 'fork' } : { do: 'fail' }
}

describe('law: no false alarm', () => {
  it.each([false, true])(`over ${TURNS} clean turns (hour: %s)`, (isHour) => {
    const dice = createDice(isHour ? 7 : 11)
    const session = new CleanSession(isHour)
    const seen: Record<string, number> = {}
    const alarms: string[] = []
    while (session.turns < TURNS) {
      const outcome = session.take({ step: stepBy(dice), gap: dice(30) / 100 })
      seen[outcome.kind] = (seen[outcome.kind] ?? 0) + 1
      if (outcome.kind === 'broke') alarms.push(outcome.event.sentence)
    }
    console.log(`${session.turns} turns: ${JSON.stringify(seen)}`)
    expect(alarms).toEqual([])
  })
})

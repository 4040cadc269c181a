import { SessionBuilder } from '@tidemark/core/testing'
import { expect, it } from 'vitest'
import type { PreparedSummary } from '../../src/engine/session-writer.ts'
import { usePauseAfterTurn } from '../../src/turn/reduce-context.ts'
import { addLargeRound, openTestSession, perform } from './test-session.ts'

/** Runs the end of a turn with a context of so many rounds of 5,000 tokens, and returns what was done. */
async function endTurn(
  rounds: number,
  phase: PreparedSummary['phase'],
  isInteractive: boolean,
): Promise<readonly string[]> {
  const builder = new SessionBuilder('told')
  builder.user('look at the login')
  for (let round = 0; round < rounds; round += 1) addLargeRound(builder, 5_000)
  const made = await openTestSession(builder.records, {
    policy: { switches: { microcompactEnabled: false } },
    window: 64_000,
  })
  const done: string[] = []
  const prepared: PreparedSummary = {
    phase,
    prepare: () => void done.push('prepare'),
    settle: async () => {},
    async *swapIn(_, cause) {
      yield { type: 'phase', phase: 'done' }
      done.push(`swap in: ${cause}`)
      return true
    },
  }
  const turn = { ...made.run, host: { ...made.host, isInteractive }, prepared }
  await perform(made, usePauseAfterTurn(turn))
  return done
}

it.each([
  ['below the warning threshold', 3, 'none', true, []],
  ['above it, where a user may go on', 9, 'none', true, ['prepare']],
  ['above it, where the session may end', 9, 'none', false, []],
  ['above it, while a summary is being written', 9, 'preparing', true, []],
  ['above the auto-compact threshold, with a summary', 12, 'ready', false, ['swap in: threshold']],
] as const)('at the end of a turn, %s', async (_, rounds, phase, isInteractive, done) => {
  expect(await endTurn(rounds, phase, isInteractive)).toEqual(done)
})

import { describe, expect, it } from 'vitest'
import type { NotesServices } from '../../src/engine/host.ts'
import type { NotesStore, StoredNotes } from '../../src/engine/ports.ts'
import type { PreparedSummarySlot } from '../../src/engine/session-writer.ts'
import { swapInOrPrepareSummary } from '../../src/turn/reduce-context.ts'
import { buildRounds, compactNow, openTestSession, perform } from './test-session.ts'

/** Runs the end of a turn with a context of so many rounds of 5,000 tokens, and returns what was done. */
async function endTurn(
  rounds: number,
  phase: PreparedSummarySlot['phase'],
  isInteractive: boolean,
  { notes, compactsBefore = false }: { notes?: NotesServices; compactsBefore?: boolean } = {},
): Promise<readonly string[]> {
  const made = await openTestSession(buildRounds(rounds, 5_000).records, {
    policy: { switches: { microcompactEnabled: false } },
    window: 64_000,
    room: {
      writeSummary: async () => Promise.reject(new Error('down')),
      ...(notes === undefined ? {} : { notes }),
    },
  })
  if (compactsBefore) await compactNow(made, { trigger: 'auto', cause: 'threshold' })
  const done: string[] = []
  const prepared: PreparedSummarySlot = {
    phase,
    prepare: () => done.push('prepare') > 0,
    settle: async () => {},
    async *swapIn(_, cause) {
      yield { type: 'phase', phase: 'done' }
      done.push(`swap in: ${cause}`)
      return true
    },
  }
  const turn = { ...made.run, host: { ...made.host, isInteractive }, prepared }
  await perform(made, swapInOrPrepareSummary(turn))
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

/** Notes of the model that cover this record last. Read in vain, they are found to be empty. */
function createNotes(coveredUuid: string | null): NotesServices {
  const stored: StoredNotes = { text: '# Current state\n', coveredUuid, writtenAt: 0, writtenBy: 'model' }
  const store: NotesStore = {
    read: async () => stored,
    write: async () => {},
    readOverrides: async () => ({}),
    path: () => '/notes/summary.md',
    claim: async () => null,
    readClaim: async () => null,
  }
  return { store, local: null, readStored: () => stored }
}

describe('at the end of a turn above the warning threshold, a summary is prepared', () => {
  const covered = readLastUuid(9)

  it('not where the notes can take its place', async () => {
    expect(await endTurn(9, 'none', true, { notes: createNotes(covered) })).toEqual([])
  })

  it('where the last message that the notes cover has left the context', async () => {
    expect(await endTurn(9, 'none', true, { notes: createNotes('gone') })).toEqual(['prepare'])
  })

  it('where a compaction could not use the notes as they are', async () => {
    const given = { notes: createNotes(covered), compactsBefore: true }
    expect(await endTurn(9, 'none', true, given)).toEqual(['prepare'])
  })
})

function readLastUuid(rounds: number): string {
  return buildRounds(rounds).records.at(-1)?.uuid ?? ''
}

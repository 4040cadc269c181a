/** Notes that are kept from the log without a model: they never hold the event loop for long, and never go back in time. */
import { createFakeClock, SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { updateNotesIfDue } from '../../src/background/update-notes.ts'
import { planWithNotes } from '../../src/compaction/compact.ts'
import type { CompactionOptions } from '../../src/compaction/plan-compaction.ts'
import type { NotesStore, StoredNotes } from '../../src/engine/ports.ts'
import { appendUnlinkedRecords } from '../../src/engine/session-writer.ts'
import { isTextBlock, toBlocks } from '../../src/log/block.ts'
import { createBranchNotesKeeper } from '../../src/notes/render-notes.ts'
import { addLargeRound, eventsOfType, openTestSession, perform, SESSION, text } from './test-session.ts'

/** A store in memory. `isClaimed`: another process updates the notes now. */
function createStore({ isClaimed = false } = {}) {
  const written: StoredNotes[] = []
  const store: NotesStore = {
    read: async () => written.at(-1) ?? null,
    write: async (_, next) => void written.push(next),
    readOverrides: async () => ({}),
    path: () => '/notes/summary.md',
    claim: async () => (isClaimed ? null : { release: async () => {} }),
    readClaim: async () => null,
  }
  return { store, written }
}

interface Given {
  readonly isClaimed?: boolean
  readonly window?: number
  /** How long other work takes at each pause. */
  readonly pauseMs?: number
  /** Adds records after a round. */
  readonly addMore?: (builder: SessionBuilder, round: number) => void
}

async function open(rounds: number, tokens: number, given: Given = {}) {
  const builder = new SessionBuilder(SESSION)
  builder.user('look at the login')
  for (let round = 0; round < rounds; round += 1) {
    addLargeRound(builder, tokens)
    given.addMore?.(builder, round)
  }
  const { store, written } = createStore(given)
  const clock = createFakeClock(Date.UTC(2026, 5, 1))
  let pauses = 0
  const pause = async (): Promise<void> => {
    pauses += 1
    await clock.advance(given.pauseMs ?? 0)
  }
  const session = await openTestSession(builder.records, {
    window: given.window ?? 64_000,
    policy: { switches: { microcompactEnabled: false } },
    room: { notes: { store, local: createBranchNotesKeeper() } },
    host: { clock, pause },
  })
  return { session, written, readPauses: () => pauses }
}

describe('after a long session is opened again, other work goes on', () => {
  it('while its notes are brought up to date beside the turn', async () => {
    const { session, written, readPauses } = await open(1_000, 20)
    await perform(session, updateNotesIfDue(session.run, session.run.state))
    expect(written).toHaveLength(1)
    expect(readPauses()).toBeGreaterThan(20)
  })

  it('while a compaction brings them up to date', async () => {
    const { session, readPauses } = await open(1_000, 20)
    const request: CompactionOptions = { trigger: 'auto', cause: 'threshold' }
    const planned = await perform(session, planWithNotes(session.run, request))
    expect(planned).toMatchObject({ by: 'local' })
    expect(readPauses()).toBeGreaterThan(20)
  })

  it('and an update is not lost if the session is closed meanwhile', async () => {
    const { session, written, readPauses } = await open(1_000, 20)
    const run = { ...session.run, signal: { aborted: true } }
    await perform(session, updateNotesIfDue(run, session.run.state))
    expect(written).toHaveLength(1)
    expect(readPauses()).toBeGreaterThan(20)
  })

  it('and an update that takes longer than its claim lasts leaves the old notes', async () => {
    const { session, written } = await open(1_000, 20, { pauseMs: 5_000 })
    await perform(session, updateNotesIfDue(session.run, session.run.state))
    expect(written).toEqual([])
    expect(eventsOfType(session, 'notes-failed')).toMatchObject([{ by: 'local', reason: 'aborted' }])
  })
})

describe('notes of the newest messages', () => {
  const REQUEST: CompactionOptions = { trigger: 'auto', cause: 'threshold' }

  it('are not replaced by older ones, if an update that began earlier ends after a compaction has read more', async () => {
    const { session, written } = await open(7, 5_000)
    const { run } = session
    const earlier = run.state
    const message = { role: 'user' as const, content: 'And mend the logout.' }
    await perform(session, appendUnlinkedRecords(run, [{ type: 'user', message }]))
    const newest = run.state.view.entries.last?.record.uuid
    await perform(session, planWithNotes(run, REQUEST))
    expect(written.at(-1)?.coveredUuid).toBe(newest)
    written.length = 0
    await perform(session, updateNotesIfDue(run, earlier))
    expect(written).toMatchObject([{ coveredUuid: newest }])
    expect(written[0]?.text).toContain('And mend the logout.')
  })

  it('are used by a compaction but not stored while another process updates the notes', async () => {
    const { session, written } = await open(7, 5_000, { isClaimed: true })
    const planned = await perform(session, planWithNotes(session.run, REQUEST))
    expect(planned).toMatchObject({ by: 'local' })
    expect(written).toEqual([])
  })
})

describe('five messages with text are kept', () => {
  it.each([
    [
      'however many records a response has',
      (builder, round) => {
        for (const part of ['a', 'b', 'c', 'd']) builder.assistant(`split-${round}`, [text(part)])
      },
    ],
    [
      'not counting those that only the program wrote',
      (builder) => {
        for (const part of ['a', 'b', 'c', 'd']) builder.user(part, { isMeta: true })
      },
    ],
  ] as const satisfies readonly (readonly [string, NonNullable<Given['addMore']>])[])(
    '%s',
    async (_, addMore) => {
      const { session } = await open(14, 300, { window: 200_000, addMore })
      const request: CompactionOptions = { trigger: 'auto', cause: 'threshold' }
      const planned = await perform(session, planWithNotes(session.run, request))
      const kept = planned?.plan.span.kept.map(({ record }) => record) ?? []
      const ids = kept.flatMap((record) =>
        record.type === 'assistant' && toBlocks(record.message.content).some(isTextBlock)
          ? [record.message.id]
          : [],
      )
      expect(new Set(ids).size).toBeGreaterThanOrEqual(5)
    },
  )
})

/**
 * Automatic compactions of recorded sessions with notes that are kept from the log, where the log itself was compacted
 * and at its end: what the user typed however it arrived, the whole paths of files that were edited or only read, and the
 * last error of every command that failed, letter for letter, are in the new context or on the receipt. The summary
 * without a model is the measure: no row may hold less than it does. The facts are found by rules apart from the
 * engine's. Skips where the folders are absent.
 */
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { CompactionResult } from '@tidemark/core/compaction/commit-draft'
import { compact } from '@tidemark/core/compaction/compact'
import { toApiMessages } from '@tidemark/core/context/flatten-context'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { createBranchNotesKeeper } from '@tidemark/core/notes/render-notes'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import {
  createFakeJournal,
  createTestCompaction,
  createTestHost,
  runToEnd,
  sampleCases,
} from '@tidemark/core/testing'
import { listStrings } from 'tidemark/internal'
import { afterAll, describe, expect, it } from 'vitest'
import { createMemoryNotesStore } from '../packages/tidemark/src/storage/memory-stores.ts'
import { type RecordedHistory, readHistories } from '../scripts/recorded/history.ts'
import { type Fact, heldIn, sessionFacts } from '../scripts/recorded/retention.ts'
import { estimatorFor } from '../scripts/recorded/summarise.ts'
import { type LoggedLine, readTyped } from './support/typed-input.ts'

const folders = ['transcripts', 'transcripts-2']
  .map((name) => fileURLToPath(new URL(`../../shared/${name}/`, import.meta.url)))
  .filter((folder) => existsSync(folder) && readdirSync(folder).some((file) => file.startsWith('claude')))
const note = folders.length === 0 ? ' (skipped: the folders are not there)' : ''
const histories = folders.flatMap(readHistories)

interface Compacted {
  readonly end: CompactionResult
  readonly view: string
  /** Why the notes were not used; empty if they were, or if there were none. */
  readonly refusal: string
}

async function compactRecorded(
  { records, models }: RecordedHistory,
  place: number,
  hasNotes: boolean,
): Promise<Compacted> {
  const before = records.slice(0, place)
  const id = before[0]?.sessionId ?? 'session'
  const lines = before.map((record) => JSON.stringify(record))
  const journal = createFakeJournal(new Map([[id, { lines, holder: null }]]))
  const policy = createPolicy({ compact: { chain: { local: 'only' } } })
  const compaction = createTestCompaction(
    { policy, estimator: estimatorFor(models[0]) },
    hasNotes ? { notes: { store: createMemoryNotesStore(), local: createBranchNotesKeeper() } } : {},
  )
  const readOfferedPrefix = () => ({ tools: [], model: 'model-a', parameters: { max_tokens: 100 } })
  const host = createTestHost({ journal, policy, compaction, readOfferedPrefix })
  const turn = { state: await readSessionState(journal, id), host, signal: undefined }
  let refusal = ''
  const end = await runToEnd(compact(turn, { trigger: 'auto', cause: 'threshold' }), (event) => {
    if (event.type === 'sm-compact-refused') refusal = event.message
  })
  const messages = toApiMessages(turn.state.flat)
  return { end, view: listStrings(messages.map(({ content }) => content)).join('\n'), refusal }
}

const ROWS = ['editedFiles', 'readFiles', 'openErrors', 'settledErrors'] as const
type Row = (typeof ROWS)[number] | 'tokens'
type Figures = Map<Row, { notes: number; summary: number; all: number }>
const figures: Figures = new Map()

function addFigures(row: Row, notes: number, summary: number, all: number): void {
  const before = figures.get(row) ?? { notes: 0, summary: 0, all: 0 }
  figures.set(row, {
    notes: before.notes + notes,
    summary: before.summary + summary,
    all: before.all + all,
  })
}

describe.skipIf(folders.length === 0)(`compactions of recorded sessions with notes${note}`, () => {
  it.each(sampleCases(histories, 3))('keep what tier 2 keeps: $name', async (history) => {
    for (const place of [...history.compactions, history.records.length]) {
      const { end, view, refusal } = await compactRecorded(history, place, true)
      // A call that waits for its result can be compacted in no way.
      if (!end.ok && end.reason === 'pending-call') continue
      if (!end.ok) throw new Error(end.message)
      // Where the recorded session was compacted, notes are used. At its end the context may be small, since the last
      // compaction was short before. Notes of the whole session are then refused as not worth it, and the summary in
      // their place has to keep what happened since that compaction, which is all that it replaces.
      const isNotWorthIt = place === history.records.length && refusal.includes('not worth it')
      expect(end.compaction.summarizer).toBe(isNotWorthIt ? 'local' : 'notes')
      const before = history.records.slice(isNotWorthIt ? history.compactions.at(-1) : 0, place)
      const facts = sessionFacts(before)
      const summary = await compactRecorded(history, place, false)
      for (const row of ROWS) {
        const held = heldIn(view, facts[row])
        const heldBySummary = heldIn(summary.view, facts[row])
        addFigures(row, held, heldBySummary, facts[row].length)
        expect({ row, held }).toEqual({ row, held: Math.max(held, heldBySummary) })
      }
      addFigures(
        'tokens',
        estimatorFor(history.models[0]).text(view),
        estimatorFor(history.models[0]).text(summary.view),
        0,
      )
      const { lost } = end.compaction.receipt
      const listed = new Set([...lost.files, ...lost.errors].map(({ text }) => text))
      const isGone = ([fact = '']: Fact): boolean => heldIn(view, [[fact]]) === 0 && !listed.has(fact)
      expect(ROWS.flatMap((row) => facts[row]).filter(isGone)).toEqual([])
      const onReceipt = new Set(lost.userMessages.map(({ uuid }) => uuid))
      const typed = before.flatMap((record) =>
        onReceipt.has(record.uuid) ? [] : readTyped(record as LoggedLine).map((text) => [text]),
      )
      expect(typed.filter((fact) => heldIn(view, [fact]) === 0)).toEqual([])
    }
  })

  afterAll(() => {
    for (const [row, { notes, summary, all }] of figures)
      console.info(`${row}: notes ${notes}, summary ${summary}${all === 0 ? '' : `, of ${all}`}`)
  })
})

/**
 * Summaries without a model, at each logged compaction of real sessions, read where they lie: what may not be lost is
 * there, and the ledger holds what the next calls use. Skips where the folders are absent.
 */

import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { sampleCases } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { extractSessionFacts } from '../packages/core/src/facts/session-facts.ts'
import { buildLedger, gateRules, repairSummary } from '../packages/core/test/summarize/summary-rules.ts'
import { type RecordedHistory, readHistories } from '../scripts/recorded/history.ts'
import { artificialPlaces, foundIn, wantedAfter } from '../scripts/recorded/recall.ts'
import { heldIn, nextEdits, sessionFacts } from '../scripts/recorded/retention.ts'
import { estimatorFor, summarise } from '../scripts/recorded/summarise.ts'

function readFolder(name: string): readonly RecordedHistory[] {
  const folder = fileURLToPath(new URL(`../../shared/${name}/`, import.meta.url))
  return existsSync(folder) ? readHistories(folder) : []
}

const histories = readFolder('transcripts')
const note = histories.length === 0 ? ' (skipped: the folder is not there)' : ''
const points = sampleCases(
  [...histories, ...readFolder('transcripts-2')].flatMap((history) =>
    history.compactions.map((place) => ({ history, place })),
  ),
  6,
)

describe.skipIf(points.length === 0)(`at each compaction of recorded sessions${note}`, () => {
  it.each(points.map((point) => [`${point.history.name} at record ${point.place}`, point] as const))(
    '%s: changed files, messages of the person and last errors are all there',
    (_, { history, place }) => {
      const before = history.records.slice(0, place)
      const { text, tokens } = summarise(before, estimatorFor(history.models[0]))
      const { editedFiles, userMessages, openErrors, settledErrors } = sessionFacts(before)
      const facts = [editedFiles, userMessages, openErrors, settledErrors]
      expect(facts.map((kind) => heldIn(text, kind))).toEqual(facts.map((kind) => kind.length))
      const { seen, named } = nextEdits(history.records, place, text)
      expect(named).toBe(seen)
      expect(tokens).toBeLessThan(52_000)
    },
  )

  it.each(points.map((point) => [`${point.history.name} at record ${point.place}`, point] as const))(
    '%s: the summary that was written there is mended by the gate',
    (_, { history, place }) => {
      const written = history.records.slice(place).find((record) => record.isCompactSummary === true)
      const summary = written?.type === 'user' ? String(written.message.content) : ''
      const before = history.records.slice(0, place)
      const { text } = repairSummary(summary, extractSessionFacts(before), gateRules)
      const { editedFiles, userMessages, openErrors } = sessionFacts(before)
      const named = editedFiles.map(([path = '']) => [path.split('/').slice(-2).join('/')])
      const facts = [named, userMessages, openErrors]
      expect(facts.map((kind) => heldIn(text, kind))).toEqual(facts.map((kind) => kind.length))
    },
  )
})

describe.skipIf(points.length === 0)(`the ledger on recorded sessions${note}`, () => {
  function recall(tokens: number, placesOf: (history: RecordedHistory) => readonly number[]): number {
    const trials = histories.flatMap((history) =>
      placesOf(history).map((place) => {
        const rules = { tokens, estimate: estimatorFor(history.models[0]) }
        const { text } = buildLedger(history.records.slice(0, place), rules)
        return foundIn(text, wantedAfter(history, place), 'base')
      }),
    )
    const sum = (figures: readonly number[]): number => figures.reduce((total, figure) => total + figure, 0)
    return sum(trials.map(({ found }) => found)) / sum(trials.map(({ of }) => of))
  }

  it.each(
    sampleCases(
      [
        [500, 0.65],
        [1_000, 0.8],
        [2_000, 0.9],
      ] as const,
      1,
    ),
  )('%d tokens hold at least %d of what the next calls use', { timeout: 60_000 }, (tokens, share) => {
    expect(recall(tokens, ({ compactions }) => compactions)).toBeGreaterThan(share)
    expect(recall(tokens, (history) => artificialPlaces(history, 100))).toBeGreaterThan(share)
  })
})

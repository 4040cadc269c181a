import {
  compactSession,
  countPropertyRuns,
  GeneratorChoices,
  generateSession,
  type SessionBuilder,
} from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { flattenContext, toApiMessages } from '../../src/context/flatten-context.ts'
import { type CompactBoundary, isCompactBoundary } from '../../src/log/record.ts'

const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 10, maxLength: 160 })
const uuidsIn = (builder: SessionBuilder): readonly string[] =>
  builder.view.entries.toArray().map((entry) => entry.record.uuid)

/** The boundary a compaction wrote, or null where it did not take (no room to rewrite). */
function compact(builder: SessionBuilder, choices: readonly number[]): CompactBoundary {
  compactSession(builder, new GeneratorChoices(choices))
  const boundary = builder.records.findLast(isCompactBoundary)
  if (boundary === undefined) throw new Error('no boundary was written')
  return boundary
}

describe('kept messages', () => {
  it('stand where the boundary says, in its order, as they stood before, and once', () => {
    let partial = 0
    fc.assert(
      fc.property(numbers, fc.array(numbers, { minLength: 1, maxLength: 4 }), (story, compactions) => {
        const { builder } = generateSession(new GeneratorChoices(story))
        for (const choices of compactions) {
          const before = new Map(builder.view.entries.toArray().map((entry) => [entry.record.uuid, entry]))
          const { uuid, compactMetadata: metadata } = compact(builder, choices)
          const shown = uuidsIn(builder)
          expect(shown[0]).toBe(uuid)
          expect(new Set(shown).size).toBe(shown.length)
          for (const list of [metadata.preservedMessages, metadata.unansweredMessages]) {
            if (list === undefined) continue
            partial += 1
            const start = shown.indexOf(list.anchorUuid) + 1
            const other = list === metadata.unansweredMessages ? metadata.preservedMessages : undefined
            const skip = other?.anchorUuid === list.anchorUuid ? other.uuids.length : 0
            expect(shown.slice(start + skip, start + skip + list.uuids.length)).toEqual(list.uuids)
            for (const kept of builder.view.entries) {
              if (list.uuids.includes(kept.record.uuid)) expect(kept).toBe(before.get(kept.record.uuid))
            }
          }
          const named = [
            ...(metadata.preservedMessages?.uuids ?? []),
            ...(metadata.unansweredMessages?.uuids ?? []),
          ]
          const own = builder.records
            .filter((record) => record.batch?.id === uuid)
            .map((record) => record.uuid)
          expect(new Set(shown)).toEqual(new Set([...named, ...own]))
        }
      }),
      { numRuns: 120 },
    )
    expect(partial).toBeGreaterThan(40)
  })

  it('a boundary without its summary changes nothing', () => {
    fc.assert(
      fc.property(numbers, (story) => {
        const { builder } = generateSession(new GeneratorChoices(story))
        const before = JSON.stringify(toApiMessages(flattenContext(builder.view)))
        builder.notice('compact_boundary', {
          parentUuid: null,
          logicalParentUuid: builder.tip,
          compactMetadata: { trigger: 'auto', preTokens: 1 },
        })
        expect(JSON.stringify(toApiMessages(flattenContext(builder.view)))).toBe(before)
      }),
      { numRuns: countPropertyRuns(60, 30) },
    )
  })
})

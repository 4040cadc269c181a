import {
  clearSession,
  compactSession,
  countPropertyRuns,
  GeneratorChoices,
  generateSession,
} from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ContextView, findUndoTarget } from '../../src/context/context-view.ts'
import { flattenContext, toApiMessages } from '../../src/context/flatten-context.ts'
import { isKnownRecord } from '../../src/log/record.ts'
import { generatedSessions } from './generated-sessions.ts'

const request = (view: ContextView): string => JSON.stringify(toApiMessages(flattenContext(view)))

describe('law 7: undo gives exactly the requests from before', () => {
  it('of any number of rewrites, newest first, whatever came between', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ builder }) => {
        const { rewrites } = builder.view
        for (const act of [...rewrites].reverse()) {
          const choice = findUndoTarget(builder.view, act.uuid)
          if (!choice.ok) throw new Error(choice.message)
          builder.notice(choice.subtype, { of: act.uuid })
          expect(builder.view.rewrites.map((left) => left.uuid)).toEqual(
            rewrites.slice(0, rewrites.indexOf(act)).map((left) => left.uuid),
          )
          const before = act.replacedEntries.toArray().map((entry) => entry.record.uuid)
          expect(
            builder.view.entries
              .toArray()
              .map((entry) => entry.record.uuid)
              .slice(0, before.length),
          ).toEqual(before)
        }
      }),
      { numRuns: countPropertyRuns(80, 12) },
    )
  })

  it('of everything: what is left is what was said, and nothing of it cleared', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ builder, records }) => {
        while (builder.view.rewrites.length > 0) {
          const choice = findUndoTarget(builder.view)
          if (!choice.ok) throw new Error(choice.message)
          builder.notice(choice.subtype, { of: choice.act.uuid })
        }
        const rewrites = new Set(
          builder.view.undoneRewrites.flatMap(({ uuid, summaryUuid: summary, batchId: batch }) =>
            [uuid, summary, batch].filter((id) => id !== null),
          ),
        )
        const said = [...builder.session.branch].map((index) => builder.session.records.at(index))
        const left = said.filter(
          (record) =>
            record !== undefined &&
            isKnownRecord(record) &&
            !rewrites.has(record.uuid) &&
            !rewrites.has(record.batch?.id ?? ''),
        )
        expect(builder.view.entries.toArray().map((entry) => entry.record.uuid)).toEqual(
          left.map((record) => record?.uuid),
        )
        expect(builder.view.entries.toArray().filter((entry) => entry.cleared !== undefined)).toEqual([])
        expect(records.length).toBeGreaterThan(0)
      }),
      { numRuns: countPropertyRuns(120, 12) },
    )
  })

  it('right after the act, byte for byte', () => {
    const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 10, maxLength: 120 })
    fc.assert(
      fc.property(numbers, numbers, fc.boolean(), (story, act, compacts) => {
        const { builder } = generateSession(new GeneratorChoices(story))
        const before = request(builder.view)
        const standing = builder.view.rewrites.length
        actOn(builder, new GeneratorChoices(act), compacts)
        fc.pre(builder.view.rewrites.length === standing + 1)
        const choice = findUndoTarget(builder.view)
        if (!choice.ok) throw new Error(choice.message)
        builder.notice(choice.subtype, { of: choice.act.uuid })
        expect(request(builder.view)).toBe(before)
      }),
      { numRuns: countPropertyRuns(200) },
    )
  })

  it('refuses an older act and names the newer', () => {
    const { builder } = generateSession(new GeneratorChoices([0]))
    builder.user('one')
    actOn(builder, new GeneratorChoices([0]), false)
    const older = builder.view.rewrites.at(-1)?.uuid ?? ''
    actOn(builder, new GeneratorChoices([0]), false)
    const newer = builder.view.rewrites.at(-1)?.uuid
    expect(findUndoTarget(builder.view, older)).toMatchObject({
      ok: false,
      reason: 'not-newest',
      newest: newer,
    })
    expect(findUndoTarget(builder.view, 'nobody')).toMatchObject({ ok: false, reason: 'not-standing' })
    const kept = request(builder.view)
    builder.notice('clear_undone', { of: older })
    expect([request(builder.view), [...builder.view.damage].map((item) => item.kind)]).toEqual([
      kept,
      ['bad-undo'],
    ])
  })
})

function actOn(
  builder: ReturnType<typeof generateSession>['builder'],
  choices: GeneratorChoices,
  compacts: boolean,
): void {
  if (compacts) compactSession(builder, choices)
  else clearSession(builder, choices)
}

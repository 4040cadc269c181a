import { Choices, clearSession, compactSession, generateSession, runs } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ContextView, findUndoTarget } from '../../src/context/context-view.ts'
import { flatten, toApiMessages } from '../../src/context/flatten.ts'
import { isKnownRecord } from '../../src/log/record.ts'
import { generatedSessions } from './generated-sessions.ts'

const request = (view: ContextView): string => JSON.stringify(toApiMessages(flatten(view)))

describe('law 7: undo gives exactly the requests from before', () => {
  it('of any number of acts, newest first, whatever came between', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ builder }) => {
        const { acts } = builder.view
        for (const act of [...acts].reverse()) {
          const choice = findUndoTarget(builder.view, act.uuid)
          if (!choice.ok) throw new Error(choice.message)
          builder.notice(choice.subtype, { of: act.uuid })
          expect(builder.view.acts.map((left) => left.uuid)).toEqual(
            acts.slice(0, acts.indexOf(act)).map((left) => left.uuid),
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
      { numRuns: runs(80, 30) },
    )
  })

  it('of everything: what is left is what was said, and nothing of it cleared', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ builder, records }) => {
        while (builder.view.acts.length > 0) {
          const choice = findUndoTarget(builder.view)
          if (!choice.ok) throw new Error(choice.message)
          builder.notice(choice.subtype, { of: choice.act.uuid })
        }
        const acts = new Set(
          builder.view.undoneRewrites.flatMap(({ uuid, summaryUuid: summary, batchId: batch }) =>
            [uuid, summary, batch].filter((id) => id !== null),
          ),
        )
        const said = [...builder.session.branch].map((index) => builder.session.records.at(index))
        const left = said.filter(
          (record) =>
            record !== undefined &&
            isKnownRecord(record) &&
            !acts.has(record.uuid) &&
            !acts.has(record.batch?.id ?? ''),
        )
        expect(builder.view.entries.toArray().map((entry) => entry.record.uuid)).toEqual(
          left.map((record) => record?.uuid),
        )
        expect(builder.view.entries.toArray().filter((entry) => entry.cleared !== undefined)).toEqual([])
        expect(records.length).toBeGreaterThan(0)
      }),
      { numRuns: runs(120, 30) },
    )
  })

  it('right after the act, byte for byte', () => {
    const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 10, maxLength: 120 })
    fc.assert(
      fc.property(numbers, numbers, fc.boolean(), (story, act, compacts) => {
        const { builder } = generateSession(new Choices(story))
        const before = request(builder.view)
        const standing = builder.view.acts.length
        actOn(builder, new Choices(act), compacts)
        fc.pre(builder.view.acts.length === standing + 1)
        const choice = findUndoTarget(builder.view)
        if (!choice.ok) throw new Error(choice.message)
        builder.notice(choice.subtype, { of: choice.act.uuid })
        expect(request(builder.view)).toBe(before)
      }),
      { numRuns: runs(200) },
    )
  })

  it('refuses an older act and names the newer', () => {
    const { builder } = generateSession(new Choices([0]))
    builder.user('one')
    actOn(builder, new Choices([0]), false)
    const older = builder.view.acts.at(-1)?.uuid ?? ''
    actOn(builder, new Choices([0]), false)
    const newer = builder.view.acts.at(-1)?.uuid
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
  choices: Choices,
  compacts: boolean,
): void {
  if (compacts) compactSession(builder, choices)
  else clearSession(builder, choices)
}

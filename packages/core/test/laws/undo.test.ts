import fc from 'fast-check'
import { Choices, clearSession, compactSession, generateSession } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { chooseUndo, flatten, isKnown, messagesOf, type View } from '../../src/index.ts'
import { sessions } from './sessions.ts'

const request = (view: View): string => JSON.stringify(messagesOf(flatten(view)))

describe('law 7: undo gives exactly the requests from before', () => {
  it('of any number of acts, newest first, whatever came between', () => {
    fc.assert(
      fc.property(sessions(), ({ teller }) => {
        const { acts } = teller.view
        for (const act of [...acts].reverse()) {
          const choice = chooseUndo(teller.view, act.uuid)
          if (!choice.ok) throw new Error(choice.message)
          teller.notice(choice.subtype, { of: act.uuid })
          expect(teller.view.acts.map((left) => left.uuid)).toEqual(
            acts.slice(0, acts.indexOf(act)).map((left) => left.uuid),
          )
          const before = act.before.toArray().map((entry) => entry.record.uuid)
          expect(
            teller.view.entries
              .toArray()
              .map((entry) => entry.record.uuid)
              .slice(0, before.length),
          ).toEqual(before)
        }
      }),
      { numRuns: 80 },
    )
  })

  it('of everything: what is left is what was said, and nothing of it cleared', () => {
    fc.assert(
      fc.property(sessions(), ({ teller, records }) => {
        while (teller.view.acts.length > 0) {
          const choice = chooseUndo(teller.view)
          if (!choice.ok) throw new Error(choice.message)
          teller.notice(choice.subtype, { of: choice.act.uuid })
        }
        const acts = new Set(
          teller.view.undone.flatMap(({ uuid, summary, batch }) =>
            [uuid, summary, batch].filter((id) => id !== null),
          ),
        )
        const said = [...teller.session.branch].map((index) => teller.session.records.at(index))
        const left = said.filter(
          (record) =>
            record !== undefined &&
            isKnown(record) &&
            !acts.has(record.uuid) &&
            !acts.has(record.batch?.id ?? ''),
        )
        expect(teller.view.entries.toArray().map((entry) => entry.record.uuid)).toEqual(
          left.map((record) => record?.uuid),
        )
        expect(teller.view.entries.toArray().filter((entry) => entry.cleared !== undefined)).toEqual([])
        expect(records.length).toBeGreaterThan(0)
      }),
      { numRuns: 120 },
    )
  })

  it('right after the act, byte for byte', () => {
    const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 10, maxLength: 120 })
    fc.assert(
      fc.property(numbers, numbers, fc.boolean(), (story, act, compacts) => {
        const { teller } = generateSession(new Choices(story))
        const before = request(teller.view)
        const standing = teller.view.acts.length
        actOn(teller, new Choices(act), compacts)
        fc.pre(teller.view.acts.length === standing + 1)
        const choice = chooseUndo(teller.view)
        if (!choice.ok) throw new Error(choice.message)
        teller.notice(choice.subtype, { of: choice.act.uuid })
        expect(request(teller.view)).toBe(before)
      }),
      { numRuns: 200 },
    )
  })

  it('refuses an older act and names the newer', () => {
    const { teller } = generateSession(new Choices([0]))
    teller.user('one')
    actOn(teller, new Choices([0]), false)
    const older = teller.view.acts.at(-1)?.uuid ?? ''
    actOn(teller, new Choices([0]), false)
    const newer = teller.view.acts.at(-1)?.uuid
    expect(chooseUndo(teller.view, older)).toMatchObject({ ok: false, reason: 'not-newest', newest: newer })
    expect(chooseUndo(teller.view, 'nobody')).toMatchObject({ ok: false, reason: 'not-standing' })
    const kept = request(teller.view)
    teller.notice('clear_undone', { of: older })
    expect([request(teller.view), [...teller.view.damage].map((item) => item.kind)]).toEqual([
      kept,
      ['bad-undo'],
    ])
  })
})

function actOn(
  teller: ReturnType<typeof generateSession>['teller'],
  choices: Choices,
  compacts: boolean,
): void {
  if (compacts) compactSession(teller, choices)
  else clearSession(teller, choices)
}

/**
 * Observable behaviour, pinned: every request body, every record appended and what the commands print, for 40
 * generated sessions with the Messages API, one with each other codec, and 6 sample logs. After a change of behaviour that is meant: `npm run golden`, and read the
 * difference. `GOLDEN_DUMP=folder` writes the full texts, so that two runs can be compared. `npm test` runs 16 of the 40.
 */
import { sampleCases } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import golden from './golden.json' with { type: 'json' }
import { differences, observeAll } from './observe.ts'
import { MESSAGES_SESSIONS } from './sessions.ts'

/** Of the sessions with the Messages API, two or three of each five: of every kind, exported and compacted by command. */
const CHOSEN = new Set(sampleCases(MESSAGES_SESSIONS, 16))
const LEFT_OUT = new Set(MESSAGES_SESSIONS.filter((plan) => !CHOSEN.has(plan)).map(({ name }) => name))

describe('golden sessions', () => {
  it('send, log and report exactly what they did before', async () => {
    const dump = process.env.GOLDEN_DUMP
    const isChosen = (name: string): boolean => dump !== undefined || !LEFT_OUT.has(name)
    const expected = Object.fromEntries(Object.entries(golden).filter(([name]) => isChosen(name)))
    expect(Object.keys(expected).length).toBeGreaterThan(25)
    expect(differences(expected, await observeAll(dump, isChosen))).toEqual([])
  })
})

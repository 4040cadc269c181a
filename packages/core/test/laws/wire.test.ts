import { runs } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { advance, emptyView } from '../../src/context/context-view.ts'
import { type Flat, flatten, messagesOf } from '../../src/context/flatten.ts'
import { emptySession, reduce } from '../../src/log/session.ts'
import { createProfile } from '../../src/policy/provider-profile.ts'
import { advanceCheck, type Checked, findingsOf, startCheck, validate } from '../../src/validate/validate.ts'
import { generatedSessions } from './generated-sessions.ts'

/** What a present-day provider takes: roles may repeat, thinking may stand anywhere but at the end. */
const profile = createProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [] },
})
const own = ['Read', 'Bash', 'Edit'].map((name) => ({ name, input_schema: { type: 'object' } }))
const tools = [...own, { type: 'search_1', name: 'web_search' }]
const request = { model: 'model-a', max_tokens: 100, tools }

describe('law 2: wire', () => {
  it('the request of every state of every session is one a provider takes', () => {
    let repaired = 0
    fc.assert(
      fc.property(generatedSessions(), ({ records }) => {
        let session = emptySession()
        let view = emptyView()
        let flat: Flat | undefined
        for (const record of records) {
          session = reduce(session, record)
          view = advance(view, session)
          flat = flatten(view, flat)
          repaired += flat.tailRepairs.length
          // Before anything is said there is no request.
          const messages = messagesOf(flat)
          if (messages.length > 0) expect(validate({ ...request, messages }, profile)).toEqual([])
        }
      }),
      { numRuns: 80 },
    )
    expect(repaired).toBeGreaterThan(500)
  })

  it('checking as it grows finds what checking the whole finds', () => {
    fc.assert(
      fc.property(generatedSessions(), fc.boolean(), ({ records }, strict) => {
        const rules = strict ? createProfile() : profile
        let session = emptySession()
        let view = emptyView()
        let flat: Flat | undefined
        let checked: Checked = startCheck(rules)
        for (const record of records) {
          session = reduce(session, record)
          view = advance(view, session)
          flat = flatten(view, flat)
          checked = advanceCheck(checked, flat)
          expect(findingsOf(checked, flat, request)).toEqual(
            validate({ ...request, messages: messagesOf(flat) }, rules),
          )
        }
      }),
      { numRuns: runs(40, 20) },
    )
  })
})

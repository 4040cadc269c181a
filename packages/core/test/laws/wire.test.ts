import { countPropertyRuns, validateContext } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { emptyContextView, updateContextView } from '../../src/context/context-view.ts'
import {
  type FlattenedContext,
  fitContextToRoles,
  flattenContext,
  listTracedMessages,
  toApiMessages,
} from '../../src/context/flatten-context.ts'
import { appendRecord, emptySessionLog } from '../../src/log/session-log.ts'
import { runStepsAtOnce } from '../../src/log/work-steps.ts'
import {
  startValidation,
  updateValidation,
  type ValidationState,
  validateRequest,
} from '../../src/validate/validate-request.ts'
import { PROVIDER_RULES } from '../engine/test-session.ts'
import { generatedSessions } from './generated-sessions.ts'

/** What a present-day provider takes: roles may repeat, thinking may stand anywhere but at the end. */
const profile = defineMessagesProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [] },
})
const own = ['Read', 'Bash', 'Edit'].map((name) => ({ name, input_schema: { type: 'object' } }))
const tools = [...own, { type: 'search_1', name: 'web_search' }]
const request = { model: 'model-a', max_tokens: 100, tools }

describe('law 2: wire', () => {
  it('the request of every state of every session is one that each provider takes', () => {
    let repaired = 0
    const rules = fc.constantFrom(...Object.values(PROVIDER_RULES))
    fc.assert(
      fc.property(generatedSessions(), rules, ({ records }, profile) => {
        let session = emptySessionLog()
        let view = emptyContextView()
        let flat: FlattenedContext | undefined
        for (const record of records) {
          session = appendRecord(session, record)
          view = updateContextView(view, session)
          flat = flattenContext(view, flat)
          repaired += flat.tailRepairs.length
          // Before anything is said there is no request.
          const messages = listTracedMessages(fitContextToRoles(flat, profile.roles)).map(
            ({ message }) => message,
          )
          if (messages.length > 0) expect(validateRequest({ ...request, messages }, profile)).toEqual([])
        }
      }),
      { numRuns: 80 },
    )
    expect(repaired).toBeGreaterThan(100)
  })

  it('checking as it grows finds what checking the whole finds', () => {
    fc.assert(
      fc.property(generatedSessions(), fc.boolean(), ({ records }, strict) => {
        const rules = strict ? defineMessagesProfile() : profile
        let session = emptySessionLog()
        let view = emptyContextView()
        let flat: FlattenedContext | undefined
        let checked: ValidationState = startValidation(rules)
        for (const record of records) {
          session = appendRecord(session, record)
          view = updateContextView(view, session)
          flat = flattenContext(view, flat)
          checked = runStepsAtOnce(updateValidation(checked, flat))
          expect(validateContext(checked, flat, request)).toEqual(
            validateRequest({ ...request, messages: toApiMessages(flat) }, rules),
          )
        }
      }),
      { numRuns: countPropertyRuns(40, 20) },
    )
  })
})

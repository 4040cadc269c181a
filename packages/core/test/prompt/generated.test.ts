import { countPropertyRuns } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { emptyContextView, updateContextView } from '../../src/context/context-view.ts'
import { type FlattenedContext, flattenContext } from '../../src/context/flatten-context.ts'
import { appendRecord, emptySessionLog } from '../../src/log/session-log.ts'
import { runStepsAtOnce } from '../../src/log/work-steps.ts'
import {
  type AssembledRequest,
  assembleRequest,
  findRequestProblems,
  toPayload,
} from '../../src/request/build-request.ts'
import { buildRequestPrefix, createPrefixSnapshot } from '../../src/request/prefix-snapshot.ts'
import {
  startValidation,
  updateValidation,
  type ValidationState,
  validateRequest,
} from '../../src/validate/validate-request.ts'
import { generatedSessions } from '../laws/generated-sessions.ts'
import { POLICY, PRESENT } from './conversation.ts'

const tools = [...PRESENT.tools, { type: 'search_1', name: 'web_search' }]
const epoch = createPrefixSnapshot({ ...PRESENT, tools }, defineMessagesProfile())
const front = buildRequestPrefix({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })
const { markers } = POLICY.cache

/** Sessions with everything in them that a log may hold, whatever the rules about turns. */
const profile = defineMessagesProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [] },
  cache: { collapsesToolRuns: true },
})

describe('law 2: wire, on generated sessions', () => {
  it('markers are legal at every state, and checking as it grows finds what checking the whole finds', () => {
    fc.assert(
      fc.property(
        generatedSessions(),
        fc.boolean(),
        fc.constantFrom('5m', '1h'),
        ({ records }, clears, ttl) => {
          let session = emptySessionLog()
          let view = emptyContextView()
          let flat: FlattenedContext | undefined
          let checked: ValidationState = startValidation(profile)
          let previous: AssembledRequest | undefined
          for (const record of records) {
            session = appendRecord(session, record)
            view = updateContextView(view, session)
            flat = flattenContext(view, flat)
            checked = runStepsAtOnce(updateValidation(checked, flat))
            // Nothing has been said yet: there is no request to make.
            if (flat.frozen.length + flat.tail.length === 0) continue
            const result = [...flat.frozen, ...flat.tail]
              .flatMap(({ message }) => (typeof message.content === 'string' ? [] : message.content))
              .find((block) => block.type === 'tool_result')
            const edge = {
              result: typeof result?.tool_use_id === 'string' ? result.tool_use_id : null,
              left: null,
            }
            const request = assembleRequest({ front, flat, profile, markers, ttl, clears, edge }, previous)
            const payload = toPayload(request)
            expect(validateRequest(payload, profile)).toEqual([])
            expect(findRequestProblems(checked, request)).toEqual([])
            expect(request.markers.length).toBeLessThanOrEqual(4)
            const fresh = assembleRequest({ front, flat, profile, markers, ttl, clears, edge })
            expect(request.markers).toEqual(fresh.markers)
            expect([...request.blockIndex.starts]).toEqual([...fresh.blockIndex.starts])
            previous = request
          }
        },
      ),
      { numRuns: countPropertyRuns(60, 12) },
    )
  })

  it('a message that carries no marker is handed over as it is', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ builder }) => {
        const flat = flattenContext(builder.view)
        const request = assembleRequest({ front, flat, profile, markers, ttl: '5m', clears: true })
        const marked = new Set(
          request.markers.flatMap(({ place }) => (place.zone === 'messages' ? [place.index] : [])),
        )
        const given = [...flat.frozen, ...flat.tail].map(({ message }) => message)
        for (const [index, message] of toPayload(request).messages.entries())
          expect(message === given[index]).toBe(!marked.has(index))
      }),
      { numRuns: countPropertyRuns(40) },
    )
  })
})

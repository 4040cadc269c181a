import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { advance, emptyView } from '../../src/context/context-view.ts'
import { type Flat, flatten } from '../../src/context/flatten.ts'
import { emptySession, reduce } from '../../src/log/session.ts'
import { createProfile } from '../../src/policy/provider-profile.ts'
import {
  type AssembledRequest,
  assembleRequest,
  payloadOf,
  requestFindings,
} from '../../src/request/build-request.ts'
import { frontOf, openEpoch } from '../../src/request/prefix.ts'
import { advanceCheck, type Checked, startCheck, validate } from '../../src/validate/validate.ts'
import { generatedSessions } from '../laws/generated-sessions.ts'
import { POLICY, PRESENT } from './conversation.ts'

const tools = [...PRESENT.tools, { type: 'search_1', name: 'web_search' }]
const epoch = openEpoch({ ...PRESENT, tools }, createProfile())
const front = frontOf({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })
const { markers } = POLICY.cache

/** Sessions with everything in them that a log may hold, whatever the rules about turns. */
const profile = createProfile({
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
          let session = emptySession()
          let view = emptyView()
          let flat: Flat | undefined
          let checked: Checked = startCheck(profile)
          let previous: AssembledRequest | undefined
          for (const record of records) {
            session = reduce(session, record)
            view = advance(view, session)
            flat = flatten(view, flat)
            checked = advanceCheck(checked, flat)
            // Nothing has been said yet: there is no request to make.
            if (flat.frozen.length + flat.tail.length === 0) continue
            const result = [...flat.frozen, ...flat.tail]
              .flatMap(({ message }) => (typeof message.content === 'string' ? [] : message.content))
              .find((block) => block.type === 'tool_result')
            const edge = {
              result: typeof result?.tool_use_id === 'string' ? result.tool_use_id : null,
              left: null,
              rewrittenAt: 0,
            }
            const request = assembleRequest({ front, flat, profile, markers, ttl, clears, edge }, previous)
            const payload = payloadOf(request)
            expect(validate(payload, profile)).toEqual([])
            expect(requestFindings(checked, request)).toEqual([])
            expect(request.markers.length).toBeLessThanOrEqual(4)
            const fresh = assembleRequest({ front, flat, profile, markers, ttl, clears, edge })
            expect(request.markers).toEqual(fresh.markers)
            expect([...request.counted.starts]).toEqual([...fresh.counted.starts])
            previous = request
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('a message that carries no marker is handed over as it is', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ builder }) => {
        const flat = flatten(builder.view)
        const request = assembleRequest({ front, flat, profile, markers, ttl: '5m', clears: true })
        const marked = new Set(
          request.markers.flatMap(({ place }) => (place.zone === 'messages' ? [place.index] : [])),
        )
        const given = [...flat.frozen, ...flat.tail].map(({ message }) => message)
        for (const [index, message] of payloadOf(request).messages.entries())
          expect(message === given[index]).toBe(!marked.has(index))
      }),
      { numRuns: 40 },
    )
  })
})

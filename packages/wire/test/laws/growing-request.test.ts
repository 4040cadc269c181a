import { emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { type FlattenedContext, flattenContext } from '@tidemark/core/context/flatten-context'
import type { JsonObject } from '@tidemark/core/log/json'
import type { SessionRecord } from '@tidemark/core/log/record'
import { appendRecord, emptySessionLog } from '@tidemark/core/log/session-log'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import {
  type AssembledRequest,
  assembleRequest,
  listExactBlockTexts,
  toPayload,
} from '@tidemark/core/request/build-request'
import { createForkRequest } from '@tidemark/core/request/fork-request'
import { buildRequestPrefix, createPrefixSnapshot } from '@tidemark/core/request/prefix-snapshot'
import { countPropertyRuns, GeneratorChoices, generateSession } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeRequestFragments, joinRequestFragments } from '../../src/anthropic/encode-request.ts'
import {
  encodeMessagesCall,
  type IncrementalRequest,
  type MessageTextCache,
} from '../../src/anthropic/incremental-request.ts'
import { defineMessagesProfile } from '../../src/profiles/provider-profile.ts'
import type { EncodeCallOptions } from '../../src/providers/provider-codec.ts'

const STREAM = { stream: true }
const { markers } = createPolicy({}).cache

function profileThat(cacheEdits: boolean): ProviderProfile {
  return defineMessagesProfile({
    roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
    thinking: { closing: 'not-at-end', firstInModes: [] },
    cache: { collapsesToolRuns: true },
    capabilities: { cacheEdits },
  })
}

const tool = (name: string): JsonObject => ({ name, description: name, input_schema: { type: 'object' } })
const epoch = createPrefixSnapshot(
  {
    sections: [
      { name: 'rules', part: 'static', text: 'Be "careful".' },
      { name: 'environment', part: 'dynamic', text: 'Linux' },
    ],
    tools: [tool('Read'), tool('Bash')],
    model: 'model-a',
    parameters: { max_tokens: 1000, betas: ['b-1'], metadata: { user: 'ü' } },
  },
  defineMessagesProfile(),
)
const front = buildRequestPrefix({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })

/** Some blocks get an exact text that stringify would change, or a marker or reference of their own. */
function roughened(record: SessionRecord, dice: number): SessionRecord {
  if (record.type !== 'user' && record.type !== 'assistant') return record
  const { message } = record as SessionRecord & { readonly message: { readonly content: unknown } }
  const { content } = message
  if (!Array.isArray(content) || content.length === 0) return record
  const at = dice % content.length
  if (dice % 3 === 0) {
    const text = `${JSON.stringify({ ...content[at], n: 1 }).slice(0, -1)}.0 }`
    return { ...record, rawBlocks: [{ index: at, text }] } as unknown as SessionRecord
  }
  if (dice % 7 !== 0) return record
  const extra =
    dice % 2 === 0 ? { cache_control: { type: 'ephemeral', ttl: '1h' } } : { cache_reference: 'theirs' }
  const blocks = content.map((block, index) => (index === at ? { ...extra, ...block, later: true } : block))
  return { ...record, message: { ...message, content: blocks } } as unknown as SessionRecord
}

function plainBody(request: AssembledRequest): string {
  return joinRequestFragments(
    encodeRequestFragments(
      { ...toPayload(request), ...STREAM },
      { raw: { messages: listExactBlockTexts(request) } },
    ),
  )
}

function extend(
  request: AssembledRequest,
  options: EncodeCallOptions = {},
): IncrementalRequest & { text: string } {
  const { text, state } = runStepsAtOnce(
    encodeMessagesCall({ payload: toPayload(request), request }, options),
  )
  return { ...(state as IncrementalRequest), text }
}

describe('a request that grows', () => {
  it('is byte for byte the plain one, after every record, whatever is marked', () => {
    const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 200, size: 'max' })
    const settings = fc.record({
      clears: fc.boolean(),
      refers: fc.boolean(),
      ttl: fc.constantFrom('5m', '1h', null),
    })
    fc.assert(
      fc.property(numbers, settings, (choices, { clears, refers, ttl }) => {
        const profile = profileThat(refers)
        let [session, view] = [emptySessionLog(), emptyContextView()]
        let flat: FlattenedContext | undefined
        let previous: AssembledRequest | undefined
        let grown: ReturnType<typeof extend> | undefined
        for (const [index, record] of generateSession(new GeneratorChoices(choices)).records.entries()) {
          const dice = choices[index % choices.length] ?? 0
          session = appendRecord(session, roughened(record, dice))
          view = updateContextView(view, session)
          flat = flattenContext(view, flat)
          const results = [...flat.frozen]
            .flatMap(({ message }) => (typeof message.content === 'string' ? [] : message.content))
            .filter((block) => block.type === 'tool_result')
          // The marker before the results that may be cleared stands somewhere else at each request.
          const result = results[dice % results.length]
          const first = typeof result?.tool_use_id === 'string' ? result.tool_use_id : null
          const edge = { result: first, left: null }
          const request = assembleRequest({ front, flat, profile, markers, ttl, clears, edge }, previous)
          grown = extend(request, { fields: STREAM, previous: grown })
          expect(grown.text).toBe(plainBody(request))
          expect(grown.betas).toEqual(['b-1'])
          previous = request
        }
        if (previous === undefined) return
        const forked = createForkRequest(previous, [{ role: 'user', content: 'and?' }], { profile, ttl })
        const side = extend(forked, { fields: STREAM, previous: grown })
        expect(side.text).toBe(plainBody(forked))
      }),
      { numRuns: countPropertyRuns(60) },
    )
  })

  it('spells nothing twice: what is settled is the very text of the request before', () => {
    const profile = profileThat(false)
    const { builder } = generateSession(new GeneratorChoices([]))
    const before = flattenContext(builder.view)
    const texts: MessageTextCache = new WeakMap()
    const first = extend(
      assembleRequest({ front, flat: before, profile, markers, ttl: '5m', clears: true }),
      { texts },
    )
    for (let turn = 0; turn < 4; turn += 1) {
      builder.assistant(builder.id('msg'), [{ type: 'text', text: `answer ${turn}` }])
      builder.user(`question ${turn}`)
    }
    const flat = flattenContext(builder.view, before)
    const next = assembleRequest({ front, flat, profile, markers, ttl: '5m', clears: true })
    const grown = extend(next, { previous: first, texts })
    const again = extend(next, { previous: grown, texts })
    expect(again.messages.frozenTexts).toBe(grown.messages.frozenTexts)
    const anew = extend(next, { texts })
    expect(
      [...anew.messages.frozenTexts].every((text, at) => text === grown.messages.frozenTexts.at(at)),
    ).toBe(true)
  })

  it('starts over where the messages are others', () => {
    const profile = profileThat(true)
    const requestOf = (numbers: readonly number[]): AssembledRequest => {
      const flat = flattenContext(generateSession(new GeneratorChoices(numbers)).builder.view)
      return assembleRequest({ front, flat, profile, markers, ttl: '5m', clears: true })
    }
    const one = requestOf([1, 7, 300, 20, 5, 800, 33, 41])
    const other = requestOf([9, 2, 60, 77, 1, 90, 3, 4])
    const grown = extend(other, { fields: STREAM, previous: extend(one) })
    expect(grown.text).toBe(plainBody(other))
  })
})

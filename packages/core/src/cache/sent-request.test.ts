import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { longTalk } from '../../test/breaks/talk.ts'
import type { JsonObject } from '../log/json.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { indexBlocks } from '../request/block-index.ts'
import { type AssembledRequest, assembleRequest } from '../request/build-request.ts'
import { buildRequestPrefix, type RequestPrefix } from '../request/prefix-snapshot.ts'
import { diffRequests } from './request-diff.ts'
import { type SendContext, type SentRequest, toSentRequest } from './sent-request.ts'

const profile = defineMessagesProfile({
  cache: {
    ttls: [
      { name: '1h', seconds: 3600 },
      { name: '5m', seconds: 300 },
    ],
    defaultTtl: '5m',
  },
})
const PARAMETERS: JsonObject = {
  max_tokens: 100,
  thinking: { type: 'adaptive' },
  output_config: { effort: 'high', format: { type: 'json' } },
  betas: ['one'],
  metadata: { user_id: 'u' },
  container: 'c1',
}

function front(parameters: JsonObject = PARAMETERS): RequestPrefix {
  const sections = [
    { name: 'rules', part: 'static', text: 'be kind' },
    { name: 'environment', part: 'dynamic', text: 'a folder' },
    { name: 'language', part: 'dynamic', text: 'English' },
  ] as const
  const epoch = { sections, tools: [{ name: 'Read', input_schema: {} }], model: 'model-a', parameters }
  return buildRequestPrefix({ uuid: 'e', epoch, parameters, isFresh: false })
}

function assembled(given: RequestPrefix, extra: JsonObject = {}): AssembledRequest {
  const { flat } = longTalk()
  return assembleRequest({
    front: given,
    flat,
    profile,
    markers: DEFAULT_POLICY.cache.markers,
    ttl: '1h',
    clears: false,
    extra,
  })
}

function differences(before: SentRequest, after: SentRequest) {
  const counted = ({ messages }: SentRequest) => indexBlocks(messages, true)
  return diffRequests(before, after, [counted(before), counted(after)])
}

const SENDING: SendContext = { source: 'sdk', at: 7, profile }

describe('sentRequest', () => {
  it('is what the engine put together, in the pieces a cache can lose', () => {
    const request = assembled(front(), { diagnostics: { previous_message_id: 'm' } })
    const { messages, front: _, ...sent } = toSentRequest(request, SENDING)
    expect(messages).toBe(request.messages)
    expect(sent).toEqual({
      source: 'sdk',
      at: 7,
      tools: [{ name: 'Read', text: '{"name":"Read","input_schema":{}}' }],
      system: [
        { name: 'rules', text: 'be kind' },
        { name: 'environment', text: 'a folder' },
        { name: 'language', text: 'English' },
      ],
      parameters: {
        model: 'model-a',
        speed: undefined,
        effort: 'high',
        thinking: '{"type":"adaptive"}',
        toolChoice: undefined,
        betas: ['one'],
        others: { container: '"c1"', output: '{"format":{"type":"json"}}' },
      },
      markers: sent.markers,
    })
    expect(sent.markers.at(-1)).toEqual({ zone: 'messages', index: 20, block: 1, ttl: '1h', seconds: 3600 })
  })

  it('takes over the pieces of a front that still stands', () => {
    const standing = front()
    const first = toSentRequest(assembled(standing), SENDING)
    const again = toSentRequest(assembled(standing), { ...SENDING, previous: first })
    const other = toSentRequest(assembled(front()), { ...SENDING, previous: first })
    expect([again.tools === first.tools, again.system === first.system, other.tools === first.tools]).toEqual(
      [true, true, false],
    )
  })

  it('does not tell of what no cache depends on', () => {
    const before = toSentRequest(assembled(front()), SENDING)
    const after = toSentRequest(
      assembled(front({ ...PARAMETERS, max_tokens: 5, metadata: { user_id: 'v' } })),
      SENDING,
    )
    expect(differences(before, after)).toEqual([])
  })

  it('tells of what one does', () => {
    const before = toSentRequest(assembled(front()), SENDING)
    const changed = {
      ...PARAMETERS,
      output_config: { effort: 'low' },
      tool_choice: { type: 'none' },
      container: 'c2',
    }
    const after = toSentRequest(assembled(front(changed)), SENDING)
    expect(differences(before, after)).toEqual([
      { kind: 'effort-changed', before: 'high', after: 'low' },
      { kind: 'tool-choice-changed', before: null, after: '{"type":"none"}' },
      { kind: 'parameter-changed', name: 'container', before: '"c1"', after: '"c2"' },
      { kind: 'parameter-changed', name: 'output', before: '{"format":{"type":"json"}}', after: null },
    ])
  })
})

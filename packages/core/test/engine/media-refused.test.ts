/** Images that a provider will not take are left out, and the request is sent again once. */
import type { FakeReply } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { ModelFailure } from '../../src/engine/reply.ts'
import { readSessionState } from '../../src/engine/session-state.ts'
import type { Block } from '../../src/log/block.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { DeepPartial } from '../../src/policy/policy-fields.ts'
import { createScriptedHost, playTurn, reply, text } from './test-session.ts'

const image: Block = {
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(400) },
}
const MEDIA: ModelFailure = { kind: 'media', retryable: false, message: 'Could not process image' }
const imagesIn = (value: unknown): number => JSON.stringify(value).split('"image/png"').length - 1
const failed = (failure: ModelFailure): FakeReply => ({ blocks: [], failure })

async function refused(failures: readonly ModelFailure[], policy: DeepPartial<Policy> = {}) {
  const replies = [reply(text('One.')), reply(text('Two.')), ...failures.map(failed), reply(text('Fine.'))]
  const made = createScriptedHost(replies, { policy: createPolicy(policy) })
  let state = await readSessionState(made.host.journal, 's')
  const prompts = [[text('a'), image], [text('b')], [text('c'), image]]
  let end: Awaited<ReturnType<typeof playTurn>> | null = null
  for (const prompt of prompts) {
    end = await playTurn(state, { prompt }, made.host)
    state = end.outcome.state
  }
  const events = end?.events ?? []
  return {
    ok: end?.outcome.ok,
    images: made.asked.slice(2).map(({ payload }) => imagesIn(payload)),
    told: events.filter(({ type }) => type === 'media-dropped').length,
    failures: events.filter((event) => event.type === 'reply' && event.event.type === 'reply-failed').length,
  }
}

describe('media that a provider refuses', () => {
  it.each([
    [
      'all of it, where it does not say which',
      [MEDIA],
      {},
      { ok: true, images: [2, 0], told: 1, failures: 0 },
    ],
    [
      'that of the message it names',
      [{ ...MEDIA, path: 'messages.4.content.1.image.source' }],
      {},
      { ok: true, images: [2, 1], told: 1, failures: 0 },
    ],
    [
      'what was answered, where the bytes are too many',
      [{ ...MEDIA, kind: 'too-large' as const }],
      {},
      { ok: true, images: [2, 1], told: 1, failures: 0 },
    ],
    ['once', [MEDIA, MEDIA], {}, { ok: false, images: [2, 0], told: 1, failures: 1 }],
    [
      'never, where the policy says so',
      [MEDIA],
      { turn: { reactive: { mediaRetries: 0 } } },
      { ok: false, images: [2], told: 0, failures: 1 },
    ],
  ])('is left out: %s', async (_, failures, policy, expected) => {
    expect(await refused(failures, policy)).toEqual(expected)
  })
})

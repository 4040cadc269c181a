import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { createMediaPlaceholder } from '../../src/context/context-entry.ts'
import type { Block } from '../../src/log/block.ts'
import { runStepsAtOnce } from '../../src/log/work-steps.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import type { ProviderProfile } from '../../src/policy/provider-profile.ts'
import { toPayload } from '../../src/request/build-request.ts'
import {
  canExceedSizeLimits,
  EMPTY_MEDIA_TALLY,
  findRequestSizeLimits,
  type MediaItem,
  measureNonMessageBytes,
  proposeMediaDrop,
  tallyFrozenMedia,
} from '../../src/request/request-size.ts'
import { validateRequest } from '../../src/validate/validate-request.ts'
import { Conversation, PROFILE } from './conversation.ts'

/** A picture of so many pixels a side: the head of a PNG, and bytes to fill. */
function picture(side = 10, bytes = 40): Block {
  const hex = side.toString(16).padStart(8, '0')
  const head = `89504e470d0a1a0a0000000d49484452${hex}${hex}`
  const data = Buffer.from(head, 'hex').toString('base64')
  return {
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: data.padEnd(Math.max(bytes, data.length), 'A') },
  }
}

const text: Block = { type: 'text', text: 'x' }

/** Each list of blocks is a prompt, and all but the last are answered. */
function proposal(prompts: readonly (readonly Block[])[], profile: ProviderProfile, given: object = {}) {
  const conversation = new Conversation(profile)
  prompts.forEach((blocks, index) => {
    if (index > 0) conversation.answer([text])
    conversation.builder.user(blocks)
  })
  const { request } = conversation.assemble()
  const tally = runStepsAtOnce(tallyFrozenMedia(EMPTY_MEDIA_TALLY, request.messages))
  const policy = createPolicy({ request: given }).request
  const sized = { messages: request.messages, around: measureNonMessageBytes(request.front, 4) }
  return { ...proposeMediaDrop(sized, tally, { profile, policy }), payload: toPayload(request), conversation }
}

const where = ({ index, block, inner }: MediaItem) => [index, block, inner]
const few = (images: number, more: object = {}) =>
  defineMessagesProfile({ ...PROFILE, sizes: { ...PROFILE.sizes, images, ...more } })
const prompts = (count: number, block = picture()) => Array.from({ length: count }, () => [block, text])

describe('images and bytes', () => {
  it('that fit are left alone', () => {
    expect(proposal(prompts(8), few(8))).toMatchObject({
      before: { images: 8 },
      after: { images: 8 },
      drop: [],
      fits: true,
    })
  })

  it('over the limit go oldest first, down to the low-water mark', () => {
    const { drop, after, fits } = proposal(prompts(9), few(8))
    expect(drop.map(where)).toEqual([
      [0, 0, null],
      [2, 0, null],
      [4, 0, null],
    ])
    expect([after.images, fits]).toEqual([6, true])
  })

  it('bytes count as they are sent, and so do placeholders', () => {
    const profile = defineMessagesProfile({ ...PROFILE, sizes: { ...PROFILE.sizes, bodyBytes: 40_000 } })
    const { before, after, drop, fits, payload } = proposal(prompts(5, picture(10, 10_000)), profile)
    const sent = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
    expect(before.bytes).toBeGreaterThanOrEqual(sent(payload))
    expect(before.bytes).toBeLessThanOrEqual(sent(payload) + 400)
    expect(drop).toHaveLength(3)
    const one = drop[0]
    if (one === undefined) throw new Error('nothing dropped')
    expect(before.bytes - after.bytes).toBe(
      3 * (sent(picture(10, 10_000)) - sent(createMediaPlaceholder(one.kind))),
    )
    expect([after.bytes <= 30_000, fits]).toEqual([true, true])
  })

  it('a prompt nobody has answered keeps its images, even where they are too many', () => {
    const { drop, fits } = proposal([[picture()], Array.from({ length: 4 }, () => picture())], few(3))
    expect([drop.map(where), fits]).toEqual([[[0, 0, null]], false])
  })

  it('those inside tool results and documents in pages count too', () => {
    const conversation = new Conversation(few(1))
    conversation.builder.user('look')
    conversation.answer([{ type: 'tool_use', id: 't', name: 'Read', input: {} }])
    conversation.builder.result('t', [text, picture()])
    conversation.answer([text])
    const pages = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }
    const plain = { type: 'text', media_type: 'text/plain', data: 'AAAA' }
    conversation.builder.user([
      { type: 'document', source: pages },
      { type: 'document', source: plain },
    ])
    const { request } = conversation.assemble()
    const policy = createPolicy({}).request
    const tally = runStepsAtOnce(tallyFrozenMedia(EMPTY_MEDIA_TALLY, request.messages))
    const sized = { messages: request.messages, around: measureNonMessageBytes(request.front, 4) }
    const { before, drop } = proposeMediaDrop(sized, tally, { profile: few(1), policy })
    expect([before.images, drop.map(where)]).toEqual([2, [[2, 0, 1]]])
  })

  it('that are no images do not count against the image limits', () => {
    const note: Block = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } }
    const conversation = new Conversation(few(2))
    conversation.builder.user([note, note, note, picture(), picture()])
    const { request } = conversation.assemble()
    const policy = createPolicy({}).request
    const tally = runStepsAtOnce(tallyFrozenMedia(EMPTY_MEDIA_TALLY, { ...request.messages, tail: [] }))
    const around = measureNonMessageBytes(request.front, 4)
    const isOver = (images: number) =>
      canExceedSizeLimits({ messages: request.messages, around }, tally, { profile: few(images), policy })
    expect([isOver(2), isOver(1)]).toEqual([false, true])
    expect(around - measureNonMessageBytes(request.front, 1)).toBe(3 * 80)
  })

  it('among many images the large old ones go', () => {
    const sizes = { manyImages: 3, manyImagePixels: 100 }
    const large = [[picture(200), text], ...prompts(4)]
    const { drop, fits } = proposal(large, few(100, sizes))
    expect([drop.map(where), fits]).toEqual([[[0, 0, null]], true])
    expect(proposal(large.slice(0, 3), few(100, sizes)).drop).toEqual([])
  })

  it('and where the new one is large, so many of the old that the rest are few', () => {
    const profile = few(100, { manyImages: 3, manyImagePixels: 100 })
    const { drop, fits, payload } = proposal([...prompts(4), [picture(200)]], profile)
    expect([drop.map(where), fits]).toEqual([
      [
        [0, 0, null],
        [2, 0, null],
      ],
      true,
    ])
    expect(validateRequest(payload, profile).map(({ code }) => code)).toEqual(['many-image-size'])
  })

  it('what was tallied as it grew is what is tallied at once', () => {
    const conversation = new Conversation(few(100))
    let grown = EMPTY_MEDIA_TALLY
    for (const blocks of prompts(6)) {
      conversation.builder.user(blocks)
      grown = runStepsAtOnce(tallyFrozenMedia(grown, conversation.assemble().request.messages))
      conversation.answer([text])
    }
    const { messages } = conversation.assemble().request
    grown = runStepsAtOnce(tallyFrozenMedia(grown, messages))
    const { items, bytes } = runStepsAtOnce(tallyFrozenMedia(EMPTY_MEDIA_TALLY, messages))
    expect([[...grown.items], grown.bytes]).toEqual([[...items], bytes])
    expect(items.length).toBeGreaterThan(4)
  })

  it.each<[string, Partial<ProviderProfile>, object, object]>([
    ['a large window', { window: 1_000_000 }, {}, { bytes: 32_000_000, images: 100 }],
    ['a small one', { window: 200_000 }, { imagesInSmallWindow: 20 }, { bytes: 32_000_000, images: 20 }],
    ['an unknown one', { window: null }, { imagesInSmallWindow: 20 }, { bytes: 32_000_000, images: 20 }],
    ['a policy of fewer bytes', { window: 1_000_000 }, { bodyBytes: 5_000 }, { bytes: 5_000, images: 100 }],
  ])('limits: %s', (_, profile, policy, expected) => {
    const rules = createPolicy({ request: policy }).request
    expect(findRequestSizeLimits({ ...PROFILE, ...profile }, rules)).toEqual(expected)
  })
})

/** Law: what we encode we can decode, and nothing is lost: requests, streams, whole replies. */

import type { Payload } from '@tidemark/core/context/payload'
import type { ReplyEvent } from '@tidemark/core/engine/reply'
import { toBlocks } from '@tidemark/core/log/block'
import { splitJsonObject, survivesJsonRoundTrip } from '@tidemark/core/log/json'
import { collectReply, countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeReplyFrame, initialStreamState } from '../../src/anthropic/decode-stream.ts'
import { encodeRequestFragments, joinRequestFragments } from '../../src/anthropic/encode-request.ts'
import { encodeReplyEvent, encodeReplyFrames } from '../../src/anthropic/reply-frames.ts'
import { decodeResponseBody, encodeResponseBody } from '../../src/anthropic/response-body.ts'
import type { SseFrame } from '../../src/http/sse.ts'
import { createReplySplitter, replyToEvents } from '../../src/providers/reply-events.ts'
import { objectText, payload, reply } from '../arbitrary.ts'
import { decodeRequest } from '../decode-request.ts'

function decode(frames: readonly SseFrame[]): readonly ReplyEvent[] {
  let state = initialStreamState
  return frames.flatMap((frame) => {
    const [next, events] = decodeReplyFrame(state, frame)
    state = next
    return events
  })
}

describe('replies', () => {
  it('come out of a stream as they went in', () => {
    fc.assert(
      fc.property(reply, fc.integer({ min: 1, max: 50 }), (whole, size) => {
        expect(collectReply(decode(encodeReplyFrames(whole, createReplySplitter(size))))).toEqual(whole)
      }),
      { numRuns: countPropertyRuns(300, 30) },
    )
  })

  it('report a tool call that was cut off, with the part that arrived', () => {
    const call = { type: 'tool_use', id: 't', name: 'n', input: {} }
    fc.assert(
      fc.property(reply, fc.constantFrom('{"a": "un', '{"10":1,', '['), (whole, text) => {
        const content = [...toBlocks(whole.message.content), call]
        const cut = {
          ...whole,
          message: { ...whole.message, content },
          cutInputs: [{ index: content.length - 1, text }],
        }
        expect(collectReply(decode(encodeReplyFrames(cut, createReplySplitter(3))))).toEqual(cut)
      }),
    )
  })

  it('give the same events from a stream and from one body', () => {
    fc.assert(
      fc.property(reply, (whole) => {
        const body = decodeResponseBody(encodeResponseBody(whole))
        expect(body).toEqual({ ok: true, reply: whole })
        expect(body.ok && replyToEvents(body.reply)).toEqual(decode(encodeReplyFrames(whole)))
      }),
      { numRuns: countPropertyRuns(300, 30) },
    )
  })

  it('make the same events again from the frames of their events', () => {
    fc.assert(
      fc.property(reply, fc.integer({ min: 1, max: 50 }), (whole, size) => {
        const events = decode(encodeReplyFrames(whole, createReplySplitter(size)))
        expect(decode(events.flatMap(encodeReplyEvent))).toEqual(events)
      }),
    )
  })
})

/** What strings become on the wire: one block, or none. */
function asBlocks(value: unknown): unknown {
  if (typeof value !== 'string') return value
  return value === '' ? [] : [{ type: 'text', text: value }]
}

function withBlocks(whole: Payload): unknown {
  const messages = whole.messages.map((message) => ({ ...message, content: asBlocks(message.content) }))
  return { ...whole, ...('system' in whole ? { system: asBlocks(whole.system) } : {}), messages }
}

function said(whole: Payload): string {
  const { fragments } = encodeRequestFragments(whole)
  return fragments.map(({ lead, bare }) => lead + bare).join('')
}

describe('requests', () => {
  it('come back as they went, strings as strings when asked', () => {
    fc.assert(
      fc.property(payload, (whole) => {
        const encoded = encodeRequestFragments(whole, { strings: 'keep' })
        expect(decodeRequest(joinRequestFragments(encoded), encoded.betas)).toEqual({
          ok: true,
          payload: whole,
          raw: {},
        })
      }),
      { numRuns: countPropertyRuns(300, 30) },
    )
  })

  it('come back with strings as one block', () => {
    fc.assert(
      fc.property(payload, (whole) => {
        const encoded = encodeRequestFragments(whole)
        expect(decodeRequest(joinRequestFragments(encoded), encoded.betas)).toMatchObject({
          ok: true,
          payload: withBlocks(whole),
        })
      }),
      { numRuns: countPropertyRuns(300, 30) },
    )
  })

  it('keep every text that parse and stringify would change', () => {
    fc.assert(
      fc.property(objectText, objectText, (first, second) => {
        const body = `{"model":"m","metadata":${first},"tools":[{"name":"t","input_schema":${second}}],"system":[{"type":"text","text":"s","x":${first}}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_use","input":${second}}]}]}`
        const decoded = decodeRequest(body)
        expect(
          decoded.ok && joinRequestFragments(encodeRequestFragments(decoded.payload, { raw: decoded.raw })),
        ).toBe(body)
      }),
      { numRuns: countPropertyRuns(300, 30) },
    )
  })

  it('grow at the end only: what was sent is a literal prefix of what follows, markers aside', () => {
    fc.assert(
      fc.property(payload, payload, (before, { messages }) => {
        const after = { ...before, messages: [...before.messages, ...messages] }
        expect(said(after).startsWith(said(before))).toBe(true)
      }),
      { numRuns: countPropertyRuns(200, 30) },
    )
  })

  it('leave the bytes of a message alone when another joins it', () => {
    fc.assert(
      fc.property(payload, fc.string(), (whole, text) => {
        const last = whole.messages.at(-1) ?? { role: 'user' as const, content: 'first' }
        const joined = [...toBlocks(last.content || []), { type: 'text', text }]
        const before = { ...whole, messages: [...whole.messages, last] }
        const after = { ...whole, messages: [...whole.messages, { ...last, content: joined }] }
        expect(said(after).startsWith(said(before))).toBe(true)
      }),
      { numRuns: countPropertyRuns(200, 30) },
    )
  })

  it('have the same bare text whatever is marked', () => {
    fc.assert(
      fc.property(payload, (whole) => {
        const bare = encodeRequestFragments(whole).fragments.map((fragment) => fragment.bare)
        const plain: Payload = JSON.parse(JSON.stringify(whole), (key, value) =>
          key === 'cache_control' ? undefined : value,
        )
        const without = encodeRequestFragments(plain).fragments
        expect(bare.filter((text) => text !== '')).toEqual(without.map((fragment) => fragment.text))
      }),
      { numRuns: countPropertyRuns(200, 30) },
    )
  })
})

describe('JSON texts', () => {
  it('are taken apart where the parser would', () => {
    fc.assert(
      fc.property(objectText, (text) => {
        const members = splitJsonObject(text)
        const again = Object.fromEntries(members.map(({ key, text: value }) => [key, JSON.parse(value)]))
        expect(again).toEqual(JSON.parse(text))
      }),
    )
  })

  it('survive exactly when stringify makes them again', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(survivesJsonRoundTrip(JSON.stringify(value))).toBe(true)
        expect(survivesJsonRoundTrip(JSON.stringify(value, null, 2))).toBe(true)
      }),
    )
  })
})

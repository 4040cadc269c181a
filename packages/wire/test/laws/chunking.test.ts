/** Law: a stream cut at any byte boundaries gives the same events; cut off at any byte, exactly one closing event. */

import type { Reply, ReplyEvent } from '@tidemark/core/engine/reply'
import { collectReply, countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeReplyBytes,
  finishReplyBytes,
  initialByteStreamState,
} from '../../src/anthropic/decode-stream.ts'
import { encodeReplyFrames } from '../../src/anthropic/reply-frames.ts'
import { encodeSseFrame } from '../../src/http/sse.ts'
import { createReplySplitter } from '../../src/providers/reply-events.ts'
import { reply } from '../arbitrary.ts'

const LINE_ENDS = ['\n', '\r\n', '\r']

function bytesOf(whole: Reply, size: number, lineEnd: string): Uint8Array {
  const frames = encodeReplyFrames(whole, createReplySplitter(size)).map(encodeSseFrame)
  const [first = '', ...rest] = frames
  const text = [first, ': still here\n\n', ...rest].join('')
  return new TextEncoder().encode(text.replaceAll('\n', lineEnd))
}

function decode(chunks: readonly Uint8Array[]): readonly ReplyEvent[] {
  let state = initialByteStreamState
  const events: ReplyEvent[] = []
  for (const chunk of chunks) {
    const [next, news] = decodeReplyBytes(state, chunk)
    state = next
    events.push(...news)
  }
  return [...events, ...finishReplyBytes(state)[1]]
}

function cutAt(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const cuts = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  )
  return cuts.slice(1).map((to, index) => bytes.subarray(cuts[index], to))
}

const stream = fc
  .tuple(reply, fc.integer({ min: 1, max: 40 }), fc.constantFrom(...LINE_ENDS))
  .map(([whole, size, lineEnd]) => ({ whole, bytes: bytesOf(whole, size, lineEnd) }))

function isClosing(event: ReplyEvent): boolean {
  return event.type === 'reply-ended' || event.type === 'reply-failed'
}

describe('chunking', () => {
  it('gives the same events however the bytes are cut', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat()), ({ bytes }, places) => {
        expect(decode(cutAt(bytes, places))).toEqual(decode([bytes]))
      }),
      { numRuns: countPropertyRuns(150, 30) },
    )
  })

  it('gives the same events byte by byte', () => {
    fc.assert(
      fc.property(stream, ({ bytes }) => {
        expect(decode([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(decode([bytes]))
      }),
      { numRuns: countPropertyRuns(25, 12) },
    )
  })

  it('ends in exactly one closing event, wherever the stream is cut off', () => {
    fc.assert(
      fc.property(stream, fc.nat(), ({ bytes, whole }, place) => {
        const events = decode([bytes.subarray(0, place % (bytes.length + 1))])
        const closing = events.filter(isClosing)
        expect(closing).toEqual([events.at(-1)])
        const [last] = closing
        expect(last !== undefined && 'reply' in last ? last.reply : undefined).toEqual(collectReply(events))
        if (last?.type === 'reply-ended') expect(last.reply).toEqual(whole)
      }),
      { numRuns: countPropertyRuns(300, 30) },
    )
  })

  it('keeps of a cut stream every block that was whole', () => {
    fc.assert(
      fc.property(stream, fc.nat(), ({ bytes, whole }, place) => {
        const kept = collectReply(decode([bytes.subarray(0, place % (bytes.length + 1))]))
        const count = kept?.message.content.length ?? 0
        expect(kept?.message.content ?? []).toEqual(whole.message.content.slice(0, count))
        expect(kept?.rawBlocks ?? []).toEqual(whole.rawBlocks.filter(({ index }) => index < count))
      }),
      { numRuns: countPropertyRuns(150, 30) },
    )
  })
})

/** What every codec keeps to, as a list of named cases. A codec joins the list of `test/made-up/conformance.test.ts`. */
import type { Payload } from '@tidemark/core/context/payload'
import type { ModelFailure, Reply, ReplyEvent } from '@tidemark/core/engine/reply'
import { type Block, isTextBlock, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { type JsonObject, parseJson } from '@tidemark/core/log/json'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import type { FailedResponse } from '@tidemark/wire/failure/classify-failure'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { expect } from 'vitest'

/** A codec, and what only its provider can say. */
export interface CodecSubject {
  readonly codec: ProviderCodec
  /** How the provider says that a reply ended because the model was ready, as fields of the message. */
  readonly ending: JsonObject
  /** How it says that 700 tokens were new, 300 came from its cache and 50 were written. */
  readonly usage: JsonObject
  /** How it says that a prompt is too long. */
  readonly overflow: FailedResponse
}

interface ConformanceCase {
  readonly name: string
  readonly check: (subject: CodecSubject) => void
}

const TEXT = 'Größe: 3 Zeilen — “ready”.\nSecond line.'
const CALL = { type: 'tool_use', id: 'call-1', name: 'Read', input: { path: 'a.ts', deep: [1, { x: 'ü' }] } }
const BLOCKS: readonly Block[] = [{ type: 'text', text: TEXT }, CALL]

const CONVERSATION: Payload = {
  model: 'any-model',
  system: [{ type: 'text', text: 'You repair programs.' }],
  tools: [{ name: 'Read', description: 'Reads a file.', input_schema: { type: 'object' } }],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Fix the sum.' }] },
    { role: 'assistant', content: [...BLOCKS] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call-1', content: 'const a = 1' }] },
    { role: 'assistant', content: [{ type: 'text', text: 'It is fixed.' }] },
    { role: 'user', content: [{ type: 'text', text: 'And the tests?' }] },
  ],
}

export const CODEC_CASES: readonly ConformanceCase[] = [
  {
    name: 'knows its own path, and no other',
    check({ codec }) {
      expect(codec.client.findRouteKind(codec.paths.reply)).toBe('reply')
      expect(codec.client.findRouteKind(new URL(codec.baseUrl + codec.paths.reply).pathname)).toBe('reply')
      expect(codec.client.findRouteKind('/anything/else')).toBeNull()
    },
  },
  {
    name: 'encodes the same call to the same bytes, also by extending the request before',
    check({ codec }) {
      expect(encode(codec, CONVERSATION)).toBe(encode(codec, CONVERSATION))
      const { state } = runStepsAtOnce(codec.encode({ payload: takeMessages(3) }, STREAMED))
      const extended = runStepsAtOnce(
        codec.encode({ payload: CONVERSATION }, { ...STREAMED, previous: state }),
      )
      expect(extended.text).toBe(encode(codec, CONVERSATION))
    },
  },
  {
    name: 'only appends to the bytes of a request that grows',
    check({ codec }) {
      // What closes the list and the body comes after the messages.
      const shorter = encode(codec, takeMessages(3)).slice(0, -2)
      expect(encode(codec, CONVERSATION).startsWith(shorter)).toBe(true)
      expect(encode(codec, { ...CONVERSATION, model: 'other' }).startsWith(shorter)).toBe(false)
    },
  },
  {
    name: 'reads requests that it wrote',
    check({ codec }) {
      const body = parseJson(encode(codec, CONVERSATION)) as JsonObject
      const read = codec.client.readRequest({ body, headers: new Headers() })
      expect(read?.model).toBe('any-model')
      const texts = JSON.stringify(read?.messages)
      for (const text of ['Fix the sum.', 'call-1', 'const a = 1', 'And the tests?'])
        expect(texts).toContain(text)
      expect(texts).not.toContain('You repair programs.')
    },
  },
  {
    name: 'decodes text and calls of a stream as the model wrote them, with one end',
    check(subject) {
      const events = decodeAll(subject, [writeStream(subject)])
      expect(listEnds(events).map(({ type }) => type)).toEqual(['reply-ended'])
      expect(pickContent(readReply(events))).toEqual(pickContent({ content: BLOCKS }))
    },
  },
  {
    name: 'gives the same events wherever the bytes are cut',
    check(subject) {
      const bytes = writeStream(subject)
      const whole = decodeAll(subject, [bytes])
      for (let at = 1; at < bytes.length; at += 1)
        expect(decodeAll(subject, [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole)
      expect(
        decodeAll(
          subject,
          Array.from(bytes, (byte) => Uint8Array.of(byte)),
        ),
      ).toEqual(whole)
    },
  },
  {
    name: 'ends a stream exactly once, at whichever byte it breaks off',
    check(subject) {
      const bytes = writeStream(subject)
      for (let length = 0; length < bytes.length; length += 1)
        expect(listEnds(decodeAll(subject, [bytes.subarray(0, length)]))).toHaveLength(1)
      const cause: ModelFailure = { kind: 'timeout', retryable: true, message: 'late' }
      const [state] = subject.codec.decode.step(subject.codec.decode.initial, bytes.subarray(0, 40))
      expect(subject.codec.decode.finish(state, cause)).toMatchObject([
        { type: 'reply-failed', failure: cause },
      ])
    },
  },
  {
    name: 'ignores what comes after the end',
    check(subject) {
      const bytes = writeStream(subject)
      expect(listEnds(decodeAll(subject, [bytes, bytes]))).toHaveLength(1)
    },
  },
  {
    name: 'takes its ping for no part of the reply',
    check(subject) {
      const ping = toBytes(subject.codec.client.ping)
      const reply = readReply(decodeAll(subject, [ping, ping, writeStream(subject)]))
      expect(reply).toEqual(readReply(decodeAll(subject, [writeStream(subject)])))
    },
  },
  {
    name: 'reads an error inside a stream as one failure',
    check(subject) {
      const { createErrorBody: refuse, writeErrorEvent } = subject.codec.client
      const event = toBytes(writeErrorEvent(JSON.stringify(refuse(500, 'Something broke'))))
      const ends = listEnds(decodeAll(subject, [event]))
      expect(ends).toMatchObject([{ type: 'reply-failed', failure: { message: /Something broke/ } }])
    },
  },
  {
    name: 'reads the same from one body as from a stream',
    check(subject) {
      const read = subject.codec.decodeBody(subject.codec.client.writeReply(createReply(subject), false))
      if (!read.ok) throw new Error(read.failure.message)
      const streamed = readReply(decodeAll(subject, [writeStream(subject)]))
      expect(pickContent(read.reply.message)).toEqual(pickContent(streamed))
      expect(read.reply.usage).toEqual(streamed.usage)
      expect(subject.codec.decodeBody('no JSON at all').ok).toBe(false)
    },
  },
  {
    name: 'reports usage and end in neutral terms',
    check(subject) {
      const reply = createReply(subject, [{ type: 'text', text: TEXT }])
      const bytes = toBytes(subject.codec.client.writeReply(reply, true))
      const { usage, stop } = readReply(decodeAll(subject, [bytes]))
      expect(usage).toMatchObject({ input: 700, read: 300, writes: { short: 0, long: 0 }, output: 50 })
      expect(stop).toBe('done')
    },
  },
  {
    name: 'knows a prompt that is too long, and fails on any other text without an exception',
    check({ codec, overflow }) {
      expect(codec.toFailure(overflow)).toMatchObject({ kind: 'overflow', retryable: false })
      for (const body of ['', 'no JSON', 'null', '[]', '{"error":null}'])
        expect(codec.toFailure({ status: 503, body })).toMatchObject({ retryable: true })
    },
  },
]

const STREAMED = { fields: { stream: true } }

function encode(codec: ProviderCodec, payload: Payload): string {
  return runStepsAtOnce(codec.encode({ payload }, STREAMED)).text
}

function takeMessages(count: number): Payload {
  return { ...CONVERSATION, messages: CONVERSATION.messages.slice(0, count) }
}

/** A reply as the codec writes it for a client. */
function createReply({ ending, usage }: CodecSubject, content: readonly Block[] = BLOCKS): Reply {
  const message = { id: 'reply-1', type: 'message', role: 'assistant' as const, model: 'any-model', content }
  return {
    message: { ...message, ...ending, usage },
    usage: { input: 700, read: 300, writes: { short: 0, long: 0 }, output: 50 },
    rawBlocks: [],
    cutInputs: [],
    unfinished: [],
    others: [],
  }
}

const toBytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function writeStream(subject: CodecSubject): Uint8Array {
  return toBytes(subject.codec.client.writeReply(createReply(subject), true))
}

function decodeAll(
  { codec: { decode } }: CodecSubject,
  chunks: readonly Uint8Array[],
): readonly ReplyEvent[] {
  const events: ReplyEvent[] = []
  let state = decode.initial
  for (const chunk of chunks) {
    const [next, more] = decode.step(state, chunk)
    state = next
    events.push(...more)
  }
  return [...events, ...decode.finish(state)]
}

function listEnds(events: readonly ReplyEvent[]): readonly ReplyEvent[] {
  return events.filter(({ type }) => type === 'reply-ended' || type === 'reply-failed')
}

function readReply(events: readonly ReplyEvent[]): Reply {
  const last = events.at(-1)
  if (last?.type !== 'reply-ended') throw new Error(`The reply did not end: ${JSON.stringify(last)}`)
  return last.reply
}

/** Texts and calls, without what a provider adds to them. */
function pickContent(
  of: Reply | Reply['message'] | { readonly content: readonly Block[] },
): readonly unknown[] {
  const { content } = 'message' in of ? (of as Reply).message : (of as Reply['message'])
  return toBlocks(content).flatMap((block): readonly unknown[] => {
    if (isTextBlock(block)) return [block.text]
    return isToolUse(block) ? [{ id: block.id, name: block.name, input: block.input }] : []
  })
}

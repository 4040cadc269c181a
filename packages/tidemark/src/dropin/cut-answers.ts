/**
 * Holds back responses that end early because the context window is full. The client would take such a response for the
 * end of its run, so the context is reduced and the model is called again.
 */
import { measureContext } from '@tidemark/core/engine/measure-context'
import type { ModelFailure, Reply, ReplyEvent } from '@tidemark/core/engine/reply'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { listBranchRecords } from '@tidemark/core/log/session-log'
import { readReportedContextTokens, readReportedOutputTokens } from '@tidemark/core/tokens/usage'
import { hasFilledWindow, WINDOW_FULL_MESSAGE } from '@tidemark/core/turn/recover-refusal'
import type { ProviderCodec, ReplyDecoder } from '@tidemark/wire/providers/provider-codec'
import { findCodec } from '../models/providers.ts'
import type { OpenSession } from '../session/open-session.ts'
import { createTurnHost } from '../session/turn-host.ts'
import { copyResponseHead, isEventStream, withBodyText } from './client-response.ts'

interface HeldResponse {
  /** The response to pass on, complete even if part of it was already read. */
  readonly response: Response
  /** The reply that the window cut; null if it was not cut, or if the response is passed on before its end. */
  readonly cut: Reply | null
}

/**
 * Reads as much of a response as is needed to know whether the window cuts it. A response without a stream is read whole. A
 * stream is held back until its end only if the prompt leaves less room than the session's longest response took.
 */
export async function detectCutAnswer(session: OpenSession, response: Response): Promise<HeldResponse> {
  const codec = findCodec(session.model.choice)
  const room = findAnswerRoom(session)
  if (room === null) return { response, cut: null }
  if (!isEventStream(response)) {
    const text = await response.text()
    const read = codec.decodeBody(text)
    const held = withBodyText(response, text)
    return { response: held, cut: read.ok && isCut(session, read.reply) ? read.reply : null }
  }
  if (response.body === null) return { response, cut: null }
  return holdStream(session, response, codec.decode, room)
}

/**
 * Reads the beginning of a stream, until the model begins to generate, if the provider may refuse prompts there.
 * `refusal`: the failure if it refuses the prompt as too long, else null. `response`: the response to pass on.
 */
export async function readRefusalInStream(
  response: Response,
  { decode, client }: ProviderCodec,
): Promise<{ readonly response: Response; readonly refusal: ModelFailure | null }> {
  if (client.mayRefuseInStream !== true || response.body === null || !isEventStream(response))
    return { response, refusal: null }
  const reader = response.body.getReader()
  const chunks: Uint8Array[] = []
  let state = decode.initial
  let refusal: ModelFailure | null = null
  let fault: { readonly thrown: unknown } | null = null
  try {
    for (let isBegun = false; !isBegun; ) {
      const { done, value } = await reader.read()
      if (done) break
      chunks.push(value)
      const [next, events] = decode.step(state, value)
      state = next
      const first = events.find(({ type }) => type !== 'reply-started' && type !== 'reply-updated')
      isBegun = first !== undefined
      if (first?.type === 'reply-failed' && first.failure.kind === 'overflow') refusal = first.failure
    }
  } catch (thrown) {
    fault = { thrown }
  }
  return { response: new Response(replay(chunks, reader, fault), copyResponseHead(response)), refusal }
}

/** Tokens of the window, of the prompt (an upper estimate), and of the longest response so far. */
interface AnswerRoom {
  readonly window: number
  readonly prompt: number
  readonly longest: number
}

/** Returns null if the window cannot cut the response (even the longest fits, or such requests are refused) or is unknown. */
function findAnswerRoom(session: OpenSession): AnswerRoom | null {
  const host = createTurnHost(session)
  const { profile } = host
  if (profile.window === null || profile.capabilities.countsMaxTokens) return null
  const { maxOutput } = profile.spelling.readSettings(host.readOfferedPrefix().parameters)
  const { high } = measureContext(session.state, host)
  if (maxOutput !== null && high + maxOutput <= profile.window) return null
  const outputs = listBranchRecords(session.state.session).map((record) =>
    record.type === 'assistant' ? readReportedOutputTokens(record.usage) : 0,
  )
  return {
    window: profile.window,
    prompt: high,
    longest: outputs.reduce((most, each) => Math.max(most, each), 0),
  }
}

function isCut(session: OpenSession, reply: Reply): boolean {
  return hasFilledWindow(reply, createTurnHost(session))
}

async function holdStream(
  session: OpenSession,
  response: Response,
  decode: ReplyDecoder,
  { window, prompt, longest }: AnswerRoom,
): Promise<HeldResponse> {
  const reader = (response.body ?? new ReadableStream()).getReader()
  const chunks: Uint8Array[] = []
  let state = decode.initial
  let mustWait: boolean | null = null
  let cut: Reply | null = null
  let fault: { readonly thrown: unknown } | null = null
  try {
    while (mustWait !== false) {
      const { done, value } = await reader.read()
      if (done) break
      chunks.push(value)
      const [next, events] = decode.step(state, value)
      state = next
      for (const event of events) {
        const usage = readFirstUsage(event)
        // Some providers report usage only at the end. The estimate of the prompt is then used, so that their streams
        // are not always held back.
        if (mustWait === null && (usage !== null || event.type === 'reply-started'))
          mustWait = (usage === null ? prompt : readReportedContextTokens(usage)) + longest > window
        if (event.type === 'reply-ended' && isCut(session, event.reply)) cut = event.reply
      }
    }
  } catch (thrown) {
    fault = { thrown }
  }
  return { response: new Response(replay(chunks, reader, fault), copyResponseHead(response)), cut }
}

/** Returns the prompt usage at the start of a reply; null for other events. */
function readFirstUsage(event: ReplyEvent): TokenUsage | null {
  const isReport = event.type === 'reply-started' || event.type === 'reply-updated'
  return isReport ? (event.report?.usage ?? null) : null
}

/** Returns a stream of the chunks that were already read, then of the rest. `fault`: why reading failed. */
function replay(
  chunks: Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
  fault: { readonly thrown: unknown } | null,
): ReadableStream<Uint8Array> {
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      const first = chunks.shift()
      if (first !== undefined) return controller.enqueue(first)
      if (fault !== null) throw fault.thrown
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason: unknown) => reader.cancel(reason),
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}

/** Creates the failure for a response that the window cut: the prompt was too long to leave room for it. */
export function createOverflowFailure({ usage }: Reply): ModelFailure {
  const actual = readReportedContextTokens(usage)
  // The next prompt must be shorter by what this response took, so that a response twice as long fits.
  const limit = actual - readReportedOutputTokens(usage)
  return {
    kind: 'overflow',
    retryable: false,
    message: WINDOW_FULL_MESSAGE,
    ...(limit > 0 ? { gap: { actual, limit } } : {}),
  }
}

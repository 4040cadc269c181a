/**
 * Finds answers that the context window has cut before a client gets them: its run would end there, with and without us. The
 * answer is kept back, so that the context can be made smaller and the model asked again.
 */
import { measureContext } from '@tidemark/core/engine/measure-context'
import type { ModelFailure, Reply, ReplyEvent } from '@tidemark/core/engine/reply'
import type { TokenUsage } from '@tidemark/core/log/model-report'
import { listBranchRecords } from '@tidemark/core/log/session-log'
import { countContextTokens, countOutputTokens } from '@tidemark/core/tokens/usage'
import { CUT_SHORT_MESSAGE, hasFilledWindow } from '@tidemark/core/turn/recover-refusal'
import type { ProviderCodec, ReplyDecoder } from '@tidemark/wire/providers/provider-codec'
import { findCodec } from '../models/providers.ts'
import type { OpenSession } from '../session/open-session.ts'
import { createTurnHost } from '../session/turn-host.ts'
import { copyHead, isEventStream, withText } from './client-response.ts'

interface HeldResponse {
  /** The response to pass on, whatever was read of it. */
  readonly response: Response
  /** The answer that the window cut; null if it did not, or if that was not waited for. */
  readonly cut: Reply | null
}

/**
 * Reads a response as far as it takes to know whether the window cuts it. A response that is no stream is read whole, as
 * its client would. Of a stream the client gets nothing before its end only if the prompt that the provider has counted leaves
 * less room than the longest answer so far took.
 */
export async function holdCutAnswer(session: OpenSession, response: Response): Promise<HeldResponse> {
  const codec = findCodec(session.model.choice)
  const room = findAnswerRoom(session)
  if (room === null) return { response, cut: null }
  if (!isEventStream(response)) {
    const text = await response.text()
    const read = codec.decodeBody(text)
    const held = withText(response, text)
    return { response: held, cut: read.ok && isCut(session, read.reply) ? read.reply : null }
  }
  if (response.body === null) return { response, cut: null }
  return holdStream(session, response, codec.decode, room)
}

/**
 * Reads the beginning of a stream, up to what the model generates. Returns why the provider refused the request, if it says so
 * there; else null, with the response to pass on.
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
  return { response: new Response(replay(chunks, reader, fault), copyHead(response)), refusal }
}

/** The size of the window, and of the longest answer so far. */
interface AnswerRoom {
  readonly window: number
  readonly longest: number
}

/** Returns null if the window cannot cut the answer: it is not known, or the provider refuses such a request. */
function findAnswerRoom(session: OpenSession): AnswerRoom | null {
  const host = createTurnHost(session)
  const { profile, compaction } = host
  if (profile.window === null || profile.capabilities.countsMaxTokens || compaction === undefined) return null
  const { maxOutput } = profile.spelling.readSettings(host.readOfferedPrefix().parameters)
  const { high } = measureContext(session.state, host, compaction)
  if (maxOutput !== null && high + maxOutput <= profile.window) return null
  const outputs = listBranchRecords(session.state.session).map((record) =>
    record.type === 'assistant' ? countOutputTokens(record.usage) : 0,
  )
  return { window: profile.window, longest: outputs.reduce((most, each) => Math.max(most, each), 0) }
}

function isCut(session: OpenSession, reply: Reply): boolean {
  return hasFilledWindow(reply, createTurnHost(session))
}

async function holdStream(
  session: OpenSession,
  response: Response,
  decode: ReplyDecoder,
  { window, longest }: AnswerRoom,
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
        if (mustWait === null && usage !== null) mustWait = countContextTokens(usage) + longest > window
        if (event.type === 'reply-ended' && isCut(session, event.reply)) cut = event.reply
      }
    }
  } catch (thrown) {
    fault = { thrown }
  }
  return { response: new Response(replay(chunks, reader, fault), copyHead(response)), cut }
}

/** Returns what the provider says about the prompt when a reply begins; null for other events. */
function readFirstUsage(event: ReplyEvent): TokenUsage | null {
  const isReport = event.type === 'reply-started' || event.type === 'reply-updated'
  return isReport ? (event.report?.usage ?? null) : null
}

/** Returns a stream of what was read already and of the rest; `fault`: why reading has failed. */
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

/** The failure of a request whose answer the window has cut: its prompt is too long for the answer that it gets. */
export function toOverflow({ usage }: Reply): ModelFailure {
  const actual = countContextTokens(usage)
  // Room for twice what the answer took.
  const limit = actual - countOutputTokens(usage)
  return {
    kind: 'overflow',
    retryable: false,
    message: CUT_SHORT_MESSAGE,
    ...(limit > 0 ? { gap: { actual, limit } } : {}),
  }
}

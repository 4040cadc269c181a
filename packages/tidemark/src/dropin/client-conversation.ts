/**
 * One conversation of a client that uses `tidemark.fetch`: its session, the request in flight, and what is recorded of the
 * request and its response. Only the methods of the conversation change this state, except `strikes` and `refusesUsage`.
 */
import type { ModelFailure, Reply } from '@tidemark/core/engine/reply'
import {
  createTruncatedEvent,
  estimatePromptSize,
  findTruncatedCount,
} from '@tidemark/core/engine/truncated-prompt'
import { describeThrown } from '@tidemark/core/errors'
import type { ClientRequest } from '@tidemark/wire/providers/client-request'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { appendClientReply } from '../session/append.ts'
import type { OpenSession } from '../session/open-session.ts'
import { createTurnContext } from '../session/turn-host.ts'
import { type CacheObserver, createCacheObserver } from './cache-observer.ts'
import { appendCallUsage, logInterruptedCallCost, logReplyCost } from './client-billing.ts'
import {
  type RequestNotTaken,
  recordObservedRequest,
  recordThenCompact,
  type TakenRequest,
  takeClientRequest,
} from './take-request.ts'

export interface ClientConversation {
  readonly open: OpenSession
  /** Closes the session. */
  readonly close: () => Promise<void>
  /** True while a request of the conversation waits for its response. */
  readonly isInFlight: boolean
  /** When the last request of the conversation came, in milliseconds. */
  readonly usedAt: number
  /** Resolves when the newest request and its response are in the log. */
  readonly recording: Promise<void>
  /** Successive requests of the engine that the provider refused, while it accepted the client's own. */
  strikes: number
  /** True if the server does not know the field that asks for the usage of a stream. */
  refusesUsage: boolean
  /** True if the awaited response is to a request of the engine, false if it is to the client's own. */
  readonly isManaged: boolean

  /** Marks the conversation as waiting for a response. Until `release`, no other request is assigned to it. */
  begin(): void
  /** Marks the conversation as free for the next request. */
  release(): void
  /** Drops the engine's request, because the client's own is sent instead. */
  withdraw(): void
  /** Drops the request in flight, because no response to it will be recorded. */
  abandon(): void
  /** Records the new messages of a request. Returns the request to send instead, or why the client's own is to be sent. */
  take(
    request: ClientRequest,
    codec: ProviderCodec,
    signal: AbortSignal | undefined,
  ): Promise<TakenRequest | RequestNotTaken>
  /** Records the new messages of a request that is sent unchanged. Returns false if nothing was recorded. */
  observe(request: ClientRequest, codec: ProviderCodec): Promise<boolean>
  /** Records the new messages of a request, then compacts the log. */
  recordThenCompact(request: ClientRequest, codec: ProviderCodec): ReturnType<typeof recordThenCompact>
  /** Records the response to the request in flight. */
  record(reply: Reply, codec: ProviderCodec): Promise<void>
  /** Counts what the request in flight cost after its response broke off. `reply`: what arrived of it; null if nothing did. */
  recordInterrupted(reply: Reply | null, cause: ModelFailure): Promise<void>
  /** Counts what a reply cost that is no part of the conversation; nothing for null. `isEmitted`: its cost was emitted before. */
  countCost(reply: Reply | null, isEmitted?: boolean): Promise<void>
}

/** An open session with the operation that closes it. */
export type ClosableSession = Pick<ClientConversation, 'open' | 'close'>

type OwnConversation = { -readonly [Field in keyof ClientConversation]: ClientConversation[Field] }

export function createClientConversation({ open, close }: ClosableSession): ClientConversation {
  const observer = createCacheObserver(open)
  const own: OwnConversation = {
    open,
    close,
    strikes: 0,
    refusesUsage: false,
    isInFlight: false,
    usedAt: Date.now(),
    recording: Promise.resolve(),
    get isManaged() {
      return open.awaited.request !== null
    },
    begin() {
      own.isInFlight = true
      own.usedAt = Date.now()
    },
    release() {
      own.isInFlight = false
      void keepRecording(own, Promise.resolve())
    },
    withdraw: () => open.awaited.abandon(),
    abandon() {
      own.release()
      open.awaited.abandon()
    },
    take: (request, codec, signal) => takeOrPass(open, request, codec, signal),
    async observe(request, codec) {
      try {
        const isRecorded = await recordObservedRequest(open, request, codec)
        if (isRecorded) observer.noteRequest(request)
        return isRecorded
      } catch (thrown) {
        return reportUnrecorded(own, thrown)
      }
    },
    recordThenCompact: (request, codec) => recordThenCompact(open, request, codec),
    async record(reply, { client }) {
      // If the client parses the arguments of calls, it sends them back in its own spelling, so the provider's is not kept.
      const exact = client.argumentsAs === 'text' ? reply : { ...reply, rawBlocks: [] }
      own.recording = recordReply(open, exact, observer).catch(
        (thrown: unknown) => void reportUnrecorded(own, thrown),
      )
      await own.recording
      own.release()
      await own.recording
    },
    async recordInterrupted(reply, cause) {
      const request = open.awaited.request ?? observer.takePending()
      own.abandon()
      if (request === null) return own.countCost(reply)
      await keepRecording(own, logInterruptedCallCost(open, request, reply, cause))
    },
    countCost: (reply, isEmitted) => keepRecording(own, logReplyCost(open, reply, isEmitted)),
  }
  return own
}

/** Waits until a cost is counted. `recording`, which other callers wait for, then includes it. */
async function keepRecording(own: OwnConversation, counting: Promise<void>): Promise<void> {
  own.recording = Promise.all([own.recording, counting]).then(() =>
    own.isInFlight ? undefined : leaveToOthers(own.open),
  )
  await counting
}

/**
 * Releases the write lock between two requests if other processes may write the log, because the next request may reach
 * any of them. An error here is ignored: the next append reports it.
 */
async function leaveToOthers({ settings, id, withLock }: OpenSession): Promise<void> {
  if (!settings.locksSessions) await withLock(() => settings.journal.release(id)).catch(() => {})
}

/** Takes a request. An error becomes a reason to pass the request on. Throws only if the client has aborted it. */
async function takeOrPass(
  open: OpenSession,
  request: ClientRequest,
  codec: ProviderCodec,
  signal: AbortSignal | undefined,
): Promise<TakenRequest | RequestNotTaken> {
  try {
    return await takeClientRequest(open, request, signal, codec)
  } catch (thrown) {
    return { ok: false, reason: 'failed', message: describeThrown(thrown) }
  } finally {
    signal?.throwIfAborted()
  }
}

async function recordReply(open: OpenSession, reply: Reply, observer: CacheObserver): Promise<void> {
  const { message } = reply
  const isObserved = open.awaited.request === null
  if (isObserved) open.refusal = null
  const isTruncated = isObserved && emitTruncation(open, reply, observer)
  // The size of a client's request does not show the context size if the context was rewritten or the server cut the request.
  if (isTruncated || (isObserved && open.state.view.rewrites.length > 0)) {
    const { usage, ...unmeasured } = reply
    const { usage: _, ...unmeasuredMessage } = message
    await appendCallUsage(open, message, usage)
    await appendClientReply(open, { ...unmeasured, message: unmeasuredMessage })
  } else await appendClientReply(open, reply)
  if (isObserved) await observer.noteResponse(reply)
}

/** Emits that the server has dropped the beginning of a client's own request. Returns true if that happened. */
function emitTruncation(open: OpenSession, { usage }: Reply, { isSamePrefix }: CacheObserver): boolean {
  const turn = createTurnContext(open)
  const isRewritten = open.state.view.rewrites.length > 0
  const size = isRewritten ? null : estimatePromptSize(open.state, turn.host, isSamePrefix)
  const counted = size === null ? null : findTruncatedCount(size, usage)
  if (size === null || counted === null) return false
  open.listeners.emit(createTruncatedEvent(size, counted, 'The model did not see it.'))
  return true
}

function reportUnrecorded(conversation: ClientConversation, thrown: unknown): false {
  conversation.abandon()
  const message = `The response could not be recorded: ${describeThrown(thrown)}`
  conversation.open.listeners.emit({ type: 'request-passed', reason: 'unrecorded', message })
  return false
}

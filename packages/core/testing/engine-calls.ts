/** Calls into the engine that only tests make: one turn, one fork, one validation, without a session object around them. */
import type { FlattenedContext } from '../src/context/flatten-context.ts'
import type { MessageRepair } from '../src/context/message-repair.ts'
import type { ForkCacheRead, TurnEvent, TurnFailure, TurnOutcome } from '../src/engine/events.ts'
import type { TurnHost } from '../src/engine/host.ts'
import type { Signal } from '../src/engine/ports.ts'
import type { Reply } from '../src/engine/reply.ts'
import type { SessionState } from '../src/engine/session-state.ts'
import type { TurnContext } from '../src/engine/session-writer.ts'
import {
  buildForkRequest,
  type ForkRequestOptions,
  measureForkCacheRead,
  runSideCall,
} from '../src/engine/side-call.ts'
import type { MessageContent } from '../src/log/block.ts'
import type { RawFields } from '../src/policy/provider-spelling.ts'
import type { AttemptsInput } from '../src/summary/attempt-types.ts'
import { takeTurn } from '../src/turn/turn.ts'
import type { Finding } from '../src/validate/findings.ts'
import { checkMessage, finishRequestCheck, type ValidationState } from '../src/validate/validate-request.ts'

export interface SingleTurnOptions {
  /** The user's prompt; null to resume an interrupted turn from the log. */
  readonly prompt: MessageContent | null
  readonly signal?: Signal
}

/** Runs one turn on a session without other writers in this process. See `takeTurn`. */
export function runSingleTurn(
  state: SessionState,
  options: SingleTurnOptions,
  host: TurnHost,
): AsyncGenerator<TurnEvent, TurnOutcome> {
  return takeTurn({ state, host, signal: options.signal }, options.prompt)
}

/** The reply of a fork with its cache read, or why there is none; and the session state to go on from. */
export type ForkResult = (
  | { readonly ok: true; readonly reply: Reply; readonly read: ForkCacheRead }
  | TurnFailure
  | Exclude<ReturnType<typeof buildForkRequest>, { readonly ok: true }>
) & { readonly state: SessionState }

/**
 * Sends a fork and returns its reply. The caller must refuse tool calls in the reply. Must not run concurrently with a
 * turn; continue from the returned state.
 */
export async function* runFork(
  state: SessionState,
  asked: ForkRequestOptions & { readonly signal?: Signal },
  host: TurnHost,
): AsyncGenerator<TurnEvent, ForkResult> {
  const made = buildForkRequest(state, asked, host)
  if (!made.ok) return { ...made, state }
  const turn: TurnContext = { state, host, signal: asked.signal }
  const call = { request: made.request, source: asked.source, forkOf: host.source }
  const end = yield* runSideCall(turn, call)
  const { answer } = end
  if (!answer.ok) return { ...answer, state: turn.state }
  const read = measureForkCacheRead(asked.source, answer.reply, end)
  yield { type: 'fork', fork: read }
  return { ok: true, reply: answer.reply, read, state: turn.state }
}

/** Returns the findings of `validateRequest` for `request` with the messages of `flat`, of which the frozen ones are checked. */
export function validateContext(
  checked: ValidationState,
  flat: FlattenedContext,
  request: RawFields,
): readonly Finding[] {
  let { state } = checked
  for (const { message } of flat.tail) state = checkMessage(state, message)
  return finishRequestCheck(state, request)
}

/** Lists the repairs made to all messages of a context. */
export function listRepairs(flat: FlattenedContext): readonly MessageRepair[] {
  return [...flat.frozenRepairs, ...flat.tailRepairs]
}

/** Returns the maximum number of model calls that one summary can cost under this policy. */
export function countMaximumSummaryCalls({ chain, direct, headDrop }: AttemptsInput['policy']): number {
  if (chain.local === 'only') return 0
  const own = 1 + direct.retries + headDrop.retries
  return (chain.block ? 1 : 0) + (chain.fork ? 1 : 0) + own
}

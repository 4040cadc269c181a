/** Asks something on the side, on the cache of the request that was really sent last. */
import type { CacheOutcome } from '../breaks/outcome.ts'
import { mechanismStates } from '../policy/mechanisms.ts'
import { NO_SWITCHES } from '../policy/switches.ts'
import {
  captureParams,
  type ForkMessage,
  type ForkOutcome,
  type ForkRefusal,
  fork,
  readShare,
} from '../prompt/fork.ts'
import { messagesSince } from '../prompt/since.ts'
import { ttlFor } from '../prompt/ttl.ts'
import { diagnosisAsked } from './diagnosis.ts'
import type { Signal } from './ports.ts'
import type { Reply } from './reply.ts'
import type { SessionState } from './session-state.ts'
import { type SideEnd, sideCall } from './side-call.ts'
import type { ForkRead, Halt, TurnEvent } from './turn-event.ts'
import type { TurnHost } from './turn-host.ts'
import type { TurnRun } from './turn-run.ts'

export interface ForkAsked {
  /** Who asks: `compact`, `session_memory`, `prompt_suggestion` … */
  readonly source: string
  /** Come behind all that was sent and, unless `asSent`, all that was said since. */
  readonly messages: readonly ForkMessage[]
  /** Goes on from the last request itself and leaves out what was said since. */
  readonly asSent?: boolean
  /** Request fields that should be otherwise. All are refused, with the reason. */
  readonly overrides?: Readonly<Record<string, unknown>>
  readonly signal?: Signal
}

/** There is no request to share a prefix with: none was sent yet, or the conversation has been rewritten since. */
export interface NothingToFork {
  readonly ok: false
  readonly reason: 'nothing-sent' | 'rewritten'
}

/** The request of a fork, made from what was really sent. Sends nothing. */
export function forkRequest(
  state: SessionState,
  asked: ForkAsked,
  host: TurnHost,
): ForkOutcome | NothingToFork {
  const { sent } = state
  if (sent === null) return { ok: false, reason: 'nothing-sent' }
  const since = asked.asSent === true ? [] : messagesSince(sent, state.flat)
  if (since === null) return { ok: false, reason: 'rewritten' }
  const { overrides } = asked
  const options = { ttl: ttlOf(state, asked, host), ...(overrides === undefined ? {} : { overrides }) }
  const made = fork(captureParams(sent, host.profile), [...since, ...asked.messages], options)
  if (!made.ok) return made
  const extra = { ...made.request.extra, ...diagnosisAsked(state, host) }
  return { ...made, request: { ...made.request, extra } }
}

function ttlOf({ told }: SessionState, { source }: ForkAsked, host: TurnHost): string | null {
  const { policy, profile, switches = NO_SWITCHES } = host
  if (!mechanismStates(policy, switches).caching.on) return null
  return ttlFor(told.standing?.epoch.ttl, source, { policy: policy.cache, cache: profile.cache })
}

export type ForkEnd = (
  | { readonly ok: true; readonly reply: Reply; readonly read: ForkRead }
  | Halt
  | ForkRefusal
  | NothingToFork
) & { readonly state: SessionState }

/**
 * Asks, and gives back the reply. Calls in it are for the caller to deny. One at a time with a turn: the state
 * it gives back is the one to go on from.
 */
export async function* runFork(
  state: SessionState,
  asked: ForkAsked,
  host: TurnHost,
): AsyncGenerator<TurnEvent, ForkEnd> {
  const made = forkRequest(state, asked, host)
  if (!made.ok) return { ...made, state }
  const run: TurnRun = { state, host, signal: asked.signal }
  const call = { request: made.request, source: asked.source, forkOf: host.source }
  const end = yield* sideCall(run, call)
  const { answer } = end
  if (!answer.ok) return { ...answer, state: run.state }
  const read = forkRead(asked.source, answer.reply, end)
  yield { type: 'fork', fork: read }
  return { ok: true, reply: answer.reply, read, state: run.state }
}

/** How well a fork, now answered, read the cache of its parent. */
export function forkRead(
  source: string,
  { message }: Reply,
  { expected, outcome }: Pick<SideEnd, 'expected' | 'outcome'>,
): ForkRead {
  const { usage } = message
  return {
    source,
    expected,
    read: usage?.cache_read_input_tokens ?? 0,
    share: usage === undefined ? null : readShare(usage),
    missed: missedBecause(outcome),
  }
}

function missedBecause(outcome: CacheOutcome): string | null {
  switch (outcome.kind) {
    case 'broke':
      return outcome.event.sentence
    case 'first':
      return 'Nothing of the conversation was in the cache yet, as far as is known.'
    case 'not-judged':
      return `It could not be judged: ${outcome.why}.`
    default:
      return null
  }
}

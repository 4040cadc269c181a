/**
 * A call beside the conversation (a fork, a summary): what it says is handed to whoever asked, and the log keeps
 * only what it cost. Its tools are never run. One that is no fork (`forkOf`) shares no prefix and is not watched.
 */
import type { CacheOutcome } from '../breaks/outcome.ts'
import { forecastRead } from '../prompt/forecast.ts'
import { NO_LINEAGE } from '../prompt/lineage.ts'
import { callOf, requestFindings } from '../prompt/spell.ts'
import { advanceCheck, startCheck } from '../view/checked.ts'
import { closeCall, type OpenedCall } from './close-call.ts'
import type { ReplyEnded, ReplyFailed } from './reply.ts'
import { BROKEN_OFF, failedWith, type Responded } from './respond.ts'
import type { TurnEvent } from './turn-event.ts'
import type { TurnRun, Unlinked } from './turn-run.ts'
import { type WatchedCall, watchRequest } from './watch-cache.ts'

export interface SideCall extends WatchedCall {
  /** Appends nothing: what the log should keep is handed back, to be appended by whoever has the log. */
  readonly isDeferred?: boolean
}

export interface SideEnd {
  readonly answer: Responded
  /** What was foreseen of the cache, and what it did. */
  readonly expected: number
  readonly outcome: CacheOutcome
  /** What is still to be appended, where that was asked for, also of a call that failed. */
  readonly unlogged: readonly Unlinked[]
}

export async function* sideCall(run: TurnRun, call: SideCall): AsyncGenerator<TurnEvent, SideEnd> {
  const findings = findingsOf(run, call)
  if (findings.length > 0) return { ...NOTHING_TOLD, answer: { ok: false, reason: 'invalid', findings } }
  const { clock, profile, model } = run.host
  const lineage = run.state.lineage ?? NO_LINEAGE
  const forecast = forecastRead(lineage, { request: call.request, now: clock.now(), profile })
  const opened: Side = { ...call, forecast, isWatched: call.forkOf !== undefined }
  if (opened.isWatched) run.state = watchRequest(run.state, call, run.host)
  yield { type: 'side-sent', source: call.source, request: call.request }
  for await (const event of model.stream(callOf(call.request), run.signal)) {
    yield { type: 'side-reply', source: call.source, event }
    if (event.type === 'reply-ended' || event.type === 'reply-failed')
      return yield* closed(run, event, opened)
  }
  return { ...NOTHING_TOLD, answer: failedWith(BROKEN_OFF) }
}

const NOTHING_TOLD: Omit<SideEnd, 'answer'> = {
  expected: 0,
  outcome: { kind: 'not-judged', why: 'no-usage' },
  unlogged: [],
}

/** What was checked of the conversation counts here too, as far as the request repeats it. */
function findingsOf({ state, host }: TurnRun, { request }: WatchedCall): ReturnType<typeof requestFindings> {
  const known = state.checked?.state.profile === host.profile ? state.checked : startCheck(host.profile)
  return requestFindings(advanceCheck(known, request.messages), request)
}

interface Side extends OpenedCall {
  readonly isDeferred?: boolean
}

async function* closed(
  run: TurnRun,
  event: ReplyEnded | ReplyFailed,
  opened: Side,
): AsyncGenerator<TurnEvent, SideEnd> {
  const answer = event.type === 'reply-failed' ? failedWith(event) : { ok: true as const, reply: event.reply }
  if (event.reply === null) return { ...NOTHING_TOLD, answer }
  const { message } = event.reply
  const { isDeferred = false, forecast } = opened
  const closing = { message, bodies: [], isSaid: false, isDeferred }
  const { halt, ...rest } = yield* closeCall(run, opened, closing)
  return { answer: halt ?? answer, expected: forecast.read, ...rest }
}

/** One ask of the chain, put to a model: a fork, a call of its own, or the provider's own summary. */

import { blocksOf } from '../../conversation/block.ts'
import type { AssembledRequest } from '../../prompt/assemble.ts'
import type { Ask, AskOutcome, BlockAsk, DirectAsk, ForkAsk, LocalAsk } from '../../summarize/ask.ts'
import type { Payload } from '../../view/payload.ts'
import { forkRead, forkRequest } from '../fork-session.ts'
import type { Reply } from '../reply.ts'
import { type SideCall, sideCall } from '../side-call.ts'
import type { Halt, TurnEvent } from '../turn-event.ts'
import type { TurnRun } from '../turn-run.ts'
import { blockRequest } from './block-request.ts'
import { boundedModel } from './bounded-model.ts'
import { isWarm } from './chain-context.ts'
import { keepAlive } from './keep-alive.ts'
import { plainRequest } from './plain-request.ts'
import type { Room } from './room.ts'

export const COMPACT_SOURCE = 'compact'

export async function* askModel(
  run: TurnRun,
  room: Room,
  ask: Exclude<Ask, LocalAsk>,
): AsyncGenerator<TurnEvent, AskOutcome> {
  const made = requestFor(run, ask)
  if ('kind' in made) return made
  const side = sideRun(run, room, ask)
  let characters = 0
  const events = sideCall(side, made)
  const waiting = {
    deadlines: room.deadlines,
    keepAliveMs: ask.deadlines.keepAliveMs,
    since: run.host.clock.now(),
  }
  yield { type: 'summary-progress', characters, rung: ask.rung }
  for (;;) {
    const step = yield* keepAlive(run, events.next(), waiting)
    if (step.done === true) {
      const { answer } = step.value
      if (ask.kind === 'fork' && answer.ok)
        yield { type: 'fork', fork: forkRead(COMPACT_SOURCE, answer.reply, step.value) }
      return outcomeOf(answer)
    }
    yield step.value
    characters += charactersIn(step.value)
    if (characters > 0 && step.value.type === 'side-reply') {
      yield { type: 'summary-progress', characters, rung: ask.rung }
    }
  }
}

/** The same session, what others do to it included, on a model that may be another and that cannot take for ever. */
function sideRun(run: TurnRun, room: Room, ask: Exclude<Ask, LocalAsk>): TurnRun {
  const { host } = run
  const other =
    ask.kind === 'direct' && ask.payload.model !== host.offered().model ? room.summariser : undefined
  const bounds = { deadlines: room.deadlines, clock: host.clock, limits: ask.deadlines }
  const model = boundedModel(other?.port ?? host.model, bounds)
  const profile = other?.summariser.profile ?? host.profile
  return {
    get state() {
      return run.state
    },
    set state(next) {
      run.state = next
    },
    host: { ...host, model, profile },
    signal: run.signal,
    ...(run.alone === undefined ? {} : { alone: run.alone }),
  }
}

type Unavailable = Extract<AskOutcome, { readonly kind: 'unavailable' }>

function requestFor(run: TurnRun, ask: Exclude<Ask, LocalAsk>): SideCall | Unavailable {
  switch (ask.kind) {
    case 'fork':
      return forkFor(run, ask)
    case 'block':
      return blockFor(run, ask)
    case 'direct':
      return directFor(run, ask)
  }
}

function forkFor({ state, host }: TurnRun, { message, through }: ForkAsk): SideCall | Unavailable {
  if (through !== null) return unavailable('A fork goes on from all that was sent, not from a part of it.')
  const made = forkRequest(state, { source: COMPACT_SOURCE, messages: [message] }, host)
  if (made.ok) return { request: made.request, source: COMPACT_SOURCE, forkOf: host.source }
  return unavailable('message' in made ? made.message : `There is nothing to fork: ${made.reason}.`)
}

function blockFor({ state, host }: TurnRun, ask: BlockAsk): SideCall | Unavailable {
  const request = blockRequest(state, ask, isWarm(state, host) ? host.profile.cache : null)
  return request === null
    ? unavailable('There is no request to ask it on.')
    : { request, source: COMPACT_SOURCE }
}

function directFor(run: TurnRun, { payload, raw }: DirectAsk): SideCall {
  const request: AssembledRequest = plainRequest(run.state, payload as Payload, raw)
  return { request, source: COMPACT_SOURCE }
}

function unavailable(message: string): Unavailable {
  return { kind: 'unavailable', message }
}

function charactersIn(event: TurnEvent): number {
  if (event.type !== 'side-reply' || event.event.type !== 'block-grew') return 0
  const { delta } = event.event
  return delta.kind === 'text' ? delta.text.length : 0
}

function outcomeOf(answer: Halt | { readonly ok: true; readonly reply: Reply }): AskOutcome {
  if (answer.ok) {
    const { message } = answer.reply
    return { kind: 'answer', content: blocksOf(message.content), stopReason: message.stop_reason ?? null }
  }
  switch (answer.reason) {
    case 'aborted':
      return { kind: 'aborted' }
    case 'failed':
      return answer.failure.kind === 'timeout'
        ? { kind: 'stalled', message: answer.failure.message }
        : { kind: 'failure', failure: answer.failure }
    case 'invalid': {
      const [first] = answer.findings
      return unavailable(`The provider would refuse the request: ${first?.message ?? 'invalid'}`)
    }
    default:
      return unavailable(`The log could not be written: ${answer.reason}.`)
  }
}

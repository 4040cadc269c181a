/**
 * One call to the model, into the log as it comes. Each block is a record as soon as the next one is there; the
 * last is held back until the reply has ended, so that it and the final usage are there together or not at all.
 */

import { providerWord } from '../cache/cache-break.ts'
import { type Forecast, learnFromFork, learnFromResponse } from '../cache/cache-forecast.ts'
import { type CacheOutcome, takeSnapshot } from '../cache/cache-monitor.ts'
import { compareAnswer } from '../cache/detect-break.ts'
import { sentRequest } from '../cache/sent-request.ts'
import type { PriceList } from '../cost/call-cost.ts'
import { advanceMoney, moneyTotals, noMoney } from '../cost/session-cost.ts'
import { isObject } from '../log/json.ts'
import type { AssistantMessage, AssistantRecord, CacheLoss } from '../log/record.ts'
import { type AssembledRequest, callOf } from '../request/build-request.ts'
import { redact } from '../summary/redact.ts'
import type { Halt, TurnEvent } from './events.ts'
import type { TurnHost } from './host.ts'
import { isEditedByProvider, type NextRequest } from './next-request.ts'
import {
  type Assembly,
  assemble,
  type BlockEnded,
  emptyAssembly,
  type Reply,
  type ReplyEnded,
  type ReplyFailed,
  replyOf,
} from './reply.ts'
import type { SessionState } from './session-state.ts'
import { append, linked, type TurnRun, type Unlinked } from './session-writer.ts'

export type Responded = { readonly ok: true; readonly reply: Reply } | Halt

/** The request goes out now, by whoever sends it: from here on its answer is waited for. */
export function openCall(run: TurnRun, { request, forecast }: NextRequest): OpenedCall {
  const opened: OpenedCall = { request, source: run.host.source, forecast, isWatched: true }
  run.state = { ...watchRequest(run.state, opened, run.host), sent: request }
  return opened
}

export async function* respond(run: TurnRun, opened: OpenedCall): AsyncGenerator<TurnEvent, Responded> {
  const { request, forecast } = opened
  yield { type: 'request-sent', request, forecast }
  let assembly = emptyAssembly
  let held: BlockEnded | null = null
  for await (const event of run.host.model.stream(callOf(request), run.signal)) {
    yield { type: 'reply', event }
    assembly = assemble(assembly, event)
    if (event.type === 'reply-ended' || event.type === 'reply-failed')
      return yield* closed(run, event, { held, opened })
    if (event.type !== 'block-ended') continue
    const halt: Halt | null = held === null ? null : yield* append(run, recordsSoFar(assembly, held))
    if (halt !== null) return withUnsaved(run, halt, recordsSoFar(assembly, event))
    held = event
  }
  return failedWith(BROKEN_OFF)
}

export const BROKEN_OFF: ReplyFailed = {
  type: 'reply-failed',
  failure: { kind: 'bad-reply', retryable: true, message: 'The reply stopped without an end.' },
  reply: null,
}

/** What had come and was still to be written goes with the halt. */
function withUnsaved(run: TurnRun, halt: Halt, bodies: readonly Unlinked[]): Halt {
  if (halt.reason !== 'conflict' && halt.reason !== 'locked') return halt
  return { ...halt, unsaved: [...halt.unsaved, ...linked(run, bodies, halt.unsaved.at(-1)?.uuid)] }
}

interface Ending {
  readonly held: BlockEnded | null
  readonly opened: OpenedCall
}

async function* closed(
  run: TurnRun,
  event: ReplyEnded | ReplyFailed,
  { held, opened }: Ending,
): AsyncGenerator<TurnEvent, Responded> {
  const { reply } = event
  const isWhole = event.type === 'reply-ended'
  if (reply !== null) {
    const bodies = lastRecords(reply.message, held, isWhole)
    const isSaid = bodies.length > 0 || reply.message.content.length > 0
    const { halt } = yield* closeCall(run, opened, { message: reply.message, bodies, isSaid })
    if (halt !== null) return halt
  }
  if (event.type === 'reply-failed') return failedWith(event)
  const usage = event.reply.message.usage ?? null
  yield { type: 'answered', reply: event.reply, usage, forecast: opened.forecast }
  return { ok: true, reply: event.reply }
}

export function failedWith({ failure }: ReplyFailed): Halt {
  return failure.kind === 'aborted'
    ? { ok: false, reason: 'aborted' }
    : { ok: false, reason: 'failed', failure }
}

/** A whole reply without any block still tells what it cost. */
function lastRecords(
  message: AssistantMessage,
  held: BlockEnded | null,
  isWhole: boolean,
): readonly Unlinked[] {
  if (held !== null) return [recordOf(message, held)]
  return isWhole ? [{ type: 'assistant', message: { ...message, content: [] } }] : []
}

function recordsSoFar(assembly: Assembly, block: BlockEnded): readonly Unlinked[] {
  const message = replyOf(assembly)?.message
  return message === undefined ? [] : [recordOf(message, block)]
}

type AssistantBody = Pick<AssistantRecord, 'type' | 'message' | 'rawBlocks'>

function recordOf(message: AssistantMessage, { block, raw }: BlockEnded): AssistantBody {
  const said = { type: 'assistant' as const, message: { ...message, content: [block] } }
  return raw === undefined ? said : { ...said, rawBlocks: [{ index: 0, text: raw }] }
}

// The end of a call, whoever made it: what it tells of the cache is learnt and judged, its last records go into
// the log in one batch with what was lost, and its price is told.

/** A call under way. */
export interface OpenedCall extends ForeseenCall {
  /** Its prefix is that of the conversation. One that stands alone tells nothing of the cache. */
  readonly isWatched: boolean
}

interface Closing {
  /** As far as it came. */
  readonly message: AssistantMessage
  /** What is still to be written of it. */
  readonly bodies: readonly Unlinked[]
  /** Records of the conversation tell of it. Where none does, a record of its own tells what it cost. */
  readonly isSaid: boolean
  /** Appends nothing: the log is somebody else's at the moment. */
  readonly isDeferred?: boolean
}

interface ClosedCall {
  /** What was to be appended could not be. */
  readonly halt: Halt | null
  readonly outcome: CacheOutcome
  /** What is still to be appended, where that was deferred. */
  readonly unlogged: readonly Unlinked[]
}

export async function* closeCall(
  run: TurnRun,
  opened: OpenedCall,
  { message, bodies, isSaid, isDeferred = false }: Closing,
): AsyncGenerator<TurnEvent, ClosedCall> {
  const outcome = opened.isWatched ? judged(run, opened, message) : UNWATCHED
  const spent = isSaid ? [] : callRecords(message, opened.source)
  const all = [...bodies, ...spent, ...lossRecords(outcome)]
  const halt = isDeferred ? null : yield* append(run, all)
  if (halt !== null) return { halt, outcome, unlogged: [] }
  yield* tellOutcome(outcome, opened.source, run.host)
  if (!isDeferred) yield* tellPrice(run, message.id)
  return { halt, outcome, unlogged: isDeferred ? all : [] }
}

const UNWATCHED: CacheOutcome = { kind: 'not-judged', why: 'not-watched' }

function judged(run: TurnRun, call: OpenedCall, message: AssistantMessage): CacheOutcome {
  const learnt = learn(run.state, call, message)
  const { state, outcome } = judgeAnswer(learnt, { call, message }, run.host)
  run.state = state
  return outcome
}

function learn(
  state: SessionState,
  { forecast, forkOf }: OpenedCall,
  { usage }: AssistantMessage,
): SessionState {
  const { lineage } = state
  if (lineage === null || usage === undefined) return state
  const from = forkOf === undefined ? learnFromResponse : learnFromFork
  return { ...state, lineage: from(lineage, forecast, usage) }
}

/** A call that cost something and is told of nowhere else. */
function callRecords({ id, model, usage }: AssistantMessage, source: string): readonly Unlinked[] {
  const told: unknown = usage
  if (!isObject(told)) return []
  const modelCall = { id, source, model, usage: JSON.parse(JSON.stringify(told)) }
  return [{ type: 'system', subtype: 'model_call', isMeta: true, modelCall }]
}

// The watch over the cache, around one call: the request as it goes out is remembered, the answer is judged by it.

/** A request and who sends it. */
export interface WatchedCall {
  readonly request: AssembledRequest
  readonly source: string
  /** The source whose cache it reads, where that is not its own. */
  readonly forkOf?: string
}

/** With what was foreseen of it. */
interface ForeseenCall extends WatchedCall {
  readonly forecast: Forecast
}

/** To be called last before a request is sent: nothing may change it any more. */
export function watchRequest(state: SessionState, call: WatchedCall, host: TurnHost): SessionState {
  const { source, forkOf } = call
  const circumstances = host.circumstances?.()
  const watched = sentRequest(call.request, {
    source,
    at: host.clock.now(),
    cache: host.profile.cache,
    ...(forkOf === undefined ? {} : { forkOf }),
    ...(circumstances === undefined ? {} : { circumstances }),
    ...(state.watched === null ? {} : { previous: state.watched }),
  })
  return { ...state, watched, watch: takeSnapshot(state.watch, watched, host.policy.cache.breaks) }
}

interface JudgedAnswer {
  readonly state: SessionState
  readonly outcome: CacheOutcome
}

/** `message`: what came of the answer, if it is only the head that tells the usage. */
function judgeAnswer(
  state: SessionState,
  { call, message }: { readonly call: ForeseenCall; readonly message: AssistantMessage },
  host: TurnHost,
): JudgedAnswer {
  const { policy, profile, pricesOf, clock } = host
  const answer = {
    source: call.source,
    usage: message.usage ?? null,
    word: providerWord(message.diagnostics),
    isEdited: isEditedByProvider(message),
  }
  const { watch, outcome } = compareAnswer(state.watch, answer, {
    policy: policy.cache.breaks,
    profile,
    prices: pricesOf(message.model, new Date(clock.now()).toISOString()),
    redact: host.redact ?? redact,
  })
  return { state: { ...state, watch }, outcome: asForeseen(outcome, call.forecast, host) }
}

/**
 * A model that loses the thinking of finished turns rewrites its prompt by itself. Where that was foreseen, and
 * nothing else is to be seen, what was read is what could be.
 */
function asForeseen(outcome: CacheOutcome, forecast: Forecast, { policy, profile }: TurnHost): CacheOutcome {
  if (outcome.kind !== 'broke' || !profile.thinking.stripsFinishedTurns) return outcome
  const { reason, read } = outcome.event
  const isForeseen = forecast.why === 'rewritten' && read >= forecast.read - policy.cache.breaks.tokens
  return isForeseen && reason.kind === 'evicted' ? { kind: 'read', expected: forecast.read, read } : outcome
}

/** What the log keeps of it, so that the bill can be told again. */
function lossRecords(outcome: CacheOutcome): readonly Unlinked[] {
  const loss = lossOf(outcome)
  return loss === null ? [] : [{ type: 'system', subtype: 'cache_loss', isMeta: true, cacheLoss: loss }]
}

function lossOf(outcome: CacheOutcome): CacheLoss | null {
  if (outcome.kind === 'broke') {
    const { source, reason, tokensLost: tokens, moneyLost: usd, sentence } = outcome.event
    return { kind: 'break', source, reason: reason.kind, tokens, usd, sentence }
  }
  if (outcome.kind !== 'ours') return null
  const { source, act, tokensRewritten: tokens, moneySpent: usd, sentence } = outcome.act
  return { kind: 'act', source, reason: act, tokens, usd, sentence }
}

async function* tellOutcome(
  outcome: CacheOutcome,
  source: string,
  host: TurnHost,
): AsyncGenerator<TurnEvent, void> {
  if (outcome.kind === 'broke') {
    const diffProblem = await keepDiff(outcome, host)
    yield { type: 'cache-broke', event: outcome.event, diffProblem }
  } else if (outcome.kind === 'ours') yield { type: 'act-paid', act: outcome.act }
  else yield { type: 'cache-judged', source, outcome }
}

type Broke = Extract<CacheOutcome, { readonly kind: 'broke' }>

/** A file that cannot be written takes no turn down. Null: it was kept, or nobody wanted it. */
async function keepDiff(
  outcome: Broke,
  { keepDiff: keep, policy, redact: own }: TurnHost,
): Promise<string | null> {
  if (keep === undefined || !policy.cache.breaks.diffFiles) return null
  try {
    await keep(outcome.diff(own ?? redact), outcome.event)
    return null
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown)
  }
}

// The session's money kept live: each call is priced as soon as the log has it.

/** With all that the log tells of money; for a session just opened this reads it all, later what is new. */
export function withMoney(state: SessionState, prices: PriceList): SessionState {
  const money = advanceMoney(state.money ?? noMoney(), state.session.records, prices)
  return { ...state, money }
}

/** Tells the price of the call that was answered by `response`, now that the log has it. */
function* tellPrice(run: TurnRun, response: string): Generator<TurnEvent, void> {
  run.state = withMoney(run.state, run.host.pricesOf)
  const { money } = run.state
  const call = money?.recent.find(({ id }) => id === response)
  if (money !== null && call !== undefined) yield { type: 'priced', call, totals: moneyTotals(money) }
}

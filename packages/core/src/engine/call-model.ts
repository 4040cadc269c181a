/**
 * One model call: record the request, send it, stream the reply into the log, judge the cache. Each block becomes a
 * record as soon as the next one is there; the last is held back until the reply has ended, so that it and the final
 * usage are logged together or not at all.
 */

import { providerWord } from '../cache/cache-break.ts'
import { type Forecast, learnFromFork, learnFromResponse } from '../cache/cache-forecast.ts'
import { type CacheOutcome, takeSnapshot } from '../cache/cache-monitor.ts'
import { compareAnswer } from '../cache/detect-break.ts'
import { sentRequest } from '../cache/sent-request.ts'
import { advanceMoney, moneyTotals, noMoney, type PriceList } from '../cost/session-cost.ts'
import { isObject } from '../log/json.ts'
import type { AssistantMessage, AssistantRecord, CacheLoss, Usage } from '../log/record.ts'
import { type AssembledRequest, callOf } from '../request/build-request.ts'
import { redact } from '../summary/redact.ts'
import type { Halt, TurnEvent } from './events.ts'
import type { TurnHost } from './host.ts'
import type { NextRequest } from './next-request.ts'
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

/** A call under way. */
export interface OpenedCall {
  readonly request: AssembledRequest
  /** The query source that sends it. */
  readonly source: string
  /** The source whose cache it reads, if that is not its own. */
  readonly forkOf?: string
  readonly forecast: Forecast
  /** It shares the prefix of the conversation. A call with its own prefix says nothing about the cache. */
  readonly isWatched: boolean
}

/** Records the request as sent, by the engine or by the host: from here on its response is awaited. */
export function openCall(turn: TurnRun, { request, forecast }: NextRequest): OpenedCall {
  const opened = recordRequest(turn, { request, source: turn.host.source, forecast, isWatched: true })
  turn.state = { ...turn.state, sent: request }
  return opened
}

/** Last before a request is sent: nothing may change it any more. */
export function recordRequest(turn: TurnRun, call: OpenedCall): OpenedCall {
  if (!call.isWatched) return call
  const { state, host } = turn
  const circumstances = host.circumstances?.()
  const watched = sentRequest(call.request, {
    source: call.source,
    at: host.clock.now(),
    cache: host.profile.cache,
    ...(call.forkOf === undefined ? {} : { forkOf: call.forkOf }),
    ...(circumstances === undefined ? {} : { circumstances }),
    ...(state.watched === null ? {} : { previous: state.watched }),
  })
  const watch = takeSnapshot(state.watch, watched, call.forecast, host.policy.cache.breaks)
  turn.state = { ...state, watched, watch }
  return call
}

/** Sends the request and streams the reply into the log. */
export async function* respond(turn: TurnRun, opened: OpenedCall): AsyncGenerator<TurnEvent, Responded> {
  const { request, forecast } = opened
  yield { type: 'request-sent', request, forecast }
  let assembly = emptyAssembly
  let held: BlockEnded | null = null
  for await (const event of turn.host.model.stream(callOf(request), turn.signal)) {
    yield { type: 'reply', event }
    assembly = assemble(assembly, event)
    if (event.type === 'reply-ended' || event.type === 'reply-failed')
      return yield* endReply(turn, opened, event, held)
    if (event.type !== 'block-ended') continue
    const halt: Halt | null = held === null ? null : yield* append(turn, recordsSoFar(assembly, held))
    if (halt !== null) return withUnsaved(turn, halt, recordsSoFar(assembly, event))
    held = event
  }
  return failedWith(BROKEN_OFF)
}

export const BROKEN_OFF: ReplyFailed = {
  type: 'reply-failed',
  failure: { kind: 'bad-reply', retryable: true, message: 'The reply stopped without an end.' },
  reply: null,
}

/** Records that had arrived but were not written go with the failure. */
function withUnsaved(turn: TurnRun, halt: Halt, bodies: readonly Unlinked[]): Halt {
  if (halt.reason !== 'conflict' && halt.reason !== 'locked') return halt
  return { ...halt, unsaved: [...halt.unsaved, ...linked(turn, bodies, halt.unsaved.at(-1)?.uuid)] }
}

async function* endReply(
  turn: TurnRun,
  opened: OpenedCall,
  event: ReplyEnded | ReplyFailed,
  held: BlockEnded | null,
): AsyncGenerator<TurnEvent, Responded> {
  const { reply } = event
  if (reply !== null) {
    const bodies = lastRecords(reply.message, held, event.type === 'reply-ended')
    const isSaid = bodies.length > 0 || reply.message.content.length > 0
    const { halt } = yield* closeCall(turn, opened, { message: reply.message, bodies, isSaid })
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

/** A complete reply without any block still records what it cost. */
function lastRecords(
  message: AssistantMessage,
  held: BlockEnded | null,
  isWhole: boolean,
): readonly Unlinked[] {
  if (held !== null) return [toRecord(message, held)]
  return isWhole ? [{ type: 'assistant', message: { ...message, content: [] } }] : []
}

function recordsSoFar(assembly: Assembly, block: BlockEnded): readonly Unlinked[] {
  const message = replyOf(assembly)?.message
  return message === undefined ? [] : [toRecord(message, block)]
}

type AssistantBody = Pick<AssistantRecord, 'type' | 'message' | 'rawBlocks'>

function toRecord(message: AssistantMessage, { block, raw }: BlockEnded): AssistantBody {
  const said = { type: 'assistant' as const, message: { ...message, content: [block] } }
  return raw === undefined ? said : { ...said, rawBlocks: [{ index: 0, text: raw }] }
}

interface Closing {
  /** As far as it came. */
  readonly message: AssistantMessage
  /** Its records that are still to be written. */
  readonly bodies: readonly Unlinked[]
  /** Records of the conversation hold the call. If none does, a record of its own keeps what it cost. */
  readonly isSaid: boolean
  /** Appends nothing, because another writer holds the log. */
  readonly isDeferred?: boolean
}

interface ClosedCall {
  /** The append failed. */
  readonly halt: Halt | null
  readonly outcome: CacheOutcome
  /** Records still to be appended, if that was deferred. */
  readonly unlogged: readonly Unlinked[]
}

/**
 * Ends a call, made by the engine or the host: judges the cache, appends the last records in one batch with the cache
 * loss, and emits the price.
 */
export async function* closeCall(
  turn: TurnRun,
  opened: OpenedCall,
  { message, bodies, isSaid, isDeferred = false }: Closing,
): AsyncGenerator<TurnEvent, ClosedCall> {
  const outcome: CacheOutcome = opened.isWatched
    ? judgeCache(turn, opened, message)
    : { kind: 'not-judged', why: 'not-watched' }
  const spent = isSaid ? [] : callRecords(message, opened.source)
  const all = [...bodies, ...spent, ...lossRecords(outcome)]
  const halt = isDeferred ? null : yield* append(turn, all)
  if (halt !== null) return { halt, outcome, unlogged: [] }
  yield* emitOutcome(outcome, opened.source, turn.host)
  if (!isDeferred) yield* emitPrice(turn, message.id)
  return { halt, outcome, unlogged: isDeferred ? all : [] }
}

/** Compares the usage with what should have been read, then updates the cache model. */
function judgeCache(turn: TurnRun, call: OpenedCall, message: AssistantMessage): CacheOutcome {
  const { state, host } = turn
  const { context_management: managed, diagnostics, usage = null } = message
  const isEdited =
    isObject(managed) && Array.isArray(managed.applied_edits) && managed.applied_edits.length > 0
  const answer = { source: call.source, usage, word: providerWord(diagnostics), isEdited }
  const { watch, outcome } = compareAnswer(state.watch, answer, {
    policy: host.policy.cache.breaks,
    profile: host.profile,
    prices: host.pricesOf(message.model, new Date(host.clock.now()).toISOString()),
    redact: host.redact ?? redact,
  })
  turn.state = { ...state, watch, lineage: learnFromUsage(state.lineage, call, usage, isEdited) }
  return outcome
}

function learnFromUsage(
  lineage: SessionState['lineage'],
  { forecast, forkOf }: OpenedCall,
  usage: Usage | null,
  isEdited: boolean,
): SessionState['lineage'] {
  if (lineage === null || usage === null) return lineage
  return forkOf === undefined
    ? learnFromResponse(lineage, forecast, usage, isEdited)
    : learnFromFork(lineage, forecast, usage)
}

/** For a call that cost something and that no other record holds. */
function callRecords({ id, model, usage }: AssistantMessage, source: string): readonly Unlinked[] {
  const reported: unknown = usage
  if (!isObject(reported)) return []
  const modelCall = { id, source, model, usage: JSON.parse(JSON.stringify(reported)) }
  return [{ type: 'system', subtype: 'model_call', isMeta: true, modelCall }]
}

/** What the log keeps of a loss, so that the bill can be computed again. */
function lossRecords(outcome: CacheOutcome): readonly Unlinked[] {
  const loss = toCacheLoss(outcome)
  return loss === null ? [] : [{ type: 'system', subtype: 'cache_loss', isMeta: true, cacheLoss: loss }]
}

function toCacheLoss(outcome: CacheOutcome): CacheLoss | null {
  if (outcome.kind === 'broke') {
    const { source, reason, tokensLost: tokens, moneyLost: usd, sentence } = outcome.event
    return { kind: 'break', source, reason: reason.kind, tokens, usd, sentence }
  }
  if (outcome.kind !== 'ours') return null
  const { source, act, tokensRewritten: tokens, moneySpent: usd, sentence } = outcome.act
  return { kind: 'act', source, reason: act, tokens, usd, sentence }
}

async function* emitOutcome(
  outcome: CacheOutcome,
  source: string,
  host: TurnHost,
): AsyncGenerator<TurnEvent, void> {
  if (outcome.kind === 'broke') {
    const diffProblem = await keepDiff(outcome, host)
    yield { type: 'cache-break', event: outcome.event, diffProblem }
  } else if (outcome.kind === 'ours') yield { type: 'act-paid', act: outcome.act }
  else yield { type: 'cache-judged', source, outcome }
}

/** Why the diff file could not be written; null if it was, or is not wanted. A failure does not end the turn. */
async function keepDiff(
  { diff, event }: Extract<CacheOutcome, { readonly kind: 'broke' }>,
  { keepDiff: keep, policy, redact: own }: TurnHost,
): Promise<string | null> {
  if (keep === undefined || !policy.cache.breaks.diffFiles) return null
  try {
    await keep(diff(own ?? redact), event)
    return null
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown)
  }
}

/** With all costs in the log. For a session just opened this reads all of it, later only what is new. */
export function withMoney(state: SessionState, prices: PriceList): SessionState {
  const money = advanceMoney(state.money ?? noMoney(), state.session.records, prices)
  return { ...state, money }
}

function* emitPrice(turn: TurnRun, response: string): Generator<TurnEvent, void> {
  turn.state = withMoney(turn.state, turn.host.pricesOf)
  const { money } = turn.state
  const call = money?.recent.find(({ id }) => id === response)
  if (money !== null && call !== undefined) yield { type: 'priced', call, totals: moneyTotals(money) }
}

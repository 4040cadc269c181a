/**
 * Makes one model call: sends the request, appends the reply to the log while it streams, and compares the cache read with the
 * forecast. A content block is appended when the next block ends; the last block is appended together with the final usage.
 */
import {
  type CacheForecast,
  updateCacheModelFromFork,
  updateCacheModelFromResponse,
} from '../cache/cache-forecast.ts'
import { canReachPrefix, findNewestPrefixExpiry, findPrefixSize } from '../cache/cache-model.ts'
import { type CacheCheckOutcome, withSentRequest } from '../cache/cache-monitor.ts'
import { judgeCacheRead } from '../cache/detect-break.ts'
import { toSentRequest } from '../cache/sent-request.ts'
import { findRequestedClearing, readReportedEdits } from '../clearing/provider-clearing.ts'
import { formatCount, formatDollars, formatDuration } from '../cost/prices.ts'
import { type FindModelPrices, sumSessionCost, updateSessionCost } from '../cost/session-cost.ts'
import { describeThrown } from '../errors.ts'
import { isBlankTextBlock, isTextBlock } from '../log/block.ts'
import { omitUndefined } from '../log/json.ts'
import {
  type AssistantMessage,
  type AssistantRecord,
  type CacheLoss,
  REPLY_DROPPED_SUBTYPE,
} from '../log/record.ts'
import type { TokenUsage } from '../log/reply-report.ts'
import { runStepsAtOnce } from '../log/work-steps.ts'
import { type AssembledRequest, toModelCallInput } from '../request/build-request.ts'
import { findWritePriceClass } from '../request/cache-ttl.ts'
import { redact } from '../text/redact.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { estimateLostUsage, withEstimatedOutput } from '../tokens/usage.ts'
import { type AdmittedCall, findCountedLimitFailure, priceNewCalls } from './call-limits.ts'
import type { ResumeCost, TurnEvent, TurnFailure } from './events.ts'
import { findCurrentRates, type TurnHost } from './host.ts'
import { measureContext, measureIdleTime } from './measure-context.ts'
import type { NextRequest } from './next-request.ts'
import {
  addReplyEvent,
  type BlockEnded,
  emptyReplyAssembly,
  type ModelFailure,
  type Reply,
  type ReplyAssembly,
  type ReplyEnded,
  type ReplyEvent,
  type ReplyFailed,
  toReply,
} from './reply.ts'
import type { SessionState } from './session-state.ts'
import {
  appendUnlinkedRecords,
  linkRecords,
  type TurnContext,
  type UnlinkedRecord,
  waitUnlessAborted,
} from './session-writer.ts'
import { fitReplyEventToolInputs } from './tool-input.ts'
import {
  estimatePromptSize,
  findTruncatedCount,
  learnFromTruncation,
  type PromptSizeEstimate,
} from './truncated-prompt.ts'

export type ModelCallResult = { readonly ok: true; readonly reply: Reply } | TurnFailure

/** A model call that is about to be sent, or whose response is not complete yet. */
export interface PendingModelCall {
  readonly request: AssembledRequest
  /** Label of the caller (query source), such as `sdk` or `compact`. */
  readonly source: string
  /** For a fork: label (query source) of the conversation whose cached prefix the call reads. */
  readonly forkOf?: string
  /** The session when the request was made. */
  readonly state: SessionState
  readonly forecast: CacheForecast
  /** True if the call shares the cached prefix of the conversation, so that its usage shows whether the cache held. */
  readonly isMonitored: boolean
  /** uuid of the last record in the context when the request was made; missing for a side call. */
  readonly lastUuid?: string
  /** The call as the limits count it, from `admitCall`: ended together with the model call. Missing for a side call. */
  readonly admitted?: AdmittedCall
  /** Size of the prompt, to notice if the server drops its beginning. Missing for a side call, and if that cannot happen. */
  readonly promptSize?: PromptSizeEstimate
}

/** Stores the request as the last one sent, whether the engine or the host sends it. Returns the pending call. */
export function registerModelCall(turn: TurnContext, { request, forecast }: NextRequest): PendingModelCall {
  const { source } = turn.host
  const last = turn.state.view.entries.last?.record.uuid
  const newest = last === undefined ? {} : { lastUuid: last }
  const { tooLong } = turn.host.profile.capabilities
  const promptSize = tooLong === 'refused' ? null : estimatePromptSize(turn.state, turn.host)
  const measured = promptSize === null ? {} : { promptSize }
  const { state } = turn
  const call = { request, source, state, forecast, isMonitored: true, ...newest, ...measured }
  const opened = addRequestToCacheMonitor(turn, call)
  const { flat, prefix } = turn.state
  turn.state = { ...turn.state, lastRequest: request, whenRequested: { flat, prefix } }
  return opened
}

/**
 * Returns the cost of a request that is about to be sent after the cache has expired. Returns null if the cache lives,
 * or if no more than `cache.breaks.tokens` tokens are lost. Tokens that a rewrite has changed do not count as lost,
 * because they would not have been read from the cache anyway: after a compaction the result is usually null.
 */
export function findResumeCost(
  { state, host }: TurnContext,
  { request, forecast }: PendingModelCall,
): ResumeCost | null {
  const { clock, policy } = host
  const expiresAt = findNewestPrefixExpiry(forecast.basis.model)
  const idleMs = measureIdleTime(state, clock.now())
  if (idleMs === null || expiresAt === null || clock.now() < expiresAt) return null
  const tokens = measureContext(state, host).expected
  const cachedTokens = Math.min(tokens, forecast.read)
  const warmTokens = Math.min(tokens, countReadIfWarm(forecast))
  const lostTokens = warmTokens - cachedTokens
  if (lostTokens <= policy.cache.breaks.tokens) return null
  const rates = findCurrentRates(host, tokens)
  const write = rates?.[findWritePriceClass(request.ttl, host.profile.cache)] ?? null
  const read = rates?.cacheRead ?? null
  const isPriced = write !== null && read !== null
  const price = isPriced ? ((tokens - cachedTokens) * write + cachedTokens * read) / 1_000_000 : null
  const warmPrice = isPriced ? (warmTokens * read + (tokens - warmTokens) * write) / 1_000_000 : null
  const cost =
    price === null || warmPrice === null
      ? ''
      : ` This request costs ${formatDollars(price)} instead of ${formatDollars(warmPrice)}.`
  const sentence = `The prompt cache has expired after ${formatDuration(idleMs)}: ${formatCount(lostTokens)} tokens are processed again.${cost}`
  return { idleMs, tokens, cachedTokens, price, warmPrice, sentence }
}

/** Returns how many tokens the API request would read from the cache if nothing had expired, without what a rewrite changed. */
function countReadIfWarm({ read, basis }: CacheForecast): number {
  const { prefixes, request, profile, sizes } = basis
  const hit = prefixes.findLast((prefix) => canReachPrefix(request, prefix.blocks, profile))
  return hit === undefined ? read : Math.max(read, findPrefixSize(sizes, hit.blocks) ?? hit.tokens)
}

/** Passes the request to the cache monitor. Call this just before sending, because the request must not change afterwards. */
export function addRequestToCacheMonitor(turn: TurnContext, call: PendingModelCall): PendingModelCall {
  if (!call.isMonitored) return call
  const { state, host } = turn
  const watched = toSentRequest(call.request, {
    source: call.source,
    at: host.clock.now(),
    profile: host.profile,
    ...(call.forkOf === undefined ? {} : { forkOf: call.forkOf }),
    ...(state.monitoredRequest === null ? {} : { previous: state.monitoredRequest }),
  })
  const watch = withSentRequest(state.cacheMonitor, watched, call.forecast, host.policy.cache.breaks)
  turn.state = { ...state, monitoredRequest: watched, cacheMonitor: watch }
  return call
}

/** Sends the request and streams the reply into the log. Returns the reply, or why the call failed. */
export async function* sendRequest(
  turn: TurnContext,
  opened: PendingModelCall,
): AsyncGenerator<TurnEvent, ModelCallResult> {
  const { request, forecast } = opened
  yield { type: 'request-sent', request, forecast }
  let assembly = emptyReplyAssembly
  let held: BlockEnded | null = null
  let lost = 0
  const { tools } = turn.host.readOfferedPrefix()
  for await (const given of streamReply(turn, request)) {
    if (given.type === 'reply-lost') {
      const failure = yield* recordLostReplyCost(turn, opened, lost > 0)
      if (failure !== null) return failure
      lost += 1
      // After a lost reply the model would send the request again. The lost reply is billed and may have used up a limit.
      const reached = turn.signal?.aborted === true ? null : findCountedLimitFailure(turn)
      if (reached !== null) return reached
      continue
    }
    const event = fitReplyEventToolInputs(given, tools)
    yield { type: 'reply', event }
    assembly = addReplyEvent(assembly, event)
    if (isReplyEnd(event)) return yield* finishReply(turn, opened, event, held)
    if (event.type !== 'block-ended') continue
    const halt: TurnFailure | null =
      held === null ? null : yield* appendUnlinkedRecords(turn, partialRecords(assembly, held))
    if (halt !== null) return withUnsaved(turn, halt, partialRecords(assembly, event))
    held = event
  }
  throw new RangeError('expected the last event of a reply')
}

export function isReplyEnd(event: ReplyEvent): event is ReplyEnded | ReplyFailed {
  return event.type === 'reply-ended' || event.type === 'reply-failed'
}

/**
 * Streams a reply that always has a last event, whatever the model does. A model that throws or stops without a last
 * event has failed; a model that ignores the abort signal is abandoned.
 */
export async function* streamReply(
  turn: TurnContext,
  request: AssembledRequest,
): AsyncGenerator<ReplyEvent, void> {
  let assembly = emptyReplyAssembly
  const fail = (failure: ModelFailure): ReplyFailed => {
    return { type: 'reply-failed', failure, reply: toReply(assembly) }
  }
  let events: AsyncIterator<ReplyEvent> | null = null
  let isAbandoned = false
  try {
    events = turn.host.model.stream(toModelCallInput(request), turn.signal)[Symbol.asyncIterator]()
    for (;;) {
      const step = await waitUnlessAborted(turn, events.next())
      isAbandoned = step === null
      if (step === null) return yield fail({ kind: 'aborted', retryable: false, message: 'It was aborted.' })
      const { value: event, done } = step.value
      if (done === true) return yield fail(INCOMPLETE_REPLY)
      assembly = addReplyEvent(assembly, event)
      yield event
      if (isReplyEnd(event)) return
    }
  } catch (thrown) {
    yield fail(describeThrownReply(thrown, turn.signal?.aborted === true, assembly.message !== null))
  } finally {
    const closing = events?.return?.()
    if (!isAbandoned) await closing
    // An abandoned model call may never end, and its errors are ignored.
    else closing?.catch(() => {})
  }
}

/** Describes what a model threw in the middle of its reply: like a broken connection, so the request may be sent again. */
function describeThrownReply(thrown: unknown, isAborted: boolean, isBegun: boolean): ModelFailure {
  const message = describeThrown(thrown)
  if (isAborted) return { kind: 'aborted', retryable: false, message }
  return { kind: isBegun ? 'bad-reply' : 'unknown', retryable: isBegun, message }
}

const INCOMPLETE_REPLY: ModelFailure = {
  kind: 'bad-reply',
  retryable: true,
  message: 'The reply stopped without an end.',
}

/** Adds to the failure those response records that arrived but could not be appended, so that the host can save them. */
function withUnsaved(turn: TurnContext, halt: TurnFailure, bodies: readonly UnlinkedRecord[]): TurnFailure {
  if (!('unsaved' in halt)) return halt
  return { ...halt, unsaved: [...halt.unsaved, ...linkRecords(turn, bodies, halt.unsaved.at(-1)?.uuid)] }
}

/** Appends what is left of a reply. A reply that broke off is taken out of the context again, except if the turn was aborted. */
async function* finishReply(
  turn: TurnContext,
  opened: PendingModelCall,
  event: ReplyEnded | ReplyFailed,
  held: BlockEnded | null,
): AsyncGenerator<TurnEvent, ModelCallResult> {
  const { reply } = event
  const broken = event.type === 'reply-failed' && event.failure.kind !== 'aborted' ? event : null
  if (reply !== null) {
    const { id, content } = reply.message
    const saved = finalRecords(event, reply, held)
    const isSaid = saved.length > 0 || content.length > 0
    const dropped = isSaid && broken !== null ? [createDropRecord(id)] : []
    const { failure } = yield* finishModelCall(turn, opened, {
      reply,
      bodies: [...saved, ...dropped],
      isInConversation: isSaid,
      ...(event.type === 'reply-failed' ? { cutBy: event.failure } : {}),
    })
    if (failure !== null) return failure
    if (broken !== null) yield { type: 'reply-dropped', response: id, cause: broken.failure }
  }
  if (event.type === 'reply-failed') return toTurnFailure(event)
  const usage = event.reply.message.usage ?? null
  yield { type: 'answered', reply: event.reply, usage, forecast: opened.forecast }
  return { ok: true, reply: event.reply }
}

export function toTurnFailure({ failure }: ReplyFailed): TurnFailure {
  return failure.kind === 'aborted'
    ? { ok: false, reason: 'aborted' }
    : { ok: false, reason: 'failed', failure }
}

interface FinishCallInput {
  /** The response, as far as it arrived. */
  readonly reply: Reply
  /** Records of the response that are not appended yet. */
  readonly bodies: readonly UnlinkedRecord[]
  /** True if the log has records of the response. If false, a `model_call` record is appended to keep the cost. */
  readonly isInConversation: boolean
  /** Why the response broke off: the provider did not report its output, nor what it cleared. Missing if it did not. */
  readonly cutBy?: ModelFailure
}

interface FinishedCall {
  /** Why the append failed; null if it succeeded. */
  readonly failure: TurnFailure | null
  readonly outcome: CacheCheckOutcome
}

/**
 * Ends a model call that the engine or the host made: compares the cache read with the forecast, appends the last
 * records and any cache loss in one batch, and emits the cost.
 */
export async function* finishModelCall(
  turn: TurnContext,
  opened: PendingModelCall,
  ended: FinishCallInput,
): AsyncGenerator<TurnEvent, FinishedCall> {
  const { promptSize } = opened
  const counted = promptSize === undefined ? null : findTruncatedCount(promptSize, ended.reply.usage)
  if (promptSize !== undefined && counted !== null)
    return yield* finishTruncatedCall(turn, opened, ended, learnFromTruncation(turn, promptSize, counted))
  const { reply, bodies, isInConversation, cutBy } = ended
  const { message, usage } = reply
  const outcome: CacheCheckOutcome = opened.isMonitored
    ? judgeCache(turn, opened, ended)
    : { kind: 'not-judged', why: 'not-watched' }
  const billed = cutBy === undefined ? usage : estimateCutUsage(turn.host, opened, reply, cutBy)
  // The records of a response that broke off have the usage from its start.
  const isLogged = isInConversation && billed === usage
  const spent = isLogged ? [] : createBilledCallRecords(message, billed, opened.source)
  const all = [...bodies, ...spent, ...toCacheLossRecords(outcome)]
  const failure = yield* appendUnlinkedRecords(turn, all)
  if (failure !== null) return { failure, outcome }
  yield* emitCacheOutcome(outcome, opened.source, turn.host)
  yield* emitPrice(turn, message.id)
  return { failure, outcome }
}

/**
 * Ends a call whose prompt has lost its beginning on the server. The tokens that the server counted are billed, but
 * they show neither the size of the context nor what is cached.
 */
async function* finishTruncatedCall(
  turn: TurnContext,
  { source }: PendingModelCall,
  { reply, bodies }: FinishCallInput,
  event: TurnEvent,
): AsyncGenerator<TurnEvent, FinishedCall> {
  const { message, usage } = reply
  const outcome: CacheCheckOutcome = { kind: 'not-judged', why: 'not-watched' }
  const unmeasured = bodies.map(withoutUsage)
  const failure = yield* appendUnlinkedRecords(turn, [
    ...unmeasured,
    ...createBilledCallRecords(message, usage, source),
  ])
  if (failure !== null) return { failure, outcome }
  yield event
  yield* emitPrice(turn, message.id)
  return { failure, outcome }
}

function withoutUsage(body: UnlinkedRecord): UnlinkedRecord {
  if (body.type !== 'assistant') return body
  const { usage: _, message, ...record } = body as AssistantBody
  const { usage: __, ...unmeasured } = message
  return { ...record, message: unmeasured }
}

/** Compares the reported cache read with the forecast, then updates the expected content of the provider's cache. */
function judgeCache(turn: TurnContext, call: PendingModelCall, ended: FinishCallInput): CacheCheckOutcome {
  const { state, host } = turn
  const { message, usage = null } = ended.reply
  const register = state.context?.register
  // A fork asks for no clearing of its own: its context edits only repeat those of the parent's request.
  const asked = call.forkOf === undefined ? state.providerEdits : null
  const edits =
    ended.cutBy !== undefined
      ? { requestedClearing: findRequestedClearing(asked, register) }
      : { edits: readReportedEdits(message, host.profile, register) }
  const answer = { source: call.source, usage, word: host.profile.spelling.readDiagnosis(message), ...edits }
  const { monitor, outcome, isEdited } = judgeCacheRead(state.cacheMonitor, answer, {
    policy: host.policy.cache.breaks,
    profile: host.profile,
    prices: host.pricesOf(message.model, new Date(host.clock.now()).toISOString()),
    redact,
  })
  turn.state = {
    ...state,
    cacheMonitor: monitor,
    cacheModel: learnFromUsage(state.cacheModel, call, usage, isEdited),
  }
  return outcome
}

/** Returns the expected content of the provider's cache after a response. After a fork, it keeps the conversation's requests. */
function learnFromUsage(
  lineage: SessionState['cacheModel'],
  { forecast, forkOf }: PendingModelCall,
  usage: TokenUsage | null,
  isEdited: boolean,
): SessionState['cacheModel'] {
  if (lineage === null || usage === null) return lineage
  return forkOf === undefined
    ? updateCacheModelFromResponse(lineage, forecast, usage, isEdited)
    : updateCacheModelFromFork(lineage, forecast, usage)
}

/** Returns the usage that was billed for a response, with an estimated output if the response broke off. */
export function estimateBilledUsage(reply: Reply, estimator: Estimator | undefined): TokenUsage | undefined {
  const { usage, stop } = reply
  // The provider sends the stop reason together with the whole usage.
  if (usage === undefined || estimator === undefined || stop !== undefined) return usage
  return withEstimatedOutput(usage, estimateOutput(reply, estimator))
}

/** Estimates the tokens of a reply as far as it arrived. */
function estimateOutput({ message: { content }, unfinished }: Reply, estimator: Estimator): number {
  const open = unfinished.map(
    ({ block, input }) => estimator.block(block) + (input === '' ? 0 : estimator.text(input)),
  )
  return open.reduce((sum, tokens) => sum + tokens, estimator.content(content))
}

/**
 * Returns the usage that was billed for a call whose reply broke off, with the output estimated from what arrived. If the
 * usage was still to come, as where a provider reports it at the end only, the prompt is estimated, too. `reply`: null if
 * nothing arrived. Undefined if nothing was billed, or if it is not known.
 */
export function estimateCutUsage(
  host: TurnHost,
  opened: CutCall,
  reply: Reply | null,
  cause: ModelFailure,
): TokenUsage | undefined {
  const { compaction } = host
  if (reply?.usage !== undefined) return estimateBilledUsage(reply, compaction.estimator)
  // A failure that the provider itself reports, such as an overload, is billed only after a part of the answer.
  const hasContent = reply !== null && reply.message.content.length + reply.unfinished.length > 0
  if (!hasContent && cause.kind !== 'aborted' && cause.errorType !== undefined) return undefined
  const usage = estimateLostCall(host, opened)
  if (usage === undefined || !hasContent) return usage
  return withEstimatedOutput(usage, estimateOutput(reply, compaction.estimator))
}

/**
 * Records the cost of a call whose reply broke off before it reported usage; no other record has this cost.
 * `isRepeated`: true if an earlier reply to the same request was lost, so that its prompt is cached.
 */
export async function* recordLostReplyCost(
  turn: TurnContext,
  opened: PendingModelCall,
  isRepeated = false,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { host } = turn
  const message = { id: host.ids.next('lost-reply'), model: host.readOfferedPrefix().model }
  const usage = estimateLostCall(host, opened, isRepeated)
  const failure = yield* appendUnlinkedRecords(turn, createBilledCallRecords(message, usage, opened.source))
  if (failure === null) yield* emitPrice(turn, message.id)
  return failure
}

/** A call that broke off. `prefix`: system prompt and tools of the request, if the session does not have them. */
export interface CutCall extends Pick<PendingModelCall, 'state' | 'isMonitored'> {
  readonly request: { readonly ttl: AssembledRequest['ttl']; readonly markers: readonly unknown[] }
  readonly forecast: Pick<CacheForecast, 'read'>
  readonly prefix?: Parameters<Estimator['prefix']>[0]
}

/** Estimates the usage of a call that reported none: its prompt is the context. Undefined for a side call with another prompt. */
function estimateLostCall(
  host: TurnHost,
  { request, state, forecast, isMonitored, prefix }: CutCall,
  isRepeated = false,
): TokenUsage | undefined {
  const { compaction, profile } = host
  if (!isMonitored) return undefined
  const { expected, source } = measureContext(state, host)
  // A size that a response has reported includes system prompt and tools.
  const isPrefixMissing = prefix !== undefined && source === 'estimated'
  const prompt = expected + (isPrefixMissing ? compaction.estimator.prefix(prefix) : 0)
  const ttl = request.markers.length === 0 ? null : request.ttl
  const write = ttl === null ? null : findWritePriceClass(ttl, profile.cache)
  return estimateLostUsage(prompt, isRepeated && ttl !== null ? prompt : forecast.read, write)
}

/**
 * Returns a `model_call` record with the billed tokens of a call, for a response that the log lacks or has without
 * them; empty if the tokens are not known.
 */
export function createBilledCallRecords(
  { id, model, usage = {} }: Pick<AssistantMessage, 'id' | 'model' | 'usage'>,
  tokens: TokenUsage | undefined,
  source: string,
): readonly UnlinkedRecord[] {
  if (tokens === undefined) return []
  const modelCall = { id, source, model, usage, tokens }
  return [{ type: 'system', subtype: 'model_call', isMeta: true, modelCall }]
}

/** Returns a record with the cached tokens that were lost and their cost; empty if none were lost. */
export function toCacheLossRecords(outcome: CacheCheckOutcome): readonly UnlinkedRecord[] {
  const loss = toCacheLoss(outcome)
  return loss === null ? [] : [{ type: 'system', subtype: 'cache_loss', isMeta: true, cacheLoss: loss }]
}

function toCacheLoss(outcome: CacheCheckOutcome): CacheLoss | null {
  if (outcome.kind === 'broke') {
    const { source, reason, tokensLost, moneyLost, sentence } = outcome.event
    return { kind: 'break', source, reason: reason.kind, tokens: tokensLost, usd: moneyLost, sentence }
  }
  if (outcome.kind !== 'ours') return null
  const { source, act, tokensRewritten, moneySpent, sentence } = outcome.act
  return { kind: 'act', source, reason: act, tokens: tokensRewritten, usd: moneySpent, sentence }
}

async function* emitCacheOutcome(
  outcome: CacheCheckOutcome,
  source: string,
  host: TurnHost,
): AsyncGenerator<TurnEvent, void> {
  if (outcome.kind === 'broke') {
    const diffProblem = await saveDiff(outcome, host)
    yield { type: 'cache-break', event: outcome.event, diffProblem }
  } else if (outcome.kind === 'ours') yield { type: 'act-paid', act: outcome.act }
  else yield { type: 'cache-judged', source, outcome }
}

/** Saves the diff of a cache break. Returns why that failed; null if it succeeded or policy turns diff files off. */
async function saveDiff(
  { diff, event }: Extract<CacheCheckOutcome, { readonly kind: 'broke' }>,
  { keepDiff, policy }: TurnHost,
): Promise<string | null> {
  if (keepDiff === undefined || !policy.cache.breaks.diffFiles) return null
  try {
    await keepDiff(diff(redact), event)
    return null
  } catch (thrown) {
    return describeThrown(thrown)
  }
}

/** Returns the state with the costs of all model calls. Reads the whole log the first time, later only new records. */
export function withSessionCosts(state: SessionState, prices: FindModelPrices): SessionState {
  return { ...state, costs: runStepsAtOnce(updateSessionCost(state.costs, state.session.records, prices)) }
}

async function* emitPrice(turn: TurnContext, response: string): AsyncGenerator<TurnEvent, void> {
  const costs = await priceNewCalls(turn)
  const call = costs.recent.find(({ id }) => id === response)
  if (call !== undefined) yield { type: 'priced', call, totals: sumSessionCost(costs) }
}

// Turns a reply of the model into records of the log: whole blocks, and the text that an aborted reply had reached.

/**
 * Takes a broken reply out of the context, so that the same request can be sent again and nothing is shown twice. An
 * aborted reply stays, because the user may refer to the part that arrived.
 */
function createDropRecord(response: string): UnlinkedRecord {
  return { type: 'system', subtype: REPLY_DROPPED_SUBTYPE, isMeta: true, response }
}

/**
 * Returns the records to append when a reply ends: the last block and, if the reply was aborted, the text that it was in
 * the middle of. For a complete reply without blocks, it is an empty record with the usage.
 */
function finalRecords(
  event: ReplyEnded | ReplyFailed,
  reply: Reply,
  held: BlockEnded | null,
): readonly UnlinkedRecord[] {
  const ended = held === null ? [] : [toRecord(reply, held)]
  if (event.type === 'reply-ended') return held === null ? [toEmptyRecord(reply)] : ended
  if (event.failure.kind !== 'aborted') return ended
  const cut = reply.unfinished
    .map(({ block }) => block)
    .filter((block) => isTextBlock(block) && !isBlankTextBlock(block))
  const said = [...ended, ...cut.map((block): AssistantBody => toRecord(reply, { block }))]
  return said.map((record, index) => (index < said.length - 1 ? record : { ...record, isInterrupted: true }))
}

/** Returns the record of one complete block of a reply that goes on. */
function partialRecords(assembly: ReplyAssembly, block: BlockEnded): readonly UnlinkedRecord[] {
  const reply = toReply(assembly)
  return reply === null ? [] : [toRecord(reply, block)]
}

type AssistantBody = Pick<
  AssistantRecord,
  'type' | 'message' | 'usage' | 'stop' | 'rawBlocks' | 'isInterrupted'
>

function toEmptyRecord({ message, usage, stop }: Reply): AssistantBody {
  return { type: 'assistant', message: { ...message, content: [] }, ...omitUndefined({ usage, stop }) }
}

function toRecord(reply: Reply, { block, raw }: Pick<BlockEnded, 'block' | 'raw'>): AssistantBody {
  const empty = toEmptyRecord(reply)
  const said = { ...empty, message: { ...empty.message, content: [block] } }
  return raw === undefined ? said : { ...said, rawBlocks: [{ index: 0, text: raw }] }
}

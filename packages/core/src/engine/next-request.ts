/** Builds and validates the next request, and forecasts how much of it is read from the cache. */

import { type CacheForecast, forecastCacheRead, restoreCacheModel } from '../cache/cache-forecast.ts'
import {
  createResultPlaceholder,
  findFirstClearableCallId,
  SAMPLE_CALL_ID,
} from '../clearing/clear-candidates.ts'
import type { ContextView } from '../context/context-view.ts'
import { fitContextToRoles } from '../context/flatten-context.ts'
import { emptySessionCost, sumSessionCost } from '../cost/session-cost.ts'
import type { JsonObject } from '../log/json.ts'
import { type AssistantMessage, isKnownRecord } from '../log/record.ts'
import { requireRecordAt, type SessionLog } from '../log/session-log.ts'
import { runStepsAtOnce, type WorkInSteps } from '../log/work-steps.ts'
import { computeContextSize } from '../planner/plan-input.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import { countTotalsThroughBlock } from '../request/block-index.ts'
import {
  type AssembledRequest,
  type AssembleRequestInput,
  assembleRequest,
  findRequestProblems,
} from '../request/build-request.ts'
import {
  type FirstClearableState,
  type MessagesWithCalls,
  type OwnMarkerScope,
  type PlannedMarker,
  updateFirstClearable,
} from '../request/cache-markers.ts'
import { chooseRequestTtl, findWritePriceClass } from '../request/cache-ttl.ts'
import { buildRequestPrefix, type CurrentSnapshot } from '../request/prefix-snapshot.ts'
import { calibrateSize } from '../tokens/usage.ts'
import type { Finding } from '../validate/findings.ts'
import { startValidation, updateValidation, type ValidationState } from '../validate/validate-request.ts'
import { findCurrentRates, type TurnHost } from './host.ts'
import { restoreContextAt, type SessionState, updatePlanningState } from './session-state.ts'

/** A request that can be sent if it has no findings. */
export interface NextRequest {
  readonly request: AssembledRequest
  readonly forecast: CacheForecast
  /** Violations of the provider's rules; empty if the request is valid. */
  readonly findings: readonly Finding[]
  /** The session with what was computed for the request, so that the next one needs less work. */
  readonly state: SessionState
}

/** Builds the next request without sending or appending anything. `standing`: the current system prompt and tools. */
export function buildNextRequest(
  state: SessionState,
  standing: CurrentSnapshot,
  host: TurnHost,
): NextRequest {
  return runStepsAtOnce(buildNextRequestInSteps(state, standing, host))
}

/** As `buildNextRequest`, in steps: a request that begins with a long history is checked message by message. */
export function* buildNextRequestInSteps(
  state: SessionState,
  standing: CurrentSnapshot,
  host: TurnHost,
): WorkInSteps<NextRequest> {
  const { profile, clock } = host
  const edge = holdRequestEdge(state, host)
  const question = toAssembleQuestion({ ...state, clearingEdge: edge }, standing, host)
  const lineage = state.cacheModel ?? restoreCacheModel(question, state.view)
  const { request, forecast } = assembleAffordable(state, host, (ownMarkers) => {
    const made = assembleRequest({ ...question, ownMarkers }, state.lastRequest ?? lineage.chains[0])
    return {
      request: made,
      forecast: forecastCacheRead(lineage, { request: made, now: clock.now(), profile }),
    }
  })
  const checked = yield* checkMessages(state, request, host)
  return {
    request,
    forecast,
    findings: omitClientFindings(findRequestProblems(checked, request), host),
    state: { ...state, clearingEdge: edge, checkedMessages: checked, cacheModel: lineage },
  }
}

/** Assembles the request with as many cache markers as the engine may pay for. For other hosts than clients: all of them. */
function assembleAffordable(
  state: SessionState,
  host: TurnHost,
  assemble: (markers: OwnMarkerScope) => Pick<NextRequest, 'request' | 'forecast'>,
): Pick<NextRequest, 'request' | 'forecast'> {
  const { context } = state
  const { policy, profile } = host
  const [first = 'all', ...others] = listMarkerChoices(host)
  let made = assemble(first)
  if (others.length === 0 || context === null) return made
  const { calibration } = context.meter
  const prefix = (): number => countPrefixTokens(state, host)
  const tokens = computeContextSize({ ...context, calibration, policy, profile, prefix }).expected
  const { expected: prefixTokens, high } = calibrateSize(calibration, prefix(), policy.estimate)
  const question = { tokens, prefixTokens, mostPrefixTokens: Math.max(prefix(), high) }
  for (const choice of others) {
    if (canAffordCacheWrite(state, host, { ...made, ...question })) break
    made = assemble(choice)
  }
  return made
}

/** Returns the tokens of system prompt and tools. Before the first prefix snapshot, only the tools are counted. */
export function countPrefixTokens({ prefix }: SessionState, host: TurnHost): number {
  const { estimator } = host.compaction
  const epoch = prefix.current?.epoch
  return epoch === undefined
    ? estimator.prefix({ tools: host.readOfferedPrefix().tools })
    : estimator.snapshot(epoch)
}

/**
 * Returns the findings for which the engine is responsible. What a client sent with its own request is left to the provider,
 * which may know better than the catalogue.
 */
export function omitClientFindings(
  findings: readonly Finding[],
  { client }: Pick<TurnHost, 'client'>,
): readonly Finding[] {
  if (client === undefined) return findings
  return findings.filter(({ path, code }) => path.startsWith('messages') && !HOST_CODES.has(code))
}

/** Findings about system messages, fields of messages and the betas that they need: clients may be newer than the catalogue. */
const HOST_CODES: ReadonlySet<Finding['code']> = new Set([
  'beta-missing',
  'message-field',
  'block-field',
  'system-refused',
])

function toAssembleQuestion(
  state: SessionState,
  standing: CurrentSnapshot,
  host: TurnHost,
): AssembleRequestInput {
  const { profile, source, policy, client, switches = NO_SWITCHES } = host
  const { caching, clear } = findFeatureStates(policy, switches)
  const { isUserTool } = host.readOfferedPrefix()
  const { providerEdits } = state
  const rules = { policy: policy.cache, cache: profile.cache }
  const ttl = chooseRequestTtl(standing.epoch.ttl, source, rules)
  return {
    front: buildRequestPrefix(standing, { previous: state.lastRequest?.front, isUserTool }),
    flat: listMessagesToSend(state, host),
    profile,
    markers: policy.cache.markers,
    ttl: caching.on ? ttl.name : null,
    tailTtl: ttl.tail,
    clears: clear.on,
    edge: state.clearingEdge,
    carriersEnd: findLastSourceBeforeSummary(state.view, state.session),
    ...(client?.repeatedUntil === undefined ? {} : { repeatedUntil: client.repeatedUntil }),
    clientMarkers: policy.dropIn.cacheMarkers === 'replace' ? [] : (client?.markers ?? []),
    isRewritten: state.view.rewrites.length > 0,
    extra: {
      ...createCacheDiagnosisFields(state, host),
      ...(providerEdits === null ? {} : profile.spelling.requestEdits(providerEdits.edits, profile)),
    },
  }
}

/** Returns the messages in the form that the provider accepts. Messages of a client are sent as the client gave them. */
export function listMessagesToSend({ flat }: Pick<SessionState, 'flat'>, host: TurnHost): MessagesWithCalls {
  return host.client === undefined ? fitContextToRoles(flat, host.profile.roles) : flat
}

/** Returns the first clearable tool calls, in front of which a cache marker is placed, brought up to date for this request. */
function holdRequestEdge(state: SessionState, host: TurnHost): FirstClearableState {
  const { session, view, lastResponseIndex } = state
  const answeredAt = findResponseStart(session, lastResponseIndex)
  const find = (at: SessionState): string | null =>
    host.firstClearable?.(at) ?? findFirstClearableCall(at, host)
  return updateFirstClearable(state.clearingEdge, {
    firstClearable: find(state),
    position: session.records.length,
    answeredAt,
    isAnswered: lastResponseIndex > view.rewrittenAt,
    restore: () => find(restoreContextAt(state, answeredAt ?? 0)),
  })
}

/** Returns the index of the first record of the response whose last record is at `last`; null if there is none. */
function findResponseStart({ records }: SessionLog, last: number): number | null {
  const readId = (index: number): string | null => {
    const record = records.at(index)
    return record !== undefined && isKnownRecord(record) && record.type === 'assistant'
      ? record.message.id
      : null
  }
  if (last < 0) return null
  let start = last
  for (let index = last - 1; index >= 0; index -= 1) {
    const id = readId(index)
    if (id === readId(last)) start = index
    else if (id !== null) break
  }
  return start
}

/**
 * Returns the id of the tool call whose result would be cleared first; null if there is none. Computed from the current
 * context, because the last plan may be out of date.
 */
function findFirstClearableCall(
  { context, view, pins }: SessionState,
  { compaction }: TurnHost,
): string | null {
  const { register } = updatePlanningState(context, view, compaction)
  return findFirstClearableCallId(
    register,
    [...pins],
    createResultPlaceholder(SAMPLE_CALL_ID, compaction.retrieval),
  )
}

function checkMessages(
  { checkedMessages }: SessionState,
  { messages }: AssembledRequest,
  { profile }: TurnHost,
): WorkInSteps<ValidationState> {
  return updateValidation(
    checkedMessages?.state.profile === profile ? checkedMessages : startValidation(profile),
    messages,
  )
}

/**
 * Returns the uuid of the last attachment that the newest compaction placed before its summary, where unchanged
 * attachments stay cached; null if there is none.
 */
export function findLastSourceBeforeSummary(view: ContextView, session: SessionLog): string | null {
  const act = view.rewrites.findLast(({ kind }) => kind === 'compact')
  let end: string | null = null
  for (
    let position = (act?.position ?? Number.POSITIVE_INFINITY) + 1;
    position < view.branch.length;
    position += 1
  ) {
    const record = requireRecordAt(session, view.branch.at(position) ?? 0)
    if (record.uuid === act?.summaryUuid) break
    if (record.type === 'attachment') end = record.uuid ?? null
  }
  return end
}

/**
 * Returns the request fields that ask the provider to explain a cache miss; empty if unsupported or turned off, or if the
 * newest response has no id that the provider knows.
 */
export function createCacheDiagnosisFields(state: SessionState, { profile, policy }: TurnHost): JsonObject {
  if (!profile.capabilities.cacheDiagnostics || !policy.cache.breaks.askProvider) return {}
  return profile.spelling.askDiagnosis(findNewestResponse(state)?.id ?? null)
}

/** Returns the message of the newest response in the log; null if there is none. */
export function findNewestResponse({ session, lastResponseIndex }: SessionState): AssistantMessage | null {
  if (lastResponseIndex < 0) return null
  const record = requireRecordAt(session, lastResponseIndex)
  return isKnownRecord(record) && record.type === 'assistant' ? record.message : null
}

// Decides how much of a client's request is written to the prompt cache where the client itself would not. A cache
// write costs more than sending, and pays only if a later request reads it: a run may end, or pause for longer than the
// cache lives. So the engine writes only what its earlier savings pay for, and a small advance. Whatever the client
// does, it pays at most this advance more than it would without the engine.

/**
 * Shares of what the client would have paid so far that may be lost with cache writes that nothing reads. `bare`: for a client
 * that sets no cache marker, which has the most to save. `caching`: for a client that marks only system prompt or tools.
 */
const ADVANCE = { bare: 0.1, caching: 0.01 }

/** Number of newest pauses between requests from which it is judged whether the cache lives until the next request. */
const RECENT_PAUSES = 2

/** Returns which cache markers may be added to a request, in order of preference. */
function listMarkerChoices({ client, policy }: TurnHost): readonly OwnMarkerScope[] {
  if (client === undefined || policy.dropIn.cacheMarkers === 'replace') return ['all']
  return policy.dropIn.cacheMarkers === 'keep' ? ['none'] : ['all', 'prefix', 'none']
}

interface CacheWriteInput {
  readonly request: AssembledRequest
  readonly forecast: CacheForecast
  /** Tokens of the whole request. */
  readonly tokens: number
  /** Tokens of system prompt and tools among them. */
  readonly prefixTokens: number
  /** Upper bound of the tokens of system prompt and tools: reported usage corrects the estimates of messages, not theirs. */
  readonly mostPrefixTokens: number
}

/** Returns true if savings and advance pay for what the request would write to the cache. */
function canAffordCacheWrite(
  { costs }: Pick<SessionState, 'costs'>,
  host: TurnHost,
  question: CacheWriteInput,
): boolean {
  const { request, forecast, tokens } = question
  const last = request.markers.at(-1)
  // What is before a marker of the client is written to the cache in any case.
  if (last === undefined || last.kind === 'client') return true
  // The client's markers may have a longer lifetime than the marker that is added after them.
  const ttl = readMarkerTtl(last, host)
  if (outlastsCache(ttl, host)) return false
  const { input, cacheRead, ...rates } = findCurrentRates(host, tokens) ?? NO_RATES
  const write = rates[findWritePriceClass(ttl, host.profile.cache)]
  if (input === null || cacheRead === null || write === null) return true
  const totals = sumSessionCost(costs ?? emptySessionCost())
  // Cache reads up to the client's own marker are no saving of the engine. Estimated too low, they would count as one each time.
  const own = request.markers.findLast(({ kind }) => kind === 'client')
  const cached = countTokensToMarker(question, own)
  const mostCached = own?.place.zone === 'messages' ? cached : Math.max(cached, question.mostPrefixTokens)
  const calls = totals.calls - totals.unpricedCalls
  const read = Math.max(0, totals.tokens.cacheRead - calls * (own === undefined ? 0 : mostCached))
  const written = totals.tokens.writeShort + totals.tokens.writeLong - cached
  const saved = (read * (input - cacheRead) - Math.max(0, written) * (write - input)) / 1_000_000
  const direct = totals.spent.priced + saved + (tokens * input) / 1_000_000
  const unread = Math.max(0, countTokensToMarker(question, last) - forecast.read)
  const premium = (unread * (write - input)) / 1_000_000
  return premium <= saved + ADVANCE[host.client?.markers.length === 0 ? 'bare' : 'caching'] * direct
}

/** Estimates the tokens up to a cache marker. Tokens of messages are taken in proportion to their bytes. */
function countTokensToMarker(
  { request: { blockIndex }, tokens, prefixTokens }: CacheWriteInput,
  marker: PlannedMarker | undefined,
): number {
  if (marker === undefined) return 0
  const { place } = marker
  if (place.zone !== 'messages') return prefixTokens
  const all = blockIndex.end.bytes
  const { bytes } = countTotalsThroughBlock(blockIndex, place.index, place.block)
  const share = all === null || bytes === null || all === 0 ? 1 : bytes / all
  return prefixTokens + share * Math.max(0, tokens - prefixTokens)
}

const NO_RATES = { input: null, cacheRead: null, writeShort: null, writeLong: null }

function readMarkerTtl({ ttl }: PlannedMarker, { profile: { cache } }: TurnHost): string {
  return ttl ?? cache.defaultTtl
}

/** Returns true if the client's last requests came after the cache had expired, so that the next one probably will, too. */
function outlastsCache(ttl: string, { client, profile: { cache } }: TurnHost): boolean {
  const { seconds = 0 } = cache.ttls.find(({ name }) => name === ttl) ?? {}
  const recent = client?.pauses.slice(-RECENT_PAUSES) ?? []
  return recent.length > 0 && recent.every((ms) => ms >= seconds * 1000)
}

/** How full the context window is, and everything a plan is made from, gathered in one place. */

import { NO_LINEAGE } from '../cache/cache-model.ts'
import { cacheTemperature, callsToCome } from '../cache/cache-temperature.ts'
import type { View } from '../context/context-view.ts'
import type { Entry } from '../context/entry.ts'
import { openCalls } from '../context/flatten.ts'
import { ratesFor } from '../cost/prices.ts'
import { isObject } from '../log/json.ts'
import { type Epoch, isPrompt } from '../log/record.ts'
import { recordAt } from '../log/session.ts'
import { contextSize, type Moment, type PlanContext } from '../planner/plan-input.ts'
import type { ThinkingMode } from '../policy/provider-profile.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { ttlFor } from '../request/cache-ttl.ts'
import type { Estimator } from '../tokens/estimator.ts'
import type { ContextTokens } from '../tokens/usage.ts'
import type { Room, TurnHost } from './host.ts'
import { nextRequest } from './next-request.ts'
import { advanceRoom, advanceTally, CLOSED, type RoomState, type SessionState } from './session-state.ts'
import type { TurnRun, Unlinked } from './session-writer.ts'
import { namesEditBetas, withOwnBetas } from './update-prefix.ts'

/** How full the context window is now. */
export function measureNow(state: SessionState, host: TurnHost, compaction: Room): ContextTokens {
  const { room: known } = withRoom(state, compaction)
  const { policy, profile } = host
  const prefix = (): number => prefixTokens(state, host, compaction.estimator)
  return contextSize({ ...known, calibration: known.meter.calibration, policy, profile, prefix })
}

/** A session state whose context state is up to date. */
interface MeasuredState extends SessionState {
  readonly room: RoomState
}

export function withRoom(state: SessionState, compaction: Room): MeasuredState {
  return { ...state, room: advanceRoom(state.room, state.view, compaction) }
}

const prefixes = new WeakMap<Epoch, { readonly estimator: Estimator; readonly tokens: number }>()

/** Tokens of the current prefix; before the first, of the tools that would be declared. */
export function prefixTokens({ told }: SessionState, host: TurnHost, estimator: Estimator): number {
  const epoch = told.standing?.epoch
  if (epoch === undefined) return estimator.prefix({ tools: host.offered().tools })
  const known = prefixes.get(epoch)
  if (known?.estimator === estimator) return known.tokens
  const system = epoch.sections.map(({ text }) => ({ type: 'text', text }))
  const tokens = estimator.prefix({ system, tools: epoch.tools })
  prefixes.set(epoch, { estimator, tokens })
  return tokens
}

export interface Known {
  readonly context: PlanContext
  readonly state: SessionState
}

/** Gathers what a plan is made from. `state`: with what was learnt on the way. */
export function contextNow(given: SessionState, host: TurnHost, compaction: Room, moment: Moment): Known {
  const { policy, profile, source, switches = NO_SWITCHES } = host
  const now = host.clock.now()
  const idleMs = millisecondsIdle(given, now)
  const tracking = trackingNow(given, host)
  const { tools, parameters, model } = host.offered()
  const { thinking } = parameters
  const known = withCache(withRoom(given, compaction), host)
  const { standing } = known.told
  const { meter, register, outlook } = known.room
  const tokens = measureNow(known, host, compaction).expected
  const prefix = prefixTokens(known, host, compaction.estimator)
  const prices = host.pricesOf(model, new Date(now).toISOString())
  const ttl = mechanismStates(policy, switches).caching.on
    ? ttlFor(standing?.epoch.ttl, source, { policy: policy.cache, cache: profile.cache })
    : null
  const cache = cacheTemperature({
    lineage: known.lineage ?? NO_LINEAGE,
    // Before the first request of this process the next one stands in: its markers are where those of the last were.
    sent: known.sent ?? (standing === null ? null : nextRequest(known, standing, host).request),
    flat: known.flat,
    profile,
    policy: policy.clear,
    ttl,
    now,
    contextTokens: tokens,
  })
  const tally = advanceTally(known.room.tally, known.session, cache.ttlMs)
  const context: PlanContext = {
    register,
    meter,
    pins: [...known.pins],
    policy,
    scaled: compaction.scaled,
    ...(host.switches === undefined ? {} : { switches }),
    profile,
    calibration: meter.calibration,
    prefixTokens: prefix,
    source,
    moment,
    cache: { ...cache, expectedCalls: callsToCome(tally.runs, cache.expectedCalls) },
    rates: prices === null ? null : ratesFor(prices, tokens),
    write: ttl === '1h' ? 'write1h' : 'write5m',
    idleMs,
    retrieval: compaction.retrieval,
    tools: tools.flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
    thinks: isObject(thinking) ? thinking.type !== 'disabled' : profile.thinking.whenAbsent !== 'disabled',
    thinkingMode:
      isObject(thinking) && typeof thinking.type === 'string' ? (thinking.type as ThinkingMode) : null,
    canEdit: namesEditBetas(standing?.parameters ?? withOwnBetas(parameters, host), profile),
    tracking,
    ...(outlook === null ? {} : { outlook }),
  }
  return { context, state: { ...known, room: { ...known.room, tally } } }
}

function trackingNow(state: SessionState, { policy }: TurnHost): PlanContext['tracking'] {
  const { room, view, flat, answered } = state
  const breaker = room?.breaker ?? CLOSED
  const most = policy.turn.auto.breakerFailures
  // A new prompt allows one more attempt, however often compaction failed before.
  const mayRetry = breaker.failures >= most && hasPromptSince(view, breaker.at)
  return {
    failures: mayRetry ? most - 1 : breaker.failures,
    waitsForPrompt: isWaitingForPrompt(view),
    justUndone: isJustUndone(view, answered),
    justCompacted: isJustCompacted(state),
    openCalls: openCalls(flat).length,
  }
}

function millisecondsIdle({ session, answered }: SessionState, now: number): number | null {
  if (answered < 0) return null
  const at = Date.parse(recordAt(session, answered).timestamp ?? '')
  return Number.isNaN(at) ? null : Math.max(0, now - at)
}

/**
 * A reopened session rebuilds the state of the provider's cache from its log before anything is decided by it: a warm
 * cache taken for cold would be rewritten for nothing, and what was deleted from it would come back.
 */
function withCache<State extends SessionState>(state: State, host: TurnHost): State {
  const { standing } = state.told
  if (state.lineage !== null || standing === null) return state
  const { edge, lineage } = nextRequest(state, standing, host).state
  return { ...state, edge, lineage }
}

/** The newest rewrite is a compaction, and no message was appended after it: another one would change nothing. */
export function isJustCompacted({ view, answered }: SessionState): boolean {
  const { entries, rewrittenAt, acts } = view
  const act = acts.at(-1)
  if (act?.kind !== 'compact' || answered > rewrittenAt) return false
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= rewrittenAt) return true
    const { record } = entry
    const isOwn = act.batch !== null && record.batch?.id === act.batch
    if (!isOwn && (record.type === 'user' || record.type === 'assistant')) return false
  }
  return true
}

/** A user prompt follows the record at `index`. */
export function hasPromptSince({ entries }: View, index: number): boolean {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= index) return false
    if (isPrompt(entry.record)) return true
  }
  return false
}

// Undone rewrites: automatic ones wait for the next prompt, and the model is informed once.

export const UNDO_NOTICE = 'undo_notice'

/** The notice, to be appended with the next prompt, that the context was restored; none if nothing was undone. */
export function undoings({ state }: Pick<TurnRun, 'state'>): readonly Unlinked[] {
  const found = untoldUndoings(state.view)
  if (found.length === 0) return []
  return [{ type: 'attachment', isMeta: true, attachment: { type: UNDO_NOTICE, content: undoNotice(found) } }]
}

/** A rewrite was undone, and no user prompt has followed. */
export function isWaitingForPrompt(view: View): boolean {
  return untoldUndoings(view).length > 0
}

/** Undo records after the newest prompt and the newest notice. Free if nothing was ever undone: a turn may be long. */
export function untoldUndoings({ entries, undone, rewrittenAt }: View): readonly Entry[] {
  const found: Entry[] = []
  if (undone.length === 0) return found
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || isPrompt(entry.record) || entry.index < rewrittenAt) break
    if (entry.record.type === 'attachment' && entry.record.attachment.type === UNDO_NOTICE) break
    if (isUndo(entry)) found.unshift(entry)
  }
  return found
}

/** A rewrite was undone, and the model has not responded since. `answered`: index of its newest response. */
export function isJustUndone({ entries, undone, rewrittenAt }: View, answered: number): boolean {
  if (undone.length === 0) return false
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= answered || entry.index < rewrittenAt) return false
    if (isUndo(entry)) return true
  }
  return false
}

function isUndo({ record }: Entry): boolean {
  const subtype = record.type === 'system' ? record.subtype : undefined
  return subtype === 'compact_undone' || subtype === 'clear_undone'
}

export function undoNotice(undos: readonly Entry[]): string {
  const isCompaction = undos.some(
    ({ record }) => record.type === 'system' && record.subtype === 'compact_undone',
  )
  return isCompaction
    ? 'The compaction of this conversation was undone: the messages above are the original ones again.'
    : 'The clearing of old tool results was undone: the results above are the original ones again.'
}

/** The plan for a session as it stands: everything a decision rests on, gathered in one place. */

import { NO_LINEAGE } from '../cache/cache-model.ts'
import { type CacheTemperature, cacheTemperature, callsToCome } from '../cache/cache-temperature.ts'
import type { View } from '../context/context-view.ts'
import type { Entry } from '../context/entry.ts'
import { openCalls } from '../context/flatten.ts'
import { type Rates, ratesFor } from '../cost/prices.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { type Epoch, isPrompt } from '../log/record.ts'
import { recordAt } from '../log/session.ts'
import { type Plan, plan } from '../planner/plan.ts'
import { contextSize, type Moment, type PlanContext } from '../planner/plan-input.ts'
import type { ThinkingMode } from '../policy/provider-profile.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { ttlFor } from '../request/cache-ttl.ts'
import type { Estimator } from '../tokens/estimator.ts'
import type { ContextTokens } from '../tokens/usage.ts'
import type { Room, TurnHost } from './host.ts'
import { nextRequest } from './next-request.ts'
import { advanceRoom, advanceTally, type RoomState, type SessionState } from './session-state.ts'
import { namesEditBetas, withOwnBetas } from './update-prefix.ts'

interface Planned extends Known {
  readonly plan: Plan
}

export function planNow(state: SessionState, host: TurnHost, room: Room, moment: Moment): Planned {
  const known = contextNow(state, host, room, moment)
  return { ...known, plan: plan(known.context) }
}

export interface Known {
  readonly context: PlanContext
  readonly state: SessionState
}

/** What a plan would rest on, without one being made. */
export function contextNow(state: SessionState, host: TurnHost, room: Room, moment: Moment): Known {
  const known = withCache(withRoom(state, room), host)
  const tokens = measureNow(known, host, room).expected
  const cache = temperature(known, host, tokens)
  const tally = advanceTally(known.room.tally, known.session, cache.ttlMs)
  const tallied = { ...known, room: { ...known.room, tally } }
  const expectedCalls = callsToCome(tally.runs, cache.expectedCalls)
  const context = planContext(tallied, host, { room, moment, tokens, cache: { ...cache, expectedCalls } })
  return { context, state: tallied }
}

type RoomyState = SessionState & { readonly room: RoomState }

export function withRoom(state: SessionState, room: Room): RoomyState {
  return { ...state, room: advanceRoom(state.room, state.view, room) }
}

/** How full the window is now. */
export function measureNow(state: SessionState, host: TurnHost, room: Room): ContextTokens {
  const { room: known } = withRoom(state, room)
  const { policy, profile } = host
  const prefix = (): number => prefixTokens(state, host, room.estimator)
  return contextSize({ ...known, calibration: known.meter.calibration, policy, profile, prefix })
}

interface Asked {
  readonly room: Room
  readonly moment: Moment
  readonly tokens: number
  readonly cache: CacheTemperature
}

function planContext(state: RoomyState, host: TurnHost, asked: Asked): PlanContext {
  const { room, moment, tokens, cache } = asked
  const { policy, profile, source, switches } = host
  const { register, meter, outlook } = state.room
  const { tools, parameters } = host.offered()
  return {
    register,
    meter,
    pins: [...state.pins],
    policy,
    scaled: room.scaled,
    ...(switches === undefined ? {} : { switches }),
    profile,
    calibration: meter.calibration,
    prefixTokens: prefixTokens(state, host, room.estimator),
    source,
    moment,
    cache,
    rates: ratesNow(host, tokens),
    write: ttlNow(state, host) === '1h' ? 'write1h' : 'write5m',
    idleMs: idleMs(state, host),
    retrieval: room.retrieval,
    tools: tools.flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
    thinks: thinks(parameters, host),
    thinkingMode: modeOf(parameters),
    canEdit: namesEditBetas(state.told.standing?.parameters ?? withOwnBetas(parameters, host), profile),
    tracking: {
      failures: failuresNow(state, host),
      openCalls: openCalls(state.flat).length,
      waitsForPrompt: isWaitingForPrompt(state.view),
      justUndone: isJustUndone(state.view, state.answered),
      justCompacted: isJustCompacted(state),
    },
    ...(outlook === null ? {} : { outlook }),
  }
}

function temperature(state: SessionState, host: TurnHost, tokens: number): CacheTemperature {
  const { profile, policy, clock } = host
  return cacheTemperature({
    lineage: state.lineage ?? NO_LINEAGE,
    sent: lastRequest(state, host),
    flat: state.flat,
    profile,
    policy: policy.clear,
    ttl: ttlNow(state, host),
    now: clock.now(),
    contextTokens: tokens,
  })
}

/** New words of the person's are something new to try on: once more, however often it failed before. */
function failuresNow({ room: { breaker }, view }: RoomyState, { policy }: TurnHost): number {
  const most = policy.turn.auto.breakerFailures
  return breaker.failures >= most && hasPromptSince(view, breaker.at) ? most - 1 : breaker.failures
}

function ttlNow(
  { told }: SessionState,
  { policy, profile, source, switches = NO_SWITCHES }: TurnHost,
): string | null {
  if (!mechanismStates(policy, switches).caching.on) return null
  return ttlFor(told.standing?.epoch.ttl, source, { policy: policy.cache, cache: profile.cache })
}

function ratesNow({ pricesOf, offered, clock }: TurnHost, tokens: number): Rates | null {
  const prices = pricesOf(offered().model, new Date(clock.now()).toISOString())
  return prices === null ? null : ratesFor(prices, tokens)
}

function idleMs({ session, answered }: SessionState, { clock }: TurnHost): number | null {
  if (answered < 0) return null
  const at = Date.parse(recordAt(session, answered).timestamp ?? '')
  return Number.isNaN(at) ? null : Math.max(0, clock.now() - at)
}

function thinks({ thinking }: JsonObject, { profile }: TurnHost): boolean {
  if (isObject(thinking)) return thinking.type !== 'disabled'
  return profile.thinking.whenAbsent !== 'disabled'
}

function modeOf({ thinking }: JsonObject): ThinkingMode | null {
  return isObject(thinking) && typeof thinking.type === 'string' ? (thinking.type as ThinkingMode) : null
}

const prefixes = new WeakMap<Epoch, { readonly estimator: Estimator; readonly tokens: number }>()

/** Of the epoch that stands; before the first, of the tools that would be declared. */
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

// A session that was opened again: what its log tells of the cache is read before anything is decided by it. Taken
// for cold, a warm cache would be rewritten for nothing, and what was deleted from it would come back.

/** With the edge where the last request had it: what is cleared next is read up to there. */
function withCache<State extends SessionState>(state: State, host: TurnHost): State {
  const { standing } = state.told
  if (state.lineage !== null || standing === null) return state
  const { edge, lineage } = nextRequest(state, standing, host).state
  return { ...state, edge, lineage }
}

/** Before the first request since then, the next one stands in: its markers stand where those of the last did. */
function lastRequest(state: SessionState, host: TurnHost): AssembledRequest | null {
  const { standing } = state.told
  if (state.sent !== null || standing === null) return state.sent
  return nextRequest(state, standing, host).request
}

// Has anything come since the last compaction? Another one would do nothing before it has.

/** The newest act is a compaction, and nothing has been said behind what it wrote. */
export function isJustCompacted({ view, answered }: SessionState): boolean {
  const act = view.acts.at(-1)
  return act?.kind === 'compact' && answered <= view.rewrittenAt && !hasNewWords(view)
}

function hasNewWords({ entries, rewrittenAt, acts }: SessionState['view']): boolean {
  const batch = acts.at(-1)?.batch ?? null
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= rewrittenAt) return false
    const { record } = entry
    const isOwn = batch !== null && record.batch?.id === batch
    if (!isOwn && (record.type === 'user' || record.type === 'assistant')) return true
  }
  return false
}

// Acts that were taken back since the person last spoke: what starts by itself waits, and the model is told once.

export const UNDO_NOTICE = 'undo_notice'

/** An act was undone and the person has not spoken since. */
export function isWaitingForPrompt(view: View): boolean {
  return undoneSincePrompt(view).length > 0
}

/** An act was undone, stands so, and no model has said anything since. `answered`: index of its newest words. */
export function isJustUndone({ entries, undone, rewrittenAt }: View, answered: number): boolean {
  if (undone.length === 0) return false
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= answered || entry.index < rewrittenAt) return false
    if (isUndoing(entry)) return true
  }
  return false
}

function isUndoing({ record }: Entry): boolean {
  const subtype = record.type === 'system' ? record.subtype : undefined
  return subtype === 'compact_undone' || subtype === 'clear_undone'
}

/** The person has spoken behind the record at `index`. */
export function hasPromptSince({ entries }: View, index: number): boolean {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= index) return false
    if (isPrompt(entry.record)) return true
  }
  return false
}

/** The undoings behind the newest prompt that no notice tells of yet. */
export function untoldUndoings(view: View): readonly Entry[] {
  return undoneSincePrompt(view)
}

/** Nothing is looked for where nothing was ever undone: a turn may be long. */
function undoneSincePrompt({ entries, undone, rewrittenAt }: View): readonly Entry[] {
  const found: Entry[] = []
  if (undone.length === 0) return found
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || isPrompt(entry.record) || entry.index < rewrittenAt) break
    if (entry.record.type === 'attachment' && entry.record.attachment.type === UNDO_NOTICE) break
    if (isUndoing(entry)) found.unshift(entry)
  }
  return found
}

/** One line for the model, with the prompt that comes next. */
export function undoNotice(undoings: readonly Entry[]): string {
  const isCompaction = undoings.some(
    ({ record }) => record.type === 'system' && record.subtype === 'compact_undone',
  )
  return isCompaction
    ? 'The compaction of this conversation was undone: the messages above are the original ones again.'
    : 'The clearing of old tool results was undone: the results above are the original ones again.'
}

/** The plan for a session as it stands: everything a decision rests on, gathered in one place. */
import type { CacheTemperature } from '../../clear/temperature.ts'
import { isObject, type JsonObject } from '../../conversation/json.ts'
import type { Epoch } from '../../conversation/record.ts'
import { recordAt } from '../../conversation/tree.ts'
import type { Estimator } from '../../measure/estimate.ts'
import { type Rates, ratesFor } from '../../measure/prices.ts'
import type { ContextTokens } from '../../measure/usage.ts'
import { cacheTemperature } from '../../plan/cache-temperature.ts'
import { callsToCome } from '../../plan/call-runs.ts'
import { contextSize } from '../../plan/context-size.ts'
import { type Plan, plan } from '../../plan/plan.ts'
import type { Moment, PlanContext } from '../../plan/plan-context.ts'
import { mechanismStates } from '../../policy/mechanisms.ts'
import type { ThinkingMode } from '../../policy/profile.ts'
import { NO_SWITCHES } from '../../policy/switches.ts'
import { NO_LINEAGE } from '../../prompt/lineage.ts'
import { ttlFor } from '../../prompt/ttl.ts'
import { openCalls } from '../../view/settle.ts'
import { namesEditBetas, withOwnBetas } from '../own-betas.ts'
import type { SessionState } from '../session-state.ts'
import type { TurnHost } from '../turn-host.ts'
import { advanceTally } from './call-tally.ts'
import { isJustCompacted } from './just-compacted.ts'
import { lastRequest, withCache } from './recall-cache.ts'
import type { Room } from './room.ts'
import { advanceRoom, type RoomState } from './room-state.ts'
import { hasPromptSince, isJustUndone, isWaitingForPrompt } from './undone-since.ts'

export interface Planned extends Known {
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

export type RoomyState = SessionState & { readonly room: RoomState }

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

export function ratesNow({ pricesOf, offered, clock }: TurnHost, tokens: number): Rates | null {
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

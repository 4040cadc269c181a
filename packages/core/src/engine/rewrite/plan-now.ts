/** The plan for a session as it stands: everything a decision rests on, gathered in one place. */
import { deletedTokens } from '../../clear/cached.ts'
import type { CacheTemperature } from '../../clear/temperature.ts'
import { isObject, type JsonObject } from '../../conversation/json.ts'
import type { Epoch } from '../../conversation/record.ts'
import { recordAt } from '../../conversation/tree.ts'
import type { Estimator } from '../../measure/estimate.ts'
import { type Rates, ratesFor } from '../../measure/prices.ts'
import type { ContextTokens } from '../../measure/usage.ts'
import { cacheTemperature } from '../../plan/cache-temperature.ts'
import { readMeter } from '../../plan/meter.ts'
import { type Plan, plan } from '../../plan/plan.ts'
import type { Moment, PlanContext } from '../../plan/plan-context.ts'
import { mechanismStates } from '../../policy/mechanisms.ts'
import type { ThinkingMode } from '../../policy/profile.ts'
import { NO_SWITCHES } from '../../policy/switches.ts'
import { NO_LINEAGE } from '../../prompt/lineage.ts'
import { ttlFor } from '../../prompt/ttl.ts'
import { openCalls } from '../../view/settle.ts'
import type { SessionState } from '../session-state.ts'
import type { TurnHost } from '../turn-host.ts'
import type { Room } from './room.ts'
import { advanceRoom, type RoomState } from './room-state.ts'
import { isWaitingForPrompt } from './undone-since.ts'

export interface Planned {
  readonly plan: Plan
  readonly context: PlanContext
  readonly state: SessionState
}

export function planNow(state: SessionState, host: TurnHost, room: Room, moment: Moment): Planned {
  const known = withRoom(state, room)
  const context = planContext(known, host, { room, moment })
  return { plan: plan(context), context, state: known }
}

export type RoomyState = SessionState & { readonly room: RoomState }

export function withRoom(state: SessionState, room: Room): RoomyState {
  return { ...state, room: advanceRoom(state.room, state.view, room) }
}

/** How full the window is now. */
export function measureNow(state: SessionState, host: TurnHost, room: Room): ContextTokens {
  const { room: known } = withRoom(state, room)
  return readMeter(known.meter, {
    calibration: known.meter.calibration,
    policy: host.policy.estimate,
    stripsThinking: host.profile.thinking.stripsFinishedTurns,
    prefix: () => prefixTokens(state, host, room.estimator),
    deleted: deletedTokens(known.register),
  })
}

interface Asked {
  readonly room: Room
  readonly moment: Moment
}

function planContext(state: RoomyState, host: TurnHost, { room, moment }: Asked): PlanContext {
  const { policy, profile, source, switches } = host
  const { register, meter, breaker, outlook } = state.room
  const tokens = measureNow(state, host, room).expected
  const { tools, parameters } = host.offered()
  const ttl = ttlNow(state, host)
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
    cache: temperature(state, host, { ttl, tokens }),
    rates: ratesNow(host, tokens),
    write: ttl === '1h' ? 'write1h' : 'write5m',
    idleMs: idleMs(state, host),
    retrieval: room.retrieval,
    tools: tools.flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
    thinks: thinks(parameters, host),
    thinkingMode: modeOf(parameters),
    tracking: {
      failures: breaker.failures,
      openCalls: openCalls(state.flat).length,
      waitsForPrompt: isWaitingForPrompt(state.view),
      justCompacted: isJustCompacted(state),
    },
    deletedTokens: deletedTokens(register),
    ...(outlook === null ? {} : { outlook }),
  }
}

function temperature(
  state: SessionState,
  { profile, policy, clock }: TurnHost,
  { ttl, tokens }: { readonly ttl: string | null; readonly tokens: number },
): CacheTemperature {
  return cacheTemperature({
    lineage: state.lineage ?? NO_LINEAGE,
    sent: state.sent,
    flat: state.flat,
    profile,
    policy: policy.clear,
    ttl,
    now: clock.now(),
    contextTokens: tokens,
  })
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

/** The newest act is a compaction, and nothing has been said behind what it wrote. */
function isJustCompacted({ view, answered }: SessionState): boolean {
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

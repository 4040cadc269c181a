/** The request that would go out now, with what the cache will answer of it. */
import { firstClearable } from '../clear/candidates.ts'
import { spellEdits } from '../clear/provider-edit.ts'
import { SAMPLE_ID, stubOf } from '../clear/stub.ts'
import type { JsonObject } from '../conversation/json.ts'
import { mechanismStates } from '../policy/mechanisms.ts'
import { NO_SWITCHES } from '../policy/switches.ts'
import { type AssembledRequest, type AssembleQuestion, assembleRequest } from '../prompt/assemble.ts'
import { type HeldEdge, holdEdge } from '../prompt/edge.ts'
import { type Forecast, forecastRead } from '../prompt/forecast.ts'
import { frontOf } from '../prompt/front.ts'
import { recallLineage } from '../prompt/recall.ts'
import { requestFindings } from '../prompt/spell.ts'
import type { StandingEpoch } from '../prompt/told.ts'
import { ttlFor } from '../prompt/ttl.ts'
import { advanceCheck, type Checked, startCheck } from '../view/checked.ts'
import type { Finding } from '../view/validate/finding.ts'
import { carriersEndOf } from './carriers-end.ts'
import { diagnosisAsked } from './diagnosis.ts'
import { advanceRoom } from './rewrite/room-state.ts'
import type { SessionState } from './session-state.ts'
import type { TurnHost } from './turn-host.ts'

export interface NextRequest {
  readonly request: AssembledRequest
  readonly forecast: Forecast
  /** What the provider would refuse it for. */
  readonly findings: readonly Finding[]
  readonly state: SessionState
}

/** `standing`: the epoch of `state`. Appends nothing. */
export function nextRequest(state: SessionState, standing: StandingEpoch, host: TurnHost): NextRequest {
  const { profile, clock } = host
  const edge = edgeOf(state, host)
  const question = questionOf({ ...state, edge }, standing, host)
  const request = assembleRequest(question, state.sent ?? undefined)
  const checked = checkedOf(state, request, host)
  const lineage = state.lineage ?? recallLineage(question, state.view)
  return {
    request,
    forecast: forecastRead(lineage, { request, now: clock.now(), profile }),
    findings: requestFindings(checked, request),
    state: { ...state, edge, checked, lineage },
  }
}

function questionOf(state: SessionState, standing: StandingEpoch, host: TurnHost): AssembleQuestion {
  const { profile, source, policy, switches = NO_SWITCHES } = host
  const { caching, clear } = mechanismStates(policy, switches)
  const { isUserTool } = host.offered()
  return {
    front: frontOf(standing, { previous: state.sent?.front, isUserTool }),
    flat: state.flat,
    profile,
    markers: policy.cache.markers,
    ttl: caching.on
      ? ttlFor(standing.epoch.ttl, source, { policy: policy.cache, cache: profile.cache })
      : null,
    clears: clear.on,
    edge: state.edge,
    carriersEnd: carriersEndOf(state.view, state.session),
    extra: { ...diagnosisAsked(state, host), ...editsAsked(state, host) },
  }
}

function edgeOf(state: SessionState, host: TurnHost): HeldEdge {
  const { rewrittenAt } = state.view
  const first = host.firstClearable?.(state) ?? clearableFirst(state, host)
  const isAnswered = state.answered > rewrittenAt
  return holdEdge(state.edge, { firstClearable: first, rewrittenAt, isAnswered, flat: state.flat })
}

/** Of the view as it is now: what was planned by may have been cleared since. */
function clearableFirst({ room: known, view, pins }: SessionState, { room }: TurnHost): string | null {
  if (room === undefined) return null
  const { register } = advanceRoom(known, view, room)
  return firstClearable(register, [...pins], stubOf(SAMPLE_ID, room.retrieval))
}

/** What the provider is asked to clear by itself. */
function editsAsked({ native }: SessionState, { profile }: TurnHost): JsonObject {
  const edits = native === null ? [] : spellEdits(native.edits, profile.contextEdits)
  return edits.length === 0 ? {} : { context_management: { edits } }
}

function checkedOf(
  { checked }: SessionState,
  { messages }: AssembledRequest,
  { profile }: TurnHost,
): Checked {
  return advanceCheck(checked?.state.profile === profile ? checked : startCheck(profile), messages)
}

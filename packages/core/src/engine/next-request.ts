/** The request that would be sent now, validated, with the forecast of its cache read. */

import { type Forecast, forecastRead, recallLineage } from '../cache/cache-forecast.ts'
import { spellEdits } from '../clearing/provider-clearing.ts'
import { firstClearable, SAMPLE_ID, stubOf } from '../clearing/select-results.ts'
import type { View } from '../context/context-view.ts'
import type { JsonObject } from '../log/json.ts'
import { isKnown } from '../log/record.ts'
import { recordAt, type Session } from '../log/session.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import type { StandingEpoch } from '../request/announced-prefix.ts'
import {
  type AssembledRequest,
  type AssembleQuestion,
  assembleRequest,
  requestFindings,
} from '../request/build-request.ts'
import { type HeldEdge, holdEdge } from '../request/cache-markers.ts'
import { ttlFor } from '../request/cache-ttl.ts'
import { frontOf } from '../request/prefix.ts'
import type { Finding } from '../validate/finding.ts'
import { advanceCheck, type Checked, startCheck } from '../validate/validate.ts'
import type { TurnHost } from './host.ts'
import { advanceRoom, type SessionState } from './session-state.ts'

export interface NextRequest {
  readonly request: AssembledRequest
  readonly forecast: Forecast
  /** Provider rules that it breaks. */
  readonly findings: readonly Finding[]
  readonly state: SessionState
}

/** Builds the request; appends nothing. `standing`: the current prefix of `state`. */
export function nextRequest(state: SessionState, standing: StandingEpoch, host: TurnHost): NextRequest {
  const { profile, clock } = host
  const edge = holdRequestEdge(state, host)
  const question = toAssembleQuestion({ ...state, edge }, standing, host)
  const request = assembleRequest(question, state.sent ?? undefined)
  const checked = checkMessages(state, request, host)
  const lineage = state.lineage ?? recallLineage(question, state.view)
  return {
    request,
    forecast: forecastRead(lineage, { request, now: clock.now(), profile }),
    findings: requestFindings(checked, request),
    state: { ...state, edge, checked, lineage },
  }
}

function toAssembleQuestion(state: SessionState, standing: StandingEpoch, host: TurnHost): AssembleQuestion {
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

function holdRequestEdge(state: SessionState, host: TurnHost): HeldEdge {
  const { rewrittenAt } = state.view
  const first = host.firstClearable?.(state) ?? clearableFirst(state, host)
  const isAnswered = state.answered > rewrittenAt
  return holdEdge(state.edge, { firstClearable: first, rewrittenAt, isAnswered, flat: state.flat })
}

/** Of the context as it is now: results in the last plan may have been cleared since. */
function clearableFirst({ room: known, view, pins }: SessionState, { room }: TurnHost): string | null {
  if (room === undefined) return null
  const { register } = advanceRoom(known, view, room)
  return firstClearable(register, [...pins], stubOf(SAMPLE_ID, room.retrieval))
}

/** The clearing that the provider is asked to do by itself. */
function editsAsked({ native }: SessionState, { profile }: TurnHost): JsonObject {
  const edits = native === null ? [] : spellEdits(native.edits, profile.contextEdits)
  return edits.length === 0 ? {} : { context_management: { edits } }
}

function checkMessages(
  { checked }: SessionState,
  { messages }: AssembledRequest,
  { profile }: TurnHost,
): Checked {
  return advanceCheck(checked?.state.profile === profile ? checked : startCheck(profile), messages)
}

/**
 * The last of the context sources that a compaction put before its summary, since what is unchanged there stays
 * cached; null if there are none. Read off the log, so never outdated.
 */
export function carriersEndOf(view: View, session: Session): string | null {
  const act = view.acts.findLast(({ kind }) => kind === 'compact')
  let end: string | null = null
  for (
    let position = (act?.position ?? Number.POSITIVE_INFINITY) + 1;
    position < view.branch.length;
    position += 1
  ) {
    const record = recordAt(session, view.branch.at(position) ?? 0)
    if (record.uuid === act?.summary) break
    if (record.type === 'attachment') end = record.uuid ?? null
  }
  return end
}

/** The field that asks the provider to compare a request with the one before; empty if it cannot or policy forbids. */
export function diagnosisAsked(state: SessionState, { profile, policy }: TurnHost): JsonObject {
  if (!profile.capabilities.cacheDiagnostics || !policy.cache.breaks.askProvider) return {}
  return { diagnostics: { previous_message_id: newestResponse(state) } }
}

/** From the log, so that every process sends the same. */
function newestResponse({ session, answered }: SessionState): string | null {
  if (answered < 0) return null
  const record = recordAt(session, answered)
  return isKnown(record) && record.type === 'assistant' ? record.message.id : null
}

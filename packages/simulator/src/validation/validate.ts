/**
 * The provider's validation: shape first, then the rules, the first breach found is the answer. Written from
 * the provider's published behaviour alone, so that what the engine holds to be valid can be tested against it.
 */

import { invalid, type Refusal, refusal } from '../protocol/answer.ts'
import { BETA, type MessagesBody } from '../protocol/api.ts'
import { type Markers, markersOf } from '../protocol/cache-markers.ts'
import type { ModelTable, SimulatedModel } from '../protocol/models.ts'
import {
  compactionAlone,
  compactionModel,
  compactTrigger,
  editedThinking,
  editingModel,
  editOrder,
  somethingToCompact,
} from './edit-rules.ts'
import { deferredMarked, emptyMarked, markerCount, markerOrder, media } from './limit-rules.ts'
import {
  deferredTools,
  newerVersion,
  outputLength,
  preWarm,
  sampling,
  stopSequences,
  thinkingBudget,
  thinkingFirst,
  thinkingTemperature,
  thinkingType,
  toolChoice,
  toolNames,
  toolsDeclared,
} from './parameter-rules.ts'
import { countBody, createBody } from './request-shape.ts'
import {
  blocksAtHome,
  clearAt,
  contentNotEmpty,
  endsInThinking,
  firstRole,
  messageEffort,
  notEmpty,
  outputConfigHome,
  prefill,
  systemPlacement,
  textNotEmpty,
  turnScoped,
} from './role-rules.ts'
import { type CheckedRequest, type Rule, type RuleSettings, turnsOf } from './rule.ts'
import { describe, type Gate } from './shape.ts'
import {
  pairedCalls,
  serverCallsHaveResults,
  serverResultsHaveCalls,
  toolChanges,
  uniqueCalls,
} from './tool-rules.ts'

const RULES: readonly Rule[] = [
  outputLength,
  sampling,
  preWarm,
  thinkingType,
  thinkingBudget,
  thinkingTemperature,
  toolNames,
  deferredTools,
  toolChoice,
  stopSequences,
  editOrder,
  editedThinking,
  editingModel,
  compactTrigger,
  compactionModel,
  compactionAlone,
  somethingToCompact,
  notEmpty,
  firstRole,
  clearAt,
  outputConfigHome,
  messageEffort,
  turnScoped,
  systemPlacement,
  contentNotEmpty,
  emptyMarked,
  textNotEmpty,
  blocksAtHome,
  toolChanges,
  newerVersion,
  deferredMarked,
  markerCount,
  markerOrder,
  uniqueCalls,
  pairedCalls,
  serverResultsHaveCalls,
  serverCallsHaveResults,
  toolsDeclared,
  endsInThinking,
  prefill,
  thinkingFirst,
  media,
]

export type Endpoint = CheckedRequest['endpoint']

export type ShapeOutcome =
  | { readonly ok: true; readonly body: MessagesBody; readonly model: SimulatedModel }
  | { readonly ok: false; readonly refusal: Refusal }

/** Is it a request at all, and to a model there is? */
export function checkShape(
  value: unknown,
  gate: Gate,
  where: { readonly endpoint: Endpoint; readonly models: ModelTable },
): ShapeOutcome {
  const gated = ungatedParameter(value, gate)
  if (gated !== null) return { ok: false, refusal: gated }
  const found = (where.endpoint === 'messages' ? createBody : countBody)(value, gate)
  if (found !== null) return { ok: false, refusal: invalid(describe(found)) }
  // The shape has just been checked.
  const body = value as MessagesBody
  const model = where.models.find(body.model)
  if (model === undefined) return { ok: false, refusal: refusal(404, `model: ${body.model}`) }
  return { ok: true, body, model }
}

/** Two parameters have an error of their own when their header is missing. */
function ungatedParameter(value: unknown, gate: Gate): Refusal | null {
  if (typeof value !== 'object' || value === null) return null
  if ('compaction' in value && value.compaction !== null && !gate.betas.has(BETA.onDemandCompaction))
    return invalid(`compaction: this parameter requires anthropic-beta: ${BETA.onDemandCompaction}`)
  if ('thread' in value && value.thread !== null && !gate.betas.has(BETA.threads))
    return invalid(`thread: this parameter requires anthropic-beta: ${BETA.threads}`)
  return null
}

export interface RuleInput {
  readonly body: MessagesBody
  readonly gate: Gate
  readonly model: SimulatedModel
  readonly endpoint: Endpoint
  readonly settings: RuleSettings
}

export type RuleOutcome =
  | { readonly ok: true; readonly markers: Markers }
  | { readonly ok: false; readonly refusal: Refusal }

export function checkRules(input: RuleInput): RuleOutcome {
  const markers = markersOf(input.body)
  const request = { ...input, turns: turnsOf(input.body.messages), markers }
  for (const rule of RULES) {
    const found = rule(request)
    if (found !== null) return { ok: false, refusal: found }
  }
  return { ok: true, markers }
}

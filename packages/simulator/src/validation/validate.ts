/**
 * The provider's validation: first the shape, then the rules in order; the first violation becomes the response.
 * Written only from the provider's published behaviour, so that the engine's own checks can be tested against it.
 */

import { type ApiResult, invalid, type Refusal, refusal, reject } from '../protocol/answer.ts'
import { BETA, isObject, type MessagesBody, piecesOf } from '../protocol/api.ts'
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
import { type CheckedRequest, type Rule, turnsOf } from './rule.ts'
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

/** Checks that the body has the shape of a request to this endpoint and names a known model. */
export function checkShape(
  value: unknown,
  features: Gate,
  endpoint: Endpoint,
  models: ModelTable,
): ApiResult<{ body: MessagesBody; model: SimulatedModel }> {
  const gated = ungatedParameter(value, features)
  if (gated !== null) return reject(gated)
  const found = (endpoint === 'messages' ? createBody : countBody)(value, features)
  if (found !== null) return reject(invalid(describe(found)))
  // The cast holds because the shape has just been checked.
  const body = value as MessagesBody
  const model = models.find(body.model)
  return model === undefined ? reject(refusal(404, `model: ${body.model}`)) : { ok: true, body, model }
}

/** Two parameters have their own error when the beta they need is missing. */
function ungatedParameter(value: unknown, features: Gate): Refusal | null {
  if (!isObject(value)) return null
  for (const [name, beta] of [
    ['compaction', BETA.onDemandCompaction],
    ['thread', BETA.threads],
  ] as const)
    if (name in value && value[name] !== null && !features.betas.has(beta))
      return invalid(`${name}: this parameter requires anthropic-beta: ${beta}`)
  return null
}

/** Checks every rule. The markers of the request are returned because the cache needs them too. */
export function checkRules(
  input: Omit<CheckedRequest, 'turns' | 'pieces' | 'markers'>,
): ApiResult<{ markers: Markers }> {
  const { messages } = input.body
  const markers = markersOf(input.body)
  const request = { ...input, turns: turnsOf(messages), pieces: piecesOf(messages), markers }
  for (const rule of RULES) {
    const found = rule(request)
    if (found !== null) return reject(found)
  }
  return { ok: true, markers }
}

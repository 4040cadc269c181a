/**
 * The provider's validation: checks the shape of a request, then the validation rules in order. The first violation
 * is the error response. The code follows only the provider's published behaviour, so that the engine's own checks
 * can be tested against it.
 */

import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import {
  type ApiError,
  type ApiResult,
  createApiError,
  createInvalidRequestError,
  toRejection,
} from '../protocol/answer.ts'
import { type CacheMarkers, findCacheMarkers } from '../protocol/cache-markers.ts'
import { BETA_NAMES, isObject, listMessageBlocks, type MessagesBody } from '../protocol/messages-request.ts'
import type { ModelTable, SimulatedModel } from '../protocol/models.ts'
import {
  checkCompactionContent,
  checkCompactionParameters,
  checkCompactionSupport,
  checkCompactTrigger,
  checkEditSupport,
  checkThinkingEditFirst,
  checkThinkingEditNeedsThinking,
} from './context-edit-rules.ts'
import {
  checkDeferredToolMarkers,
  checkImageLimits,
  checkMarkedTextNotEmpty,
  checkMarkerCount,
  checkMarkerTtlOrder,
} from './marker-and-image-rules.ts'
import {
  checkBlockRoles,
  checkClearAtRole,
  checkContentNotEmpty,
  checkFirstRole,
  checkHasMessage,
  checkMessageEffort,
  checkNoFinalThinking,
  checkOutputConfigRole,
  checkPrefill,
  checkSystemMessages,
  checkTextNotEmpty,
  checkTurnScopedMessages,
} from './message-rules.ts'
import {
  checkCacheWarming,
  checkDeferredToolCount,
  checkMaxTokens,
  checkRemovedBlocks,
  checkSamplingSupport,
  checkStopSequences,
  checkThinkingBudget,
  checkThinkingTemperature,
  checkThinkingType,
  checkToolChoice,
  checkToolsDeclared,
  checkTurnStartsWithThinking,
  checkUniqueToolNames,
} from './parameter-rules.ts'
import { countTokensBodyShape, messagesBodyShape } from './request-shape.ts'
import { CHARACTERS_PER_BLOCK, groupTurns, type RequestRule, type RuleContext } from './rule.ts'
import { type ApiFeatures, formatShapeError } from './shape.ts'
import {
  checkServerToolCalls,
  checkServerToolResults,
  checkToolChanges,
  checkToolPairing,
  checkUniqueCallIds,
} from './tool-rules.ts'

const RULES_IN_ORDER: readonly RequestRule[] = [
  checkMaxTokens,
  checkSamplingSupport,
  checkCacheWarming,
  checkThinkingType,
  checkThinkingBudget,
  checkThinkingTemperature,
  checkUniqueToolNames,
  checkDeferredToolCount,
  checkToolChoice,
  checkStopSequences,
  checkThinkingEditFirst,
  checkThinkingEditNeedsThinking,
  checkEditSupport,
  checkCompactTrigger,
  checkCompactionSupport,
  checkCompactionParameters,
  checkCompactionContent,
  checkHasMessage,
  checkFirstRole,
  checkClearAtRole,
  checkOutputConfigRole,
  checkMessageEffort,
  checkTurnScopedMessages,
  checkSystemMessages,
  checkContentNotEmpty,
  checkMarkedTextNotEmpty,
  checkTextNotEmpty,
  checkBlockRoles,
  checkToolChanges,
  checkRemovedBlocks,
  checkDeferredToolMarkers,
  checkMarkerCount,
  checkMarkerTtlOrder,
  checkUniqueCallIds,
  checkToolPairing,
  checkServerToolResults,
  checkServerToolCalls,
  checkToolsDeclared,
  checkNoFinalThinking,
  checkPrefill,
  checkTurnStartsWithThinking,
  checkImageLimits,
]

export type MessagesEndpoint = RuleContext['endpoint']

/** Checks that the body has the shape of a request to this endpoint and names a known model. */
export function checkRequestShape(
  value: unknown,
  features: ApiFeatures,
  endpoint: MessagesEndpoint,
  models: ModelTable,
): ApiResult<{ body: MessagesBody; model: SimulatedModel }> {
  const gated = findMissingBeta(value, features)
  if (gated !== null) return toRejection(gated)
  const found = (endpoint === 'messages' ? messagesBodyShape : countTokensBodyShape)(value, features)
  if (found !== null) return toRejection(createInvalidRequestError(formatShapeError(found)))
  // The cast is safe because the shape has just been checked.
  const body = value as MessagesBody
  const model = models.find(body.model)
  return model === undefined
    ? toRejection(createApiError(404, `model: ${body.model}`))
    : { ok: true, body, model }
}

/** Returns an error if `compaction` or `thread` is used without its beta. Both have their own error text. */
function findMissingBeta(value: unknown, features: ApiFeatures): ApiError | null {
  if (!isObject(value)) return null
  for (const [name, beta] of [
    ['compaction', BETA_NAMES.onDemandCompaction],
    ['thread', BETA_NAMES.threads],
  ] as const)
    if (name in value && value[name] !== null && !features.betas.has(beta))
      return createInvalidRequestError(`${name}: this parameter requires anthropic-beta: ${beta}`)
  return null
}

/**
 * Checks all rules, one per step, up to the first violation. Returns the cache markers, because the prompt cache needs
 * them, too.
 */
export function* checkRequestRules(
  input: Omit<RuleContext, 'turns' | 'pieces' | 'markers'>,
): WorkInSteps<ApiResult<{ markers: CacheMarkers }>> {
  const { messages } = input.body
  const markers = findCacheMarkers(input.body)
  const pieces = listMessageBlocks(messages)
  const weight = pieces.length * CHARACTERS_PER_BLOCK
  yield weight
  const request = { ...input, turns: groupTurns(messages), pieces, markers }
  for (const rule of RULES_IN_ORDER) {
    yield weight
    const found = rule(request)
    if (found !== null) return toRejection(found)
  }
  return { ok: true, markers }
}

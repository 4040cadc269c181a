/**
 * Checks a request against the rules of the provider's profile. Every payload that is sent has no findings (the wire law).
 *
 * What a request alone cannot show, and what is therefore not checked: whether a signature is genuine, whether thinking
 * still follows the bytes it is bound to, how many tokens the request has, whether a tool of old calls still exists.
 */

import type { FlattenedContext, TracedMessage } from '../context/flatten.ts'
import type { Payload } from '../context/payload.ts'
import { isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import {
  type CacheState,
  checkBlock,
  checkImages,
  checkMarkers,
  checkMessageMarkers,
  checkSizes,
  countMessage,
  type PlacedMarker,
  type SizeState,
  START_CACHE,
  START_SIZE,
  withPlacedMarkers,
} from './content-rules.ts'
import { createReport, type Finding, parseMessage, type RawFields } from './finding.ts'
import {
  type CallState,
  checkCalls,
  checkLastMessage,
  checkLastThinking,
  checkRole,
  checkSystemMessage,
  checkThinking,
  checkToolChanges,
  checkUsedTools,
  type RoleState,
  reportMissingResults,
  START_CALLS,
  START_ROLES,
  START_SYSTEM,
  START_THINKING,
  START_TOOL_CHANGES,
  type SystemState,
  type ThinkingState,
  type ToolChanges,
} from './message-rules.ts'
import {
  type BetaState,
  checkBetas,
  checkCompaction,
  checkCompactionBlocks,
  checkRequestFields,
  findBetaUses,
  type SignedSummary,
  START_BETAS,
} from './request-rules.ts'

/** Never throws, whatever `payload` is. Findings about the request come first, then those about the messages, in order. */
export function validate(payload: Payload, profile: ProviderProfile): readonly Finding[] {
  const request: unknown = payload
  const found: Finding[] = []
  const report = createReport((finding) => found.push(finding))
  if (!isObject(request)) {
    report('payload-shape', '')
    return found
  }
  checkRequestFields(request, { profile, report })
  const { messages } = request
  if (!Array.isArray(messages)) {
    report('messages-shape', 'messages')
    return found
  }
  let state = startMessageCheck(profile)
  for (const message of messages) state = checkMessage(state, message)
  return [...found, ...finishMessageCheck(state, request)]
}

/** The findings about everything but the messages. */
export function checkRequest(request: RawFields, profile: ProviderProfile): readonly Finding[] {
  const found: Finding[] = []
  checkRequestFields(request, { profile, report: createReport((finding) => found.push(finding)) })
  return found
}

// Messages are checked one by one, and the state after any number of them is a value: checking can continue from it any
// number of times. So messages that no longer change are checked once. What depends on the rest of the request is
// checked at the end.

export interface MessageCheck {
  readonly profile: ProviderProfile
  /** Findings that stand, whatever follows. */
  readonly findings: AppendList<Finding>
  /** Messages, bytes and images so far. */
  readonly size: SizeState
  readonly roles: RoleState
  readonly system: SystemState
  readonly calls: CallState
  readonly toolChanges: ToolChanges
  readonly thinking: ThinkingState
  readonly cache: CacheState
  readonly summary: SignedSummary
  readonly betas: BetaState
}

export function startMessageCheck(profile: ProviderProfile): MessageCheck {
  return {
    profile,
    findings: AppendList.of(),
    size: START_SIZE,
    roles: START_ROLES,
    system: START_SYSTEM,
    calls: START_CALLS,
    toolChanges: START_TOOL_CHANGES,
    thinking: START_THINKING,
    cache: START_CACHE,
    summary: null,
    betas: START_BETAS,
  }
}

/** Checks the next message; its index is the number of messages checked before. */
export function checkMessage(state: MessageCheck, message: unknown): MessageCheck {
  const { profile } = state
  let { findings } = state
  const report = createReport((finding) => {
    findings = findings.push(finding)
  })
  const rules = { profile, report }
  const parsed = parseMessage(message, state.size.messages, report)
  const size = countMessage(state.size, message, rules)
  if (parsed === null) return { ...state, size, findings }
  for (const item of parsed.blocks) checkBlock(item, parsed.role, rules)
  const next = {
    profile,
    size: checkImages(size, parsed, rules),
    roles: checkRole(state.roles, parsed, rules),
    system: checkSystemMessage(state.system, parsed, rules),
    calls: checkCalls(state.calls, parsed, rules),
    toolChanges: checkToolChanges(state.toolChanges, parsed, rules),
    thinking: checkThinking(state.thinking, parsed, rules),
    cache: checkMessageMarkers(state.cache, parsed, rules),
    summary: checkCompactionBlocks(state.summary, parsed, rules),
    betas: findBetaUses(state.betas, parsed, rules),
  }
  return { ...next, findings }
}

/** All findings about the messages checked so far, if `request` were sent with them. `placed`: markers added only now. */
export function finishMessageCheck(
  state: MessageCheck,
  request: RawFields,
  placed: readonly PlacedMarker[] = [],
): readonly Finding[] {
  const { profile, calls, cache } = state
  const found = state.findings.toArray()
  const rules = { profile, report: createReport((finding) => found.push(finding)) }
  reportMissingResults(calls, rules)
  checkLastMessage(state.roles, request, calls, rules)
  checkLastThinking(state.thinking, request, rules)
  checkUsedTools(calls, state.toolChanges, request, rules)
  checkCompaction(state.summary, request, calls, rules)
  checkBetas(state.betas, request, rules)
  checkMarkers(withPlacedMarkers(cache, placed, rules), cache.target, request, rules)
  checkSizes(state.size, request, placed, rules)
  return found
}

// Incremental validation beside flattening: frozen messages are checked once, the tail every time.

/** The check of the frozen messages. */
export interface ValidationState {
  readonly frozen: AppendList<TracedMessage>
  readonly state: MessageCheck
}

export function startValidation(profile: ProviderProfile): ValidationState {
  return { frozen: AppendList.of(), state: startMessageCheck(profile) }
}

/** The check of the frozen messages of `flat`. Costs what was added since `checked`, unless the context was rewritten. */
export function updateValidation(
  checked: ValidationState,
  flat: Pick<FlattenedContext, 'frozen'>,
): ValidationState {
  const start = flat.frozen.extends(checked.frozen) ? checked : startValidation(checked.state.profile)
  let { state } = start
  for (let index = start.frozen.length; index < flat.frozen.length; index += 1) {
    state = checkMessage(state, flat.frozen.at(index)?.message)
  }
  return { frozen: flat.frozen, state }
}

/** What `validate` finds in `request` with the messages of `flat`, at the cost of its tail. */
export function validateContext(
  checked: ValidationState,
  flat: FlattenedContext,
  request: RawFields,
): readonly Finding[] {
  let { state } = checked
  for (const { message } of flat.tail) state = checkMessage(state, message)
  return [...checkRequest(request, state.profile), ...finishMessageCheck(state, request)]
}

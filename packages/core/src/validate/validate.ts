/**
 * Would the provider take this request? Its rules are the profile's; a request without findings is one that
 * keeps all of them, as far as the request alone can tell. Every payload that goes out has none (the wire law).
 *
 * What alone cannot tell: whether a signature is genuine, whether thinking still stands behind the bytes it
 * was bound to, how many tokens the whole is, whether a tool named in old calls still exists.
 */

import type { Flat, FlatMessage } from '../context/flatten.ts'
import type { Payload } from '../context/payload.ts'
import { isObject } from '../log/json.ts'
import { List } from '../log/persistent-collections.ts'
import type { Profile } from '../policy/provider-profile.ts'
import { createReport, type Fields, type Finding, readMessage } from './finding.ts'
import {
  type CacheState,
  countMessage,
  finishCache,
  finishSize,
  type PlacedMarker,
  placedBytes,
  type SizeState,
  startCache,
  startSize,
  stepCache,
  stepSize,
  withPlaced,
} from './limit-rules.ts'
import { finishCompaction, type SignedSummary, stepCompaction } from './provider-edit-rules.ts'
import { type BetaState, checkAround, checkBlock, finishBetas, stepBetas } from './request-rules.ts'
import {
  finishRoles,
  type RoleState,
  type SystemState,
  startRoles,
  startSystem,
  stepRoles,
  stepSystem,
} from './role-rules.ts'
import { finishThinking, startThinking, stepThinking, type ThinkingState } from './thinking-rules.ts'
import {
  type CallState,
  finishTools,
  reportUnanswered,
  startCalls,
  startToolChanges,
  stepCalls,
  stepToolChanges,
  type ToolChanges,
} from './tool-rules.ts'

/** Never throws, whatever `payload` is. Findings of the request come first, then those of the messages, as met. */
export function validate(payload: Payload, profile: Profile): readonly Finding[] {
  const request: unknown = payload
  const found: Finding[] = []
  const report = createReport((finding) => found.push(finding))
  if (!isObject(request)) {
    report('payload-shape', '')
    return found
  }
  checkAround(request, { profile, report })
  const { messages } = request
  if (!Array.isArray(messages)) {
    report('messages-shape', 'messages')
    return found
  }
  let state = startMessageCheck(profile)
  for (const message of messages) state = checkMessage(state, message)
  return [...found, ...finishMessages(state, request)]
}

/** The findings about everything but the messages: they stay the same as long as that does. */
export function checkRequest(request: Fields, profile: Profile): readonly Finding[] {
  const found: Finding[] = []
  checkAround(request, { profile, report: createReport((finding) => found.push(finding)) })
  return found
}

// The check of messages as a left fold, so that what was checked once is not looked at again: keep the state
// behind a prefix that will not change, and go on from it as often as you like. A state is a value; going on
// from it never changes it. What depends on the rest of the request is decided at the end.

export interface MessageCheck {
  readonly profile: Profile
  /** What is wrong for certain, whatever follows. */
  readonly findings: List<Finding>
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

export function startMessageCheck(profile: Profile): MessageCheck {
  return {
    profile,
    findings: List.of(),
    size: startSize,
    roles: startRoles,
    system: startSystem,
    calls: startCalls,
    toolChanges: startToolChanges,
    thinking: startThinking,
    cache: startCache,
    summary: null,
    betas: [],
  }
}

/** Checks the next message; its index is how many were checked before it. */
export function checkMessage(state: MessageCheck, message: unknown): MessageCheck {
  const { profile } = state
  let { findings } = state
  const report = createReport((finding) => {
    findings = findings.push(finding)
  })
  const rules = { profile, report }
  const read = readMessage(message, state.size.messages, report)
  const size = countMessage(state.size, message, rules)
  if (read === null) return { ...state, size, findings }
  for (const item of read.blocks) checkBlock(item, read.role, rules)
  const next = {
    profile,
    size: stepSize(size, read, rules),
    roles: stepRoles(state.roles, read, rules),
    system: stepSystem(state.system, read, rules),
    calls: stepCalls(state.calls, read, rules),
    toolChanges: stepToolChanges(state.toolChanges, read, rules),
    thinking: stepThinking(state.thinking, read, rules),
    cache: stepCache(state.cache, read, rules),
    summary: stepCompaction(state.summary, read, rules),
    betas: stepBetas(state.betas, read, rules),
  }
  return { ...next, findings }
}

/**
 * All findings about the messages, if `request` were sent with those checked so far. `placed`: cache markers
 * that come onto them only now.
 */
export function finishMessages(
  state: MessageCheck,
  request: Fields,
  placed: readonly PlacedMarker[] = [],
): readonly Finding[] {
  const { profile, calls, cache } = state
  const findings = state.findings.toArray()
  const rules = { profile, report: createReport((finding) => findings.push(finding)) }
  reportUnanswered(calls, rules)
  finishRoles(state.roles, request, calls, rules)
  finishThinking(state.thinking, request, rules)
  finishTools(calls, state.toolChanges, request, rules)
  finishCompaction(state.summary, request, calls, rules)
  finishBetas(state.betas, request, rules)
  finishCache(withPlaced(cache, placed, rules), cache.target, request, rules)
  finishSize(state.size, request, placedBytes(placed), rules)
  return findings
}

// Validation that keeps pace with flattening: what is frozen is checked once, only the tail anew.

/** The check of the frozen messages, to go on from. */
export interface Checked {
  readonly frozen: List<FlatMessage>
  readonly state: MessageCheck
}

export function startCheck(profile: Profile): Checked {
  return { frozen: List.of(), state: startMessageCheck(profile) }
}

/** The check of `flat`, given that of an earlier state of it. */
export function advanceCheck(checked: Checked, flat: Pick<Flat, 'frozen'>): Checked {
  const start = flat.frozen.extends(checked.frozen) ? checked : startCheck(checked.state.profile)
  let { state } = start
  for (let index = start.frozen.length; index < flat.frozen.length; index += 1) {
    state = checkMessage(state, flat.frozen.at(index)?.message)
  }
  return { frozen: flat.frozen, state }
}

/** What `validate` would find in `request` with the messages of `flat`. */
export function findingsOf(checked: Checked, flat: Flat, request: Fields): readonly Finding[] {
  let { state } = checked
  for (const { message } of flat.tail) state = checkMessage(state, message)
  return [...checkRequest(request, state.profile), ...finishMessages(state, request)]
}

/**
 * Would the provider take this request? Its rules are the profile's; a request without findings is one that
 * keeps all of them, as far as the request alone can tell. Every payload that goes out has none (the wire law).
 *
 * What alone cannot tell: whether a signature is genuine, whether thinking still stands behind the bytes it
 * was bound to, how many tokens the whole is, whether a tool named in old calls still exists.
 */

import type { Flat } from '../context/flatten.ts'
import type { FlatMessage } from '../context/message-parts.ts'
import type { Payload } from '../context/payload.ts'
import { List } from '../log/append-list.ts'
import { isObject } from '../log/json.ts'
import type { Profile } from '../policy/provider-profile.ts'
import { type Fields, type Finding, isAbsent, type ReadMessage, type Report, readMessage } from './finding.ts'
import {
  type CacheState,
  countMessage,
  finishCache,
  finishSize,
  type PlacedMarker,
  type SizeState,
  startCache,
  startSize,
  stepCache,
  stepSize,
  withPlaced,
} from './limit-rules.ts'
import {
  type CompactionState,
  finishCompaction,
  startCompaction,
  stepCompaction,
} from './provider-edit-rules.ts'
import {
  type BetaState,
  betasOf,
  checkAround,
  checkBlock,
  contentRules,
  finishBetas,
  startBetas,
  stepBetas,
} from './request-rules.ts'
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
  checkDeclared,
  finishCalls,
  finishToolChanges,
  startCalls,
  startToolChanges,
  stepCalls,
  stepToolChanges,
  type ToolChanges,
} from './tool-rules.ts'

/** Never throws, whatever `payload` is. Those of the request come first, then those of the messages, as met. */
export function validate(payload: Payload, profile: Profile): readonly Finding[] {
  const request: unknown = payload
  if (!isObject(request)) return [{ code: 'payload-shape', path: '', message: 'Expected an object.' }]
  const findings = checkRequest(request, profile)
  const { messages } = request
  if (!Array.isArray(messages)) {
    return [
      ...findings,
      { code: 'messages-shape', path: 'messages', message: 'Expected a list of messages.' },
    ]
  }
  let state = startMessageCheck(profile)
  for (const message of messages) state = checkMessage(state, message)
  return [...findings, ...finishMessages(state, request)]
}

/** The findings about everything but the messages: they stay the same as long as that does. */
export function checkRequest(request: Fields, profile: Profile): readonly Finding[] {
  const findings: Finding[] = []
  const report: Report = (code, path, message) => {
    findings.push({ code, path, message })
  }
  checkAround(request, { profile, report })
  return findings
}

// The check of messages as a left fold, so that what was checked once is not looked at again: keep the state
// behind a prefix that will not change, and go on from it as often as you like. A state is a value; going on
// from it never changes it. What depends on the rest of the request is decided at the end.

export interface MessageCheck {
  readonly profile: Profile
  readonly idPattern: RegExp
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
  readonly compaction: CompactionState
  readonly betas: BetaState
}

export function startMessageCheck(profile: Profile): MessageCheck {
  return {
    profile,
    idPattern: new RegExp(profile.tools.idPattern),
    findings: List.of(),
    size: startSize,
    roles: startRoles,
    system: startSystem,
    calls: startCalls,
    toolChanges: startToolChanges,
    thinking: startThinking,
    cache: startCache,
    compaction: startCompaction,
    betas: startBetas(profile.betas),
  }
}

/** The check one message further. `message` is the next one; its index is how many were checked before it. */
export function checkMessage(state: MessageCheck, message: unknown): MessageCheck {
  let { findings } = state
  const report: Report = (code, path, text) => {
    findings = findings.push({ code, path, message: text })
  }
  const read = readMessage(message, state.size.messages, report)
  const size = countMessage(state.size, message, report)
  const after = read === null ? { ...state, size } : step({ ...state, size }, read, report)
  return { ...after, findings }
}

function step(state: MessageCheck, message: ReadMessage, report: Report): MessageCheck {
  const { profile, idPattern } = state
  const rules = { profile, report }
  const content = contentRules(profile, report)
  for (const item of message.blocks) checkBlock(item, message.role, content)
  return {
    ...state,
    size: stepSize(state.size, message, { sizes: profile.sizes, report }),
    roles: stepRoles(state.roles, message, rules),
    system: stepSystem(state.system, message, rules),
    calls: stepCalls(state.calls, message, { idPattern, resultsFirst: profile.tools.resultsFirst, report }),
    toolChanges: stepToolChanges(state.toolChanges, message, rules),
    thinking: stepThinking(state.thinking, message, { thinking: profile.thinking, report }),
    cache: stepCache(state.cache, message, { cache: profile.cache, report }),
    compaction: stepCompaction(state.compaction, message, rules),
    betas: stepBetas(state.betas, message, profile.betas),
  }
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
  const findings = state.findings.toArray()
  const report: Report = (code, path, message) => {
    findings.push({ code, path, message })
  }
  const { profile, calls } = state
  const rules = { profile, report }
  finishCalls(calls, report)
  finishRoles(state.roles, endOf(state, request), rules)
  finishThinking(state.thinking, request, { thinking: profile.thinking, report })
  checkDeclared(calls, request, rules)
  finishToolChanges(state.toolChanges, request, report)
  finishCompaction(state.compaction, { request, betas: betasOf(request), waiting: calls.waiting }, rules)
  finishBetas(state.betas, request, { betas: profile.betas, report })
  const { markers, added } = withPlaced(state.cache, placed, { cache: profile.cache, report })
  finishCache({ markers, target: state.cache.target }, request, { cache: profile.cache, report })
  finishSize(state.size, request, { sizes: profile.sizes, report, added })
  return findings
}

function endOf({ calls }: MessageCheck, request: Fields): Parameters<typeof finishRoles>[1] {
  return {
    summarizes: !isAbsent(request.compaction),
    hasUnanswered: calls.pending.size > 0,
    isWaiting: calls.waiting.size > 0,
  }
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

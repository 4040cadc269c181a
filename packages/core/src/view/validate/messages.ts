/**
 * The check of messages as a left fold, so that what was checked once is not looked at again: keep the state
 * behind a prefix that will not change, and go on from it as often as you like. A state is a value; going on
 * from it never changes it. What depends on the rest of the request is decided at the end.
 */
import { List } from '../../conversation/list.ts'
import type { Profile } from '../../policy/profile.ts'
import { type BetaState, betasOf, finishBetas, startBetas, stepBetas } from './betas.ts'
import { type CacheState, finishCache, startCache, stepCache } from './cache.ts'
import { type CallState, finishCalls, startCalls, stepCalls } from './calls.ts'
import { type CompactionState, finishCompaction, startCompaction, stepCompaction } from './compaction.ts'
import { checkBlock, contentRules } from './content.ts'
import { type Fields, type Finding, isAbsent, type Report } from './finding.ts'
import { type PlacedMarker, withPlaced } from './placed.ts'
import { type ReadMessage, readMessage } from './read.ts'
import { finishRoles, type RoleState, startRoles, stepRoles } from './roles.ts'
import { countMessage, finishSize, type SizeState, startSize, stepSize } from './size.ts'
import { type SystemState, startSystem, stepSystem } from './system.ts'
import { finishThinking, startThinking, stepThinking, type ThinkingState } from './thinking.ts'
import {
  checkDeclared,
  finishToolChanges,
  startToolChanges,
  stepToolChanges,
  type ToolChanges,
} from './tools.ts'

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

/**
 * Checks an API request against the rules in the provider's profile: messages, blocks and tools here, the provider's own
 * fields in its codec (`ProviderFieldChecks`). Each broken rule gives a finding; a request is sent only without findings.
 *
 * Some faults cannot be seen in a request and are not checked: a forged signature, thinking signed for a different
 * prefix, too many tokens, and calls of a tool that no longer exists.
 */
import type { FlattenedContext, TracedMessage } from '../context/flatten-context.ts'
import type { ApiMessage, Payload } from '../context/payload.ts'
import { AppendList, PersistentMap } from '../log/persistent-collections.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { RawFields } from '../policy/provider-spelling.ts'
import {
  addMessageBytes,
  type CheckedSizes,
  checkAndCountImages,
  checkBlock,
  checkPromptAndTools,
  checkSizeLimits,
  type PlacedMarker,
  parseMessage,
  parseRequestFields,
} from './content-rules.ts'
import { EXPECTATIONS, type Finding, type ReportFinding } from './findings.ts'
import {
  checkLastMessage,
  checkLastThinking,
  checkRole,
  checkSystemPlacement,
  checkThinking,
  checkToolCalls,
  checkUsedTools,
  collectToolChanges,
  type RoleState,
  reportMissingResults,
  type SystemMessageState,
  type ThinkingState,
  type ToolCallState,
  type ToolChangePaths,
} from './message-rules.ts'

/** Checks a whole API request; empty if it breaks no rule. Never throws, whatever its fields and blocks hold. */
export function validateRequest(request: Payload, profile: ProviderProfile): readonly Finding[] {
  return finishRequestCheck(request.messages.reduce(checkMessage, startMessageCheck(profile)), request)
}

// Messages are checked one by one. The state after each message is immutable, so messages that no longer change are
// checked once, and later checks continue from that state. Rules about the whole request are checked at the end.

/** The state after checking the first messages of a request. */
export interface MessageCheckState {
  readonly profile: ProviderProfile
  /** Findings that no later message can change. */
  readonly findings: AppendList<Finding>
  /** Number of messages, bytes and images checked so far. */
  readonly size: CheckedSizes
  readonly roles: RoleState
  readonly system: SystemMessageState
  readonly calls: ToolCallState
  readonly toolChanges: ToolChangePaths
  readonly thinking: ThinkingState
  /** State of the checks of the provider's own fields. */
  readonly spelt: unknown
}

export function startMessageCheck(profile: ProviderProfile): MessageCheckState {
  return {
    profile,
    findings: AppendList.of(),
    size: { messages: 0, bytes: 0, images: 0, large: AppendList.of() },
    roles: { last: null, afterSummary: false, hasContent: false, emptyTail: null },
    system: { before: 'other', section: null, hasContent: false },
    calls: {
      seen: PersistentMap.empty(),
      pending: new Map(),
      waiting: new Map(),
      answer: null,
      usesTools: false,
    },
    toolChanges: PersistentMap.empty(),
    thinking: { opening: null, closing: null },
    spelt: profile.spelling.checks.start,
  }
}

/** Checks the next message of the request and returns the new state. */
export function checkMessage(state: MessageCheckState, message: ApiMessage): MessageCheckState {
  const { profile } = state
  let { findings } = state
  const report = createFindingReporter((finding) => {
    findings = findings.push(finding)
  })
  const rules = { profile, report }
  const parsed = parseMessage(message, state.size.messages, report)
  for (const item of parsed.blocks) checkBlock(item, parsed.role, rules)
  const next = {
    profile,
    size: checkAndCountImages(addMessageBytes(state.size, message), parsed, rules),
    roles: checkRole(state.roles, parsed, rules),
    system: checkSystemPlacement(state.system, parsed, rules),
    calls: checkToolCalls(state.calls, parsed, rules),
    toolChanges: collectToolChanges(state.toolChanges, parsed, rules),
    thinking: checkThinking(state.thinking, parsed, rules),
    spelt: profile.spelling.checks.checkMessage(state.spelt, parsed, rules),
  }
  return { ...next, findings }
}

/**
 * Checks the other fields of the request, and what depends on all its messages, which were checked before. `placed` lists
 * cache markers that were added after that. Returns all findings: those about prompt, tools and sizes, then those about
 * the messages, then those about the provider's own fields.
 */
export function finishRequestCheck(
  state: MessageCheckState,
  fields: RawFields,
  placed: readonly PlacedMarker[] = [],
): readonly Finding[] {
  const { profile, calls } = state
  const found: Finding[] = []
  const rules = { profile, report: createFindingReporter((finding) => found.push(finding)) }
  const request = parseRequestFields(fields, rules)
  checkPromptAndTools(request, rules)
  checkSizeLimits(state.size, request, placed, rules)
  found.push(...state.findings)
  reportMissingResults(calls, rules)
  checkLastMessage(state.roles, request, calls, rules)
  checkLastThinking(state.thinking, request, rules)
  checkUsedTools(calls, state.toolChanges, request, rules)
  const waiting = [...calls.waiting.values()].map(({ path }) => path)
  profile.spelling.checks.finish(state.spelt, request, { waiting, placed }, rules)
  return found
}

function createFindingReporter(add: (finding: Finding) => void): ReportFinding {
  return (code, path, expected = EXPECTATIONS[code]) => add({ code, path, message: `Expected ${expected}.` })
}

// The functions below validate incrementally. Frozen messages, which can no longer change, are checked only once; the
// messages after them are checked every time.

/** The state after checking the frozen messages (those that can no longer change). Later checks continue from it. */
export interface ValidationState {
  readonly frozen: AppendList<TracedMessage>
  readonly state: MessageCheckState
}

export function startValidation(profile: ProviderProfile): ValidationState {
  return { frozen: AppendList.of(), state: startMessageCheck(profile) }
}

/**
 * Checks the frozen messages of `flat`, which can no longer change, starting from the earlier result `checked`, in steps
 * of one message. Only newly frozen messages are checked, unless the context was rewritten.
 */
export function* updateValidation(
  checked: ValidationState,
  flat: Pick<FlattenedContext, 'frozen'>,
): WorkInSteps<ValidationState> {
  const start = flat.frozen.extends(checked.frozen) ? checked : startValidation(checked.state.profile)
  let { state } = start
  for (const { message } of flat.frozen.toArray(start.frozen.length)) {
    const { bytes } = state.size
    state = checkMessage(state, message)
    yield state.size.bytes - bytes
  }
  return { frozen: flat.frozen, state }
}

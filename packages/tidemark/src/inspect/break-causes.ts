/**
 * Finds the most likely cause of a cache break in a log. A log contains less than a live session, so comparing two requests is
 * not always enough. Other signs in the log are considered as well, such as a restart, a command or a notice.
 */

import type { CacheBreak, CacheBreakReason } from '@tidemark/core/cache/cache-break-types'
import { formatCount, formatDuration } from '@tidemark/core/cost/prices'
import type { SessionRecord } from '@tidemark/core/log/record'
import {
  findChangeNotice,
  findFolderChange,
  findMemoryWrite,
  findRestart,
  findSettingCommand,
  findToolChangeInRecords,
} from './break-signs.ts'
import {
  type CacheTtl,
  type LoggedThinkingSettings,
  MIN_RESPONSE_GAP_MS,
  type ReplayedRequest,
} from './logged-requests.ts'
import type { BreakCause, ExplainedCause } from './report.ts'

interface BreakCauseInput {
  readonly event: CacheBreak
  readonly now: ReplayedRequest
  readonly before: ReplayedRequest
  /** The TTL of the cache entries that the previous request wrote. */
  readonly lifetime: CacheTtl
  /** True if the time of the previous request is the time at which it was logged, not the time of the API call. */
  readonly isUntimed: boolean
  /** True if the response was logged as one record although other responses of the log have one record per streamed block. */
  readonly isUnstreamed: boolean
}

/**
 * Returns the first cause that applies, with its evidence. What the log proves comes before what it only suggests. If
 * nothing in the log changed, the cause is `server-side`, or `not-known` if the log lacks the times of the calls.
 */
export function findBreakCause(miss: BreakCauseInput): ExplainedCause {
  const { recordsSincePrevious: since } = miss.now
  const { reason } = miss.event
  const { cause, evidence } =
    toCertainCause(reason) ??
    findExpiry(miss) ??
    findEffortChange(miss) ??
    findRestart(since) ??
    findSettingsChange(miss.before.settings, miss.now.settings) ??
    findUnstreamedRetry(miss) ??
    findSettingCommand(since, hasSameEffort(miss)) ??
    findChangeNotice(since) ??
    findToolChangeInRecords(since) ??
    toObservedCause(reason) ??
    findMemoryWrite(since) ??
    findFolderChange(since) ??
    explainByGap(miss)
  return { cause, evidence: `${evidence}; ${describeCacheRead(miss.event)}` }
}

/** Returns the milliseconds between the request with the cache break and the previous request; 0 if the log lacks either time. */
function measureGapMs({ now, before }: BreakCauseInput): number {
  return now.at === 0 || before.at === 0 ? 0 : now.at - before.at
}

/** Compares the effort of two responses, which newer versions of Claude Code log with each of them. */
function findEffortChange({ before, now }: BreakCauseInput): ExplainedCause | null {
  const [was, is] = [readEffort(before), readEffort(now)]
  if (was === null || is === null || was === is) return null
  return { cause: 'effort-changed', evidence: `${was} → ${is}` }
}

function hasSameEffort({ before, now }: BreakCauseInput): boolean {
  return readEffort(before) !== null && readEffort(before) === readEffort(now)
}

function readEffort({ record }: ReplayedRequest): string | null {
  const { effort } = record as { readonly effort?: unknown }
  return typeof effort === 'string' ? effort : null
}

/**
 * Checks whether the cache entry of the previous request had expired. An expired entry cannot be broken by a change, so
 * changes are checked later.
 */
function findExpiry(miss: BreakCauseInput): ExplainedCause | null {
  const gap = measureGapMs(miss)
  const { ttl, seconds } = miss.lifetime
  if (gap <= seconds * 1000) return null
  return {
    cause: 'expired',
    evidence: `${formatDuration(gap)} since the request before, and what it wrote lives ${ttl}`,
  }
}

/**
 * Compares the thinking settings of two requests. Claude Code logs no thinking settings for a skill. If a skill started
 * or ended between the requests, the skill is therefore reported as the cause.
 */
function findSettingsChange(
  before: LoggedThinkingSettings,
  now: LoggedThinkingSettings,
): ExplainedCause | null {
  const evidence = `${describeSettings(before)}, then ${describeSettings(now)}`
  if (before.isSkill !== now.isSkill)
    return { cause: 'skill-loaded', evidence: `${evidence} (${SKILL_INFERENCE_NOTE})` }
  return before.thinking === now.thinking ? null : { cause: 'thinking-changed', evidence }
}

const SKILL_INFERENCE_NOTE = 'inferred: the log does not say what a skill is sent with'

function describeSettings({ line, isSkill, thinking }: LoggedThinkingSettings): string {
  if (line === 0) return 'no settings at first'
  if (isSkill) return `line ${line}: a skill, with no settings beside it`
  return `line ${line}: ${thinking === null ? 'a prompt without thinking settings' : `a prompt with ${thinking}`}`
}

function findUnstreamedRetry({ isUnstreamed, now }: BreakCauseInput): ExplainedCause | null {
  if (!isUnstreamed) return null
  return {
    cause: 'not-streamed',
    evidence: `line ${now.line}: this response was logged whole, the others block by block: most likely the stream failed and the host asked again without one`,
  }
}

function explainByGap(miss: BreakCauseInput): ExplainedCause {
  const gap = measureGapMs(miss)
  const { ttl } = miss.lifetime
  if (gap < MIN_RESPONSE_GAP_MS || miss.isUntimed)
    return {
      cause: 'not-known',
      evidence: `nothing in the log changed; it tells no time between the requests, and what was written lives ${ttl}`,
    }
  return {
    cause: 'server-side',
    evidence: `nothing in the log changed, ${formatDuration(gap)} since the request before, and what was written lives ${ttl}`,
  }
}

function describeCacheRead({ read, expected }: CacheBreak): string {
  return read === 0
    ? `nothing of ${formatCount(expected)} tokens was read`
    : `${formatCount(read)} of ${formatCount(expected)} tokens were still read`
}

// Conversion of the reasons that the engine gives for a cache break to the causes in a report.

const CAUSE_BY_REASON: Readonly<Record<CacheBreakReason['kind'], BreakCause>> = {
  'model-changed': 'model-changed',
  'speed-changed': 'speed-changed',
  'effort-changed': 'effort-changed',
  'thinking-changed': 'thinking-changed',
  'tool-choice-changed': 'settings-changed',
  'betas-changed': 'settings-changed',
  'parameter-changed': 'settings-changed',
  'tools-added': 'tools-changed',
  'tools-removed': 'tools-changed',
  'tools-reordered': 'tools-changed',
  'tool-changed': 'tools-changed',
  'sections-added': 'system-changed',
  'sections-removed': 'system-changed',
  'sections-reordered': 'system-changed',
  'section-changed': 'system-changed',
  'marker-ttl-changed': 'lifetime-changed',
  'marker-scope-changed': 'settings-changed',
  'markers-removed': 'settings-changed',
  'image-added': 'image-added',
  'image-removed': 'image-removed',
  'message-changed': 'messages-changed',
  'message-removed': 'messages-changed',
  'message-inserted': 'messages-changed',
  expired: 'expired',
  'look-back-outrun': 'look-back-outrun',
  'thinking-dropped': 'thinking-dropped',
  'cleared-for-fork': 'server-side',
  'told-by-provider': 'server-side',
  evicted: 'server-side',
}

/**
 * Converts the name of a cache break reason in a log to a cause. Returns `not-known` for a name that only another
 * version of the engine knows.
 */
export function toBreakCause(reason: string): BreakCause {
  const found = Object.entries(CAUSE_BY_REASON).find(([kind]) => kind === reason)
  return found?.[1] ?? 'not-known'
}

/**
 * Converts the reason for a cache break to a cause if the log proves that the request was sent with this change;
 * otherwise returns null.
 */
function toCertainCause(reason: CacheBreakReason): ExplainedCause | null {
  const cause = CAUSE_BY_REASON[reason.kind]
  if ('names' in reason) return { cause, evidence: reason.names.join(', ') }
  switch (reason.kind) {
    case 'model-changed':
    case 'speed-changed':
      return { cause, evidence: `${reason.before ?? 'standard'} → ${reason.after ?? 'standard'}` }
    case 'effort-changed':
    case 'thinking-changed':
    case 'tool-choice-changed':
      return { cause, evidence: `${reason.before ?? 'not set'} → ${reason.after ?? 'not set'}` }
    case 'betas-changed':
      return { cause, evidence: [...reason.added, ...reason.removed].join(', ') }
    case 'parameter-changed':
      // A change of citations is only inferred from the messages. They do not prove that the request parameter changed.
      return reason.name === 'citations' ? null : { cause, evidence: reason.name }
    case 'tool-changed':
    case 'section-changed':
      return { cause, evidence: reason.name }
    default:
      return null
  }
}

/**
 * Converts the reason for a cache break to a cause if the log shows this change but does not prove that the request was
 * sent with it; otherwise returns null.
 */
function toObservedCause(reason: CacheBreakReason): ExplainedCause | null {
  const evidence = seenEvidence(reason)
  return evidence === null ? null : { cause: CAUSE_BY_REASON[reason.kind], evidence }
}

function seenEvidence(reason: CacheBreakReason): string | null {
  switch (reason.kind) {
    case 'image-added':
      return `message ${reason.index} has the first image`
    case 'image-removed':
      return `the last image, in message ${reason.index}, is gone`
    case 'marker-ttl-changed':
      return `what is written lives ${reason.after}, before it lived ${reason.before}`
    case 'look-back-outrun':
      return `more than ${reason.lookBack} positions were added since the request before`
    case 'thinking-dropped':
      return 'a new prompt ended the turn, and the model is not shown the thinking of finished turns'
    case 'message-changed':
    case 'message-removed':
    case 'message-inserted':
      return `message ${reason.index} is not what it was`
    default:
      return null
  }
}

// Some timestamps in a log are the time of logging instead of the time of the API call. A forked session can begin with a copy of
// another session's history, written all at once. The cache entries of the copied calls belong to the other session.

/**
 * Checks whether `now` is the first call that a forked session made itself, after the history copied from the original session.
 */
export function isFirstCallAfterCopy(
  begun: SessionRecord | undefined,
  before: ReplayedRequest,
  now: ReplayedRequest,
): boolean {
  const start = readTime(begun)
  const isCopied = ({ record }: ReplayedRequest): boolean => readTime(record) - start < MIN_RESPONSE_GAP_MS
  return !Number.isNaN(start) && isCopied(before) && !isCopied(now)
}

function readTime(record: SessionRecord | undefined): number {
  return typeof record?.timestamp === 'string' ? Date.parse(record.timestamp) : Number.NaN
}

/**
 * The most likely cause of a cache break in a log. The detector of core compares the requests; a log shows less of them
 * than a live session, so signs in it (a restart, a command, a notice) are weighed against that comparison.
 */
import {
  type CacheBreak,
  type CacheBreakReason,
  formatCount,
  formatDuration,
  isKnownRecord,
  isObject,
  isToolUse,
  type SessionRecord,
  toBlocks,
} from '@tidemark/core'
import { isClaudeCodeRestart, type LogRecord } from '@tidemark/wire'
import type { CacheTtl, ReplayedRequest, ThinkingSettings } from './logged-requests.ts'
import type { BreakCause, ExplainedCause } from './report.ts'

export interface LogCauseInput {
  readonly event: CacheBreak
  readonly now: ReplayedRequest
  readonly before: ReplayedRequest
  /** Of what the request before left. */
  readonly lifetime: CacheTtl
  /** The request before has the time at which it was logged, not that of the call. */
  readonly isUntimed: boolean
  /** The response was logged whole, unlike the others of the log. */
  readonly isUnstreamed: boolean
}

export function findLogCause(miss: LogCauseInput): ExplainedCause {
  const { recordsSincePrevious: since } = miss.now
  const { reason } = miss.event
  const { cause, evidence } =
    toCertainCause(reason) ??
    findExpiry(miss) ??
    findRestart(since) ??
    findSettingsChange(miss.before.settings, miss.now.settings) ??
    findUnstreamedRetry(miss) ??
    findCommand(since) ??
    findNotice(since) ??
    toObservedCause(reason) ??
    findMemoryWrite(since) ??
    findFolderChange(since) ??
    explainByGap(miss)
  return { cause, evidence: `${evidence}; ${describeCacheRead(miss.event)}` }
}

/** 0 if the log lacks one of the times. */
function measureGapMs({ now, before }: LogCauseInput): number {
  return now.at === 0 || before.at === 0 ? 0 : now.at - before.at
}

/** Comes before other changes: nothing was left to read. */
function findExpiry(miss: LogCauseInput): ExplainedCause | null {
  const gap = measureGapMs(miss)
  const { ttl, seconds } = miss.lifetime
  if (gap <= seconds * 1000) return null
  return {
    cause: 'expired',
    evidence: `${formatDuration(gap)} since the request before, and what it wrote lives ${ttl}`,
  }
}

/**
 * A skill's turn runs without the thinking settings of the prompts around it, as far as logs show: none are logged with
 * it. So if a turn enters or leaves a skill, the skill is named and not the settings.
 */
function findSettingsChange(before: ThinkingSettings, now: ThinkingSettings): ExplainedCause | null {
  const evidence = `${describeSettings(before)}, then ${describeSettings(now)}`
  if (before.isSkill !== now.isSkill)
    return { cause: 'skill-loaded', evidence: `${evidence} (${SKILL_INFERENCE_NOTE})` }
  return before.thinking === now.thinking ? null : { cause: 'thinking-changed', evidence }
}

const SKILL_INFERENCE_NOTE = 'inferred: the log does not say what a skill is sent with'

function describeSettings({ line, isSkill, thinking }: ThinkingSettings): string {
  if (line === 0) return 'no settings at first'
  if (isSkill) return `line ${line}: a skill, with no settings beside it`
  return `line ${line}: ${thinking === null ? 'a prompt without thinking settings' : `a prompt with ${thinking}`}`
}

function findUnstreamedRetry({ isUnstreamed, now }: LogCauseInput): ExplainedCause | null {
  if (!isUnstreamed) return null
  return {
    cause: 'not-streamed',
    evidence: `line ${now.line}: this response was logged whole, the others block by block: most likely the stream failed and the host asked again without one`,
  }
}

function explainByGap(miss: LogCauseInput): ExplainedCause {
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

// Signs in a log that a request was sent with something changed: a restart, a command, a notice, a file written.

/** Looks at what was logged since the last request; null if there is no such sign. */
export type CauseFinder = (since: readonly LogRecord[]) => ExplainedCause | null

/** After a restart everything may differ: tools, system prompt, settings. */
export const findRestart: CauseFinder = (since) => {
  const found = since.find(({ record }, index) => isClaudeCodeRestart(record, since[index - 1]?.record))
  return found === undefined
    ? null
    : { cause: 'restarted', evidence: `line ${found.line}: the program was started anew` }
}

const CAUSE_BY_COMMAND: ReadonlyMap<string, BreakCause> = new Map([
  ['model', 'model-changed'],
  ['fast', 'speed-changed'],
  ['effort', 'effort-changed'],
  ['mcp', 'tools-changed'],
  ['plugin', 'tools-changed'],
  ['reload-plugins', 'tools-changed'],
  ['ide', 'tools-changed'],
  ['chrome', 'tools-changed'],
  ['agents', 'tools-changed'],
  ['output-style', 'system-changed'],
  ['add-dir', 'system-changed'],
  ['memory', 'memory-changed'],
  ['init', 'memory-changed'],
  ['config', 'settings-changed'],
  ['login', 'account-changed'],
  ['logout', 'account-changed'],
])

export const findCommand: CauseFinder = (since) =>
  findFirst(since, (record) => {
    const name = /<command-name>\/?([\w-]+)/.exec(commandText(record))?.[1] ?? ''
    const cause = CAUSE_BY_COMMAND.get(name)
    return cause === undefined ? null : { cause, evidence: `command /${name}` }
  })

/** Hosts add an attachment for the model when tools or instructions come and go. */
export const findNotice: CauseFinder = (since) =>
  findFirst(since, (record) => {
    const { attachment } = record as { readonly attachment?: unknown }
    const type = record.type === 'attachment' && isObject(attachment) ? String(attachment.type ?? '') : ''
    if (/tools?_delta$|agents?(?:_listing)?_delta$/.test(type))
      return { cause: 'tools-changed', evidence: `notice ${type}` }
    return /^mcp_instructions|^output_style/.test(type)
      ? { cause: 'system-changed', evidence: `notice ${type}` }
      : null
  })

const MEMORY_FILE_PATTERN =
  /(?:^|[\\/])(?:CLAUDE(?:\.local)?\.md|AGENTS\.md|\.mcp\.json|settings(?:\.local)?\.json)$/
const WRITE_TOOLS = new Set(['Write', 'Edit', 'MultiEdit'])

export const findMemoryWrite: CauseFinder = (since) =>
  findFirst(since, (record) => {
    if (!isKnownRecord(record) || record.type !== 'assistant') return null
    const uses = toBlocks(record.message.content).filter(isToolUse)
    const written = uses.filter(({ name }) => WRITE_TOOLS.has(name)).map(({ input }) => readPathInput(input))
    const path = written.find((each) => MEMORY_FILE_PATTERN.test(each))
    const name = path?.split(/[\\/]/).at(-1)
    return name === undefined ? null : { cause: 'memory-changed', evidence: `${name} was written` }
  })

/** The working folder is part of the system prompt. */
export const findFolderChange: CauseFinder = (since) => {
  const folders = since.map(({ record, line }) => ({ line, cwd: (record as { readonly cwd?: unknown }).cwd }))
  const told = folders.filter(({ cwd }) => typeof cwd === 'string')
  const moved = told.find(({ cwd }, index) => index > 0 && cwd !== told[index - 1]?.cwd)
  return moved === undefined
    ? null
    : { cause: 'system-changed', evidence: `line ${moved.line}: the working folder changed` }
}

function findFirst(
  since: readonly LogRecord[],
  look: (record: SessionRecord) => ExplainedCause | null,
): ExplainedCause | null {
  for (const { record, line } of since) {
    const found = look(record)
    if (found !== null) return { ...found, evidence: `line ${line}: ${found.evidence}` }
  }
  return null
}

function commandText(record: SessionRecord): string {
  const { message } = record as { readonly message?: unknown }
  const content = record.type === 'user' && isObject(message) ? message.content : undefined
  return typeof content === 'string' ? content : ''
}

function readPathInput(input: unknown): string {
  const path = isObject(input) ? input.file_path : undefined
  return typeof path === 'string' ? path : ''
}

// The detector's reasons as the causes of a report.

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
  'told-by-provider': 'server-side',
  evicted: 'server-side',
}

/** For a reason by name, as a log has it; another version of the engine may know more of them. */
export function toBreakCause(reason: string): BreakCause {
  const found = Object.entries(CAUSE_BY_REASON).find(([kind]) => kind === reason)
  return found?.[1] ?? 'not-known'
}

/** A change that the log itself records: what was sent is known to be different. */
export function toCertainCause(reason: CacheBreakReason): ExplainedCause | null {
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
      // Citations are seen in the messages, which do not show what was sent with them.
      return reason.name === 'citations' ? null : { cause, evidence: reason.name }
    case 'tool-changed':
    case 'section-changed':
      return { cause, evidence: reason.name }
    default:
      return null
  }
}

/** A change that the log shows, without proof that the request was sent like that. */
export function toObservedCause(reason: CacheBreakReason): ExplainedCause | null {
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
    case 'message-changed':
    case 'message-removed':
    case 'message-inserted':
      return `message ${reason.index} is not what it was`
    default:
      return null
  }
}

// Times of logging instead of calls. A session forked off another may begin with a copy of its history, written at
// once: what those calls left lies in the other's cache.

/** No answer comes sooner than this: calls that seem to were written at once. */
export const MIN_RESPONSE_GAP_MS = 1_000

/** `now` is the first call of a fork itself, after a history that was copied when it began. */
export function isForkPoint(
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

/** Two successive requests have the same time: then neither is its own. */
export function isSameTime(before: ReplayedRequest | null, now: ReplayedRequest): boolean {
  return before !== null && Math.abs(now.at - before.at) < MIN_RESPONSE_GAP_MS
}

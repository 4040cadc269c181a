/** The most likely cause of a break in a log: what is certain first, then signs, then what remains. */
import {
  type BreakEvent,
  blocksOf,
  countText,
  durationText,
  isKnown,
  isObject,
  isToolUse,
  type Reason,
  type SessionRecord,
} from '@tidemark/core'
import { isClaudeCodeRestart, type ReadRecord } from '@tidemark/wire'
import type { Lifetime, Moment, TurnSettings } from './logged-requests.ts'
import type { BreakCause, Cause } from './report.ts'

export interface Miss {
  readonly event: BreakEvent
  readonly now: Moment
  readonly before: Moment
  /** Of what the request before left. */
  readonly lifetime: Lifetime
  /** The time of the request before is that of the writing. */
  readonly isUntimed: boolean
  /** The response came whole, and the others of the log as a stream. */
  readonly isUnstreamed: boolean
}

export function logCause(miss: Miss): Cause {
  const { since } = miss.now
  const { reason } = miss.event
  const { cause, evidence } =
    certainCause(reason) ??
    expired(miss) ??
    restart(since) ??
    otherSettings(miss.before.settings, miss.now.settings) ??
    unstreamed(miss) ??
    command(since) ??
    notice(since) ??
    seenCause(reason) ??
    memoryWritten(since) ??
    otherFolder(since) ??
    unexplained(miss)
  return { cause, evidence: `${evidence}; ${stillRead(miss.event)}` }
}

/** None where the log does not tell one of the times. */
function gapMs({ now, before }: Miss): number {
  return now.at === 0 || before.at === 0 ? 0 : now.at - before.at
}

/** Whatever else changed, nothing was left to read. */
function expired(miss: Miss): Cause | null {
  const gap = gapMs(miss)
  const { ttl, seconds } = miss.lifetime
  if (gap <= seconds * 1000) return null
  return {
    cause: 'expired',
    evidence: `${durationText(gap)} since the request before, and what it wrote lives ${ttl}`,
  }
}

/**
 * A skill's turn runs without the thinking settings of the prompts around it, as far as logs tell: none are written
 * beside it. So where a turn goes into a skill or comes out of one, that is what is named, and not the settings.
 */
function otherSettings(before: TurnSettings, now: TurnSettings): Cause | null {
  const evidence = `${settingsText(before)}, then ${settingsText(now)}`
  if (before.isSkill !== now.isSkill) return { cause: 'skill-loaded', evidence: `${evidence} (${INFERRED})` }
  return before.thinking === now.thinking ? null : { cause: 'thinking-changed', evidence }
}

const INFERRED = 'inferred: the log does not say what a skill is sent with'

function settingsText({ line, isSkill, thinking }: TurnSettings): string {
  if (line === 0) return 'no settings at first'
  if (isSkill) return `line ${line}: a skill, with no settings beside it`
  return `line ${line}: ${thinking === null ? 'a prompt without thinking settings' : `a prompt with ${thinking}`}`
}

function unstreamed({ isUnstreamed, now }: Miss): Cause | null {
  if (!isUnstreamed) return null
  return {
    cause: 'not-streamed',
    evidence: `line ${now.line}: this response was logged whole, the others block by block: most likely the stream failed and the host asked again without one`,
  }
}

function unexplained(miss: Miss): Cause {
  const gap = gapMs(miss)
  const { ttl } = miss.lifetime
  if (gap < SHORTEST_GAP_MS || miss.isUntimed)
    return {
      cause: 'not-known',
      evidence: `nothing in the log changed; it tells no time between the requests, and what was written lives ${ttl}`,
    }
  return {
    cause: 'server-side',
    evidence: `nothing in the log changed, ${durationText(gap)} since the request before, and what was written lives ${ttl}`,
  }
}

function stillRead({ read, expected }: BreakEvent): string {
  return read === 0
    ? `nothing of ${countText(expected)} tokens was read`
    : `${countText(read)} of ${countText(expected)} tokens were still read`
}

// Signs in a log that a request was sent with something changed: a new start, a command, a notice, a file written.

/** Looks at what was written since the last request; null where there is no such sign. */
export type Sign = (since: readonly ReadRecord[]) => Cause | null

/** Behind a start everything may differ: tools, system prompt, settings. */
export const restart: Sign = (since) => {
  const found = since.find(({ record }, index) => isClaudeCodeRestart(record, since[index - 1]?.record))
  return found === undefined
    ? null
    : { cause: 'restarted', evidence: `line ${found.line}: the program was started anew` }
}

const COMMANDS: ReadonlyMap<string, BreakCause> = new Map([
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

export const command: Sign = (since) =>
  firstOf(since, (record) => {
    const name = /<command-name>\/?([\w-]+)/.exec(textOf(record))?.[1] ?? ''
    const cause = COMMANDS.get(name)
    return cause === undefined ? null : { cause, evidence: `command /${name}` }
  })

/** Hosts tell the model by an attachment when tools or instructions come and go. */
export const notice: Sign = (since) =>
  firstOf(since, (record) => {
    const { attachment } = record as { readonly attachment?: unknown }
    const type = record.type === 'attachment' && isObject(attachment) ? String(attachment.type ?? '') : ''
    if (/tools?_delta$|agents?(?:_listing)?_delta$/.test(type))
      return { cause: 'tools-changed', evidence: `notice ${type}` }
    return /^mcp_instructions|^output_style/.test(type)
      ? { cause: 'system-changed', evidence: `notice ${type}` }
      : null
  })

const MEMORY_FILE = /(?:^|[\\/])(?:CLAUDE(?:\.local)?\.md|AGENTS\.md|\.mcp\.json|settings(?:\.local)?\.json)$/
const WRITERS = new Set(['Write', 'Edit', 'MultiEdit'])

export const memoryWritten: Sign = (since) =>
  firstOf(since, (record) => {
    if (!isKnown(record) || record.type !== 'assistant') return null
    const uses = blocksOf(record.message.content).filter(isToolUse)
    const written = uses.filter(({ name }) => WRITERS.has(name)).map(({ input }) => pathIn(input))
    const path = written.find((each) => MEMORY_FILE.test(each))
    const name = path?.split(/[\\/]/).at(-1)
    return name === undefined ? null : { cause: 'memory-changed', evidence: `${name} was written` }
  })

/** The working folder is in the system prompt. */
export const otherFolder: Sign = (since) => {
  const folders = since.map(({ record, line }) => ({ line, cwd: (record as { readonly cwd?: unknown }).cwd }))
  const told = folders.filter(({ cwd }) => typeof cwd === 'string')
  const moved = told.find(({ cwd }, index) => index > 0 && cwd !== told[index - 1]?.cwd)
  return moved === undefined
    ? null
    : { cause: 'system-changed', evidence: `line ${moved.line}: the working folder changed` }
}

function firstOf(since: readonly ReadRecord[], look: (record: SessionRecord) => Cause | null): Cause | null {
  for (const { record, line } of since) {
    const found = look(record)
    if (found !== null) return { ...found, evidence: `line ${line}: ${found.evidence}` }
  }
  return null
}

function textOf(record: SessionRecord): string {
  const { message } = record as { readonly message?: unknown }
  const content = record.type === 'user' && isObject(message) ? message.content : undefined
  return typeof content === 'string' ? content : ''
}

function pathIn(input: unknown): string {
  const path = isObject(input) ? input.file_path : undefined
  return typeof path === 'string' ? path : ''
}

// What the comparison of two requests says, in the words of a log's report.

/** What a reason is called in a report. */
const CAUSES: Readonly<Record<Reason['kind'], BreakCause>> = {
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

/** Of a reason as a log names it; another version of the engine may know more of them. */
export function causeNamed(reason: string): BreakCause {
  const found = Object.entries(CAUSES).find(([kind]) => kind === reason)
  return found?.[1] ?? 'not-known'
}

/** What the log itself says was sent otherwise. */
export function certainCause(reason: Reason): Cause | null {
  switch (reason.kind) {
    case 'model-changed':
    case 'speed-changed':
      return {
        cause: reason.kind,
        evidence: `${reason.before ?? 'standard'} → ${reason.after ?? 'standard'}`,
      }
    case 'effort-changed':
    case 'thinking-changed':
    case 'tool-choice-changed':
      return {
        cause: CAUSES[reason.kind],
        evidence: `${reason.before ?? 'not set'} → ${reason.after ?? 'not set'}`,
      }
    case 'parameter-changed':
      // Citations are seen in the messages, where nobody says what was sent with them.
      return reason.name === 'citations' ? null : named(CAUSES[reason.kind], [reason.name])
    case 'betas-changed':
      return named(CAUSES[reason.kind], [...reason.added, ...reason.removed])
    case 'tools-added':
    case 'tools-removed':
    case 'tools-reordered':
      return named('tools-changed', reason.names)
    case 'sections-added':
    case 'sections-removed':
    case 'sections-reordered':
      return named('system-changed', reason.names)
    case 'tool-changed':
      return named('tools-changed', [reason.name])
    case 'section-changed':
      return named('system-changed', [reason.name])
    default:
      return null
  }
}

/** What can be seen in the log, without its being sure that the request was so. */
export function seenCause(reason: Reason): Cause | null {
  switch (reason.kind) {
    case 'image-added':
      return { cause: 'image-added', evidence: `message ${reason.index} has the first image` }
    case 'image-removed':
      return { cause: 'image-removed', evidence: `the last image, in message ${reason.index}, is gone` }
    case 'marker-ttl-changed':
      return {
        cause: 'lifetime-changed',
        evidence: `what is written lives ${reason.after}, before it lived ${reason.before}`,
      }
    case 'look-back-outrun':
      return {
        cause: 'look-back-outrun',
        evidence: `more than ${reason.lookBack} positions were added since the request before`,
      }
    case 'message-changed':
    case 'message-removed':
    case 'message-inserted':
      return { cause: 'messages-changed', evidence: `message ${reason.index} is not what it was` }
    default:
      return null
  }
}

function named(cause: BreakCause, names: readonly string[]): Cause {
  return { cause, evidence: names.join(', ') }
}

// Times that are those of the writing and not of the calls. A session that was forked off another may begin with a
// copy of its history, written in one go: what those calls left lies in the other's cache.

/** No answer comes sooner than this: calls that seem to were written in one go. */
export const SHORTEST_GAP_MS = 1_000

/** Is `now` the first call of a fork's own, behind a history that was copied when it began? */
export function isForkPoint(begun: SessionRecord | undefined, before: Moment, now: Moment): boolean {
  const start = timeOf(begun)
  const isCopied = ({ record }: Moment): boolean => timeOf(record) - start < SHORTEST_GAP_MS
  return !Number.isNaN(start) && isCopied(before) && !isCopied(now)
}

function timeOf(record: SessionRecord | undefined): number {
  return typeof record?.timestamp === 'string' ? Date.parse(record.timestamp) : Number.NaN
}

/** Do two requests that followed each other bear one time? Then neither is its own. */
export function isOneTime(before: Moment | null, now: Moment): boolean {
  return before !== null && Math.abs(now.at - before.at) < SHORTEST_GAP_MS
}

/** The most likely cause of a break in a log: what is certain first, then signs, then what remains. */
import { type BreakEvent, countText, durationText } from '@tidemark/core'
import type { Cause } from './cache-report.ts'
import { SHORTEST_GAP_MS } from './copied-history.ts'
import type { Lifetime } from './lifetime.ts'
import { command, memoryWritten, notice, otherFolder, restart } from './log-signs.ts'
import type { Moment } from './moments.ts'
import { certainCause, seenCause } from './reason-cause.ts'
import type { TurnSettings } from './turn-settings.ts'

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

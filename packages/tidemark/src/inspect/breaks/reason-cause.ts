/** What the comparison of two requests says, in the words of a log's report. */
import type { Reason } from '@tidemark/core'
import type { BreakCause, Cause } from './cache-report.ts'

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

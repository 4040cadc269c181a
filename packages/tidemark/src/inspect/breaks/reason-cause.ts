/** What the comparison of two requests says, in the words of a log's report. */
import type { Reason } from '@tidemark/core'
import type { BreakCause, Cause } from './cache-report.ts'

/** What the log itself says was sent otherwise. */
export function certainCause(reason: Reason): Cause | null {
  switch (reason.kind) {
    case 'model-changed':
    case 'speed-changed':
      return {
        cause: reason.kind,
        evidence: `${reason.before ?? 'standard'} → ${reason.after ?? 'standard'}`,
      }
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

/** What the calls for a summary took, added up over all of them: those that failed were paid for too. */
import type { Usage } from '../../conversation/record.ts'
import { countOf } from '../../measure/figure.ts'
import type { ReplyEvent } from '../reply.ts'

export interface SummaryUsage {
  readonly calls: number
  /** Tokens: neither read from the cache nor written to it. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWritten: number
}

export const NO_SUMMARY_USAGE: SummaryUsage = {
  calls: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWritten: 0,
}

/** `usage` once `event` of a reply has come. */
export function withReply(usage: SummaryUsage, event: ReplyEvent): SummaryUsage {
  if (event.type !== 'reply-ended' && event.type !== 'reply-failed') return usage
  const { calls } = usage
  return { ...added(usage, event.reply?.message.usage), calls: calls + 1 }
}

function added(usage: SummaryUsage, told: Usage | undefined): SummaryUsage {
  if (told === undefined) return usage
  return {
    calls: usage.calls,
    input: usage.input + countOf(told.input_tokens),
    output: usage.output + countOf(told.output_tokens),
    cacheRead: usage.cacheRead + countOf(told.cache_read_input_tokens),
    cacheWritten: usage.cacheWritten + countOf(told.cache_creation_input_tokens),
  }
}

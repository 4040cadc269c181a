/** Counts the tokens of model calls beside the conversation: those that write a summary, and those that update the notes. */
import { toTokenCount } from '../tokens/usage.ts'
import type { ReplyEvent } from './reply.ts'

/** Usage of all summary requests of a compaction, including failed ones, which cost money too. */
export interface SummaryUsage {
  readonly calls: number
  /** Input tokens that were neither read from the cache nor written to it. */
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

/** If `event` ends a reply, returns `usage` plus the usage of that reply; otherwise returns `usage` unchanged. */
export function addReplyUsage(usage: SummaryUsage, event: ReplyEvent): SummaryUsage {
  if (event.type !== 'reply-ended' && event.type !== 'reply-failed') return usage
  const calls = usage.calls + 1
  const reported = event.reply?.message.usage
  if (reported === undefined) return { ...usage, calls }
  return {
    calls,
    input: usage.input + toTokenCount(reported.input_tokens),
    output: usage.output + toTokenCount(reported.output_tokens),
    cacheRead: usage.cacheRead + toTokenCount(reported.cache_read_input_tokens),
    cacheWritten: usage.cacheWritten + toTokenCount(reported.cache_creation_input_tokens),
  }
}

/** One wording for what is done to the context: the same on the screen, in a resumed session and in `tidemark watch`. */
import type { EventOf } from 'tidemark'
import { formatCount, formatTokens } from './format-numbers.ts'

type Summarizer = EventOf<'compact'>['compaction']['summarizer']

export const SUMMARY_NAMES: Readonly<Record<Summarizer, string>> = {
  notes: 'the notes of this session',
  model: 'a summary by the model',
  block: 'a summary by the provider',
  local: 'a summary made from the log, without a model',
}

/** The figures of a compaction, as an event or the record of a log has them. */
interface CompactionFigures {
  readonly tokensBefore: number
  /** Undefined if the log does not say. */
  readonly tokensAfter: number | undefined
  readonly summarizer: Summarizer
  readonly cause: string | undefined
}

/** Returns what a compaction did, without a full stop: `Compacted: 40.0k → 12.0k tokens, with a summary by the model`. */
export function formatCompaction({
  tokensBefore,
  tokensAfter,
  summarizer,
  cause,
}: CompactionFigures): string {
  const what = cause === 'prepared' ? 'Swapped in a prepared summary' : 'Compacted'
  const after = tokensAfter === undefined ? '?' : formatTokens(tokensAfter)
  return `${what}: ${formatTokens(tokensBefore)} → ${after} tokens, with ${SUMMARY_NAMES[summarizer]}`
}

/** What a clearing took out of the context, as its record names it. */
interface ClearedContent {
  readonly compactedToolIds: readonly string[]
  readonly clearedInputs?: readonly unknown[] | undefined
  readonly clearedMedia?: readonly unknown[] | undefined
  readonly clearedThinking?: readonly unknown[] | undefined
}

/** Returns what a clearing did, without a full stop: `Cleared 3 old tool results: 12.0k tokens freed`. */
export function formatClearing(content: ClearedContent, freedTokens: number): string {
  const { compactedToolIds, clearedInputs = [], clearedMedia = [], clearedThinking = [] } = content
  const parts = [
    [compactedToolIds.length, 'old tool result', 'old tool results'],
    [clearedInputs.length, 'large input of an old tool call', 'large inputs of old tool calls'],
    [clearedMedia.length, 'old image or document', 'old images and documents'],
    [clearedThinking.length, 'response of its thinking', 'responses of their thinking'],
  ] as const
  const named = parts.filter(([count]) => count > 0)
  // The thinking that goes with a clearing is not worth a word; alone, it is all that there is.
  const shown = named.length > 1 ? named.filter(([, one]) => !one.endsWith('thinking')) : named
  const what = shown.map(([count, one, many]) => formatCount(count, one, many)).join(' and ')
  const freed = freedTokens > 0 ? `: ${formatTokens(freedTokens)} tokens freed` : ''
  return `Cleared ${what === '' ? 'old content' : what}${freed}`
}

/** What a boundary says of the records its compaction kept. */
import type { CompactMetadata } from '../conversation/metadata.ts'
import type { Entry } from '../view/entry.ts'
import type { Span } from './span.ts'

export interface SpanAnchors {
  readonly boundaryUuid: string
  readonly summaryUuid: string
  /** The last record that the compaction writes: unanswered messages come behind it. */
  readonly lastUuid: string
}

export type KeptMetadata = Pick<
  CompactMetadata,
  'preservedMessages' | 'unansweredMessages' | 'messagesSummarized'
>

/** uuids that stay verbatim beside the summary, in order: in front of it for `from`, behind it else. */
export function keptUuids({ form, kept, pinned }: Span): readonly string[] {
  return uuidsOf(form === 'from' ? [...kept, ...pinned] : [...pinned, ...kept])
}

export function keptMetadata(span: Span, anchors: SpanAnchors): KeptMetadata {
  const { boundaryUuid, summaryUuid, lastUuid } = anchors
  const uuids = keptUuids(span)
  const unanswered = uuidsOf(span.unanswered)
  const anchorUuid = span.form === 'from' ? boundaryUuid : summaryUuid
  return {
    messagesSummarized: span.summarised.length,
    ...(uuids.length === 0 ? {} : { preservedMessages: { anchorUuid, uuids } }),
    ...(unanswered.length === 0 ? {} : { unansweredMessages: { anchorUuid: lastUuid, uuids: unanswered } }),
  }
}

function uuidsOf(entries: readonly Entry[]): readonly string[] {
  return entries.map((entry) => entry.record.uuid)
}

/**
 * The records of a compaction, one batch: boundary, what stands in front of the summary, summary, epoch, what was
 * brought back. What is kept verbatim is named in the boundary and stands where its anchor does.
 */
import type { CompactMetadata, PreservedMessages } from '../../conversation/metadata.ts'
import type { AssistantRecord, Epoch, UserRecord } from '../../conversation/record.ts'
import { epochRecord, type RecordBody } from '../../prompt/tell.ts'
import type { CompactForm } from '../../summarize/sections.ts'
import type { Ids, NewRecord } from '../ports.ts'

export type SummaryBody =
  | Pick<UserRecord, 'type' | 'message' | 'isCompactSummary' | 'isVisibleInTranscriptOnly' | 'isMeta'>
  | Pick<AssistantRecord, 'type' | 'message' | 'rawBlocks' | 'isCompactSummary' | 'isVisibleInTranscriptOnly'>

export interface CompactionParts {
  readonly form: CompactForm
  readonly metadata: Omit<CompactMetadata, 'preservedMessages' | 'unansweredMessages'>
  readonly summary: SummaryBody
  /** uuids that stay verbatim, in order: in front of the summary for `from`, behind it else. */
  readonly kept: readonly string[]
  /** uuids that come last: what nobody has answered, and all that came while the summary was made. */
  readonly behind: readonly string[]
  /** Carriers that stand in front of the summary, where they stay cached. */
  readonly front: readonly RecordBody[]
  /** The epoch that begins; null where the prefix stays. */
  readonly epoch: Epoch | null
  readonly carried: readonly RecordBody[]
}

export interface Links {
  readonly ids: Ids
  readonly timestamp: string
  readonly sessionId: string
  /** The last record before the boundary; null where there is none. */
  readonly tip: string | null
}

export function compactionRecords(parts: CompactionParts, links: Links): readonly NewRecord[] {
  const bodies: readonly (RecordBody | SummaryBody)[] = [
    ...parts.front,
    parts.summary,
    ...(parts.epoch === null ? [] : [epochRecord(parts.epoch)]),
    ...parts.carried,
  ]
  const { ids, timestamp, sessionId, tip } = links
  const boundaryUuid = ids.next('record')
  const uuids = bodies.map(() => ids.next('record'))
  const summaryUuid = uuids[parts.front.length] ?? boundaryUuid
  const anchors = { boundaryUuid, summaryUuid, lastUuid: uuids.at(-1) ?? boundaryUuid }
  const boundary: NewRecord = {
    type: 'system',
    subtype: 'compact_boundary',
    content: 'Conversation compacted',
    level: 'info',
    isMeta: false,
    uuid: boundaryUuid,
    parentUuid: null,
    logicalParentUuid: tip,
    timestamp,
    sessionId,
    compactMetadata: { ...parts.metadata, ...preserved(parts, anchors) },
  }
  const others = bodies.map((body, index) => ({
    ...body,
    uuid: uuids[index] as string,
    parentUuid: index === 0 ? boundaryUuid : (uuids[index - 1] as string),
    timestamp,
    sessionId,
  }))
  return [boundary, ...others]
}

interface Anchors {
  readonly boundaryUuid: string
  readonly summaryUuid: string
  readonly lastUuid: string
}

function preserved(
  { form, kept, behind }: CompactionParts,
  { boundaryUuid, summaryUuid, lastUuid }: Anchors,
): Pick<CompactMetadata, 'preservedMessages' | 'unansweredMessages'> {
  const keptList: PreservedMessages = {
    anchorUuid: form === 'from' ? boundaryUuid : summaryUuid,
    uuids: kept,
  }
  return {
    ...(kept.length === 0 ? {} : { preservedMessages: keptList }),
    ...(behind.length === 0 ? {} : { unansweredMessages: { anchorUuid: lastUuid, uuids: behind } }),
  }
}

/** What a compaction kept verbatim, and behind which record each piece stands in the view. */
import type { CompactBoundary } from '../conversation/boundary.ts'
import type { List } from '../conversation/list.ts'
import type { PreservedMessages, PreservedSegment } from '../conversation/metadata.ts'
import { isKnown } from '../conversation/record.ts'
import type { Session } from '../conversation/session.ts'
import { placeOf, recordAt } from '../conversation/tree.ts'
import { type Entry, withoutThinking } from './entry.ts'

export interface Anchored {
  readonly anchor: string
  readonly entries: readonly Entry[]
}

export interface Kept {
  readonly anchored: readonly Anchored[]
  /** Named as kept, and nowhere to be found. */
  readonly missing: readonly string[]
}

export function keptBy(boundary: CompactBoundary, before: List<Entry>, session: Session): Kept {
  const metadata = boundary.compactMetadata
  const kept = metadata?.preservedMessages ?? segmentOf(before, metadata?.preservedSegment)
  const lists = [kept, metadata?.unansweredMessages].filter((list) => list != null)
  const missing: string[] = []
  const taken = new Set<string>()
  const anchored = lists.map((list) => {
    const uuids = list.uuids.filter((uuid) => !taken.has(uuid) && taken.add(uuid))
    const entries = withoutThinking(found(uuids, before, session, missing), metadata?.clearedThinking)
    return { anchor: list.anchorUuid, entries }
  })
  return { anchored: anchored.filter(({ entries }) => entries.length > 0), missing }
}

function segmentOf(
  before: List<Entry>,
  segment: PreservedSegment | undefined,
): PreservedMessages | undefined {
  if (segment == null) return undefined
  const uuids = [...before].map((entry) => entry.record.uuid)
  const head = uuids.indexOf(segment.headUuid)
  const tail = uuids.lastIndexOf(segment.tailUuid)
  if (head === -1 || tail < head)
    return { anchorUuid: segment.anchorUuid, uuids: [segment.headUuid, segment.tailUuid] }
  return { anchorUuid: segment.anchorUuid, uuids: uuids.slice(head, tail + 1) }
}

/** As it stood in the view, clearings and all; failing that, as it stands in the log. */
function found(
  uuids: readonly string[],
  before: List<Entry>,
  session: Session,
  missing: string[],
): readonly Entry[] {
  const shown = new Map([...before].map((entry) => [entry.record.uuid, entry]))
  return uuids.flatMap((uuid) => {
    const entry = shown.get(uuid) ?? fromLog(uuid, session)
    if (entry === undefined) missing.push(uuid)
    return entry === undefined ? [] : [entry]
  })
}

function fromLog(uuid: string, session: Session): Entry | undefined {
  const index = placeOf(session, uuid)
  const record = index === undefined ? undefined : recordAt(session, index)
  return index === undefined || record === undefined || !isKnown(record) ? undefined : { record, index }
}

/** The two marks a rewrite leaves in the log: a compaction's and a clearing's. */

import { isObject } from './json.ts'
import type { CompactMetadata, MicrocompactMetadata } from './metadata.ts'
import type { SessionRecord, SystemRecord } from './record.ts'

export interface CompactBoundary extends SystemRecord {
  readonly subtype: 'compact_boundary'
  readonly compactMetadata: CompactMetadata
}

export interface MicrocompactBoundary extends SystemRecord {
  readonly subtype: 'microcompact_boundary'
  readonly microcompactMetadata: MicrocompactMetadata
}

export function isCompactBoundary(record: SessionRecord): record is CompactBoundary {
  return record.type === 'system' && (record as SystemRecord).subtype === 'compact_boundary'
}

export function isMicrocompactBoundary(record: SessionRecord): record is MicrocompactBoundary {
  const { subtype, microcompactMetadata } = record as SystemRecord
  return record.type === 'system' && subtype === 'microcompact_boundary' && isObject(microcompactMetadata)
}

/** The provider takes the text out of what it has; the messages stay as they are. */
export function isClearedRemotely({ way }: MicrocompactMetadata): boolean {
  return way === 'cached' || way === 'native'
}

/** An act of the engine that changes the view and can be taken back. */
export function isAct(record: SessionRecord): record is CompactBoundary | MicrocompactBoundary {
  return isCompactBoundary(record) || isMicrocompactBoundary(record)
}

/** A notice: the cache that deletions were made in has lapsed, so all that stand are sent no more. */
export const CACHE_EDITS_DROPPED = 'cache_edits_dropped'

/** The first line of what stands where a tool result was. */
export const CLEARED_TEXT = '[Old tool result content cleared]'

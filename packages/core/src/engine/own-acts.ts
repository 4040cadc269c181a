/**
 * Tells the watch over the cache what the engine itself does to the next request. Acts are read off the log as
 * their records come, whoever wrote them: a compaction by another process is as well announced as one of ours.
 */
import type { Announcement } from '../breaks/announcement.ts'
import type { ProviderZone } from '../breaks/reason.ts'
import { announceAct, type CacheWatch } from '../breaks/watch.ts'
import { isCompactBoundary, isMicrocompactBoundary } from '../conversation/boundary.ts'
import type { MicrocompactMetadata } from '../conversation/metadata.ts'
import { isKnown, type SessionRecord } from '../conversation/record.ts'
import { countOf } from '../measure/figure.ts'
import type { ChangeCause } from '../prompt/changes.ts'
import type { View } from '../view/view.ts'

/** `view`: as it was before `record`. All sources that are watched here read the same conversation. */
export function watchAct(watch: CacheWatch, record: SessionRecord, view: View): CacheWatch {
  const announcement = watch.sources.size === 0 ? null : announcementOf(record, view)
  if (announcement === null) return watch
  return [...watch.sources.keys()].reduce((next, source) => announceAct(next, source, announcement), watch)
}

function announcementOf(record: SessionRecord, view: View): Announcement | null {
  if (!isKnown(record) || record.type !== 'system' || record.isSidechain === true) return null
  if (isCompactBoundary(record)) return { kind: 'compaction' }
  if (isMicrocompactBoundary(record)) return clearingOf(record.microcompactMetadata, view)
  return record.subtype === 'compact_undone' || record.subtype === 'clear_undone' ? { kind: 'undo' } : null
}

function clearingOf(metadata: MicrocompactMetadata, view: View): Announcement {
  const { way, tokensSaved } = metadata
  const price = { act: clearingText(metadata), freedTokens: countOf(tokensSaved) }
  return way === 'cached'
    ? { kind: 'cache-edits', deletedBefore: deletedSoFar(view), ...price }
    : { kind: 'clearing', ...price }
}

function clearingText({ compactedToolIds, clearedMedia }: MicrocompactMetadata): string {
  const sizeOf = (list: unknown): number => (Array.isArray(list) ? list.length : 0)
  const [results, media] = [sizeOf(compactedToolIds), sizeOf(clearedMedia)]
  const said = [
    ...(results > 0 || media === 0 ? [`cleared ${results} ${results === 1 ? 'result' : 'results'}`] : []),
    ...(media > 0 ? [`left out ${media} ${media === 1 ? 'image' : 'images'}`] : []),
  ]
  return said.join(', ')
}

/** The provider's running total, from the newest response that tells it. */
function deletedSoFar({ entries }: View): number {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const record = entries.at(index)?.record
    const deleted =
      record?.type === 'assistant' ? record.message.usage?.cache_deleted_input_tokens : undefined
    if (typeof deleted === 'number') return deleted
  }
  return 0
}

/**
 * A new epoch in the place of one that was in use. It takes in all that had waited, so whatever changed about the
 * prefix changed by it, in whichever zone.
 */
export function announceEpoch(watch: CacheWatch, source: string, causes: readonly ChangeCause[]): CacheWatch {
  const act = causes.map(causeText).join(', ')
  return ZONES.reduce((next, zone) => announceAct(next, source, { kind: 'rewrite', zone, act }), watch)
}

const ZONES: readonly ProviderZone[] = ['model', 'tools', 'system', 'other']

function causeText(cause: ChangeCause): string {
  switch (cause.kind) {
    case 'model':
      return `changed the model from ${cause.from} to ${cause.to}`
    case 'sections':
      return `rewrote ${counted('section', cause.names)}`
    case 'tools':
      return `defined ${counted('tool', cause.names)}`
    case 'parameters':
      return `changed ${counted('parameter', cause.names)}`
  }
}

const MOST_NAMES = 3

function counted(noun: string, names: readonly string[]): string {
  const more = names.length - MOST_NAMES
  const listed = names.slice(0, MOST_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
  return `${noun}${names.length === 1 ? '' : 's'} ${listed}`
}

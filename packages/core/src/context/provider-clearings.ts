/**
 * What the provider holds of the context. A provider that clears on its side gets the messages unchanged and clears them
 * again for each request, so the entries of the context still contain what the model no longer sees.
 */
import { isToolUse, toBlocks } from '../log/block.ts'
import { endsCacheEdits, isCacheEditsContent } from '../log/cache-edits.ts'
import { isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import {
  type ClearedInput,
  isClearedByProvider,
  isMicrocompactBoundary,
  type KnownRecord,
  type MicrocompactMetadata,
} from '../log/record.ts'
import type { ClearPolicy } from '../policy/clear-policy.ts'
import { applyClearingToEntries, type ContextEntry, NOTHING_CLEARED } from './context-entry.ts'

/**
 * Returns true if a record describes a clearing that the provider made. Each API request must repeat the clearing while
 * the cleared tool results are still sent.
 */
export function isProviderClearing(record: KnownRecord): boolean {
  return isMicrocompactBoundary(record) && isClearedByProvider(record.microcompactMetadata)
}

/**
 * Returns the entries with everything cleared that the provider has cleared or deleted on its side. Use it to measure
 * the context, never to send it. The policy says of which tools the provider clears the inputs with the results.
 */
export function withProviderClearings(
  entries: AppendList<ContextEntry>,
  { inputs, writeTools }: Pick<ClearPolicy, 'inputs' | 'writeTools'>,
): AppendList<ContextEntry> {
  const inputTools = inputs ? writeTools : []
  return listClearingsInForce(entries).reduce(
    (held, metadata) =>
      applyClearingToEntries(held, {
        ...metadata,
        clearedInputs: metadata.way === 'native' ? listClearedInputs(held, metadata, inputTools) : [],
      }),
    entries,
  )
}

/** Deletions from the provider's cache end when that cache has expired; context edits are repeated in each request. */
function listClearingsInForce(entries: AppendList<ContextEntry>): readonly MicrocompactMetadata[] {
  let found: MicrocompactMetadata[] = []
  for (const { record } of entries) {
    if (record.type !== 'system') continue
    if (endsCacheEdits(record)) found = found.filter(({ way }) => way === 'native')
    if (isMicrocompactBoundary(record) && isProviderClearing(record)) found.push(record.microcompactMetadata)
  }
  return found
}

function listClearedInputs(
  entries: AppendList<ContextEntry>,
  { compactedToolIds }: MicrocompactMetadata,
  inputTools: readonly string[],
): readonly ClearedInput[] {
  const ids = new Set<unknown>(Array.isArray(compactedToolIds) ? compactedToolIds : [])
  if (inputTools.length === 0 || ids.size === 0) return []
  return [...entries].flatMap(({ record }) =>
    (record.type === 'assistant' ? toBlocks(record.message.content) : []).flatMap((block) =>
      isToolUse(block) && ids.has(block.id) && inputTools.includes(block.name) && isObject(block.input)
        ? Object.keys(block.input).map((field) => ({ toolUseId: block.id, field }))
        : [],
    ),
  )
}

/** Hides the messages that only delete from the provider's cache, once that cache has expired. */
export function withoutCacheEdits(entries: AppendList<ContextEntry>): AppendList<ContextEntry> {
  const cleared = { ...NOTHING_CLEARED, whole: true }
  return AppendList.of(
    [...entries].map((entry) =>
      entry.record.type === 'user' && isCacheEditsContent(entry.record.message.content)
        ? { ...entry, cleared }
        : entry,
    ),
  )
}

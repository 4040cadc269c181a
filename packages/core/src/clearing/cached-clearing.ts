/**
 * Cached clearing: the provider deletes tool results from its cached prefix while the messages stay unchanged. The
 * deletions are stored in the log and repeated in every later API request until a compaction, or until the cache has
 * expired. Requires the profile capability `cacheEdits`.
 */
import { formatCount } from '../cache/cache-break.ts'
import { CACHE_EDITS_DROPPED_SUBTYPE, type MicrocompactMetadata, type UserRecord } from '../log/record.ts'
import {
  type ClearProposal,
  findClearCandidates,
  findClearedContent,
  toClearSelection,
} from './clear-candidates.ts'
import { type ClearInput, type ClearOutcome, findKeptFiles, pluralize } from './clear-proposal.ts'
import { findToolResult, type ToolResultIndex } from './tool-result-index.ts'

/**
 * Proposes to delete old tool results from the provider's warm cache. Nothing is written to the cache again, so the
 * deletion costs nothing.
 */
export function proposeCachedClearing(question: ClearInput): ClearOutcome<ClearProposal> {
  const { register, policy, pins, scale, context } = question
  const { fireAt, keep } = policy.clear.cached
  const { lastUserUuid } = register
  const because = `${pluralize(register.clearable.count, 'result')} stand in the cached prefix`
  if (register.clearable.count < fireAt || lastUserUuid === null) {
    return { proposal: null, why: `${because}; deletion begins at ${formatCount(fireAt)}` }
  }
  const { results } = toClearSelection(
    register,
    findClearCandidates({ register, pins, keep, keptFiles: findKeptFiles(question), placeholder: null }),
  )
  // Pinned and new results cannot be deleted. If they counted, they could trigger a deletion with every call.
  if (results.length + keep < fireAt) {
    const why = `${because}, but only ${formatCount(results.length)} of them are neither pinned nor new`
    return { proposal: null, why }
  }
  const ids = results.map(({ call }) => call.id)
  const freed = Math.round(scale * countTokens(register, ids))
  const why = `${because}: deleting ${pluralize(ids.length, 'old result')} frees ${formatCount(freed)} tokens; nothing is written again`
  const proposal: ClearProposal = {
    way: 'cached',
    metadata: {
      trigger: 'auto',
      way: 'cached',
      anchorUuid: lastUserUuid,
      preTokens: context.expected,
      tokensSaved: freed,
      compactedToolIds: ids,
      clearedAttachmentUUIDs: [],
    },
    freedTokens: freed,
    rewrittenTokens: 0,
    cost: 0,
    breakEvenCalls: 0,
    why,
    firstChange: { toolUseId: ids[0] ?? '', part: 'result' },
    released: findClearedContent(register, { results, inputs: [] }, []),
  }
  return { proposal, why }
}

function countTokens(register: ToolResultIndex, ids: readonly string[]): number {
  return ids.reduce((sum, id) => sum + (findToolResult(register, id)?.tokens ?? 0), 0)
}

/**
 * Creates the message that asks the provider to delete tool results from its cache. The message is logged, so that
 * every later API request repeats it.
 */
export function createDeletionMessage({ compactedToolIds }: MicrocompactMetadata): UserRecord['message'] {
  const edits = compactedToolIds.map((id) => ({ type: 'delete', cache_reference: id }))
  return { role: 'user', content: [{ type: 'cache_edits', edits }] }
}

/**
 * Counts the estimated tokens of tool results deleted from the provider's cache. `sinceResponse`: counts only deletions
 * after the newest response, because the usage of that response still includes the deleted results.
 */
export function countDeletedTokens(
  register: ToolResultIndex,
  { sinceResponse }: { readonly sinceResponse: boolean },
): number {
  const counting = register.deletions.filter(
    ({ lastResponsePlace }) => !sinceResponse || lastResponsePlace === register.lastResponsePlace,
  )
  return counting.reduce((sum, { ids }) => sum + countTokens(register, ids), 0)
}

/**
 * Creates the log notice that cancels all cache deletions once the cache has expired. From then on API requests contain
 * the deleted text again, and its tokens count again. Returns null if the cache is warm or nothing was deleted.
 */
export function createDeletionsExpiredNotice(
  register: ToolResultIndex,
  isWarm: boolean,
): { readonly subtype: string } | null {
  return isWarm || register.deletions.length === 0 ? null : { subtype: CACHE_EDITS_DROPPED_SUBTYPE }
}

/**
 * Cached clearing: the provider deletes tool results from its cached prefix while the messages stay unchanged. The
 * deletions are stored in the log and repeated in every later API request until a compaction or an undo, or until the
 * cache has expired. Requires the profile capability `cacheEdits`.
 */

import type { ContextView } from '../context/context-view.ts'
import { formatCount } from '../cost/prices.ts'
import { PersistentMap } from '../log/persistent-collections.ts'
import type { MicrocompactMetadata, UserRecord } from '../log/record.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import {
  type ClearProposal,
  findClearCandidates,
  findClearedContent,
  toClearSelection,
} from './clear-candidates.ts'
import {
  type ClearProposalInput,
  computeKeptFilesLimit,
  formatCountedNoun,
  type ProposalOutcome,
} from './clear-proposal.ts'
import {
  addResultTally,
  countResultTokens,
  type ToolResultIndex,
  tallyClearableResults,
} from './tool-result-index.ts'

/**
 * Proposes to delete old tool results from the provider's warm cache. Nothing is written to the cache again, so the
 * deletion costs nothing. No proposal while fewer than `policy.clear.cached.fireAt` results could be deleted.
 */
export function proposeCacheDeletion(question: ClearProposalInput): ProposalOutcome<ClearProposal> {
  const { register, policy, pins, scale, context } = question
  const { fireAt, keep } = policy.clear.cached
  const { lastUserUuid } = register
  const because = `${formatCountedNoun(register.clearable.count, 'result')} stand in the cached prefix`
  if (register.clearable.count < fireAt || lastUserUuid === null) {
    return { proposal: null, why: `${because}; deletion begins at ${formatCount(fireAt)}` }
  }
  const { results } = toClearSelection(
    register,
    findClearCandidates({
      register,
      pins,
      keep,
      keptFiles: computeKeptFilesLimit(question),
      placeholder: null,
    }),
  )
  // Pinned and new results are not counted, because they cannot be deleted: they could trigger a deletion with every call.
  if (results.length + keep < fireAt) {
    const why = `${because}, but only ${formatCount(results.length)} of them are neither pinned nor new`
    return { proposal: null, why }
  }
  const ids = results.map(({ call }) => call.id)
  const freed = Math.round(scale * countResultTokens(register, ids))
  const why = `${because}: deleting ${formatCountedNoun(ids.length, 'old result')} frees ${formatCount(freed)} tokens; nothing is written again`
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

/**
 * Creates the message that asks the provider to delete tool results from its cache. The message is logged, so that
 * every later API request repeats it.
 */
export function createCacheDeletionMessage(
  { compactedToolIds }: MicrocompactMetadata,
  { spelling }: Pick<ProviderProfile, 'spelling'>,
): UserRecord['message'] {
  return { role: 'user', content: [spelling.deleteResults(compactedToolIds)] }
}

// Deletions in the index of tool results: added, cancelled and counted.

/**
 * Adds a deletion of these results from the provider's cache to the index. Every later request repeats it, after the record
 * `anchorUuid`; without that, the index stays as it is.
 */
export function withCacheDeletions(
  register: ToolResultIndex,
  ids: readonly string[],
  { anchorUuid }: MicrocompactMetadata,
): ToolResultIndex {
  if (typeof anchorUuid !== 'string' || ids.length === 0) return register
  const { lastResponsePlace, deletions } = register
  return { ...register, deletions: [...deletions, { ids, lastResponsePlace }] }
}

/**
 * Removes all cache deletions from the index, and counts their results as clearable again. Needed when the cache has
 * expired: API requests then contain the deleted text again.
 */
export function cancelCacheDeletions(register: ToolResultIndex): ToolResultIndex {
  const back = tallyClearableResults(
    register,
    register.deletions.flatMap(({ ids }) => ids),
  )
  let removedByProvider = PersistentMap.empty<'cached' | 'native'>()
  for (const [id, way] of register.removedByProvider)
    if (way === 'native') removedByProvider = removedByProvider.set(id, way)
  const { clearable, clearableSinceLast } = register
  return {
    ...register,
    removedByProvider,
    deletions: [],
    clearable: addResultTally(clearable, back),
    clearableSinceLast: addResultTally(clearableSinceLast, back),
  }
}

/**
 * Counts the estimated tokens of tool results deleted from the provider's cache. `sinceResponse`: counts only deletions
 * after the newest response, because the usage of that response still includes the deleted results.
 */
export function countCacheDeletedTokens(
  register: ToolResultIndex,
  { sinceResponse }: { readonly sinceResponse: boolean },
): number {
  const counting = register.deletions.filter(
    ({ lastResponsePlace }) => !sinceResponse || lastResponsePlace === register.lastResponsePlace,
  )
  return counting.reduce((sum, { ids }) => sum + countResultTokens(register, ids), 0)
}

/**
 * Counts the estimated tokens that the entries still show but the provider has removed. With `isMeasured` (the size is
 * taken from a response's usage) only deletions after that response count: its usage excludes what was removed before.
 */
export function countProviderRemovedTokens(register: ToolResultIndex, isMeasured: boolean): number {
  const deleted = countCacheDeletedTokens(register, { sinceResponse: isMeasured })
  if (isMeasured) return deleted
  const cleared = [...register.removedByProvider].flatMap(([id, way]) => (way === 'native' ? [id] : []))
  return deleted + countResultTokens(register, cleared)
}

/** Returns the total of tokens deleted from the provider's cache, from the newest response that reports it; 0 if none does. */
export function findReportedDeletedTokens({ entries }: Pick<ContextView, 'entries'>): number {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const record = entries.at(index)?.record
    const deleted = record?.type === 'assistant' ? record.usage?.removed : undefined
    if (typeof deleted === 'number') return deleted
  }
  return 0
}

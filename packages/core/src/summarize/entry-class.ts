/** What an entry is to a compaction: the person's own word, a response, or a notice that must go on standing. */
import { blocksOf, isMedia } from '../conversation/block.ts'
import { isClearedRemotely, isMicrocompactBoundary } from '../conversation/boundary.ts'
import { isPrompt, isSyntheticError, type KnownRecord } from '../conversation/record.ts'
import { typedText } from '../conversation/typed-text.ts'
import type { Entry } from '../view/entry.ts'

/** Said by the person: text they typed, also beside the answer to a call, or a picture without a word. */
export function isPersons(record: KnownRecord | undefined): boolean {
  if (record === undefined || record.type !== 'user') return false
  if (typedText(record) !== null) return true
  return isPrompt(record) && blocksOf(record.message.content).some(isMedia)
}

/** Place of the last record of a response; −1 where the model has said nothing. */
export function lastResponse(entries: readonly Entry[]): number {
  return entries.findLastIndex(({ record }) => record.type === 'assistant' && !isSyntheticError(record))
}

/** A clearing that the provider makes has to be sent again with every request for as long as its results are. */
export function isCarriedOn(record: KnownRecord | undefined): boolean {
  return (
    record !== undefined && isMicrocompactBoundary(record) && isClearedRemotely(record.microcompactMetadata)
  )
}

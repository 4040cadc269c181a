/** Clears as proposed: one record, and for deletions in the provider's cache the word to it beside. */
import type { ClearProposal } from '../../clear/proposal.ts'
import type { Halt, TurnEvent } from '../turn-event.ts'
import { append, type TurnRun, type Unlinked } from '../turn-run.ts'
import { runCleanups } from './cleanups.ts'
import type { Room } from './room.ts'

export async function* applyClearing(
  run: TurnRun,
  room: Room,
  clearing: ClearProposal,
): AsyncGenerator<TurnEvent, Halt | null> {
  const halt = yield* append(run, recordsFor(clearing))
  if (halt !== null) return halt
  const { preTokens, tokensSaved = 0 } = clearing.metadata
  yield {
    type: 'microcompact',
    id: boundaryUuid(run),
    way: clearing.way,
    clearing,
    tokensBefore: preTokens,
    tokensAfter: Math.max(0, preTokens - tokensSaved),
  }
  const rewritten = { kind: 'clear' as const, source: run.host.source, ...clearing.released }
  yield { type: 'rewritten', rewritten, faults: runCleanups(room.cleanups ?? [], rewritten) }
  return null
}

function recordsFor({ metadata, way }: ClearProposal): readonly Unlinked[] {
  const boundary: Unlinked = {
    type: 'system',
    subtype: 'microcompact_boundary',
    content: 'Context microcompacted',
    level: 'info',
    isMeta: false,
    microcompactMetadata: metadata,
  }
  if (way !== 'cached') return [boundary]
  const edits = metadata.compactedToolIds.map((id) => ({ type: 'delete', cache_reference: id }))
  const word: Unlinked = {
    type: 'user',
    isMeta: true,
    message: { role: 'user', content: [{ type: 'cache_edits', edits }] },
  }
  return [boundary, word]
}

function boundaryUuid({ state }: TurnRun): string {
  for (let place = state.view.entries.length - 1; place >= 0; place -= 1) {
    const record = state.view.entries.at(place)?.record
    if (record?.type === 'system' && record.subtype === 'microcompact_boundary') return record.uuid
  }
  return ''
}

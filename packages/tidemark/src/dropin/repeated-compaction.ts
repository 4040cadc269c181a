/**
 * Keeps a compaction in effect when a client changes messages that the compaction replaced or quotes. The client's
 * version is recorded, then the compaction is repeated after it, without the texts that the client has removed.
 */
import type { SessionState } from '@tidemark/core/engine/session-state'
import { isCompactBoundary, isSyntheticError, type KnownRecord } from '@tidemark/core/log/record'
import { listBranchRecords } from '@tidemark/core/log/session-log'
import { repeatCompaction } from '@tidemark/core/turn/switch-branch'
import type { ClientRequest } from '@tidemark/wire/providers/client-request'
import {
  alignParts,
  type ConversationPart,
  listInputParts,
  listLoggedParts,
} from '../session/conversation-parts.ts'
import { type OpenSession, runOperation } from '../session/open-session.ts'
import { createTurnContext } from '../session/turn-host.ts'
import type { HistoryMatch } from './client-history.ts'
import { createTextRemover, listShortenedTexts } from './removed-texts.ts'

/** The newest compaction in effect, before the client's version is recorded. */
interface CompactionToRepeat {
  /** The records of the compaction, and of each clearing after it. */
  readonly rewrites: readonly (readonly KnownRecord[])[]
  /** True if the client still has everything that the compaction left in the context, so that it can be repeated. */
  readonly canStay: boolean
  /** Message numbers, in the client's list, of the messages that were kept after the summary. */
  readonly preserved: ReadonlySet<number>
  /** Message numbers, in the client's list, of all messages that the model is shown. */
  readonly shown: ReadonlySet<number>
  /** Message number, in the client's list, of the last message that the log has. */
  readonly last: number
  /** Removes from the texts of the compaction what the client has removed; null if they do not contain it. */
  readonly changeText: ((text: string) => string) | null
}

/** Returns the newest compaction in effect and the clearings after it, if the client's change needs a branch; else null. */
export function findCompactionToRepeat(
  { state }: OpenSession,
  { continues, system, messages }: ClientRequest,
  { divergesAt, keepsCompaction }: HistoryMatch,
): CompactionToRepeat | null {
  const rewrites = divergesAt === null || continues !== null ? [] : listRewrites(state)
  if (rewrites[0] === undefined) return null
  const branch = listBranchRecords(state.session).filter((record) => !isSyntheticError(record))
  const [known, given] = [listLoggedParts(branch), listInputParts(messages)]
  const places = alignParts(known, given)
  const moved = new Map<number, number>()
  for (const [index, place] of places.entries()) {
    const [old, now] = [known[index], given[place ?? -1]]
    if (old !== undefined && now !== undefined) moved.set(old.message, now.message)
  }
  const numbers = numberMessages(branch, known)
  const toNumbers = (uuids: readonly string[]): ReadonlySet<number> =>
    new Set(uuids.flatMap((uuid) => moved.get(numbers.get(uuid) ?? -1) ?? []))
  const kept = rewrites[0].find(isCompactBoundary)?.compactMetadata?.preservedMessages?.uuids ?? []
  const changes = listShortenedTexts(known, given, places)
  const changeText = createTextRemover(changes, rewrites[0].map(readOwnTexts), [system, messages])
  return {
    rewrites,
    // A summary that the provider wrote as a block must not be edited. It is dropped, and the engine compacts anew if needed.
    canStay:
      keepsCompaction() && (changeText === null || !rewrites[0].some(({ type }) => type === 'assistant')),
    preserved: toNumbers(kept),
    shown: toNumbers(state.view.entries.toArray().map(({ record }) => record.uuid)),
    last: Math.max(-1, ...moved.values()),
    changeText,
  }
}

/** Repeats the compaction on the client's branch, unless one is in effect there or `canStay` is false. */
export async function repeatCompactionOnBranch(
  session: OpenSession,
  { rewrites, canStay, preserved, shown, last, changeText }: CompactionToRepeat,
): Promise<void> {
  if (!canStay || listRewrites(session.state).length > 0) return
  const branch = listBranchRecords(session.state.session).filter((record) => !isSyntheticError(record))
  const numbers = [...numberMessages(branch, listLoggedParts(branch))]
  const select = (isSelected: (number: number) => boolean): readonly string[] =>
    numbers.flatMap(([uuid, number]) => (isSelected(number) ? [uuid] : []))
  const copy = {
    preserved: select((number) => preserved.has(number)),
    last: select((number) => !preserved.has(number) && (shown.has(number) || number > last)),
    changeText: changeText ?? ((text: string) => text),
  }
  await runOperation(session, repeatCompaction(createTurnContext(session), rewrites, copy))
}

/** Lists the records of the newest compaction in effect, and of each clearing after it. */
function listRewrites({ session, view }: SessionState): readonly (readonly KnownRecord[])[] {
  const first = view.rewrites.findLastIndex(({ kind }) => kind === 'compact')
  if (first === -1) return []
  const branch = listBranchRecords(session)
  return view.rewrites
    .slice(first)
    .map((act) =>
      branch.filter(
        ({ uuid, batch }) => uuid === act.uuid || (act.batchId !== null && batch?.id === act.batchId),
      ),
    )
}

/** Returns the parts of a record that hold texts which the compaction added. */
function readOwnTexts(record: KnownRecord): unknown {
  const { message, attachment } = record as { readonly message?: unknown; readonly attachment?: unknown }
  return record.type === 'system' ? null : [message, attachment]
}

/** Returns the message number of each record of the conversation. `parts`: the parts of these records. */
function numberMessages(
  records: readonly KnownRecord[],
  parts: readonly ConversationPart[],
): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>()
  const responses = new Map<string, number>()
  for (const { from, message, id } of parts) {
    numbers.set(records[from.index]?.uuid ?? '', message)
    if (id !== null) responses.set(id, message)
  }
  // Thinking has a record of its own before the other blocks of its response.
  const all = records.flatMap((record): [string, number][] => {
    const number =
      numbers.get(record.uuid) ??
      (record.type === 'assistant' && record.isCompactSummary !== true
        ? responses.get(record.message.id)
        : undefined)
    return number === undefined ? [] : [[record.uuid, number]]
  })
  return new Map(all)
}

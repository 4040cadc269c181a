/**
 * Keeps a compaction in effect when a host has another version of messages that it replaced: the host's version is in the
 * log from then on, and the compaction is made again after it, without the words that the host has removed.
 */
import {
  isCompactBoundary,
  isObject,
  isSyntheticError,
  type KnownRecord,
  listBranchRecords,
  repeatCompaction,
} from '@tidemark/core'
import { listLoggedParts } from './conversation-parts.ts'
import type { HistoryMatch } from './host-history.ts'
import type { HostRequest } from './host-request.ts'
import { type OpenSession, runOperation } from './open-session.ts'
import { createTurnContext } from './turn-host.ts'

/** The newest compaction in effect, and the conversation under it, before the host's version is recorded. */
export interface StandingCompaction {
  /** The records of the compaction, and of each clearing after it. */
  readonly rewrites: readonly (readonly KnownRecord[])[]
  /** Numbers of the messages that it keeps after its summary, and of all that are shown. */
  readonly preserved: ReadonlySet<number>
  readonly shown: ReadonlySet<number>
  /** Number of the last message. */
  readonly last: number
  /** The words of the conversation. */
  readonly words: ReadonlySet<string>
}

/** Returns the compaction that a change by the host would void although it can stay; null if there is none. */
export function readStandingCompaction(
  { state }: OpenSession,
  { divergesAt, isInPlace }: HistoryMatch,
): StandingCompaction | null {
  const first = divergesAt === null || !isInPlace ? -1 : state.view.rewrites.findLastIndex(isCompaction)
  if (first === -1) return null
  const branch = listBranchRecords(state.session)
  const rewrites = state.view.rewrites
    .slice(first)
    .map((act) =>
      branch.filter(
        ({ uuid, batch }) => uuid === act.uuid || (act.batchId !== null && batch?.id === act.batchId),
      ),
    )
  const numbers = numberMessages(branch)
  const toNumbers = (uuids: readonly string[]): ReadonlySet<number> =>
    new Set(uuids.flatMap((uuid) => numbers.get(uuid) ?? []))
  const kept = rewrites[0]?.find(isCompactBoundary)?.compactMetadata?.preservedMessages?.uuids ?? []
  return {
    rewrites,
    preserved: toNumbers(kept),
    shown: toNumbers(state.view.entries.toArray().map(({ record }) => record.uuid)),
    last: Math.max(-1, ...numbers.values()),
    words: listWords(listLoggedParts(branch).map(({ block }) => block)),
  }
}

/** Makes the compaction again on the branch of the host, unless it is still in effect there. */
export async function restoreCompaction(
  session: OpenSession,
  { system, messages }: HostRequest,
  { rewrites, preserved, shown, last, words }: StandingCompaction,
): Promise<void> {
  if (session.state.view.rewrites.some(isCompaction)) return
  const present = listWords([system, messages])
  const removed = [...words].filter((word) => !present.has(word))
  const changeText = createRemover(removed)
  // What the provider wrote as a block must not be changed: without it, the conversation is compacted anew if needed.
  const isBound = rewrites[0]?.some(
    (record) => record.type === 'assistant' && changeText(JSON.stringify(record)) !== JSON.stringify(record),
  )
  if (isBound === true) return
  const numbers = [...numberMessages(listBranchRecords(session.state.session))]
  const select = (isSelected: (number: number) => boolean): readonly string[] =>
    numbers.flatMap(([uuid, number]) => (isSelected(number) ? [uuid] : []))
  const copy = {
    preserved: select((number) => preserved.has(number)),
    last: select((number) => !preserved.has(number) && (shown.has(number) || number > last)),
    changeText,
  }
  await runOperation(session, repeatCompaction(createTurnContext(session), rewrites, copy))
}

function isCompaction({ kind }: { readonly kind: string }): boolean {
  return kind === 'compact'
}

/** Returns the number of the message that each record of the conversation belongs to. */
function numberMessages(branch: readonly KnownRecord[]): ReadonlyMap<string, number> {
  const records = branch.filter((record) => !isSyntheticError(record))
  const numbers = new Map<string, number>()
  const responses = new Map<string, number>()
  for (const { from, message, id } of listLoggedParts(records)) {
    numbers.set(records[from.index]?.uuid ?? '', message)
    if (id !== null) responses.set(id, message)
  }
  // Thinking is in a record of its own, before the blocks that it belongs to.
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

/** Shorter words are in every conversation. */
const MIN_WORD = 4

/** Lists the words of all texts in a value: what stands between spaces and quotes, and the letters and digits in it. */
function listWords(value: unknown, words = new Set<string>()): ReadonlySet<string> {
  if (typeof value === 'string') {
    for (const part of value.split(/[\s"'`,;()[\]{}<>]+/u)) {
      const whole = part.replace(/^\p{P}+|\p{P}+$/gu, '')
      for (const word of [whole, ...whole.split(/[^\p{L}\p{N}]+/u)])
        if (word.length >= MIN_WORD) words.add(word)
    }
  } else if (isObject(value) || Array.isArray(value))
    for (const item of Object.values(value)) listWords(item, words)
  return words
}

/** Returns a function that takes the words out of a text, the longest first. */
function createRemover(words: readonly string[]): (text: string) => string {
  const sorted = words.toSorted((one, other) => other.length - one.length)
  return (text) => {
    let rest = text
    for (const word of sorted) if (rest.includes(word)) rest = rest.replaceAll(word, REMOVED)
    return rest
  }
}

const REMOVED = '[removed]'

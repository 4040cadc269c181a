/**
 * Creates the receipt of a compaction: ids of the records that left the context, and facts that the new context no
 * longer mentions. Compares the texts of the contexts before and after, not what the engine meant to keep.
 */

import { type ContextEntry, isVisibleToModel, toTracedBlocks } from '../context/context-entry.ts'
import { addRecordsInSteps, createFactsKeeper } from '../facts/session-facts.ts'
import { collectJsonStrings } from '../facts/tool-calls.ts'
import type { UserPrompt } from '../facts/user-prompts.ts'
import type { KnownRecord } from '../log/record.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import { createPathMentionCheck, findNamesInText } from '../text/code-in-text.ts'
import { redact } from '../text/redact.ts'
import { removeControlCharacters } from '../text/truncate-text.ts'
import { findNameMentions, weighNames } from './ledger.ts'
import { createMissingCharacterCounter } from './summary-pieces.ts'

/** What a compaction removed from the context, and what of it the new context no longer mentions. */
export interface Receipt {
  /** uuids of the records that the summary replaces. */
  readonly summarised: readonly string[]
  /** uuids of the records kept verbatim. */
  readonly kept: readonly string[]
  readonly carried: readonly ReceiptAttachment[]
  /** Context sources of which something is left out because they failed or took too long; missing if there are none. */
  readonly leftOut?: readonly LeftOutSource[]
  readonly lost: LostItems
  /** Facts that the summary lacks, too large to be added: uuids of messages and results, file paths, texts of tasks. */
  readonly unfit: readonly string[]
  /** uuids of pinned records that were summarised because the pin budget was used up. */
  readonly unpinned: readonly string[]
  /** uuids of records that the model was shown and that left the context; the history tool finds each by its id. */
  readonly retrievable: readonly string[]
}

interface ReceiptAttachment {
  readonly kind: string
  readonly key: string
}

interface LeftOutSource {
  readonly source: string
  readonly why: string
}

interface LostItems {
  readonly files: readonly LostItem[]
  /** Texts of the user that the new context lacks or has only in part, however they arrived. */
  readonly userMessages: readonly LostUserMessage[]
  readonly errors: readonly LostError[]
  /**
   * Code identifiers that the new context no longer mentions, most important first; `moreIdentifiers`: how many are not listed.
   */
  readonly identifiers: readonly LostItem[]
  readonly moreIdentifiers: number
}

/** A fact that the new context no longer mentions, and the uuid of the record that contains it. */
interface LostItem {
  readonly text: string
  readonly uuid: string
}

interface LostError extends LostItem {
  /** The command that failed; `isSettled`: it has succeeded since. */
  readonly command: string
  readonly isSettled: boolean
}

interface LostUserMessage extends LostItem {
  /** Number of characters that the new context lacks: the whole text, or the part cut from its middle. */
  readonly characters: number
}

interface ReceiptInput {
  readonly before: readonly ContextEntry[]
  /**
   * Log records that the summary replaces, including those that earlier compactions summarised. A fact in them is lost
   * if the previous context mentioned it and the new one does not.
   */
  readonly history?: readonly KnownRecord[]
  readonly after: readonly ContextEntry[]
  readonly summarised: readonly ContextEntry[]
  readonly carried: readonly ReceiptAttachment[]
  readonly leftOut?: readonly LeftOutSource[]
  readonly unfit?: readonly string[]
  readonly unpinned?: readonly string[]
}

const MAX_IDENTIFIERS = 200

/** Creates the receipt from the contexts before and after. Reads all text of both, so it takes time in a long session. */
export function* createReceipt(input: ReceiptInput): WorkInSteps<Receipt> {
  const { before, after, summarised, carried, leftOut = [], unfit = [], unpinned = [] } = input
  const shown = new Set(after.map(({ record }) => record.uuid))
  return {
    summarised: summarised.map(({ record }) => record.uuid),
    kept: before
      .filter((entry) => isVisibleToModel(entry) && shown.has(entry.record.uuid))
      .map(({ record }) => record.uuid),
    carried: carried.map(({ kind, key }) => ({ kind, key })),
    ...(leftOut.length === 0 ? {} : { leftOut }),
    lost: yield* findLosses(input),
    retrievable: before
      .filter((entry) => isVisibleToModel(entry) && !shown.has(entry.record.uuid))
      .map(({ record }) => record.uuid),
    unfit,
    unpinned,
  }
}

function* findLosses(input: ReceiptInput): WorkInSteps<LostItems> {
  const { before, after, history = [] } = input
  const records = before.filter(isVisibleToModel).map(({ record }) => record)
  const inView = new Set(records.map(({ uuid }) => uuid))
  const earlier = history.filter(({ uuid }) => !inView.has(uuid))
  const keeper = createFactsKeeper()
  yield* addRecordsInSteps(keeper, [...earlier, ...records])
  const facts = keeper.read()
  const readText = createCleanTextReader()
  const textAfter = yield* joinTexts(after, readText)
  // The text before is needed only to find facts of records that had left the context earlier.
  const textBefore = earlier.length === 0 ? '' : yield* joinTexts(before, readText)
  const isLost = (uuid: string, isIn: (text: string) => boolean): boolean =>
    !isIn(textAfter) && (inView.has(uuid) || isIn(textBefore))
  const hasPathAfter = createPathMentionCheck(textAfter, facts.folders)
  yield textAfter.length
  const hasPathBefore = createPathMentionCheck(textBefore, facts.folders)
  yield textBefore.length
  const identifiers = yield* findLostIdentifiers(records, earlier, textAfter)
  const ownTexts = new Map(after.map((entry) => [entry.record.uuid, readText(entry)]))
  const userMessages = findLostMessages(facts.messages, { textAfter, textBefore, ownTexts, inView })
  yield textAfter.length + textBefore.length
  return {
    files: facts.files
      .filter(({ path, uuid }) => !hasPathAfter(path) && (inView.has(uuid) || hasPathBefore(path)))
      .map(({ path, uuid }) => ({ text: path, uuid })),
    userMessages,
    errors: withoutRepeats(
      facts.failures
        .filter(({ error, uuid }) => isLost(uuid, (text) => text.includes(error.trim())))
        .map(({ error, uuid, command, isSettled }) => ({ text: error, uuid, command, isSettled })),
    ),
    identifiers: identifiers.slice(0, MAX_IDENTIFIERS),
    moreIdentifiers: Math.max(0, identifiers.length - MAX_IDENTIFIERS),
  }
}

interface LostMessagesInput {
  readonly textAfter: string
  readonly textBefore: string
  /** The texts of the new context by the uuid of their record. */
  readonly ownTexts: ReadonlyMap<string, string>
  /** uuids of the records of the previous context. */
  readonly inView: ReadonlySet<string>
}

function findLostMessages(
  messages: readonly UserPrompt[],
  { textAfter, textBefore, ownTexts, inView }: LostMessagesInput,
): readonly LostUserMessage[] {
  const countAfter = createMissingCharacterCounter(textAfter)
  const countBefore = createMissingCharacterCounter(textBefore)
  return messages.flatMap(({ uuid, parts }) =>
    parts.flatMap((part) => {
      const characters = countAfter(part, ownTexts.get(uuid))
      // An earlier compaction may have cut the text already; only what is missing in addition is lost now.
      const isNew = characters > 0 && (inView.has(uuid) || characters > countBefore(part))
      return isNew ? [{ text: part.text, uuid, characters }] : []
    }),
  )
}

/** Several commands may have failed with the same error, which is listed once. */
function withoutRepeats(items: readonly LostError[]): readonly LostError[] {
  const seen = new Set<string>()
  return items.filter(({ text }) => !seen.has(text.trim()) && seen.add(text.trim()))
}

/**
 * Finds the identifiers of the previous context that the new one lacks. Identifiers of an earlier summary count only if
 * the records that it replaced have them: other words were the summarizer's and are no facts of the session.
 */
function* findLostIdentifiers(
  records: readonly KnownRecord[],
  earlier: readonly KnownRecord[],
  after: string,
): WorkInSteps<readonly LostItem[]> {
  const present = findNamesInText(after).identifiers
  const { identifiers } = yield* weighNames(yield* findNameMentions(records))
  const lost = identifiers.filter(({ name }) => !present.has(name))
  const summaries = new Set(records.flatMap((one) => (one.isCompactSummary === true ? [one.uuid] : [])))
  const needsEarlier = earlier.length > 0 && lost.some(({ uuid }) => summaries.has(uuid))
  const replaced = needsEarlier ? yield* findNameMentions(earlier) : []
  const known = new Set(replaced.flatMap(({ names }) => [...names.identifiers.keys()]))
  return lost
    .filter(({ name, uuid }) => !needsEarlier || !summaries.has(uuid) || known.has(name))
    .toSorted((one, other) => other.weight - one.weight || (one.name < other.name ? -1 : 1))
    .map(({ name, uuid }) => ({ text: name, uuid }))
}

function* joinTexts(
  entries: readonly ContextEntry[],
  readText: (entry: ContextEntry) => string,
): WorkInSteps<string> {
  const texts: string[] = []
  for (const entry of entries) {
    const text = readText(entry)
    texts.push(text)
    yield text.length
  }
  return texts.join('\n')
}

/**
 * Creates a function that returns all text of an entry that the model is shown, without credentials. Each entry is
 * cleaned once. The texts are remembered for one receipt only: tied to the entries they would stay in memory, because
 * an undo needs the entries.
 */
function createCleanTextReader(): (entry: ContextEntry) => string {
  const known = new Map<ContextEntry, string>()
  return (entry) => {
    const text = known.get(entry) ?? redact(removeControlCharacters(listShownTexts(entry).join('\n')))
    known.set(entry, text)
    return text
  }
}

/**
 * Returns every text of an entry that the model is shown; none if it is not visible. An attachment of another program
 * is shown as JSON; its original texts, with their line breaks, are returned as well.
 */
function listShownTexts(entry: ContextEntry): readonly string[] {
  if (!isVisibleToModel(entry)) return []
  const texts = toTracedBlocks(entry).flatMap(({ block }) => collectJsonStrings(block))
  const { record } = entry
  if (record.type !== 'attachment' || record.attachment.ended === true) return texts
  const [shown = ''] = texts.slice(-1)
  return [...texts, ...collectJsonStrings(record.attachment).filter((text) => !shown.includes(text))]
}

/**
 * The receipt of a compaction: what left the context, by id, and what of it the new context no longer mentions.
 * Computed by comparing the texts of both contexts, not from what the engine meant to keep.
 */

import type { ContextEntry } from '../context/entry.ts'
import { isVisibleToModel, toMessageParts } from '../context/entry.ts'
import type { Block } from '../log/block.ts'
import type { KnownRecord } from '../log/record.ts'
import { collectStrings } from '../log/tool-calls.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { isFileMentioned } from './check-summary.ts'
import { findMentions, findNames, weighNames } from './ledger.ts'
import { extractFacts, listRequiredTexts } from './session-facts.ts'

export interface Receipt {
  /** Records that the summary replaces. */
  readonly summarised: readonly string[]
  /** Records kept verbatim. */
  readonly kept: readonly string[]
  readonly carried: readonly ReceiptAttachment[]
  readonly lost: LostItems
  /** Missing from the summary and too large to be added: uuids of messages and results, paths, texts of tasks. */
  readonly unfit: readonly string[]
  /** Pinned records that were summarised because the pin budget was spent. */
  readonly unpinned: readonly string[]
  /** Records no longer in the context that the history tool finds by id. */
  readonly retrievable: readonly string[]
}

interface ReceiptAttachment {
  readonly kind: string
  readonly key: string
}

interface LostItems {
  readonly files: readonly LostItem[]
  readonly userMessages: readonly LostItem[]
  readonly errors: readonly LostItem[]
  /** Most important first; `moreIdentifiers` counts the ones not listed. */
  readonly identifiers: readonly LostItem[]
  readonly moreIdentifiers: number
}

/** Something lost, and the record that contains it. */
interface LostItem {
  readonly text: string
  readonly uuid: string
}

interface ReceiptInput {
  readonly before: readonly ContextEntry[]
  /** Records already summarised before. What the last summary still mentioned of them and the new context does not is lost. */
  readonly history?: readonly KnownRecord[]
  readonly after: readonly ContextEntry[]
  readonly summarised: readonly ContextEntry[]
  readonly carried: readonly ReceiptAttachment[]
  readonly unfit?: readonly string[]
  readonly unpinned?: readonly string[]
  /** Removes credentials, as for the summary. */
  readonly clean: (text: string) => string
  readonly messages: { readonly each: number }
  readonly estimate: Pick<Estimator, 'text'>
}

const MAX_IDENTIFIERS = 200

export function createReceipt(input: ReceiptInput): Receipt {
  const { before, after, summarised, carried, unfit = [], unpinned = [] } = input
  const shown = new Set(after.map(({ record }) => record.uuid))
  return {
    summarised: summarised.map(({ record }) => record.uuid),
    kept: before
      .filter((entry) => isVisibleToModel(entry) && shown.has(entry.record.uuid))
      .map(({ record }) => record.uuid),
    carried: carried.map(({ kind, key }) => ({ kind, key })),
    lost: findLosses(input),
    retrievable: before.map(({ record }) => record.uuid).filter((uuid) => !shown.has(uuid)),
    unfit,
    unpinned,
  }
}

function findLosses(input: ReceiptInput): LostItems {
  const { before, after, clean, messages, estimate, history = [] } = input
  const records = before.filter(isVisibleToModel).map(({ record }) => record)
  const inView = new Set(records.map(({ uuid }) => uuid))
  const joinTexts = (entries: readonly ContextEntry[]): string => clean(entries.map(entryText).join('\n'))
  const [textBefore, textAfter] = [joinTexts(before), joinTexts(after)]
  const facts = extractFacts([...history.filter(({ uuid }) => !inView.has(uuid)), ...records], clean)
  const isLost = (uuid: string, isIn: (text: string) => boolean): boolean =>
    !isIn(textAfter) && (inView.has(uuid) || isIn(textBefore))
  const rules = { eachTokens: messages.each, estimate }
  const identifiers = findLostIdentifiers(records, textAfter)
  return {
    files: facts.files
      .filter(({ path, uuid }) => isLost(uuid, (text) => isFileMentioned(text, path)))
      .map(({ path, uuid }) => ({ text: path, uuid })),
    userMessages: facts.messages
      .filter((message) => {
        const parts = listRequiredTexts(message, rules)
        return isLost(message.uuid, (text) => parts.every((part) => text.includes(part)))
      })
      .map(({ text, uuid }) => ({ text, uuid })),
    errors: facts.commands
      .filter(({ error, uuid }) => isLost(uuid, (text) => text.includes(error.trim())))
      .map(({ error, uuid }) => ({ text: error, uuid })),
    identifiers: identifiers.slice(0, MAX_IDENTIFIERS),
    moreIdentifiers: Math.max(0, identifiers.length - MAX_IDENTIFIERS),
  }
}

function findLostIdentifiers(records: readonly KnownRecord[], after: string): readonly LostItem[] {
  const present = findNames(after).identifiers
  const { identifiers } = weighNames(findMentions(records))
  return identifiers
    .filter(({ name }) => !present.has(name))
    .toSorted((one, other) => other.weight - one.weight || (one.name < other.name ? -1 : 1))
    .map(({ name, uuid }) => ({ text: name, uuid }))
}

/** Every text of an entry that the model is shown. */
function entryText(entry: ContextEntry): string {
  if (!isVisibleToModel(entry)) return ''
  return toMessageParts(entry)
    .flatMap(({ block }: { readonly block: Block }) => collectStrings(block))
    .join('\n')
}

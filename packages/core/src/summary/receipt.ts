/**
 * The receipt of a compaction: what left the view, by id, and what of it is no longer said anywhere in the new one.
 * Told by comparing the texts of both views, not by what the engine meant to keep.
 */

import type { Entry } from '../context/entry.ts'
import { isShown, partsOf } from '../context/message-parts.ts'
import type { Block } from '../log/block.ts'
import type { KnownRecord } from '../log/record.ts'
import { stringsIn } from '../log/tool-calls.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { mentionsFile } from './check-summary.ts'
import { mentionsOf, namesIn, weighNames } from './ledger.ts'
import { factsOf, mustHold } from './session-facts.ts'

export interface Receipt {
  /** Records that the summary stands for. */
  readonly summarised: readonly string[]
  /** Records that are shown as they were. */
  readonly kept: readonly string[]
  readonly carried: readonly CarriedThing[]
  readonly lost: Losses
  /** What the summary lacked and found no room to be put back: uuids of messages and results, paths, texts of tasks. */
  readonly unfit: readonly string[]
  /** Records that were pinned and summarised all the same: their budget was spent. */
  readonly unpinned: readonly string[]
  /** Records no longer shown that the log gives back, by id. */
  readonly retrievable: readonly string[]
}

interface CarriedThing {
  readonly kind: string
  readonly key: string
}

interface Losses {
  readonly files: readonly Lost[]
  readonly userMessages: readonly Lost[]
  readonly errors: readonly Lost[]
  /** The weightiest first; `moreIdentifiers` says how many others there are. */
  readonly identifiers: readonly Lost[]
  readonly moreIdentifiers: number
}

/** What is gone, and the record to read it in. */
interface Lost {
  readonly text: string
  readonly uuid: string
}

interface ReceiptQuestion {
  readonly before: readonly Entry[]
  /** Records that only earlier summaries still spoke of: what the last of them said and the new view does not is lost. */
  readonly history?: readonly KnownRecord[]
  readonly after: readonly Entry[]
  readonly summarised: readonly Entry[]
  readonly carried: readonly CarriedThing[]
  readonly unfit?: readonly string[]
  readonly unpinned?: readonly string[]
  /** What may be said of a text in a receipt: as for the summary. */
  readonly clean: (text: string) => string
  readonly messages: { readonly each: number }
  readonly estimate: Pick<Estimator, 'text'>
}

const MOST_IDENTIFIERS = 200

export function receiptOf(question: ReceiptQuestion): Receipt {
  const { before, after, summarised, carried, unfit = [], unpinned = [] } = question
  const shown = new Set(after.map(({ record }) => record.uuid))
  const gone = before.filter(({ record }) => !shown.has(record.uuid)).map(({ record }) => record.uuid)
  const stay = before.filter((entry) => isShown(entry) && shown.has(entry.record.uuid))
  return {
    summarised: summarised.map(({ record }) => record.uuid),
    kept: stay.map(({ record }) => record.uuid),
    carried: carried.map(({ kind, key }) => ({ kind, key })),
    lost: lossesOf(question),
    retrievable: gone,
    unfit,
    unpinned,
  }
}

function lossesOf(question: ReceiptQuestion): Losses {
  const { before, after, clean, messages, estimate, history = [] } = question
  const records = before.filter(isShown).map(({ record }) => record)
  const inView = new Set(records.map(({ uuid }) => uuid))
  const said = (entries: readonly Entry[]): string => clean(entries.map(textOf).join('\n'))
  const [was, is] = [said(before), said(after)]
  const facts = factsOf([...history.filter(({ uuid }) => !inView.has(uuid)), ...records], clean)
  const isLost = (uuid: string, saidIn: (text: string) => boolean): boolean =>
    !saidIn(is) && (inView.has(uuid) || saidIn(was))
  const rules = { eachTokens: messages.each, estimate }
  const identifiers = lostIdentifiers(records, is)
  return {
    files: facts.files
      .filter(({ path, uuid }) => isLost(uuid, (text) => mentionsFile(text, path)))
      .map(({ path, uuid }) => ({ text: path, uuid })),
    userMessages: facts.messages
      .filter((message) => {
        const parts = mustHold(message, rules)
        return isLost(message.uuid, (text) => parts.every((part) => text.includes(part)))
      })
      .map(({ text, uuid }) => ({ text, uuid })),
    errors: facts.commands
      .filter(({ error, uuid }) => isLost(uuid, (text) => text.includes(error.trim())))
      .map(({ error, uuid }) => ({ text: error, uuid })),
    identifiers: identifiers.slice(0, MOST_IDENTIFIERS),
    moreIdentifiers: Math.max(0, identifiers.length - MOST_IDENTIFIERS),
  }
}

function lostIdentifiers(records: readonly KnownRecord[], after: string): readonly Lost[] {
  const present = namesIn(after).identifiers
  const { identifiers } = weighNames(mentionsOf(records))
  return identifiers
    .filter(({ name }) => !present.has(name))
    .toSorted((one, other) => other.weight - one.weight || (one.name < other.name ? -1 : 1))
    .map(({ name, uuid }) => ({ text: name, uuid }))
}

/** Everything an entry says to a model. */
function textOf(entry: Entry): string {
  if (!isShown(entry)) return ''
  return partsOf(entry)
    .flatMap(({ block }: { readonly block: Block }) => stringsIn(block))
    .join('\n')
}

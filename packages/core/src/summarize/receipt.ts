/**
 * The receipt of a compaction: what left the view, by id, and what of it is no longer said anywhere in the new one.
 * Told by comparing the texts of both views, not by what the engine meant to keep.
 */
import type { Block } from '../conversation/block.ts'
import type { KnownRecord } from '../conversation/record.ts'
import type { Estimator } from '../measure/estimate.ts'
import type { Entry } from '../view/entry.ts'
import { isShown, partsOf } from '../view/parts.ts'
import { factsOf } from './facts.ts'
import { mentionsOf } from './mention.ts'
import { namesIn } from './names.ts'
import { mustHold } from './person-message.ts'
import { mentionsFile } from './presence.ts'
import { stringsIn } from './tool-kind.ts'
import { weighNames } from './weigh-names.ts'

export interface Receipt {
  /** Records that the summary stands for. */
  readonly summarised: readonly string[]
  /** Records that are shown as they were. */
  readonly kept: readonly string[]
  readonly carried: readonly CarriedThing[]
  readonly lost: Losses
  /** Records no longer shown that the log gives back, by id. */
  readonly retrievable: readonly string[]
}

export interface CarriedThing {
  readonly kind: string
  readonly key: string
}

export interface Losses {
  readonly files: readonly Lost[]
  readonly userMessages: readonly Lost[]
  readonly errors: readonly Lost[]
  /** The weightiest first; `moreIdentifiers` says how many others there are. */
  readonly identifiers: readonly Lost[]
  readonly moreIdentifiers: number
}

/** What is gone, and the record to read it in. */
export interface Lost {
  readonly text: string
  readonly uuid: string
}

export interface ReceiptQuestion {
  readonly before: readonly Entry[]
  readonly after: readonly Entry[]
  readonly summarised: readonly Entry[]
  readonly carried: readonly CarriedThing[]
  /** What may be said of a text in a receipt: as for the summary. */
  readonly clean: (text: string) => string
  readonly messages: { readonly each: number }
  readonly estimate: Pick<Estimator, 'text'>
}

const MOST_IDENTIFIERS = 200

export function receiptOf(question: ReceiptQuestion): Receipt {
  const { before, after, summarised, carried } = question
  const shown = new Set(after.map(({ record }) => record.uuid))
  const gone = before.filter(({ record }) => !shown.has(record.uuid)).map(({ record }) => record.uuid)
  const stay = before.filter((entry) => isShown(entry) && shown.has(entry.record.uuid))
  return {
    summarised: summarised.map(({ record }) => record.uuid),
    kept: stay.map(({ record }) => record.uuid),
    carried: carried.map(({ kind, key }) => ({ kind, key })),
    lost: lossesOf(question),
    retrievable: gone,
  }
}

function lossesOf({ before, after, clean, messages, estimate }: ReceiptQuestion): Losses {
  const records = before.filter(isShown).map(({ record }) => record)
  const text = clean(after.map(textOf).join('\n'))
  const facts = factsOf(records, clean)
  const rules = { eachTokens: messages.each, estimate }
  const identifiers = lostIdentifiers(records, text)
  return {
    files: facts.files.flatMap(({ path, uuid }) => (mentionsFile(text, path) ? [] : [{ text: path, uuid }])),
    userMessages: facts.messages.flatMap((message) =>
      mustHold(message, rules).every((part) => text.includes(part))
        ? []
        : [{ text: message.text, uuid: message.uuid }],
    ),
    errors: facts.commands.flatMap(({ error, uuid }) =>
      text.includes(error.trim()) ? [] : [{ text: error, uuid }],
    ),
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

/** Where in a view the newest measurement stands, and where its turns begin. */
import { type AssistantRecord, SYNTHETIC_MODEL } from '../conversation/record.ts'
import type { Entry } from '../view/entry.ts'
import { entryEndsTurn } from '../view/parts.ts'
import type { View } from '../view/view.ts'
import { contextOf, outputOf } from './usage-figures.ts'

export type MeasuredView = Pick<View, 'entries' | 'acts' | 'rewrittenAt'>

/** The newest response that was measured, and what the provider said of it. */
export interface Anchor {
  readonly response: string
  /** Place of its first record: what lies between its records was not in the request. */
  readonly first: number
  readonly context: number
  /** The largest figure of its records: the earlier ones may be from the start of the stream. */
  readonly output: number
}

/**
 * Only a response to a request of the present view measured it: one that had begun before the last rewrite,
 * kept across it or not, tells of another context, and so do those of its records that came after.
 */
export function anchorOf(view: MeasuredView): Anchor | null {
  for (let place = view.entries.length - 1; place >= 0; place -= 1) {
    const entry = view.entries.at(place)
    const record = entry === undefined || entry.index <= view.rewrittenAt ? null : responseOf(entry)
    if (record === null || contextOf(record.message.usage) === 0) continue
    const anchor = anchorAt(view.entries, place, record)
    if (!hadBegun(view, anchor)) return anchor
  }
  return null
}

function anchorAt(entries: View['entries'], newest: number, record: AssistantRecord): Anchor {
  const { id, usage } = record.message
  let anchor = { response: id, first: newest, context: contextOf(usage), output: outputOf(usage) }
  for (let place = newest - 1; place >= 0; place -= 1) {
    const earlier = responseOf(entries.at(place))
    if (earlier === null) continue
    if (earlier.message.id !== id) break
    anchor = { ...anchor, first: place, output: Math.max(anchor.output, outputOf(earlier.message.usage)) }
  }
  return anchor
}

/** Whether a response began before the view was rewritten. A compaction may have taken its first records away. */
function hadBegun({ entries, acts, rewrittenAt }: MeasuredView, { first, response }: Anchor): boolean {
  const isOld = (entries.at(first)?.index ?? rewrittenAt) <= rewrittenAt
  return isOld || acts.some(({ before }) => lastResponse(before) === response)
}

function lastResponse(entries: View['entries']): string | null {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const record = responseOf(entries.at(place))
    if (record !== null) return record.message.id
  }
  return null
}

function responseOf(entry: Entry | undefined): AssistantRecord | null {
  if (entry?.record.type !== 'assistant' || entry.record.message.model === SYNTHETIC_MODEL) return null
  return entry.record
}

/** Where the turn begins that is going on in front of `end`: at what ended the one before it. */
export function turnStart(entries: View['entries'], end: number): number {
  for (let place = end - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry !== undefined && entryEndsTurn(entry)) return place
  }
  return 0
}

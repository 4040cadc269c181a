/** Where in a view the newest measurement stands, and where its turns begin. */
import { blocksOf, isToolResult } from '../conversation/block.ts'
import { type AssistantRecord, SYNTHETIC_MODEL } from '../conversation/record.ts'
import type { Entry } from '../view/entry.ts'
import { isShown } from '../view/parts.ts'
import type { View } from '../view/view.ts'
import { contextOf, outputOf } from './usage-figures.ts'

export type MeasuredView = Pick<View, 'entries' | 'rewrittenAt'>

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
 * Only a response to a request of the present view measured it: a record from before the last rewrite, kept
 * across it or not, tells of another context.
 */
export function anchorOf({ entries, rewrittenAt }: MeasuredView): Anchor | null {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const record = responseAt(entries.at(place), rewrittenAt)
    if (record !== null && contextOf(record.message.usage) > 0)
      return anchorAt({ entries, rewrittenAt }, place, record)
  }
  return null
}

function anchorAt({ entries, rewrittenAt }: MeasuredView, newest: number, record: AssistantRecord): Anchor {
  const { id, usage } = record.message
  let anchor = { response: id, first: newest, context: contextOf(usage), output: outputOf(usage) }
  for (let place = newest - 1; place >= 0; place -= 1) {
    const earlier = responseAt(entries.at(place), rewrittenAt)
    if (earlier === null) continue
    if (earlier.message.id !== id) break
    anchor = { ...anchor, first: place, output: Math.max(anchor.output, outputOf(earlier.message.usage)) }
  }
  return anchor
}

function responseAt(entry: Entry | undefined, rewrittenAt: number): AssistantRecord | null {
  if (entry === undefined || entry.index <= rewrittenAt || entry.record.type !== 'assistant') return null
  return entry.record.message.model === SYNTHETIC_MODEL ? null : entry.record
}

/** Where the turn begins that is going on in front of `end`: at the newest words of a user that answer no tool call. */
export function turnStart(entries: View['entries'], end: number): number {
  let run = { from: end, hasUser: false, hasResult: false }
  for (let place = end - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || !isShown(entry)) continue
    if (entry.record.type === 'assistant') {
      if (run.hasUser && !run.hasResult) return run.from
      run = { from: place, hasUser: false, hasResult: false }
    } else {
      const hasUser = run.hasUser || entry.record.type === 'user'
      run = { from: place, hasUser, hasResult: run.hasResult || holdsResult(entry) }
    }
  }
  return 0
}

function holdsResult({ record }: Entry): boolean {
  return record.type === 'user' && blocksOf(record.message.content).some(isToolResult)
}

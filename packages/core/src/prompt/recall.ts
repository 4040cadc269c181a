/**
 * What a session that is opened again knows of the cache: its newest response tells what the request it answered
 * left there, and when. Nothing else of the past can still be alive, or be told from the log.
 */
import { List } from '../conversation/list.ts'
import type { AssistantRecord } from '../conversation/record.ts'
import { anchorOf } from '../measure/usage-anchor.ts'
import { contextOf } from '../measure/usage-figures.ts'
import type { View } from '../view/view.ts'
import { type AssembleQuestion, assembleRequest } from './assemble.ts'
import { type MessageList, messageAt, messageCount } from './count.ts'
import { forecastRead } from './forecast.ts'
import { learnFromResponse } from './learn.ts'
import { type Lineage, NO_LINEAGE } from './lineage.ts'
import type { CallPlaces } from './place.ts'

/** `question`: that of the request that would be sent now. */
export function recallLineage(question: AssembleQuestion, view: View): Lineage {
  const newest = newestMeasured(view)
  const index = newest === null ? null : indexOfRecord(question.flat, newest.record.uuid)
  const usage = newest?.record.message.usage
  if (newest === null || index === null || usage === undefined) return NO_LINEAGE
  const request = assembleRequest({ ...question, flat: firstOf(question.flat, index) })
  const asked = { request, now: Date.parse(newest.sentAt), profile: question.profile }
  return Number.isNaN(asked.now)
    ? NO_LINEAGE
    : learnFromResponse(NO_LINEAGE, forecastRead(NO_LINEAGE, asked), usage)
}

interface Measured {
  readonly record: AssistantRecord
  /** The newest record from before the response: no later than the request began, so that a life is never overrated. */
  readonly sentAt: string
}

/** Of the newest response that measured the present view, the newest record: its figures are the final ones. */
function newestMeasured(view: View): Measured | null {
  const anchor = anchorOf(view)
  if (anchor === null) return null
  const { entries } = view
  for (let place = entries.length - 1; place >= anchor.first; place -= 1) {
    const record = entries.at(place)?.record
    if (record?.type !== 'assistant' || record.message.id !== anchor.response) continue
    if (contextOf(record.message.usage) > 0) return { record, sentAt: timeBefore(entries, anchor.first) }
  }
  return null
}

/** When the newest record in front of a place came. */
function timeBefore(entries: View['entries'], place: number): string {
  for (let at = place - 1; at >= 0; at -= 1) {
    const record = entries.at(at)?.record
    if (record !== undefined && record.type !== 'progress') return record.timestamp
  }
  return ''
}

function indexOfRecord(messages: MessageList, uuid: string): number | null {
  for (let index = messageCount(messages) - 1; index >= 0; index -= 1) {
    if (messageAt(messages, index)?.origins.includes(uuid) === true) return index
  }
  return null
}

function firstOf({ frozen, tail, calls }: CallPlaces, count: number): CallPlaces {
  const messages = [...frozen.toArray(0, count), ...tail.slice(0, Math.max(0, count - frozen.length))]
  return { frozen: List.of(messages), tail: [], calls }
}

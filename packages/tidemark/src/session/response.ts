/** A response as an SDK gives it, and the records it becomes: one for each block, as a reply of a run does. */
import {
  blocksOf,
  type Ids,
  isKnown,
  isText,
  type Reply,
  type Session,
  TidemarkError,
  type Unlinked,
} from '@tidemark/core'
import { fromResponse } from '@tidemark/wire'
import type { SaidMessage } from './messages.ts'

export interface ReplySource {
  readonly ids: Ids
  /** For a response that does not say who made it. */
  readonly model: string
}

export function sayReply(said: SaidMessage, { ids, model }: ReplySource): Reply {
  const { content, ...fields } = said
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const whole = { id: ids.next('response'), model, ...fields, type: 'message', content: blocks }
  const read = fromResponse(JSON.stringify(whole))
  if (read.ok) return read.reply
  throw new TidemarkError('bad-record', `append: this is no response of the model. ${read.failure.message}.`)
}

export function responseRecords({ message }: Reply): readonly Unlinked[] {
  const blocks = blocksOf(message.content)
  if (blocks.length === 0) return [{ type: 'assistant', message: { ...message, content: [] } }]
  return blocks.map((block) => ({ type: 'assistant', message: { ...message, content: [block] } }))
}

/** uuids of the records that say all of it; null where it is not in the session, or not all of it. */
export function recordsOfResponse({ records }: Session, { message }: Reply): readonly string[] | null {
  const uuids: string[] = []
  const blocks = blocksOf(message.content).map((block) => JSON.stringify(block))
  let found = blocks.length
  for (let index = records.length - 1; index >= 0 && found > 0; index -= 1) {
    const record = records.at(index)
    if (record === undefined || !isKnown(record) || record.type !== 'assistant') continue
    if (record.message.id !== message.id) continue
    const said = blocksOf(record.message.content).map((block) => JSON.stringify(block))
    const isNext = said.length > 0 && said.join() === blocks.slice(found - said.length, found).join()
    if (!isNext) return null
    found -= said.length
    uuids.unshift(record.uuid)
  }
  return uuids.length > 0 && found === 0 ? uuids : null
}

/** What it says, without thinking and calls. */
export function textOf({ message }: Reply): string {
  return blocksOf(message.content)
    .flatMap((block) => (isText(block) ? [block.text] : []))
    .join('')
}

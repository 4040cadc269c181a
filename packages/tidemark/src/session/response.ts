/** A response as an SDK gives it, and the records it becomes: one for each block, as a reply of a run does. */
import { blocksOf, type Ids, isText, type Reply, TidemarkError, type Unlinked } from '@tidemark/core'
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

/** What it says, without thinking and calls. */
export function textOf({ message }: Reply): string {
  return blocksOf(message.content)
    .flatMap((block) => (isText(block) ? [block.text] : []))
    .join('')
}

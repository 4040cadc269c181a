/**
 * Exports the conversation of a session as the message list that a client would have: without summaries, placeholders
 * and additions of the engine. Its use is to leave `take` or `tidemark.fetch` with the whole conversation.
 */
import type { ApiMessage } from '@tidemark/core/context/payload'
import { restoreSpilledResults } from '@tidemark/core/history/spill-results'
import { type Block, isThinkingBlock, toBlocks } from '@tidemark/core/log/block'
import { isSyntheticError } from '@tidemark/core/log/record'
import { listBranchRecords } from '@tidemark/core/log/session-log'
import type { OpenSession } from '../session/open-session.ts'
import { findInvalidThinkingStart } from './hidden-thinking.ts'

interface OpenMessage {
  readonly role: ApiMessage['role']
  /** Id of the response; null for other messages. */
  readonly id: string | null
  readonly fields: object
  readonly content: Block[]
}

/** Returns the messages of the active branch. Records of one response are one message, and so are user messages in a row. */
export async function listOriginalMessages({
  state,
  settings,
  model,
}: OpenSession): Promise<readonly ApiMessage[]> {
  // A provider may accept thinking only after the messages it was generated from. After a rewrite it is left out.
  const rewritten = findInvalidThinkingStart(state, model.choice.profile)
  const messages: OpenMessage[] = []
  for (const [index, record] of listBranchRecords(state.session).entries()) {
    if (record.type !== 'user' && record.type !== 'assistant') continue
    if (record.isMeta === true || record.isCompactSummary === true || isSyntheticError(record)) continue
    const whole = record.type === 'user' ? await restoreSpilledResults(record, settings.blobs) : record
    const { role, content, ...fields } = whole.message
    const blocks = toBlocks(content).filter((block) => index < rewritten || !isThinkingBlock(block))
    const id = record.type === 'assistant' ? record.message.id : null
    const last = messages.at(-1)
    if (last?.role === role && role !== 'system' && last.id === id) last.content.push(...blocks)
    else {
      const own = record.type === 'user' ? record.messageFields : undefined
      messages.push({ role, id, fields: role === 'system' ? fields : { ...own }, content: [...blocks] })
    }
  }
  return messages.map(({ role, fields, content }) => ({ ...fields, role, content }))
}

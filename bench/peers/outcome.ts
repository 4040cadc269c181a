/** What a request leaves of the conversation, whether a provider would take it, and whether it keeps the cache. */

import type { ApiMessage } from '@tidemark/core/context/payload'
import { type Block, toBlocks } from '@tidemark/core/log/block'
import type { Finding } from '@tidemark/core/validate/findings'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { isResultText, TOOLS } from './story.ts'

export interface Left {
  /** Of the messages as JSON, without cache markers. */
  readonly characters: number
  readonly messages: number
  /** Tool results that still show their text. */
  readonly results: number
  /** What a provider would refuse the request for; null where it takes it. */
  readonly refused: string | null
}

const profile = defineMessagesProfile({ thinking: { binding: 'none' } })
const tools = TOOLS.map((name) => ({ name, input_schema: { type: 'object' } }))

export function leftOf(messages: readonly ApiMessage[]): Left {
  const blocks = messages.flatMap(({ content }) => toBlocks(content))
  const [found] = validateRequest({ model: 'model-a', max_tokens: 1_000, tools, messages }, profile)
  return {
    characters: prefixOf(messages).reduce((sum, text) => sum + text.length, 0),
    messages: messages.length,
    results: blocks.filter(isWholeResult).length,
    refused: found === undefined ? null : wordsOf(found),
  }
}

function wordsOf({ code, path }: Finding): string {
  return `${code} at ${path}`
}

function isWholeResult({ type, content }: Block): boolean {
  return (
    type === 'tool_result' && isResultText(typeof content === 'string' ? content : JSON.stringify(content))
  )
}

/** Block by block, since that is what a provider's cache compares. Markers are no part of it. */
export function prefixOf(messages: readonly ApiMessage[]): readonly string[] {
  return messages.flatMap(({ role, content }) =>
    toBlocks(content).map(({ cache_control: _, ...block }) => `${role} ${JSON.stringify(block)}`),
  )
}

/** The later request says all that the earlier one said, and then more: the cache answers what was sent. */
export function extendsPrefix(earlier: readonly string[], later: readonly string[]): boolean {
  return earlier.length <= later.length && earlier.every((text, index) => text === later[index])
}

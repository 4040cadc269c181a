/** What a block says, in words. */
import { type Block, type Content, isText, isThinking, isToolResult, isToolUse } from '@tidemark/core'

export function blockWords(block: Block): string {
  if (isText(block)) return block.text
  if (isToolUse(block)) return `${block.name} ${JSON.stringify(block.input)}`
  if (isToolResult(block)) return contentWords(block.content ?? '')
  if (isThinking(block)) return typeof block.thinking === 'string' ? block.thinking : '(not readable)'
  return JSON.stringify(block)
}

export function contentWords(content: Content): string {
  return typeof content === 'string' ? content : content.map(blockWords).join(' ')
}

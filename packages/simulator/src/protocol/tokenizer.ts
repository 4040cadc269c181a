/**
 * The simulator's own tokenizer, which is not the provider's: a block costs its UTF-8 bytes divided by four,
 * rounded up, plus a fixed amount for its type. Costs add up over blocks, so the tokens of every prefix are exact
 * and `count_tokens` returns what is billed.
 */
import { type Block, blocksOf, isObject, textField } from './api.ts'

export const BYTES_PER_TOKEN = 4
/** Charged at each change of role, for the frame around a turn. */
export const TURN_TOKENS = 4
export const TOOL_TOKENS = 12
export const CALL_TOKENS = 8
export const IMAGE_TOKENS = 1_500
export const DOCUMENT_TOKENS = 2_000

export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
}

export function toolTokens(tool: Readonly<Record<string, unknown>>): number {
  const { cache_control: _marker, ...definition } = tool
  return TOOL_TOKENS + textTokens(JSON.stringify(definition))
}

/** `thinkingTokens` reads the cost of a thinking block from its signature: its visible text may be shorter. */
export function blockTokens(block: Block, thinkingTokens: (block: Block) => number): number {
  switch (block.type) {
    case 'text':
      return textTokens(textField(block, 'text'))
    case 'thinking':
    case 'redacted_thinking':
      return thinkingTokens(block)
    case 'image':
      return IMAGE_TOKENS
    case 'document':
      return documentTokens(block, thinkingTokens)
    case 'tool_use':
      return (
        CALL_TOKENS + textTokens(textField(block, 'name')) + textTokens(JSON.stringify(block.input ?? {}))
      )
    case 'tool_result':
      return CALL_TOKENS + contentTokens(block.content, thinkingTokens)
    case 'compaction':
      return textTokens(textField(block, 'content'))
    case 'cache_edits':
      return 0
    default: {
      const { cache_control: _marker, ...rest } = block
      return textTokens(JSON.stringify(rest))
    }
  }
}

function contentTokens(content: unknown, thinkingTokens: (block: Block) => number): number {
  if (typeof content === 'string') return textTokens(content)
  if (!Array.isArray(content)) return 0
  let sum = 0
  for (const block of blocksOf(content)) sum += blockTokens(block, thinkingTokens)
  return sum
}

function documentTokens(block: Block, thinkingTokens: (block: Block) => number): number {
  const source: unknown = block.source
  if (!isObject(source)) return DOCUMENT_TOKENS
  if (source.type === 'text' && typeof source.data === 'string') return textTokens(source.data)
  if (source.type === 'content') return contentTokens(source.content, thinkingTokens)
  return DOCUMENT_TOKENS
}

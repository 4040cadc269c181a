/**
 * The simulator's own tokenizer, which differs from the provider's: a block costs its UTF-8 bytes divided by four,
 * rounded up, plus a fixed amount for its type. Costs add up over blocks, so every prefix has an exact token count
 * and `count_tokens` returns what is billed.
 */
import { type Block, isObject, readTextField, toBlocks } from './messages-request.ts'

export const BYTES_PER_TOKEN = 4
/** Tokens added at each change of role, for the markup around a turn. */
export const TURN_OVERHEAD_TOKENS = 4
/** Tokens added to the text of a tool's definition. */
export const TOOL_OVERHEAD_TOKENS = 12
/** Tokens added to the text of a tool call, and to that of a tool result. */
export const CALL_OVERHEAD_TOKENS = 8
export const TOKENS_PER_IMAGE = 1_500
export const TOKENS_PER_DOCUMENT = 2_000

export function countTextTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
}

export function countToolDefinitionTokens(tool: Readonly<Record<string, unknown>>): number {
  const { cache_control: _marker, ...definition } = tool
  return TOOL_OVERHEAD_TOKENS + countTextTokens(JSON.stringify(definition))
}

/**
 * Counts the tokens of a block. `thinkingTokens` counts a thinking block, whose visible text may be shorter than the
 * full thinking.
 */
export function countBlockTokens(block: Block, thinkingTokens: (block: Block) => number): number {
  switch (block.type) {
    case 'text':
      return countTextTokens(readTextField(block, 'text'))
    case 'thinking':
    case 'redacted_thinking':
      return thinkingTokens(block)
    case 'image':
      return TOKENS_PER_IMAGE
    case 'document':
      return countDocumentTokens(block, thinkingTokens)
    case 'tool_use':
      return (
        CALL_OVERHEAD_TOKENS +
        countTextTokens(readTextField(block, 'name')) +
        countTextTokens(JSON.stringify(block.input ?? {}))
      )
    case 'tool_result':
      return CALL_OVERHEAD_TOKENS + countContentTokens(block.content, thinkingTokens)
    case 'compaction':
      return countTextTokens(readTextField(block, 'content'))
    case 'cache_edits':
      return 0
    default: {
      const { cache_control: _marker, ...rest } = block
      return countTextTokens(JSON.stringify(rest))
    }
  }
}

function countContentTokens(content: unknown, thinkingTokens: (block: Block) => number): number {
  if (typeof content === 'string') return countTextTokens(content)
  if (!Array.isArray(content)) return 0
  let sum = 0
  for (const block of toBlocks(content)) sum += countBlockTokens(block, thinkingTokens)
  return sum
}

function countDocumentTokens(block: Block, thinkingTokens: (block: Block) => number): number {
  const source: unknown = block.source
  if (!isObject(source)) return TOKENS_PER_DOCUMENT
  if (source.type === 'text' && typeof source.data === 'string') return countTextTokens(source.data)
  if (source.type === 'content') return countContentTokens(source.content, thinkingTokens)
  return TOKENS_PER_DOCUMENT
}

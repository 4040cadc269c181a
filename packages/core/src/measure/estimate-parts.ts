/** What in a block is counted, and by which weights: shared by the estimator and by what fits its weights. */
import { type Block, isMedia, isText, isThinking, isToolResult, isToolUse } from '../conversation/block.ts'
import { isObject } from '../conversation/json.ts'

export interface BlockParts {
  readonly kind: 'text' | 'tool-use' | 'tool-result' | 'thinking' | 'image' | 'document' | 'other'
  readonly texts: readonly string[]
  /** Fields of a call's input, where they are counted one by one. */
  readonly fields: number
  /** Length of a signature, or of thinking that is all cipher. */
  readonly cipher: number
  /** Blocks inside that are counted by themselves. */
  readonly inner: readonly Block[]
}

const NOTHING = { texts: [], fields: 0, cipher: 0, inner: [] } as const

/** `inputForm`: the input of a call as its JSON, or field by field with strings as they are. */
export function partsOfBlock(block: Block, inputForm: 'json' | 'fields'): BlockParts {
  if (isText(block)) return { ...NOTHING, kind: 'text', texts: [block.text] }
  if (isToolUse(block)) return { ...NOTHING, kind: 'tool-use', ...callParts(block, inputForm) }
  if (isToolResult(block)) return { ...NOTHING, kind: 'tool-result', ...heldIn(block.content) }
  if (isThinking(block)) return { ...NOTHING, kind: 'thinking', ...thinkingParts(block) }
  if (!isMedia(block)) return { ...NOTHING, kind: 'other', texts: [jsonOf(block)] }
  return block.type === 'image'
    ? { ...NOTHING, kind: 'image' }
    : { ...NOTHING, kind: 'document', ...documentParts(block.source) }
}

export function jsonOf(value: unknown): string {
  return JSON.stringify(value) ?? 'null'
}

function callParts(block: Block, inputForm: 'json' | 'fields'): Pick<BlockParts, 'texts' | 'fields'> {
  const name = typeof block.name === 'string' ? block.name : ''
  if (inputForm === 'json' || !isObject(block.input)) return { texts: [name, jsonOf(block.input)], fields: 0 }
  const fields = Object.entries(block.input)
  const texts = fields.flatMap(([key, value]) => [key, typeof value === 'string' ? value : jsonOf(value)])
  return { texts: [name, ...texts], fields: fields.length }
}

function heldIn(content: unknown): Pick<BlockParts, 'texts' | 'inner'> {
  if (typeof content === 'string') return { texts: [content], inner: [] }
  const blocks: readonly Block[] = Array.isArray(content) ? content : []
  return {
    texts: blocks.flatMap((block) => (isText(block) ? [block.text] : [])),
    inner: blocks.filter((block) => !isText(block)),
  }
}

function thinkingParts(block: Block): Pick<BlockParts, 'texts' | 'cipher'> {
  const cipher = [block.signature, block.data].find((field) => typeof field === 'string')
  return {
    texts: typeof block.thinking === 'string' ? [block.thinking] : [],
    cipher: typeof cipher === 'string' ? cipher.length : 0,
  }
}

/** A document may be given as text or as blocks; the bytes of any other tell nothing. */
function documentParts(source: unknown): Pick<BlockParts, 'texts' | 'inner'> {
  if (!isObject(source)) return { texts: [], inner: [] }
  if (source.type === 'text') return heldIn(source.data)
  return source.type === 'content' ? heldIn(source.content) : { texts: [], inner: [] }
}

/** The content of a Codex message or tool output as blocks. What has no counterpart is kept as it is. */
import { type Block, isBlock } from '@tidemark/core'

/** Null where it is no content. */
export function contentBlocks(content: unknown): readonly Block[] | null {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content) || !content.every(isBlock)) return null
  return content.map(blockOf)
}

/** The readable text of a content, blocks joined by newlines; empty where there is none. */
export function contentText(content: unknown): string {
  const blocks = contentBlocks(content) ?? []
  const texts = blocks.flatMap((block) => (typeof block.text === 'string' ? [block.text] : []))
  return texts.join('\n')
}

const TEXT_TYPES = new Set(['input_text', 'output_text', 'summary_text', 'reasoning_text', 'text'])

function blockOf(item: Block): Block {
  if (TEXT_TYPES.has(item.type) && typeof item.text === 'string') return { type: 'text', text: item.text }
  return item.type === 'input_image' ? imageOf(item) : item
}

const DATA_URL = /^data:([^;,]+);base64,/

function imageOf(item: Block): Block {
  const { image_url: url } = item
  if (typeof url !== 'string') return item
  const mediaType = DATA_URL.exec(url)?.[1]
  if (mediaType === undefined) return { type: 'image', source: { type: 'url', url } }
  const data = url.slice(url.indexOf(',') + 1)
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data } }
}

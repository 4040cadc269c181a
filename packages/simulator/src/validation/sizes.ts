/** How many images and documents one request may hold, and how large. Bytes are counted where the body is read. */
import { type Block, blocksOf, isObject } from '../api.ts'
import { invalid } from '../refusal.ts'
import { imageSize } from './image-size.ts'
import type { CheckedRequest, Rule } from './rule.ts'

const MAX_SIDE = 8_000
const MANY = 20
const MAX_SIDE_AMONG_MANY = 2_000

interface Picture {
  readonly path: string
  readonly side: number
}

export const media: Rule = (request) => {
  const pictures = [...picturesIn(request)]
  const most = request.model.maxImages
  if (pictures.length > most)
    return invalid(`messages: too many images and documents: ${pictures.length} > ${most}`)
  const large = pictures.find(({ side }) => side > MAX_SIDE)
  if (large !== undefined)
    return invalid(
      `${large.path}: At least one of the image dimensions exceed max allowed size: ${MAX_SIDE} pixels`,
    )
  const wide = pictures.length > MANY ? pictures.find(({ side }) => side > MAX_SIDE_AMONG_MANY) : undefined
  return wide === undefined
    ? null
    : invalid(
        `${wide.path}: At least one of the image dimensions exceed max allowed size for many-image requests: ${MAX_SIDE_AMONG_MANY} pixels`,
      )
}

function* picturesIn({ body }: CheckedRequest): Iterable<Picture> {
  for (const [message, { content }] of body.messages.entries()) {
    if (typeof content === 'string') continue
    for (const [index, block] of content.entries())
      if (mayHold(block)) yield* inBlock(block, `messages.${message}.content.${index}`)
  }
}

function mayHold({ type, content }: Block): boolean {
  return type === 'image' || type === 'document' || (type === 'tool_result' && Array.isArray(content))
}

function* inBlock(block: Block, path: string): Iterable<Picture> {
  if (block.type === 'image') yield { path: `${path}.image.source.base64.data`, side: longestSide(block) }
  else if (block.type === 'document' && isPaged(block)) yield { path, side: 0 }
  else if (block.type === 'tool_result' && Array.isArray(block.content))
    for (const [index, inner] of blocksOf(block.content).entries())
      yield* inBlock(inner, `${path}.content.${index}`)
}

/** A PDF has pages, and a page counts like an image; how many is not known without reading it. */
function isPaged({ source }: Block): boolean {
  return isObject(source) && (source.type === 'base64' || source.type === 'url')
}

function longestSide({ source }: Block): number {
  const size = isObject(source) && typeof source.data === 'string' ? imageSize(source.data) : null
  return size === null ? 0 : Math.max(size.width, size.height)
}

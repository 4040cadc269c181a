/** Validation rules for cache markers (number, position, order) and for images and documents (number, size). */
import { type ApiError, createInvalidRequestError } from '../protocol/answer.ts'
import { type AutomaticMarker, type CacheMarker, readCacheTtl } from '../protocol/cache-markers.ts'
import {
  type Block,
  formatBlockPath,
  isObject,
  type MessagesBody,
  type RequestBlock,
  readTextField,
  toBlocks,
} from '../protocol/messages-request.ts'
import type { RequestRule } from './rule.ts'

const MAX_MARKERS = 4

export const checkMarkedTextNotEmpty: RequestRule = ({ body, pieces }) => {
  const inSystem = toBlocks(body.system).findIndex(isEmptyMarkedText)
  const inMessages = pieces.find(({ block }) => isEmptyMarkedText(block))
  const path = inSystem >= 0 ? `system.${inSystem}` : inMessages && `${formatBlockPath(inMessages)}.text`
  return path === undefined
    ? null
    : createInvalidRequestError(`${path}: cache_control cannot be set for empty text blocks`)
}

function isEmptyMarkedText(block: Block): boolean {
  return block.type === 'text' && block.cache_control != null && readTextField(block, 'text') === ''
}

export const checkMarkerCount: RequestRule = ({ markers }) => {
  const { explicit, automatic } = markers
  const found = explicit.length + (automatic === null ? 0 : 1)
  return found <= MAX_MARKERS
    ? null
    : createInvalidRequestError(
        `A maximum of ${MAX_MARKERS} blocks with cache_control may be provided. Found ${found}.`,
      )
}

export const checkMarkerTtlOrder: RequestRule = ({ body, markers }) => {
  const { explicit, automatic } = markers
  const conflict = findAutomaticTtlConflict(body, automatic)
  if (conflict !== null) return conflict
  const ordered =
    automatic === null || automatic.isAlreadyMarked || automatic.marker === null
      ? explicit
      : [...explicit, automatic.marker].sort((one, other) => one.order - other.order)
  return findLateHourMarker(ordered)
}

function findLateHourMarker(markers: readonly CacheMarker[]): ApiError | null {
  let short = false
  for (const marker of markers) {
    if (marker.ttl === '5m') short = true
    else if (short)
      return createInvalidRequestError(
        `${marker.path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`,
      )
  }
  return null
}

function findAutomaticTtlConflict(body: MessagesBody, automatic: AutomaticMarker | null): ApiError | null {
  if (automatic === null || !automatic.isAlreadyMarked || automatic.marker === null) return null
  const requested = readCacheTtl(body.cache_control)
  return automatic.marker.ttl === requested
    ? null
    : createInvalidRequestError(
        `cache_control: the last cacheable block already has a cache_control with ttl='${automatic.marker.ttl}', which differs from ttl='${requested}'`,
      )
}

export const checkDeferredToolMarkers: RequestRule = ({ body }) => {
  const index = (body.tools ?? []).findIndex(
    (tool) => tool.defer_loading === true && tool.cache_control != null,
  )
  return index < 0
    ? null
    : createInvalidRequestError(`tools.${index}: a tool with defer_loading=true cannot have cache_control`)
}

// Rules for images and documents. The size limit in bytes is checked where the body is read.

const MAX_IMAGE_SIDE = 8_000
const MANY_IMAGES = 20
const MAX_SIDE_OF_MANY_IMAGES = 2_000

interface RequestImage {
  readonly path: string
  readonly side: number
}

export const checkImageLimits: RequestRule = ({ model, pieces }) => {
  const pictures = [...listImages(pieces)]
  const most = model.maxImages
  if (pictures.length > most)
    return createInvalidRequestError(`messages: too many images and documents: ${pictures.length} > ${most}`)
  const large = pictures.find(({ side }) => side > MAX_IMAGE_SIDE)
  if (large !== undefined)
    return createInvalidRequestError(
      `${large.path}: At least one of the image dimensions exceed max allowed size: ${MAX_IMAGE_SIDE} pixels`,
    )
  const wide =
    pictures.length > MANY_IMAGES ? pictures.find(({ side }) => side > MAX_SIDE_OF_MANY_IMAGES) : undefined
  return wide === undefined
    ? null
    : createInvalidRequestError(
        `${wide.path}: At least one of the image dimensions exceed max allowed size for many-image requests: ${MAX_SIDE_OF_MANY_IMAGES} pixels`,
      )
}

function* listImages(pieces: readonly RequestBlock[]): Iterable<RequestImage> {
  for (const piece of pieces)
    if (canHoldImage(piece.block)) yield* listBlockImages(piece.block, formatBlockPath(piece))
}

/** Checks whether a block can contain images. Blocks that cannot are skipped before their path is formatted. */
function canHoldImage({ type, content }: Block): boolean {
  return type === 'image' || type === 'document' || (type === 'tool_result' && Array.isArray(content))
}

function* listBlockImages(block: Block, path: string): Iterable<RequestImage> {
  if (block.type === 'image')
    yield { path: `${path}.image.source.base64.data`, side: measureLongestSide(block) }
  else if (block.type === 'document' && isPdf(block)) yield { path, side: 0 }
  else if (block.type === 'tool_result' && Array.isArray(block.content))
    for (const [index, inner] of toBlocks(block.content).entries())
      yield* listBlockImages(inner, `${path}.content.${index}`)
}

/**
 * Checks whether a document is a PDF. A PDF counts as one image. Its pages are not counted, because that would
 * require parsing the file.
 */
function isPdf({ source }: Block): boolean {
  return isObject(source) && (source.type === 'base64' || source.type === 'url')
}

function measureLongestSide({ source }: Block): number {
  const size = isObject(source) && typeof source.data === 'string' ? readImageSize(source.data) : null
  return size === null ? 0 : Math.max(size.width, size.height)
}

interface ImageSize {
  readonly width: number
  readonly height: number
}

/**
 * Number of base64 characters that are decoded to find the size of an image. A JPEG may contain a preview before its
 * size.
 */
const HEADER_CHARACTERS = 262_144

/**
 * Reads width and height from the file header of a PNG, GIF, WebP or JPEG. Null for other formats and broken headers.
 */
function readImageSize(base64: string): ImageSize | null {
  const head = Buffer.from(base64.slice(0, HEADER_CHARACTERS), 'base64')
  const size = readPngSize(head) ?? readGifSize(head) ?? readWebpSize(head) ?? readJpegSize(head)
  return size !== null && size.width > 0 && size.height > 0 ? size : null
}

function hasTextAt(head: Buffer, offset: number, text: string): boolean {
  return head.toString('latin1', offset, offset + text.length) === text
}

function readPngSize(head: Buffer): ImageSize | null {
  if (!hasTextAt(head, 0, '\x89PNG\r\n\x1a\n') || head.length < 24) return null
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
}

function readGifSize(head: Buffer): ImageSize | null {
  if (!hasTextAt(head, 0, 'GIF8') || head.length < 10) return null
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) }
}

function readWebpSize(head: Buffer): ImageSize | null {
  if (!hasTextAt(head, 0, 'RIFF') || !hasTextAt(head, 8, 'WEBP') || head.length < 30) return null
  if (hasTextAt(head, 12, 'VP8X'))
    return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
  if (hasTextAt(head, 12, 'VP8L')) {
    const packed = head.readUInt32LE(21)
    return { width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 }
  }
  if (!hasTextAt(head, 12, 'VP8 ')) return null
  return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
}

/**
 * Checks whether a JPEG marker is a start-of-frame marker, which contains the image size. The codes C4, C8 and CC are
 * in the same range but have other meanings.
 */
function isFrameMarker(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

function readJpegSize(head: Buffer): ImageSize | null {
  if (!hasTextAt(head, 0, '\xff\xd8')) return null
  let at = 2
  while (at + 9 <= head.length && head[at] === 0xff) {
    const marker = head[at + 1] ?? 0
    if (isFrameMarker(marker)) return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) }
    at += 2 + head.readUInt16BE(at + 2)
  }
  return null
}

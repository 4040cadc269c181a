/** Rules for cache markers (number, place, order) and for images and documents (number, size). */

import { invalid, type Refusal } from '../protocol/answer.ts'
import {
  type Block,
  blocksOf,
  isObject,
  type MessagesBody,
  type Piece,
  pathOf,
  textField,
} from '../protocol/api.ts'
import { type AutomaticMarker, type CacheMarker, ttlOf } from '../protocol/cache-markers.ts'
import type { Rule } from './rule.ts'

const MAX_MARKERS = 4

export const emptyMarked: Rule = ({ body, pieces }) => {
  const inSystem = blocksOf(body.system).findIndex(isEmptyMarked)
  const inMessages = pieces.find(({ block }) => isEmptyMarked(block))
  const path = inSystem >= 0 ? `system.${inSystem}` : inMessages && `${pathOf(inMessages)}.text`
  return path === undefined ? null : invalid(`${path}: cache_control cannot be set for empty text blocks`)
}

function isEmptyMarked(block: Block): boolean {
  return block.type === 'text' && block.cache_control != null && textField(block, 'text') === ''
}

export const markerCount: Rule = ({ markers }) => {
  const { explicit, automatic } = markers
  const found = explicit.length + (automatic === null ? 0 : 1)
  return found <= MAX_MARKERS
    ? null
    : invalid(`A maximum of ${MAX_MARKERS} blocks with cache_control may be provided. Found ${found}.`)
}

export const markerOrder: Rule = ({ body, markers }) => {
  const { explicit, automatic } = markers
  const conflict = automaticConflict(body, automatic)
  if (conflict !== null) return conflict
  const ordered =
    automatic === null || automatic.taken || automatic.marker === null
      ? explicit
      : [...explicit, automatic.marker].sort((one, other) => one.order - other.order)
  return lateHour(ordered)
}

function lateHour(markers: readonly CacheMarker[]): Refusal | null {
  let short = false
  for (const marker of markers) {
    if (marker.ttl === '5m') short = true
    else if (short)
      return invalid(
        `${marker.path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`,
      )
  }
  return null
}

function automaticConflict(body: MessagesBody, automatic: AutomaticMarker | null): Refusal | null {
  if (automatic === null || !automatic.taken || automatic.marker === null) return null
  const requested = ttlOf(body.cache_control)
  return automatic.marker.ttl === requested
    ? null
    : invalid(
        `cache_control: the last cacheable block already has a cache_control with ttl='${automatic.marker.ttl}', which differs from ttl='${requested}'`,
      )
}

export const deferredMarked: Rule = ({ body }) => {
  const index = (body.tools ?? []).findIndex(
    (tool) => tool.defer_loading === true && tool.cache_control != null,
  )
  return index < 0
    ? null
    : invalid(`tools.${index}: a tool with defer_loading=true cannot have cache_control`)
}

// Images and documents. The limit on bytes is checked where the body is read.

const MAX_SIDE = 8_000
const MANY = 20
const MAX_SIDE_AMONG_MANY = 2_000

interface Picture {
  readonly path: string
  readonly side: number
}

export const media: Rule = ({ model, pieces }) => {
  const pictures = [...picturesIn(pieces)]
  const most = model.maxImages
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

function* picturesIn(pieces: readonly Piece[]): Iterable<Picture> {
  for (const piece of pieces) if (mayHold(piece.block)) yield* inBlock(piece.block, pathOf(piece))
}

/** Most blocks hold no image: this spares them the path. */
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

/** A PDF counts as one image: its pages are not counted, because that would require parsing it. */
function isPaged({ source }: Block): boolean {
  return isObject(source) && (source.type === 'base64' || source.type === 'url')
}

function longestSide({ source }: Block): number {
  const size = isObject(source) && typeof source.data === 'string' ? imageSize(source.data) : null
  return size === null ? 0 : Math.max(size.width, size.height)
}

interface ImageSize {
  readonly width: number
  readonly height: number
}

/** Enough for the header of every format: a JPEG may have a preview before its size. */
const HEAD_CHARACTERS = 262_144

/** Width and height from the file header. Null for other formats than PNG, GIF, WebP and JPEG, and for broken headers. */
function imageSize(base64: string): ImageSize | null {
  const head = Buffer.from(base64.slice(0, HEAD_CHARACTERS), 'base64')
  const size = pngSize(head) ?? gifSize(head) ?? webpSize(head) ?? jpegSize(head)
  return size !== null && size.width > 0 && size.height > 0 ? size : null
}

function isAt(head: Buffer, offset: number, text: string): boolean {
  return head.toString('latin1', offset, offset + text.length) === text
}

function pngSize(head: Buffer): ImageSize | null {
  if (!isAt(head, 0, '\x89PNG\r\n\x1a\n') || head.length < 24) return null
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
}

function gifSize(head: Buffer): ImageSize | null {
  if (!isAt(head, 0, 'GIF8') || head.length < 10) return null
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) }
}

function webpSize(head: Buffer): ImageSize | null {
  if (!isAt(head, 0, 'RIFF') || !isAt(head, 8, 'WEBP') || head.length < 30) return null
  if (isAt(head, 12, 'VP8X')) return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
  if (isAt(head, 12, 'VP8L')) {
    const packed = head.readUInt32LE(21)
    return { width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 }
  }
  if (!isAt(head, 12, 'VP8 ')) return null
  return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
}

/** Start-of-frame markers hold the size. Three markers in the same range define tables instead. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

function jpegSize(head: Buffer): ImageSize | null {
  if (!isAt(head, 0, '\xff\xd8')) return null
  let at = 2
  while (at + 9 <= head.length && head[at] === 0xff) {
    const marker = head[at + 1] ?? 0
    if (isFrame(marker)) return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) }
    at += 2 + head.readUInt16BE(at + 2)
  }
  return null
}

/** Reads the width and height of an image from the first bytes of its base64 data, without decoding the rest. */
import type { Block } from './block.ts'
import { isObject } from './json.ts'

/** Width and height of an image in pixels. */
interface ImageSize {
  readonly width: number
  readonly height: number
}

/** Returns the longer side of an image in pixels; 0 if the block has no image data, or the size cannot be read from it. */
export function measureLongestSide({ type, source }: Block): number {
  if (type !== 'image' || !isObject(source) || typeof source.data !== 'string') return 0
  const size = readImageSize(source.data)
  return size === null ? 0 : Math.max(size.width, size.height)
}

/** Returns width and height of a base64 image in pixels; null if it is no PNG, JPEG, GIF or WebP, or is cut off too early. */
export function readImageSize(base64: string): ImageSize | null {
  const byte = createByteReader(base64)
  const size = readPngSize(byte) ?? readGifSize(byte) ?? readWebpSize(byte) ?? readJpegSize(byte)
  return size !== null && size.width > 0 && size.height > 0 ? size : null
}

/**
 * Returns the byte at an offset. Returns NaN after the end of the data and for invalid base64; comparisons with NaN are
 * false.
 */
type ReadByte = (offset: number) => number

/**
 * Creates a function that returns single bytes of base64 data. It decodes only the group of three bytes that contains
 * the byte.
 */
function createByteReader(base64: string): ReadByte {
  return (offset) => {
    if (Number.isNaN(offset)) return Number.NaN
    const start = Math.floor(offset / 3) * 4
    try {
      return atob(base64.slice(start, start + 4)).charCodeAt(offset % 3)
    } catch {
      return Number.NaN
    }
  }
}

function hasTextAt(byte: ReadByte, offset: number, text: string): boolean {
  return [...text].every((letter, index) => byte(offset + index) === letter.charCodeAt(0))
}

function readBigEndian(byte: ReadByte, offset: number, length: number): number {
  return Array.from({ length }, (_, index) => byte(offset + index)).reduce((sum, part) => sum * 256 + part, 0)
}

function readLittleEndian(byte: ReadByte, offset: number, length: number): number {
  return Array.from({ length }, (_, index) => byte(offset + length - 1 - index)).reduce(
    (sum, part) => sum * 256 + part,
    0,
  )
}

function readPngSize(byte: ReadByte): ImageSize | null {
  if (!hasTextAt(byte, 0, '\x89PNG\r\n\x1a\n')) return null
  return { width: readBigEndian(byte, 16, 4), height: readBigEndian(byte, 20, 4) }
}

function readGifSize(byte: ReadByte): ImageSize | null {
  if (!hasTextAt(byte, 0, 'GIF8')) return null
  return { width: readLittleEndian(byte, 6, 2), height: readLittleEndian(byte, 8, 2) }
}

function readWebpSize(byte: ReadByte): ImageSize | null {
  if (!hasTextAt(byte, 0, 'RIFF') || !hasTextAt(byte, 8, 'WEBP')) return null
  if (hasTextAt(byte, 12, 'VP8X')) {
    return { width: readLittleEndian(byte, 24, 3) + 1, height: readLittleEndian(byte, 27, 3) + 1 }
  }
  if (hasTextAt(byte, 12, 'VP8L')) {
    const bits = readLittleEndian(byte, 21, 4)
    return { width: (bits % 0x4000) + 1, height: (Math.floor(bits / 0x4000) % 0x4000) + 1 }
  }
  return { width: readLittleEndian(byte, 26, 2) % 0x4000, height: readLittleEndian(byte, 28, 2) % 0x4000 }
}

/** Reads the size of a JPEG from its first frame header, after skipping the segments before that header. */
function readJpegSize(byte: ReadByte): ImageSize | null {
  if (byte(0) !== 0xff || byte(1) !== 0xd8) return null
  for (let offset = 2; byte(offset) === 0xff; ) {
    const marker = byte(offset + 1)
    if (isFrameMarker(marker))
      return { width: readBigEndian(byte, offset + 7, 2), height: readBigEndian(byte, offset + 5, 2) }
    offset += marker === 0xff ? 1 : 2 + readSegmentLength(byte, offset, marker)
  }
  return null
}

function isFrameMarker(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

/** Returns the length of a JPEG segment. Returns 0 for a marker without a body, because it has no length field. */
function readSegmentLength(byte: ReadByte, offset: number, marker: number): number {
  const bare = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)
  return bare ? 0 : readBigEndian(byte, offset + 2, 2)
}

/** The sides of a picture, from the head of its file; null for what says no size or is none of the four kinds. */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** Enough for the headers of any of them; a JPEG may carry a preview in front of its size. */
const HEAD_CHARACTERS = 262_144

export function imageSize(base64: string): ImageSize | null {
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

/** Markers that carry a size: every start of frame, without the three of the same range that are tables. */
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

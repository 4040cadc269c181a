import { describe, expect, it } from 'vitest'
import type { Block } from '../conversation/block.ts'
import { imageTokens } from './estimate-image.ts'

const WEIGHTS = { flat: 2_000, patches: { pixels: 28, maxEdge: 1568, maxTokens: 1568 } }

function picture(width: number, height: number): Block {
  const head = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')
  const size = Buffer.alloc(13)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  return { type: 'image', source: { type: 'base64', data: Buffer.concat([head, size]).toString('base64') } }
}

describe('imageTokens', () => {
  it.each([
    [28, 28, 1],
    [29, 28, 2],
    [512, 512, 361],
    [1024, 1024, 1369],
    [1568, 28, 56],
    // Scaled to the longest edge: 1568 × 784.
    [3136, 1568, 1568],
    // Within the edge, but more patches than are ever made.
    [1500, 1500, 1568],
    [8000, 2, 56],
  ])('%i × %i pixels: %i tokens', (width, height, tokens) => {
    expect(imageTokens(picture(width, height), WEIGHTS)).toBe(tokens)
  })

  it.each<[string, Block]>([
    ['by address', { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }],
    ['that cannot be read', { type: 'image', source: { type: 'base64', data: 'AAAA' } }],
    ['without a source', { type: 'image' }],
  ])('flat for a picture %s', (_, block) => {
    expect(imageTokens(block, WEIGHTS)).toBe(2_000)
  })

  it('flat where the provider has no formula', () => {
    expect(imageTokens(picture(28, 28), { flat: 2_000, patches: null })).toBe(2_000)
  })
})

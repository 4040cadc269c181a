/** Tokens of a picture: by its dimensions where the provider's formula and the picture's bytes tell, else flat. */
import type { Block } from '../conversation/block.ts'
import { type ImageSize, imageSize } from '../conversation/image-size.ts'
import { isObject } from '../conversation/json.ts'
import type { ImageWeights } from './estimate-weights.ts'

export function imageTokens(block: Block, weights: ImageWeights): number {
  const size = weights.patches === null ? null : sizeOf(block)
  return size === null || weights.patches === null ? weights.flat : patchTokens(size, weights.patches)
}

function sizeOf(block: Block): ImageSize | null {
  const { source } = block
  return isObject(source) && typeof source.data === 'string' ? imageSize(source.data) : null
}

/** The picture is scaled down, keeping its shape, until both its longer edge and its patches are within limits. */
function patchTokens(size: ImageSize, rule: NonNullable<ImageWeights['patches']>): number {
  const fit = Math.min(1, rule.maxEdge / Math.max(size.width, size.height))
  const patches = (scale: number): number =>
    Math.ceil((size.width * scale) / rule.pixels) * Math.ceil((size.height * scale) / rule.pixels)
  return Math.min(patches(fit), rule.maxTokens)
}

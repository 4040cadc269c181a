/** How much a request may be: messages, bytes, images and their sides. */

import { imageSize } from '../../conversation/image-size.ts'
import { isObject } from '../../conversation/json.ts'
import { List } from '../../conversation/list.ts'
import { jsonBytes } from '../../conversation/utf8.ts'
import type { SizeRules } from '../../policy/profile.ts'
import type { Fields, Report } from './finding.ts'
import { allBlocks, type ReadBlock, type ReadMessage } from './read.ts'

export interface SizeState {
  readonly messages: number
  /** UTF-8 bytes of the JSON of the messages, without the commas between them. */
  readonly bytes: number
  /** Images, and PDF documents. */
  readonly images: number
  /** Images too large to stand among many. */
  readonly large: List<string>
}

export const startSize: SizeState = { messages: 0, bytes: 0, images: 0, large: List.of() }

export interface CountRules {
  readonly sizes: SizeRules
  readonly report: Report
}

/** Counts a message, whatever it is. */
export function countMessage(state: SizeState, message: unknown, report: Report): SizeState {
  const bytes = jsonBytes(message)
  if (bytes === null)
    report('not-json', `messages.${state.messages}`, 'Expected a value that JSON can carry.')
  return { ...state, messages: state.messages + 1, bytes: state.bytes + (bytes ?? 0) }
}

export function stepSize(state: SizeState, message: ReadMessage, rules: CountRules): SizeState {
  let { images, large } = state
  for (const item of allBlocks(message.blocks)) {
    if (!isPicture(item)) continue
    images += 1
    const side = longestSide(item)
    const expected = `Expected at most ${rules.sizes.imagePixels} pixels a side, found ${side}.`
    if (side > rules.sizes.imagePixels) rules.report('image-size', item.path, expected)
    else if (side > rules.sizes.manyImagePixels) large = large.push(item.path)
  }
  return { ...state, images, large }
}

function isPicture({ block }: ReadBlock): boolean {
  if (block.type === 'image') return true
  const source: unknown = block.source
  if (block.type !== 'document' || !isObject(source)) return false
  return source.type === 'url' || (source.type === 'base64' && source.media_type === 'application/pdf')
}

/** 0 where the bytes are not in the request, or tell no size. */
function longestSide({ block }: ReadBlock): number {
  const source: unknown = block.source
  if (block.type !== 'image' || !isObject(source) || typeof source.data !== 'string') return 0
  const size = imageSize(source.data)
  return size === null ? 0 : Math.max(size.width, size.height)
}

/** `added`: bytes that came to the messages after they were counted. */
export function finishSize(
  state: SizeState,
  request: Fields,
  rules: CountRules & { readonly added: number },
): void {
  const { sizes, report } = rules
  if (state.messages > sizes.messages) {
    report(
      'message-count',
      'messages',
      `Expected at most ${sizes.messages} messages, found ${state.messages}.`,
    )
  }
  if (state.images > sizes.images) {
    report('image-count', 'messages', `Expected at most ${sizes.images} images, found ${state.images}.`)
  }
  if (state.images > sizes.manyImages) {
    const expected = `Expected at most ${sizes.manyImagePixels} pixels a side among more than ${sizes.manyImages} images.`
    for (const path of state.large) report('many-image-size', path, expected)
  }
  const around = jsonBytes({ ...request, betas: undefined, messages: [] })
  if (around === null) report('not-json', '', 'Expected a request that JSON can carry.')
  const bytes = (around ?? 0) + state.bytes + Math.max(0, state.messages - 1) + rules.added
  if (bytes > sizes.bodyBytes) {
    report('body-size', '', `Expected at most ${sizes.bodyBytes} bytes of JSON, found ${bytes}.`)
  }
}

/** Cache markers: each for itself as it is met, and all of them together, in the order of a request, at the end. */

import type { ApiMessage } from '../context/payload.ts'
import { List } from '../log/append-list.ts'
import { type Block, isBlankText, isBlock } from '../log/block.ts'
import { imageSize } from '../log/image-size.ts'
import { isObject, type Json, jsonBytes } from '../log/json.ts'
import type { CacheRules, SizeRules } from '../policy/provider-profile.ts'
import { allBlocks, type Fields, isAbsent, type ReadBlock, type ReadMessage, type Report } from './finding.ts'
import { isTurnScoped } from './role-rules.ts'

/** A marker that was met. Its lifetime is null where it asks for one there is not. */
interface Marker {
  readonly path: string
  readonly ttl: string | null
}

export interface CacheState {
  readonly markers: List<Marker>
  /** The last block that could carry a marker, for the one that a request puts there by itself. */
  readonly target: string | null
}

export const startCache: CacheState = { markers: List.of(), target: null }

interface MarkerRules {
  readonly cache: CacheRules
  readonly report: Report
}

export function stepCache(state: CacheState, message: ReadMessage, rules: MarkerRules): CacheState {
  const isScoped = isTurnScoped(message.fields)
  let { markers } = state
  for (const { block, path } of allBlocks(message.blocks)) {
    if (isAbsent(block.cache_control)) continue
    if (isScoped) reportScoped(path, rules.report)
    markers = markers.push(readMarker(block, path, rules))
  }
  const target = isScoped ? undefined : message.blocks.findLast(({ block }) => canCarry(block, rules.cache))
  return { markers, target: target?.path ?? state.target }
}

function reportScoped(path: string, report: Report): void {
  report('turn-scoped-marker', path, 'Expected no cache marker in a system message for one turn.')
}

export function canCarry(block: Block, { unmarkable }: CacheRules): boolean {
  return !unmarkable.includes(block.type) && !isBlankText(block)
}

/** A marker on a block at `path`, with what is wrong about it. */
export function readMarker(block: Block, path: string, rules: MarkerRules): Marker {
  if (!canCarry(block, rules.cache)) {
    rules.report('marker-refused', `${path}.cache_control`, `Expected no cache marker on ${kindOf(block)}.`)
  }
  return { path, ttl: readTtl(block.cache_control, `${path}.cache_control`, rules) }
}

function kindOf(block: Block): string {
  return isBlankText(block) ? 'text that is blank' : `a ${block.type} block`
}

/** The lifetime that a marker asks for. */
export function readTtl(control: unknown, path: string, { cache, report }: MarkerRules): string | null {
  if (!isObject(control) || control.type !== 'ephemeral') {
    report('marker-shape', path, "Expected an object of type 'ephemeral'.")
    return null
  }
  checkExtras(control, path, { cache, report })
  const ttl = isAbsent(control.ttl) ? cache.defaultTtl : control.ttl
  const known = cache.ttls.find(({ name }) => name === ttl)
  const names = cache.ttls.map(({ name }) => `'${name}'`).join(' or ')
  if (known === undefined) report('marker-ttl', `${path}.ttl`, `Expected ${names}.`)
  return known?.name ?? null
}

function checkExtras(control: Fields, path: string, { cache, report }: MarkerRules): void {
  for (const [field, value] of Object.entries(control)) {
    if (field === 'type' || field === 'ttl' || value === undefined) continue
    if (field === 'scope' && cache.scopes.some((scope) => scope === value)) continue
    report(
      'marker-field',
      `${path}.${field}`,
      'Expected no field but type and ttl, and a scope where there is one.',
    )
  }
}

const noReport: Report = () => {}

/** Every marker of a request, in the order in which a provider reads it. What is wrong with each is reported elsewhere. */
function markersBefore(request: Fields, cache: CacheRules): readonly Marker[] {
  const marked = (list: unknown, name: string): readonly Marker[] =>
    Array.isArray(list)
      ? Array.from(list, (item: unknown, index) => [item, `${name}.${index}`] as const)
          .filter(([item]) => isObject(item) && !isAbsent(item.cache_control))
          .map(([item, path]) => ({ path, ttl: ttlOf(item, cache) }))
      : []
  return [...marked(request.tools, 'tools'), ...marked(request.system, 'system')]
}

function ttlOf(item: unknown, cache: CacheRules): string | null {
  return isObject(item) ? readTtl(item.cache_control, '', { cache, report: noReport }) : null
}

/** Markers of the messages in order, and the block that the request's own marker would fall on. */
interface MessageMarkers {
  readonly markers: readonly Marker[]
  readonly target: string | null
}

export function finishCache(messages: MessageMarkers, request: Fields, rules: MarkerRules): void {
  const { cache, report } = rules
  const markers = [...markersBefore(request, cache), ...messages.markers]
  const shortest = checkOrder(markers, rules)
  const isAutomatic = !isAbsent(request.cache_control)
  const paths = [
    ...markers.map(({ path }) => `${path}.cache_control`),
    ...(isAutomatic ? ['cache_control'] : []),
  ]
  const surplus = paths[cache.maxMarkers]
  if (surplus !== undefined) {
    report('marker-count', surplus, `Expected at most ${cache.maxMarkers} markers, found ${paths.length}.`)
  }
  if (isAutomatic)
    checkAutomatic({ request, shortest, target: targetOf(messages, request, cache), markers }, rules)
}

/** The shortest lifetime met, in seconds: nothing behind it may ask for a longer one. */
function checkOrder(markers: readonly Marker[], { cache, report }: MarkerRules): number {
  let shortest = Number.POSITIVE_INFINITY
  for (const { path, ttl } of markers) {
    if (ttl === null) continue
    const seconds = secondsOf(ttl, cache)
    if (seconds > shortest) reportOrder(`${path}.cache_control.ttl`, report)
    else shortest = Math.min(shortest, seconds)
  }
  return shortest
}

function reportOrder(path: string, report: Report): void {
  const order = 'along tools, system and messages'
  report('marker-order', path, `Expected a lifetime no longer than that of the markers before it, ${order}.`)
}

function secondsOf(ttl: string, cache: CacheRules): number {
  return cache.ttls.find(({ name }) => name === ttl)?.seconds ?? 0
}

function targetOf({ target }: MessageMarkers, request: Fields, cache: CacheRules): string | null {
  if (target !== null) return target
  const blocks: readonly unknown[] = Array.isArray(request.system) ? request.system : []
  const inSystem = blocks.findLastIndex((block) => isBlock(block) && canCarry(block, cache))
  if (inSystem >= 0) return `system.${inSystem}`
  return Array.isArray(request.tools) && request.tools.length > 0 ? `tools.${request.tools.length - 1}` : null
}

interface Automatic {
  readonly request: Fields
  readonly markers: readonly Marker[]
  readonly shortest: number
  readonly target: string | null
}

function checkAutomatic({ request, markers, shortest, target }: Automatic, rules: MarkerRules): void {
  const { cache, report } = rules
  if (!cache.automatic) {
    report('marker-automatic', 'cache_control', 'Expected markers on blocks alone, none on the request.')
    return
  }
  const ttl = readTtl(request.cache_control, 'cache_control', rules)
  if (ttl === null) return
  const own = markers.find(({ path }) => path === target)
  if (own === undefined) {
    if (secondsOf(ttl, cache) > shortest) reportOrder('cache_control.ttl', report)
  } else if (own.ttl !== null && own.ttl !== ttl) {
    report(
      'marker-automatic',
      'cache_control.ttl',
      `Expected '${own.ttl}', as on the last block (${own.path}).`,
    )
  }
}

// How much a request may be: messages, bytes, images and their sides.

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

interface CountRules {
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

// Cache markers that are put on messages after these were checked. They move at every turn, onto messages
// that have long been settled; looking at the settled ones again for their sake would cost the whole history.

/** `control` becomes the `cache_control` of a block that has none. The content of its message is a list. */
export interface PlacedMarker {
  readonly message: ApiMessage
  /** Where the message stands in the request. */
  readonly index: number
  /** Which of its blocks. */
  readonly block: number
  readonly control: Json
}

interface Placement {
  /** Those that were met and those that were placed, in the order of the messages. */
  readonly markers: readonly Marker[]
  /** Bytes of JSON that the placed ones add. */
  readonly added: number
}

const FIELD_BYTES = ',"cache_control":'.length

export function withPlaced(
  state: CacheState,
  placed: readonly PlacedMarker[],
  rules: MarkerRules,
): Placement {
  const found = placed.map((marker) => place(marker, rules)).filter((marker) => marker !== null)
  const markers = [...state.markers, ...found].sort(inOrder)
  const added = placed.reduce((sum, { control }) => sum + FIELD_BYTES + (jsonBytes(control) ?? 0), 0)
  return { markers, added }
}

function place({ message, index, block: at, control }: PlacedMarker, rules: MarkerRules): Marker | null {
  const path = `messages.${index}.content.${at}`
  const { content } = message
  const block = Array.isArray(content) ? content[at] : undefined
  if (!isBlock(block)) {
    rules.report('marker-refused', `${path}.cache_control`, 'Expected a block to put the marker on.')
    return null
  }
  if (isTurnScoped(message)) reportScoped(path, rules.report)
  return readMarker({ ...block, cache_control: control }, path, rules)
}

/** By message and block. A marker covers all up to the end of its block, so those inside a result come before its own. */
function inOrder(one: Marker, other: Marker): number {
  const [left, right] = [placeOf(one), placeOf(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  if (differs < 0) return right.length - left.length
  return (left[differs] ?? 0) - (right[differs] ?? Number.POSITIVE_INFINITY)
}

function placeOf({ path }: Marker): readonly number[] {
  return path.match(/\d+/g)?.map(Number) ?? []
}

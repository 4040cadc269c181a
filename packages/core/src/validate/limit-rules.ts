/** Cache markers, each as it is met and all of them in order at the end; and how much a request may be. */

import type { ApiMessage } from '../context/payload.ts'
import { type Block, isBlankText, isBlock } from '../log/block.ts'
import { imageSize } from '../log/image-size.ts'
import { isObject, type Json, jsonBytes } from '../log/json.ts'
import { List } from '../log/persistent-collections.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import { type Fields, isAbsent, listIn, type ReadMessage, type Rules } from './finding.ts'
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

export function stepCache(state: CacheState, message: ReadMessage, rules: Rules): CacheState {
  const isScoped = isTurnScoped(message.fields)
  let { markers } = state
  for (const { block, path } of message.all) {
    if (isAbsent(block.cache_control)) continue
    if (isScoped) rules.report('turn-scoped-marker', path)
    markers = markers.push(readMarker(block, path, rules))
  }
  const { cache } = rules.profile
  const target = isScoped ? undefined : message.blocks.findLast(({ block }) => canCarry(block, cache))
  return { markers, target: target?.path ?? state.target }
}

export function canCarry(block: Block, { unmarkable }: CacheRules): boolean {
  return !unmarkable.includes(block.type) && !isBlankText(block)
}

/** A marker on a block at `path`, with what is wrong about it. */
export function readMarker(block: Block, path: string, rules: Rules): Marker {
  if (!canCarry(block, rules.profile.cache)) {
    const kind = isBlankText(block) ? 'text that is blank' : `a ${block.type} block`
    rules.report('marker-refused', `${path}.cache_control`, `no cache marker on ${kind}`)
  }
  return { path, ttl: readTtl(block.cache_control, `${path}.cache_control`, rules) }
}

/** The lifetime that a marker asks for. */
export function readTtl(
  control: unknown,
  path: string,
  { profile: { cache }, report }: Rules,
): string | null {
  if (!isObject(control) || control.type !== 'ephemeral') {
    report('marker-shape', path)
    return null
  }
  for (const [field, value] of Object.entries(control)) {
    const isScope = field === 'scope' && cache.scopes.some((scope) => scope === value)
    if (field !== 'type' && field !== 'ttl' && value !== undefined && !isScope) {
      report('marker-field', `${path}.${field}`)
    }
  }
  const ttl = isAbsent(control.ttl) ? cache.defaultTtl : control.ttl
  const known = cache.ttls.find(({ name }) => name === ttl)
  const names = cache.ttls.map(({ name }) => `'${name}'`).join(' or ')
  if (known === undefined) report('marker-ttl', `${path}.ttl`, names)
  return known?.name ?? null
}

/** The markers of tools and system prompt, in this order. What is wrong with each was reported with the request. */
function markersBefore(request: Fields, rules: Rules): readonly Marker[] {
  const silent = { ...rules, report: () => {} }
  return ['tools', 'system'].flatMap((zone) =>
    listIn(request[zone]).flatMap((item, index): readonly Marker[] =>
      isObject(item) && !isAbsent(item.cache_control)
        ? [{ path: `${zone}.${index}`, ttl: readTtl(item.cache_control, '', silent) }]
        : [],
    ),
  )
}

/** All markers together: how many, in which order, and the request's own. `inMessages`: those of the messages, in order. */
export function finishCache(
  inMessages: readonly Marker[],
  target: string | null,
  request: Fields,
  rules: Rules,
): void {
  const { profile, report } = rules
  const { maxMarkers } = profile.cache
  const markers = [...markersBefore(request, rules), ...inMessages]
  const shortest = checkOrder(markers, rules)
  const isAutomatic = !isAbsent(request.cache_control)
  const paths = markers.map(({ path }) => `${path}.cache_control`)
  if (isAutomatic) paths.push('cache_control')
  const surplus = paths[maxMarkers]
  if (surplus !== undefined) {
    report('marker-count', surplus, `at most ${maxMarkers} markers, found ${paths.length}`)
  }
  if (!isAutomatic) return
  if (!profile.cache.automatic) {
    report('marker-automatic', 'cache_control')
    return
  }
  const ttl = readTtl(request.cache_control, 'cache_control', rules)
  if (ttl === null) return
  const falls = target ?? targetBefore(request, profile.cache)
  const own = markers.find(({ path }) => path === falls)
  if (own === undefined) {
    if (secondsOf(ttl, profile.cache) > shortest) report('marker-order', 'cache_control.ttl')
  } else if (own.ttl !== null && own.ttl !== ttl) {
    report('marker-automatic', 'cache_control.ttl', `'${own.ttl}', as on the last block (${own.path})`)
  }
}

/** The shortest lifetime met, in seconds: nothing behind it may ask for a longer one. */
function checkOrder(markers: readonly Marker[], { profile, report }: Rules): number {
  let shortest = Number.POSITIVE_INFINITY
  for (const { path, ttl } of markers) {
    if (ttl === null) continue
    const seconds = secondsOf(ttl, profile.cache)
    if (seconds > shortest) report('marker-order', `${path}.cache_control.ttl`)
    else shortest = seconds
  }
  return shortest
}

function secondsOf(ttl: string, cache: CacheRules): number {
  return cache.ttls.find(({ name }) => name === ttl)?.seconds ?? 0
}

/** Where the request's own marker falls if no message can carry it. */
function targetBefore(request: Fields, cache: CacheRules): string | null {
  const inSystem = listIn(request.system).findLastIndex((block) => isBlock(block) && canCarry(block, cache))
  if (inSystem >= 0) return `system.${inSystem}`
  const tools = listIn(request.tools).length
  return tools > 0 ? `tools.${tools - 1}` : null
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

/** The markers that were met and those that are placed, in the order of the messages. */
export function withPlaced(
  { markers }: CacheState,
  placed: readonly PlacedMarker[],
  rules: Rules,
): readonly Marker[] {
  return [...markers, ...placed.flatMap((marker) => place(marker, rules))].sort(compareMarkers)
}

function place({ message, index, block: at, control }: PlacedMarker, rules: Rules): readonly Marker[] {
  const path = `messages.${index}.content.${at}`
  const block = Array.isArray(message.content) ? message.content[at] : undefined
  if (!isBlock(block)) {
    rules.report('marker-refused', `${path}.cache_control`)
    return []
  }
  if (isTurnScoped(message)) rules.report('turn-scoped-marker', path)
  return [readMarker({ ...block, cache_control: control }, path, rules)]
}

/** By message and block. A marker covers all up to the end of its block, so those inside a result come before its own. */
function compareMarkers(one: Marker, other: Marker): number {
  const placeOf = ({ path }: Marker): readonly number[] => path.match(/\d+/g)?.map(Number) ?? []
  const [left, right] = [placeOf(one), placeOf(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  if (differs < 0) return right.length - left.length
  return (left[differs] ?? 0) - (right[differs] ?? Number.POSITIVE_INFINITY)
}

const FIELD_BYTES = ',"cache_control":'.length

/** Bytes of JSON that placed markers add. */
export function placedBytes(placed: readonly PlacedMarker[]): number {
  return placed.reduce((sum, { control }) => sum + FIELD_BYTES + (jsonBytes(control) ?? 0), 0)
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

/** Counts a message, whatever it is. */
export function countMessage(state: SizeState, message: unknown, { report }: Rules): SizeState {
  const bytes = jsonBytes(message)
  if (bytes === null) report('not-json', `messages.${state.messages}`)
  return { ...state, messages: state.messages + 1, bytes: state.bytes + (bytes ?? 0) }
}

export function stepSize(
  state: SizeState,
  message: ReadMessage,
  { profile: { sizes }, report }: Rules,
): SizeState {
  let { images, large } = state
  for (const { block, path } of message.all) {
    if (!isPicture(block)) continue
    images += 1
    const side = longestSide(block)
    if (side > sizes.imagePixels) {
      report('image-size', path, `at most ${sizes.imagePixels} pixels a side, found ${side}`)
    } else if (side > sizes.manyImagePixels) large = large.push(path)
  }
  return { ...state, images, large }
}

function isPicture({ type, source }: Block): boolean {
  if (type === 'image') return true
  if (type !== 'document' || !isObject(source)) return false
  return source.type === 'url' || (source.type === 'base64' && source.media_type === 'application/pdf')
}

/** 0 where the bytes are not in the request, or tell no size. */
function longestSide({ type, source }: Block): number {
  if (type !== 'image' || !isObject(source) || typeof source.data !== 'string') return 0
  const size = imageSize(source.data)
  return size === null ? 0 : Math.max(size.width, size.height)
}

/** `added`: bytes that came to the messages after they were counted. */
export function finishSize(
  { messages, bytes, images, large }: SizeState,
  request: Fields,
  added: number,
  { profile: { sizes }, report }: Rules,
): void {
  if (messages > sizes.messages) {
    report('message-count', 'messages', `at most ${sizes.messages} messages, found ${messages}`)
  }
  if (images > sizes.images) {
    report('image-count', 'messages', `at most ${sizes.images} images, found ${images}`)
  }
  if (images > sizes.manyImages) {
    const expected = `at most ${sizes.manyImagePixels} pixels a side among more than ${sizes.manyImages} images`
    for (const path of large) report('many-image-size', path, expected)
  }
  const around = jsonBytes({ ...request, betas: undefined, messages: [] })
  if (around === null) report('not-json', '', 'a request that JSON can carry')
  const total = (around ?? 0) + bytes + Math.max(0, messages - 1) + added
  if (total > sizes.bodyBytes) {
    report('body-size', '', `at most ${sizes.bodyBytes} bytes of JSON, found ${total}`)
  }
}

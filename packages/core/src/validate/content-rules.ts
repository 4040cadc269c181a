/**
 * The content of a request, block by block: the fields and place of each block, its cache marker, and the limits on
 * images, messages and bytes.
 */

import type { ApiMessage, Role } from '../context/payload.ts'
import {
  type Block,
  isBlankText,
  isBlock,
  isCacheEdits,
  isServerToolResult,
  isServerToolUse,
} from '../log/block.ts'
import { readImageSize } from '../log/image-size.ts'
import { countJsonBytes, isObject, type Json } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import {
  isNonEmptyString,
  isTurnScoped,
  type ParsedBlock,
  type ParsedMessage,
  type RawFields,
  type Rules,
  type Shape,
  type Shapes,
  stringShape,
  toList,
} from './finding.ts'

/** Where a block stands: in a message of a role, in the system prompt, or in a tool result. */
type Holder = Role | 'prompt' | 'result'

interface BlockRule {
  readonly fields: Shapes
  /** Where it may stand; anywhere if missing. */
  readonly holders?: readonly Holder[]
  /** No other field is allowed. The provider refuses its own summary back with any field it did not send. */
  readonly only?: readonly string[]
}

const filled: Shape = { expected: 'a string that is not empty', fits: isNonEmptyString }
const object: Shape = { expected: 'an object', fits: isObject }
const source: Shape = {
  expected: 'an object with a type, and with data and media_type where the type is base64',
  fits: (value) =>
    isObject(value) &&
    typeof value.type === 'string' &&
    (value.type !== 'base64' || (isNonEmptyString(value.data) && isNonEmptyString(value.media_type))),
}
const resultContent: Shape = {
  expected: 'a string or a list of blocks',
  fits: (value) => value == null || typeof value === 'string' || Array.isArray(value),
}
const optionalFlag: Shape = {
  expected: 'true or false',
  fits: (value) => value == null || typeof value === 'boolean',
}
const summary: Shape = {
  expected: 'a string that is not empty, or null',
  fits: (value) => value === null || isNonEmptyString(value),
}
const deletions: Shape = {
  expected: 'a list of deletions',
  fits: (value) =>
    Array.isArray(value) &&
    value.every((edit) => isObject(edit) && edit.type === 'delete' && isNonEmptyString(edit.cache_reference)),
}

const MEDIA: BlockRule = { fields: { source }, holders: ['user', 'assistant', 'result'] }
const TOOL_CHANGE: BlockRule = { fields: { tool: object }, holders: ['system'] }

const BLOCK_RULES: ReadonlyMap<string, BlockRule> = new Map(
  Object.entries<BlockRule>({
    text: { fields: { text: stringShape } },
    thinking: { fields: { thinking: stringShape }, holders: ['assistant'] },
    redacted_thinking: { fields: { data: filled }, holders: ['assistant'] },
    tool_use: { fields: { id: stringShape, name: filled, input: object }, holders: ['assistant'] },
    tool_result: {
      fields: { tool_use_id: stringShape, content: resultContent, is_error: optionalFlag },
      holders: ['user'],
    },
    image: MEDIA,
    document: MEDIA,
    compaction: {
      fields: { content: summary },
      holders: ['user', 'assistant'],
      only: ['type', 'content', 'encrypted_content', 'signature', 'tool_changes', 'cache_control'],
    },
    cache_edits: { fields: { edits: deletions }, holders: ['user'] },
    tool_addition: TOOL_CHANGE,
    tool_removal: TOOL_CHANGE,
  }),
)

/** Calls the provider runs, and their results, are recognised by the end of their type. Their id may be missing. */
function findBlockRule({ block }: ParsedBlock): BlockRule | undefined {
  const known = BLOCK_RULES.get(block.type)
  if (known !== undefined) return known
  const isServers = isServerToolUse(block) || isServerToolResult(block)
  const holders: Pick<BlockRule, 'holders'> = isServers ? { holders: ['assistant'] } : {}
  if (block.type.endsWith('_tool_use')) return { fields: { id: stringShape }, ...holders }
  return block.type.endsWith('_tool_result')
    ? { fields: { tool_use_id: stringShape }, ...holders }
    : undefined
}

export function checkBlock(item: ParsedBlock, holder: Holder, rules: Rules): void {
  const { block, path } = item
  const { profile, report } = rules
  const rule = findBlockRule(item)
  for (const [field, { expected, fits }] of Object.entries(rule?.fields ?? {})) {
    if (!fits(block[field])) report('block-field', `${path}.${field}`, expected)
  }
  for (const [field, value] of Object.entries(rule?.only === undefined ? {} : block)) {
    if (value === undefined || rule?.only?.includes(field)) continue
    report('block-field', `${path}.${field}`, `no ${field} on a ${block.type} block`)
  }
  if (isBlankText(block)) report('text-blank', path)
  const edits = isCacheEdits(block) || block.cache_reference != null
  if (edits && !profile.capabilities.cacheEdits) report('cache-edit-refused', path)
  if (rule?.holders !== undefined && !rule.holders.includes(holder)) {
    report('block-refused', path, `no ${block.type} block here, only in: ${rule.holders.join(', ')}`)
  } else {
    checkRefusedBlocks(item, holder, rules)
  }
  for (const inner of item.inner) checkBlock(inner, 'result', rules)
}

function checkRefusedBlocks({ block, path }: ParsedBlock, holder: Holder, { profile, report }: Rules): void {
  for (const { role, type, field } of profile.refusedBlocks) {
    if (role !== holder || type !== block.type || (field !== undefined && block[field] == null)) continue
    const [where, what] = field === undefined ? [path, `${type} block`] : [`${path}.${field}`, field]
    report('block-refused', where, `no ${what} in a message of role ${role}`)
  }
}

// Limits: messages, bytes, images and their sides.

export interface SizeState {
  readonly messages: number
  /** UTF-8 bytes of the JSON of the messages, without the commas between them. */
  readonly bytes: number
  /** Images, and PDF documents. */
  readonly images: number
  /** Paths of images too large for a request with many images. */
  readonly large: AppendList<string>
}

export const START_SIZE: SizeState = { messages: 0, bytes: 0, images: 0, large: AppendList.of() }

/** Counts a message, malformed or not. */
export function countMessage(state: SizeState, message: unknown, { report }: Rules): SizeState {
  const bytes = countJsonBytes(message)
  if (bytes === null) report('not-json', `messages.${state.messages}`)
  return { ...state, messages: state.messages + 1, bytes: state.bytes + (bytes ?? 0) }
}

export function checkImages(
  state: SizeState,
  message: ParsedMessage,
  { profile: { sizes }, report }: Rules,
): SizeState {
  let { images, large } = state
  for (const { block, path } of message.all) {
    if (!countsAsImage(block)) continue
    images += 1
    const side = measureLongestSide(block)
    if (side > sizes.imagePixels) {
      report('image-size', path, `at most ${sizes.imagePixels} pixels a side, found ${side}`)
    } else if (side > sizes.manyImagePixels) large = large.push(path)
  }
  return { ...state, images, large }
}

function countsAsImage({ type, source }: Block): boolean {
  if (type === 'image') return true
  if (type !== 'document' || !isObject(source)) return false
  return source.type === 'url' || (source.type === 'base64' && source.media_type === 'application/pdf')
}

/** 0 if the image is not in the request, or its header gives no size. */
function measureLongestSide({ type, source }: Block): number {
  if (type !== 'image' || !isObject(source) || typeof source.data !== 'string') return 0
  const size = readImageSize(source.data)
  return size === null ? 0 : Math.max(size.width, size.height)
}

const MARKER_FIELD_BYTES = ',"cache_control":'.length

/** `placed`: markers added to the messages after they were counted. */
export function checkSizes(
  { messages, bytes, images, large }: SizeState,
  request: RawFields,
  placed: readonly PlacedMarker[],
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
  const around = countJsonBytes({ ...request, betas: undefined, messages: [] })
  if (around === null) report('not-json', '', 'a request that JSON can carry')
  const added = placed.reduce(
    (sum, { control }) => sum + MARKER_FIELD_BYTES + (countJsonBytes(control) ?? 0),
    0,
  )
  const total = (around ?? 0) + bytes + Math.max(0, messages - 1) + added
  if (total > sizes.bodyBytes) {
    report('body-size', '', `at most ${sizes.bodyBytes} bytes of JSON, found ${total}`)
  }
}

// Cache markers: each is checked with its block, their number and order at the end.

/** `ttl` is null if the marker asks for a lifetime the provider does not have. */
interface Marker {
  readonly path: string
  readonly ttl: string | null
}

export interface CacheState {
  readonly markers: AppendList<Marker>
  /** Path of the last block that can carry a marker: an automatic marker of the request goes there. */
  readonly target: string | null
}

export const START_CACHE: CacheState = { markers: AppendList.of(), target: null }

export function checkMessageMarkers(state: CacheState, message: ParsedMessage, rules: Rules): CacheState {
  const isScoped = isTurnScoped(message.fields)
  let { markers } = state
  for (const { block, path } of message.all) {
    if (block.cache_control == null) continue
    if (isScoped) rules.report('turn-scoped-marker', path)
    markers = markers.push(readMarker(block, path, rules))
  }
  const { cache } = rules.profile
  const target = isScoped ? undefined : message.blocks.findLast(({ block }) => canCarryMarker(block, cache))
  return { markers, target: target?.path ?? state.target }
}

export function canCarryMarker(block: Block, { unmarkable }: CacheRules): boolean {
  return !unmarkable.includes(block.type) && !isBlankText(block)
}

/** The marker of the block at `path`; reports what is wrong with it. */
export function readMarker(block: Block, path: string, rules: Rules): Marker {
  if (!canCarryMarker(block, rules.profile.cache)) {
    const kind = isBlankText(block) ? 'text that is blank' : `a ${block.type} block`
    rules.report('marker-refused', `${path}.cache_control`, `no cache marker on ${kind}`)
  }
  return { path, ttl: readTtl(block.cache_control, `${path}.cache_control`, rules) }
}

/** The lifetime a marker asks for. */
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
  const ttl = control.ttl == null ? cache.defaultTtl : control.ttl
  const known = cache.ttls.find(({ name }) => name === ttl)
  const names = cache.ttls.map(({ name }) => `'${name}'`).join(' or ')
  if (known === undefined) report('marker-ttl', `${path}.ttl`, names)
  return known?.name ?? null
}

/** The markers of tools and system prompt, in this order. Each was checked with the request, so nothing is reported. */
function listPrefixMarkers(request: RawFields, rules: Rules): readonly Marker[] {
  const silent = { ...rules, report: () => {} }
  return ['tools', 'system'].flatMap((zone) =>
    toList(request[zone]).flatMap((item, index): readonly Marker[] =>
      isObject(item) && item.cache_control != null
        ? [{ path: `${zone}.${index}`, ttl: readTtl(item.cache_control, '', silent) }]
        : [],
    ),
  )
}

/** All markers together: their number, their order, and the automatic one of the request. `inMessages`: in order. */
export function checkMarkers(
  inMessages: readonly Marker[],
  target: string | null,
  request: RawFields,
  rules: Rules,
): void {
  const { profile, report } = rules
  const { maxMarkers } = profile.cache
  const markers = [...listPrefixMarkers(request, rules), ...inMessages]
  const shortest = checkMarkerOrder(markers, rules)
  const isAutomatic = request.cache_control != null
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
  const automaticPath = target ?? findPrefixTarget(request, profile.cache)
  const own = markers.find(({ path }) => path === automaticPath)
  if (own === undefined) {
    if (toSeconds(ttl, profile.cache) > shortest) report('marker-order', 'cache_control.ttl')
  } else if (own.ttl !== null && own.ttl !== ttl) {
    report('marker-automatic', 'cache_control.ttl', `'${own.ttl}', as on the last block (${own.path})`)
  }
}

/** Returns the shortest lifetime in seconds: no later marker may ask for a longer one. */
function checkMarkerOrder(markers: readonly Marker[], { profile, report }: Rules): number {
  let shortest = Number.POSITIVE_INFINITY
  for (const { path, ttl } of markers) {
    if (ttl === null) continue
    const seconds = toSeconds(ttl, profile.cache)
    if (seconds > shortest) report('marker-order', `${path}.cache_control.ttl`)
    else shortest = seconds
  }
  return shortest
}

function toSeconds(ttl: string, cache: CacheRules): number {
  return cache.ttls.find(({ name }) => name === ttl)?.seconds ?? 0
}

/** Path of the tool or system block that gets the automatic marker if no message can carry it. */
function findPrefixTarget(request: RawFields, cache: CacheRules): string | null {
  const inSystem = toList(request.system).findLastIndex(
    (block) => isBlock(block) && canCarryMarker(block, cache),
  )
  if (inSystem >= 0) return `system.${inSystem}`
  const tools = toList(request.tools).length
  return tools > 0 ? `tools.${tools - 1}` : null
}

// Markers placed on messages that were checked before. They move every turn, onto messages that no longer change;
// checking those messages again would cost the whole history.

/** `control` becomes the `cache_control` of a block that has none. The content of its message is a list. */
export interface PlacedMarker {
  readonly message: ApiMessage
  /** Of the message in the request. */
  readonly index: number
  /** Index of the block in the message. */
  readonly block: number
  readonly control: Json
}

/** The markers of the checked messages and the placed ones, in order. */
export function withPlacedMarkers(
  { markers }: CacheState,
  placed: readonly PlacedMarker[],
  rules: Rules,
): readonly Marker[] {
  return [...markers, ...placed.flatMap((marker) => checkPlacedMarker(marker, rules))].sort(compareMarkers)
}

function checkPlacedMarker(marker: PlacedMarker, rules: Rules): readonly Marker[] {
  const { message, index, block: at, control } = marker
  const path = `messages.${index}.content.${at}`
  const block = Array.isArray(message.content) ? message.content[at] : undefined
  if (!isBlock(block)) {
    rules.report('marker-refused', `${path}.cache_control`)
    return []
  }
  if (isTurnScoped(message)) rules.report('turn-scoped-marker', path)
  return [readMarker({ ...block, cache_control: control }, path, rules)]
}

/** By message and block. A marker covers its whole block, so markers inside a tool result come before its own. */
function compareMarkers(one: Marker, other: Marker): number {
  const toPosition = ({ path }: Marker): readonly number[] => path.match(/\d+/g)?.map(Number) ?? []
  const [left, right] = [toPosition(one), toPosition(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  if (differs < 0) return right.length - left.length
  return (left[differs] ?? 0) - (right[differs] ?? Number.POSITIVE_INFINITY)
}

/**
 * Checks the content of an API request block by block: the fields of each block, where the block may occur, its cache
 * marker, and the limits on images, messages and bytes.
 */

import type { ApiMessage, Role } from '../context/payload.ts'
import {
  type Block,
  countsAsImage,
  isBlankText,
  isBlock,
  isServerToolResult,
  isServerToolUse,
  measureLongestSide,
} from '../log/block.ts'
import { isDeletionList, needsCacheEdits } from '../log/cache-edits.ts'
import { countJsonBytes, isObject, type Json } from '../log/json.ts'
import type { AppendList } from '../log/persistent-collections.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import {
  type FieldShapes,
  isNonEmptyString,
  isTurnScopedMessage,
  type ParsedBlock,
  type ParsedMessage,
  type RawFields,
  type RuleSet,
  type Shape,
  stringShape,
  toArray,
} from './findings.ts'

/** Where a block occurs: in a message of a certain role, in the system prompt (`prompt`), or in a tool result (`result`). */
type Holder = Role | 'prompt' | 'result'

interface BlockRule {
  readonly fields: FieldShapes
  /** Where the provider accepts the block. If missing, it is accepted everywhere. */
  readonly holders?: readonly Holder[]
  /** The only fields that the block may have. If missing, the block may have any other field too. */
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
const deletions: Shape = { expected: 'a list of deletions', fits: isDeletionList }

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

/** Finds the rule for a block by its type. Server tool calls and results are recognised by the end of the type name. */
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

export function checkBlock(item: ParsedBlock, holder: Holder, rules: RuleSet): void {
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
  if (needsCacheEdits(block) && !profile.capabilities.cacheEdits) report('cache-edit-refused', path)
  if (rule?.holders !== undefined && !rule.holders.includes(holder)) {
    report('block-refused', path, `no ${block.type} block here, only in: ${rule.holders.join(', ')}`)
  } else {
    checkRefusedBlocks(item, holder, rules)
  }
  for (const inner of item.inner) checkBlock(inner, 'result', rules)
}

function checkRefusedBlocks(
  { block, path }: ParsedBlock,
  holder: Holder,
  { profile, report }: RuleSet,
): void {
  for (const { role, type, field } of profile.refusedBlocks) {
    if (role !== holder || type !== block.type || (field !== undefined && block[field] == null)) continue
    const [where, what] = field === undefined ? [path, `${type} block`] : [`${path}.${field}`, field]
    report('block-refused', where, `no ${what} in a message of role ${role}`)
  }
}

// The functions below check the limits on messages, bytes, images and image sizes.

export interface SizeState {
  readonly messages: number
  /** UTF-8 bytes of all messages as JSON, without the commas between messages. */
  readonly bytes: number
  /** Number of images, including PDF documents. */
  readonly images: number
  /** Paths of images that are too large if the request has many images. */
  readonly large: AppendList<string>
}

/** Adds a message and its bytes to the counts. */
export function countMessage(state: SizeState, message: ApiMessage): SizeState {
  return { ...state, messages: state.messages + 1, bytes: state.bytes + (countJsonBytes(message) ?? 0) }
}

export function checkImages(
  state: SizeState,
  message: ParsedMessage,
  { profile: { sizes }, report }: RuleSet,
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

const MARKER_FIELD_BYTES = ',"cache_control":'.length

/** Checks the totals of the request against the limits. `placed`: cache markers that are not in the byte count yet. */
export function checkSizeLimits(
  { messages, bytes, images, large }: SizeState,
  request: RawFields,
  placed: readonly PlacedMarker[],
  { profile: { sizes }, report }: RuleSet,
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
  const added = placed.reduce(
    (sum, { control }) => sum + MARKER_FIELD_BYTES + (countJsonBytes(control) ?? 0),
    0,
  )
  const total = (around ?? 0) + bytes + Math.max(0, messages - 1) + added
  if (total > sizes.bodyBytes) {
    report('body-size', '', `at most ${sizes.bodyBytes} bytes of JSON, found ${total}`)
  }
}

// Each cache marker is checked together with its block; the number and order of all markers are checked at the end.

/** A cache marker on a block. `ttl` is null if the marker is invalid or the provider does not offer its lifetime. */
interface Marker {
  readonly path: string
  readonly ttl: string | null
}

export interface CacheMarkerState {
  readonly markers: AppendList<Marker>
  /** Path of the last block that can have a cache marker. A top-level `cache_control` applies to this block. */
  readonly target: string | null
}

export function checkMessageMarkers(
  state: CacheMarkerState,
  message: ParsedMessage,
  rules: RuleSet,
): CacheMarkerState {
  const isScoped = isTurnScopedMessage(message.fields)
  let { markers } = state
  for (const { block, path } of message.all) {
    if (block.cache_control == null) continue
    if (isScoped) rules.report('turn-scoped-marker', path)
    markers = markers.push(checkBlockMarker(block, path, rules))
  }
  const { cache } = rules.profile
  const target = isScoped ? undefined : message.blocks.findLast(({ block }) => canCarryMarker(block, cache))
  return { markers, target: target?.path ?? state.target }
}

export function canCarryMarker(block: Block, { unmarkable }: CacheRules): boolean {
  return !unmarkable.includes(block.type) && !isBlankText(block)
}

/** Reads the cache marker of the block at `path`, and reports each rule that the marker breaks. */
export function checkBlockMarker(block: Block, path: string, rules: RuleSet): Marker {
  if (!canCarryMarker(block, rules.profile.cache)) {
    const kind = isBlankText(block) ? 'text that is blank' : `a ${block.type} block`
    rules.report('marker-refused', `${path}.cache_control`, `no cache marker on ${kind}`)
  }
  return { path, ttl: checkMarkerTtl(block.cache_control, `${path}.cache_control`, rules) }
}

/** Returns the lifetime that a cache marker requests. If it is invalid, reports a finding and returns null. */
export function checkMarkerTtl(
  control: unknown,
  path: string,
  { profile: { cache }, report }: RuleSet,
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

/** Lists the cache markers on tools, then on the system prompt. Reports no findings; other checks report them. */
function listPrefixMarkers(request: RawFields, rules: RuleSet): readonly Marker[] {
  const silent = { ...rules, report: () => {} }
  return ['tools', 'system'].flatMap((zone) =>
    toArray(request[zone]).flatMap((item, index): readonly Marker[] =>
      isObject(item) && item.cache_control != null
        ? [{ path: `${zone}.${index}`, ttl: checkMarkerTtl(item.cache_control, '', silent) }]
        : [],
    ),
  )
}

/** Checks number and order of all cache markers, with a top-level `cache_control`. `inMessages` is in request order. */
export function checkMarkers(
  inMessages: readonly Marker[],
  target: string | null,
  request: RawFields,
  rules: RuleSet,
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
  const ttl = checkMarkerTtl(request.cache_control, 'cache_control', rules)
  if (ttl === null) return
  const automaticPath = target ?? findPrefixTarget(request, profile.cache)
  const own = markers.find(({ path }) => path === automaticPath)
  if (own === undefined) {
    if (toSeconds(ttl, profile.cache) > shortest) report('marker-order', 'cache_control.ttl')
  } else if (own.ttl !== null && own.ttl !== ttl) {
    report('marker-automatic', 'cache_control.ttl', `'${own.ttl}', as on the last block (${own.path})`)
  }
}

/** Checks that no cache marker requests a longer lifetime than one before it. Returns the shortest, in seconds. */
function checkMarkerOrder(markers: readonly Marker[], { profile, report }: RuleSet): number {
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

/** Path of the system block or tool that a top-level `cache_control` applies to if no message block can be marked. */
function findPrefixTarget(request: RawFields, cache: CacheRules): string | null {
  const inSystem = toArray(request.system).findLastIndex(
    (block) => isBlock(block) && canCarryMarker(block, cache),
  )
  if (inSystem >= 0) return `system.${inSystem}`
  const tools = toArray(request.tools).length
  return tools > 0 ? `tools.${tools - 1}` : null
}

// The functions below check cache markers that are added to messages after the messages were checked. Markers move
// every turn, and checking all messages again for that would cost too much time.

/** A cache marker to add, as `cache_control`, to a block without one. The message's content must be a list of blocks. */
export interface PlacedMarker {
  readonly message: ApiMessage
  /** Index of the message in the request's messages. */
  readonly index: number
  /** Index of the block in the message's content. */
  readonly block: number
  readonly control: Json
}

/** Returns the cache markers already in the messages together with the markers in `placed`, in request order. */
export function withPlacedMarkers(
  { markers }: CacheMarkerState,
  placed: readonly PlacedMarker[],
  rules: RuleSet,
): readonly Marker[] {
  return [...markers, ...placed.flatMap((marker) => checkPlacedMarker(marker, rules))].sort(compareMarkers)
}

function checkPlacedMarker(marker: PlacedMarker, rules: RuleSet): readonly Marker[] {
  const { message, index, block: at, control } = marker
  const path = `messages.${index}.content.${at}`
  const block = Array.isArray(message.content) ? message.content[at] : undefined
  if (!isBlock(block)) {
    rules.report('marker-refused', `${path}.cache_control`)
    return []
  }
  if (isTurnScopedMessage(message)) rules.report('turn-scoped-marker', path)
  return [checkBlockMarker({ ...block, cache_control: control }, path, rules)]
}

/** Sorts cache markers by message and block. A marker inside a tool result sorts before the marker on that tool result. */
function compareMarkers(one: Marker, other: Marker): number {
  const toPosition = ({ path }: Marker): readonly number[] => path.match(/\d+/g)?.map(Number) ?? []
  const [left, right] = [toPosition(one), toPosition(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  if (differs < 0) return right.length - left.length
  return (left[differs] ?? 0) - (right[differs] ?? Number.POSITIVE_INFINITY)
}

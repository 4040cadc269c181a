/**
 * Finds all differences between two API requests and formats them as text. Differences are ordered as the request is
 * cached: tools, system prompt, messages.
 */

import { type Block, isToolResult } from '../log/block.ts'
import { CLEARED_RESULT_TEXT } from '../log/record.ts'
import {
  type BlockIndex,
  type BlockPosition,
  countMessages,
  findMessageAt,
  isSameJson,
  type MessageList,
  toMessageBlocks,
} from '../request/block-index.ts'
import { sliceWholeCharacters } from '../text/truncate-text.ts'
import type { MessageDifference, RequestDifference } from './cache-break-types.ts'
import { describeCause } from './explain-break.ts'
import {
  findSentBlockText,
  type MessageChangeSource,
  type SentMarker,
  type SentParameters,
  type SentPrefixPiece,
  type SentRequest,
  toSentBlockText,
} from './sent-request.ts'

/**
 * Lists the differences between two API requests, except changes of single messages (`classifyMessageDifference`).
 * `counted`: block indexes of both requests.
 */
export function diffRequests(
  before: SentRequest,
  after: SentRequest,
  counted: readonly [BlockIndex, BlockIndex],
): readonly RequestDifference[] {
  const [was, is] = [before.parameters, after.parameters]
  return [
    // Each model, and each speed, has a separate cache.
    ...(was.model === is.model
      ? []
      : [{ kind: 'model-changed', before: was.model, after: is.model } as const]),
    ...diffValue('speed-changed', was.speed, is.speed),
    ...diffSentTools(before.tools, after.tools),
    ...diffSentSections(before.system, after.system),
    ...diffParameters(was, is),
    ...diffMarkers(before.markers, after.markers),
    ...diffMessageTraits(...counted),
  ]
}

function diffParameters(before: SentParameters, after: SentParameters): readonly RequestDifference[] {
  if (before === after) return []
  return [
    ...diffBetas(before.betas ?? [], after.betas ?? []),
    ...diffValue('thinking-changed', before.thinking, after.thinking),
    ...diffValue('effort-changed', before.effort, after.effort),
    ...diffValue('tool-choice-changed', before.toolChoice, after.toolChoice),
    ...diffOtherParameters(before.others ?? {}, after.others ?? {}),
  ]
}

function diffValue(
  kind: 'speed-changed' | 'effort-changed' | 'thinking-changed' | 'tool-choice-changed',
  before: string | undefined,
  after: string | undefined,
): readonly RequestDifference[] {
  return before === after ? [] : [{ kind, before: before ?? null, after: after ?? null }]
}

/** Compares the beta names of two API requests; their order is ignored. */
function diffBetas(before: readonly string[], after: readonly string[]): readonly RequestDifference[] {
  const added = after.filter((name) => !before.includes(name))
  const removed = before.filter((name) => !after.includes(name))
  return added.length + removed.length === 0 ? [] : [{ kind: 'betas-changed', added, removed }]
}

type ParameterTexts = Readonly<Record<string, string>>

function diffOtherParameters(before: ParameterTexts, after: ParameterTexts): readonly RequestDifference[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => before[name] !== after[name])
    .map((name) => {
      const [was, is] = [before[name] ?? null, after[name] ?? null]
      return { kind: 'parameter-changed', name, before: was, after: is }
    })
}

// Cache markers: those whose lifetime or scope changed, and parts of the request that lost all their markers.

type SentMarkers = readonly SentMarker[]

function diffMarkers(before: SentMarkers, after: SentMarkers): readonly RequestDifference[] {
  if (before === after) return []
  const changes = after.flatMap((marker) => {
    const old = findCounterpart(marker, before, after)
    return old === undefined ? [] : diffMarker(old, marker)
  })
  // If several markers in one part of the request changed in the same way, the change is reported once.
  const once = changes.filter(
    (change, index) => changes.findIndex((other) => isSameJson(other, change)) === index,
  )
  return [...findRemovedMarkers(before, after), ...once]
}

/**
 * Finds the cache marker of the previous API request that corresponds to `marker`. Markers on messages move with the
 * conversation, so only the last message marker of each request is compared.
 */
function findCounterpart(
  marker: SentMarker,
  before: SentMarkers,
  after: SentMarkers,
): SentMarker | undefined {
  if (marker.zone === 'messages')
    return marker === after.findLast(isInMessages) ? before.findLast(isInMessages) : undefined
  return before.find(({ zone, index }) => zone === marker.zone && index === marker.index)
}

function diffMarker(old: SentMarker, { zone, ttl, scope }: SentMarker): readonly RequestDifference[] {
  const [was, is] = [old.scope ?? null, scope ?? null]
  return [
    ...(old.ttl === ttl ? [] : [{ kind: 'marker-ttl-changed', zone, before: old.ttl, after: ttl } as const]),
    ...(was === is ? [] : [{ kind: 'marker-scope-changed', zone, before: was, after: is } as const]),
  ]
}

function findRemovedMarkers(before: SentMarkers, after: SentMarkers): readonly RequestDifference[] {
  const isInPrefix = (marker: SentMarker): boolean => !isInMessages(marker)
  const prefix = before.some(isInPrefix) && !after.some(isInPrefix)
  const messages = before.some(isInMessages) && !after.some(isInMessages)
  return [
    ...(prefix ? [{ kind: 'markers-removed', zone: 'prefix' } as const] : []),
    ...(messages ? [{ kind: 'markers-removed', zone: 'messages' } as const] : []),
  ]
}

function isInMessages({ zone }: SentMarker): boolean {
  return zone === 'messages'
}

// Tools and system prompt sections that were added, removed, changed or moved.

function diffSentTools(
  before: readonly SentPrefixPiece[],
  after: readonly SentPrefixPiece[],
): readonly RequestDifference[] {
  const { added, removed, moved, changed } = comparePieces(before, after)
  return [
    ...(added.length > 0 ? [{ kind: 'tools-added', names: added } as const] : []),
    ...(removed.length > 0 ? [{ kind: 'tools-removed', names: removed } as const] : []),
    ...changed.map((change) => ({ kind: 'tool-changed', ...change }) as const),
    ...(moved.length > 0 ? [{ kind: 'tools-reordered', names: moved } as const] : []),
  ]
}

function diffSentSections(
  before: readonly SentPrefixPiece[],
  after: readonly SentPrefixPiece[],
): readonly RequestDifference[] {
  const { added, removed, moved, changed } = comparePieces(before, after)
  return [
    ...changed.map((change) => ({ kind: 'section-changed', ...change }) as const),
    ...(added.length > 0 ? [{ kind: 'sections-added', names: added } as const] : []),
    ...(removed.length > 0 ? [{ kind: 'sections-removed', names: removed } as const] : []),
    ...(moved.length > 0 ? [{ kind: 'sections-reordered', names: moved } as const] : []),
  ]
}

interface PieceChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Names of tools or sections that are in both API requests but in a different order. */
  readonly moved: readonly string[]
  readonly changed: readonly { readonly name: string; readonly characters: number }[]
}

const NO_PIECE_CHANGES: PieceChanges = { added: [], removed: [], moved: [], changed: [] }

function comparePieces(before: readonly SentPrefixPiece[], after: readonly SentPrefixPiece[]): PieceChanges {
  if (before === after) return NO_PIECE_CHANGES
  const was = new Map(before.map(({ name, text }) => [name, text]))
  const is = new Map(after.map(({ name, text }) => [name, text]))
  const stood = [...was.keys()].filter((name) => is.has(name))
  const stands = [...is.keys()].filter((name) => was.has(name))
  return {
    added: [...is.keys()].filter((name) => !was.has(name)),
    removed: [...was.keys()].filter((name) => !is.has(name)),
    moved: stands.filter((name, index) => stood[index] !== name),
    changed: stands
      .filter((name) => was.get(name) !== is.get(name))
      .map((name) => ({ name, characters: (is.get(name) ?? '').length - (was.get(name) ?? '').length })),
  }
}

// Properties of the messages as a whole that are part of the cache key, such as whether any image is present.

/** Lists changes of what the cache key takes from the messages as a whole: images and citations. */
export function diffMessageTraits(before: BlockIndex, after: BlockIndex): readonly RequestDifference[] {
  const [was, is] = [before.end.traits, after.end.traits]
  if (was === is) return []
  const formatSwitch = (on: boolean): string => (on ? 'on' : 'off')
  const citations = { before: formatSwitch(was.hasCitations), after: formatSwitch(is.hasCitations) }
  const image =
    was.hasImages === is.hasImages ? null : findFirstImage((is.hasImages ? after : before).messages)
  return [
    ...(was.hasCitations === is.hasCitations
      ? []
      : [{ kind: 'parameter-changed', name: 'citations', ...citations } as const]),
    ...(image === null ? [] : [{ kind: is.hasImages ? 'image-added' : 'image-removed', ...image } as const]),
  ]
}

function findFirstImage(
  messages: MessageList,
): { readonly index: number; readonly origin: string | null } | null {
  for (let index = 0; index < countMessages(messages); index += 1) {
    const message = findMessageAt(messages, index)
    const block = message === undefined ? -1 : toMessageBlocks(message).findIndex(hasImage)
    if (block !== -1) return { index, origin: message?.origins[block] ?? null }
  }
  return null
}

function hasImage(block: Block): boolean {
  if (block.type === 'image') return true
  return isToolResult(block) && Array.isArray(block.content) && block.content.some(hasImage)
}

// Changes to messages that were already sent: a message was changed, removed or inserted, or the user rewound the
// conversation.

/**
 * Returns how the messages changed at `position`, the first block that differs. Returns null if the conversation was
 * rewound, which means that no block of `before` from there on is sent again.
 */
export function classifyMessageDifference(
  before: SentRequest,
  after: SentRequest,
  position: BlockPosition,
): MessageDifference | null {
  const gone = listBlocksFrom(before.messages, position)
  const sent = listBlocksFrom(after.messages, position)
  const still = new Set(sent.map(({ id }) => id))
  if (!gone.some(({ id }) => still.has(id))) return null
  const [was, is] = [gone[0], sent[0]]
  const by = findMessageEditor(before, after, position, (is ?? was)?.origin ?? null)
  const shared = { index: position.message, by }
  const origin = was?.origin ?? null
  if (was?.id !== is?.id && was !== undefined && still.has(was.id)) {
    const characters = countCharactersFrom(after.messages, position)
    return { kind: 'message-inserted', origin: is?.origin ?? null, ...shared, characters }
  }
  if (was?.id !== is?.id && gone.some(({ id }) => id === is?.id))
    return {
      kind: 'message-removed',
      origin,
      ...shared,
      characters: -countCharactersFrom(before.messages, position),
    }
  const characters =
    findSentBlockText(after.messages, position).length - findSentBlockText(before.messages, position).length
  return { kind: 'message-changed', origin, ...shared, characters }
}

interface IdentifiedBlock {
  /** uuid of the record that the block comes from; the block's text if there is none. */
  readonly id: string
  readonly origin: string | null
}

function listBlocksFrom(
  messages: MessageList,
  { message: first, block: from }: BlockPosition,
): readonly IdentifiedBlock[] {
  const found: IdentifiedBlock[] = []
  for (let index = first; index < countMessages(messages); index += 1) {
    const message = findMessageAt(messages, index)
    if (message === undefined) break
    for (let block = index === first ? from : 0; block < toMessageBlocks(message).length; block += 1) {
      const origin = message.origins[block] ?? ''
      found.push(
        origin === '' ? { id: toSentBlockText(message, block), origin: null } : { id: origin, origin },
      )
    }
  }
  return found
}

/**
 * Returns who changed a message, as the host reports it. Without a report, a clearing is recognised by its placeholder
 * text.
 */
function findMessageEditor(
  before: SentRequest,
  after: SentRequest,
  position: BlockPosition,
  origin: string | null,
): MessageChangeSource {
  const touched = after.touched?.get(position.message) ?? before.touched?.get(position.message)
  if (touched !== undefined) return touched
  const isCleared = ({ messages }: SentRequest): boolean =>
    findSentBlockText(messages, position).includes(CLEARED_RESULT_TEXT)
  if (isCleared(after) && !isCleared(before)) return 'clearing'
  return origin === null ? 'host' : 'unknown'
}

/** Counts the characters of a message from the given block on. */
function countCharactersFrom(messages: MessageList, { message, block }: BlockPosition): number {
  const found = findMessageAt(messages, message)
  if (found === undefined) return 0
  return toMessageBlocks(found).reduce(
    (sum, _, at) => sum + (at < block ? 0 : toSentBlockText(found, at).length),
    0,
  )
}

// The following functions format differences as text. The text has a maximum length and contains no secrets.

interface RequestDiff {
  readonly before: SentRequest
  readonly after: SentRequest
  readonly differences: readonly RequestDifference[]
  /** First block in which the messages differ; null if the messages are the same. */
  readonly position: BlockPosition | null
}

/** A function that removes secrets from a text. */
type RedactText = (text: string) => string

const MAX_DIFF_CHARACTERS = 20_000
const MAX_SIDE_CHARACTERS = 2_000
const CONTEXT_CHARACTERS = 80

/** Formats the differences as a diff of at most 20,000 characters. `redact` removes secrets from all quoted texts. */
export function formatRequestDiff(diff: RequestDiff, redact: RedactText): string {
  const parts = diff.differences.map((difference) => {
    const sides = listTextPairs(difference, diff).flatMap(([before, after]) =>
      formatTextPair(redact(before), redact(after)),
    )
    return [`@@ ${redact(describeCause(difference))} @@`, ...sides].join('\n')
  })
  const text = parts.length === 0 ? 'Nothing in the request changed.' : parts.join('\n\n')
  return text.length <= MAX_DIFF_CHARACTERS
    ? `${text}\n`
    : `${sliceWholeCharacters(text, 0, MAX_DIFF_CHARACTERS)}\n… cut here\n`
}

type TextPair = readonly [before: string, after: string]

/** Returns the texts before and after a change; empty if the description of the change needs no texts. */
function listTextPairs(
  difference: RequestDifference,
  { before, after, position }: RequestDiff,
): readonly TextPair[] {
  const { kind } = difference
  if ('index' in difference && 'by' in difference)
    return position === null
      ? []
      : [[findSentBlockText(before.messages, position), findSentBlockText(after.messages, position)]]
  if ('before' in difference) return [[difference.before ?? '', difference.after ?? '']]
  if (!('name' in difference || 'names' in difference) || kind.endsWith('-reordered')) return []
  const list = kind.startsWith('tool') ? 'tools' : 'system'
  const findText = (pieces: readonly SentPrefixPiece[], name: string): string =>
    pieces.find((piece) => piece.name === name)?.text ?? ''
  const names = 'names' in difference ? difference.names : [difference.name]
  return names.map((name) => [findText(before[list], name), findText(after[list], name)])
}

/** Formats both texts as diff lines, starting shortly before their first difference. */
function formatTextPair(before: string, after: string): readonly string[] {
  if (before === after) return before === '' ? [] : ['  (the same but for what is redacted)']
  let common = 0
  while (common < before.length && before[common] === after[common]) common += 1
  const from = Math.max(0, common - CONTEXT_CHARACTERS)
  return [...formatSide('-', before, from), ...formatSide('+', after, from)]
}

function formatSide(sign: '-' | '+', text: string, from: number): readonly string[] {
  if (text === '') return []
  const to = from + MAX_SIDE_CHARACTERS
  const shown = `${from > 0 ? '…' : ''}${sliceWholeCharacters(text, from, to)}${to < text.length ? '…' : ''}`
  return shown.split('\n').map((line) => `${sign} ${line}`)
}

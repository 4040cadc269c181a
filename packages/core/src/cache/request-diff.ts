/** What is not as it was in the last request, messages apart; what lies earliest in the cache key comes first. */

import { type Block, isToolResult } from '../log/block.ts'
import { CLEARED_TEXT } from '../log/record.ts'
import { blocksIn, type Counted, type MessageList, messageAt, messageCount } from '../request/block-index.ts'
import { type Difference, factOf, type MessageDifference } from './cache-break.ts'
import {
  blockText,
  type Hand,
  type Place,
  type SentMarker,
  type SentParameters,
  type SentPiece,
  type SentRequest,
  sameJson,
  textAt,
} from './sent-request.ts'

export function differencesOf(before: SentRequest, after: SentRequest): readonly Difference[] {
  return [
    ...headDifferences(before.parameters, after.parameters),
    ...toolDifferences(before.tools, after.tools),
    ...sectionDifferences(before.system, after.system),
    ...parameterDifferences(before.parameters, after.parameters),
    ...markerDifferences(before.markers, after.markers),
  ]
}

/** Caches of two models, or speeds, have nothing in common. */
function headDifferences(before: SentParameters, after: SentParameters): readonly Difference[] {
  const [was, is] = [before.model, after.model]
  const model: readonly Difference[] = was === is ? [] : [{ kind: 'model-changed', before: was, after: is }]
  return [...model, ...changed('speed-changed', before.speed, after.speed)]
}

function parameterDifferences(before: SentParameters, after: SentParameters): readonly Difference[] {
  if (before === after) return []
  return [
    ...betaDifferences(before.betas ?? [], after.betas ?? []),
    ...changed('thinking-changed', before.thinking, after.thinking),
    ...changed('effort-changed', before.effort, after.effort),
    ...changed('tool-choice-changed', before.toolChoice, after.toolChoice),
    ...otherDifferences(before.others ?? {}, after.others ?? {}),
  ]
}

type PlainChange = 'speed-changed' | 'effort-changed' | 'thinking-changed' | 'tool-choice-changed'

function changed(kind: PlainChange, before?: string, after?: string): readonly Difference[] {
  return before === after ? [] : [{ kind, before: before ?? null, after: after ?? null }]
}

/** A set: the order in which betas are named is of no account. */
function betaDifferences(before: readonly string[], after: readonly string[]): readonly Difference[] {
  const added = after.filter((name) => !before.includes(name))
  const removed = before.filter((name) => !after.includes(name))
  return added.length + removed.length === 0 ? [] : [{ kind: 'betas-changed', added, removed }]
}

type Texts = Readonly<Record<string, string>>

function otherDifferences(before: Texts, after: Texts): readonly Difference[] {
  if (before === after) return []
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names
    .filter((name) => before[name] !== after[name])
    .map((name) => ({
      kind: 'parameter-changed',
      name,
      before: before[name] ?? null,
      after: after[name] ?? null,
    }))
}

// Markers: whether the same places are still asked for, for as long and for the same readers.

type Markers = readonly SentMarker[]

export function markerDifferences(before: Markers, after: Markers): readonly Difference[] {
  if (before === after) return []
  const changes = after.flatMap((marker) => {
    const old = counterpart(marker, before, after)
    return old === undefined ? [] : markerChanges(old, marker)
  })
  return [...removedMarkers(before, after), ...changes.filter(isFirstOfItsKind)]
}

/** What is the same for several markers of a zone is told once. */
function isFirstOfItsKind(change: Difference, index: number, all: readonly Difference[]): boolean {
  return all.findIndex((other) => sameJson(other, change)) === index
}

/** The marker of a message moves on with the conversation, so the last of each request are the ones to compare. */
function counterpart(marker: SentMarker, before: Markers, after: Markers): SentMarker | undefined {
  if (marker.zone === 'messages')
    return marker === after.findLast(isInMessages) ? before.findLast(isInMessages) : undefined
  return before.find(({ zone, index }) => zone === marker.zone && index === marker.index)
}

function markerChanges(old: SentMarker, { zone, ttl, scope }: SentMarker): readonly Difference[] {
  const [was, is] = [old.scope ?? null, scope ?? null]
  return [
    ...(old.ttl === ttl ? [] : [{ kind: 'marker-ttl-changed', zone, before: old.ttl, after: ttl } as const]),
    ...(was === is ? [] : [{ kind: 'marker-scope-changed', zone, before: was, after: is } as const]),
  ]
}

function removedMarkers(before: Markers, after: Markers): readonly Difference[] {
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

function isInPrefix({ zone }: SentMarker): boolean {
  return zone !== 'messages'
}

// Tools and sections: which came, which went, which say something else, which stand elsewhere.

export function toolDifferences(
  before: readonly SentPiece[],
  after: readonly SentPiece[],
): readonly Difference[] {
  const { added, removed, moved, reworded } = pieceChanges(before, after)
  return [
    ...(added.length > 0 ? [{ kind: 'tools-added', names: added } as const] : []),
    ...(removed.length > 0 ? [{ kind: 'tools-removed', names: removed } as const] : []),
    ...reworded.map((change) => ({ kind: 'tool-changed', ...change }) as const),
    ...(moved.length > 0 ? [{ kind: 'tools-reordered', names: moved } as const] : []),
  ]
}

export function sectionDifferences(
  before: readonly SentPiece[],
  after: readonly SentPiece[],
): readonly Difference[] {
  const { added, removed, moved, reworded } = pieceChanges(before, after)
  return [
    ...reworded.map((change) => ({ kind: 'section-changed', ...change }) as const),
    ...(added.length > 0 ? [{ kind: 'sections-added', names: added } as const] : []),
    ...(removed.length > 0 ? [{ kind: 'sections-removed', names: removed } as const] : []),
    ...(moved.length > 0 ? [{ kind: 'sections-reordered', names: moved } as const] : []),
  ]
}

interface PieceChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Those that stand elsewhere, among the ones there are in both. */
  readonly moved: readonly string[]
  readonly reworded: readonly { readonly name: string; readonly characters: number }[]
}

const UNCHANGED: PieceChanges = { added: [], removed: [], moved: [], reworded: [] }

function pieceChanges(before: readonly SentPiece[], after: readonly SentPiece[]): PieceChanges {
  if (before === after) return UNCHANGED
  const was = new Map(before.map(({ name, text }) => [name, text]))
  const is = new Map(after.map(({ name, text }) => [name, text]))
  const stood = [...was.keys()].filter((name) => is.has(name))
  const stands = [...is.keys()].filter((name) => was.has(name))
  return {
    added: [...is.keys()].filter((name) => !was.has(name)),
    removed: [...was.keys()].filter((name) => !is.has(name)),
    moved: stands.filter((name, index) => stood[index] !== name),
    reworded: stands.flatMap((name) => rewording(name, was.get(name) ?? '', is.get(name) ?? '')),
  }
}

function rewording(name: string, was: string, is: string): PieceChanges['reworded'] {
  return was === is ? [] : [{ name, characters: is.length - was.length }]
}

// What of the messages as a whole a provider caches by: with the first image, and without the last, it reads all anew.

export function traitDifferences(before: Counted, after: Counted): readonly Difference[] {
  const [was, is] = [before.end.traits, after.end.traits]
  if (was === is) return []
  const citations: readonly Difference[] =
    was.cites === is.cites
      ? []
      : [{ kind: 'parameter-changed', name: 'citations', before: onOff(was.cites), after: onOff(is.cites) }]
  if (was.hasImages === is.hasImages) return citations
  return [
    ...citations,
    ...imageDifference(is.hasImages ? 'image-added' : 'image-removed', is.hasImages ? after : before),
  ]
}

function onOff(is: boolean): string {
  return is ? 'on' : 'off'
}

function imageDifference(
  kind: 'image-added' | 'image-removed',
  { messages }: Counted,
): readonly Difference[] {
  const found = firstImage(messages)
  return found === null ? [] : [{ kind, ...found }]
}

function firstImage(
  messages: MessageList,
): { readonly index: number; readonly origin: string | null } | null {
  for (let index = 0; index < messageCount(messages); index += 1) {
    const message = messageAt(messages, index)
    const block = message === undefined ? -1 : blocksIn(message).findIndex(holdsImage)
    if (block !== -1) return { index, origin: message?.origins[block] ?? null }
  }
  return null
}

function holdsImage(block: Block): boolean {
  if (block.type === 'image') return true
  return isToolResult(block) && Array.isArray(block.content) && block.content.some(holdsImage)
}

// What became of messages that had been sent: rewritten, taken out, something put between; or taken back by a rewind.

export interface Parting {
  readonly before: SentRequest
  readonly after: SentRequest
  /** Where `after` stops repeating `before`. */
  readonly place: Place
}

/**
 * Null where nothing of what was sent behind the parting is sent again: the conversation was taken back to there
 * and went another way, and nobody can expect the rest to be read.
 */
export function messageDifference(parting: Parting): MessageDifference | null {
  const { before, after, place } = parting
  const gone = saidFrom(before.messages, place)
  const sent = saidFrom(after.messages, place)
  const still = new Set(sent.map(({ id }) => id))
  if (!gone.some(({ id }) => still.has(id))) return null
  const [was, is] = [gone[0], sent[0]]
  const shared = { index: place.message, by: handOf(parting, (is ?? was)?.origin ?? null) }
  if (was?.id !== is?.id && was !== undefined && still.has(was.id))
    return {
      kind: 'message-inserted',
      origin: is?.origin ?? null,
      ...shared,
      characters: sizeFrom(after.messages, place),
    }
  const origin = was?.origin ?? null
  if (was?.id !== is?.id && gone.some(({ id }) => id === is?.id))
    return { kind: 'message-removed', origin, ...shared, characters: -sizeFrom(before.messages, place) }
  const characters = textAt(after.messages, place).length - textAt(before.messages, place).length
  return { kind: 'message-changed', origin, ...shared, characters }
}

interface SaidBlock {
  /** The record it comes from; where there is none, what it says. */
  readonly id: string
  readonly origin: string | null
}

/** What stands at that place and behind it. */
function saidFrom(messages: MessageList, place: Place): readonly SaidBlock[] {
  const said: SaidBlock[] = []
  for (let index = place.message; index < messageCount(messages); index += 1) {
    const message = messageAt(messages, index)
    if (message === undefined) break
    blocksIn(message).forEach((_, block) => {
      if (index === place.message && block < place.block) return
      const origin = message.origins[block] ?? ''
      said.push(origin === '' ? { id: blockText(message, block), origin: null } : { id: origin, origin })
    })
  }
  return said
}

/** Whoever made the message other than its records say; else what it now says tells. */
function handOf({ before, after, place }: Parting, origin: string | null): Hand {
  const touched = after.touched?.get(place.message) ?? before.touched?.get(place.message)
  if (touched !== undefined) return touched
  const isCleared = ({ messages }: SentRequest): boolean => textAt(messages, place).includes(CLEARED_TEXT)
  if (isCleared(after) && !isCleared(before)) return 'clearing'
  return origin === null ? 'host' : 'unknown'
}

/** Characters of the message from that block on. */
function sizeFrom(messages: MessageList, { message, block }: Place): number {
  const found = messageAt(messages, message)
  if (found === undefined) return 0
  return blocksIn(found).reduce((sum, _, at) => sum + (at < block ? 0 : blockText(found, at).length), 0)
}

// What changed, as text a person can open: bounded, and without secrets. Made only when somebody asks for it.

export interface DiffQuestion {
  readonly before: SentRequest
  readonly after: SentRequest
  readonly differences: readonly Difference[]
  readonly parting: Place | null
}

/** Takes secrets out of a text. */
export type Redact = (text: string) => string

const MOST_CHARACTERS = 20_000
const MOST_OF_A_SIDE = 2_000
const CONTEXT = 80

export function diffText(question: DiffQuestion, redact: Redact): string {
  const parts = question.differences.map((difference) => {
    const sides = sidesOf(difference, question).flatMap(([before, after]) =>
      shown(redact(before), redact(after)),
    )
    return [`@@ ${redact(factOf(difference))} @@`, ...sides].join('\n')
  })
  const text = parts.length === 0 ? 'Nothing in the request changed.' : parts.join('\n\n')
  return text.length <= MOST_CHARACTERS ? `${text}\n` : `${text.slice(0, MOST_CHARACTERS)}\n… cut here\n`
}

type Sides = readonly [before: string, after: string]

/** The texts that differ; none where the fact says it all. */
function sidesOf(difference: Difference, question: DiffQuestion): readonly Sides[] {
  const { before, after } = question
  switch (difference.kind) {
    case 'tool-changed':
      return [[pieceText(before.tools, difference.name), pieceText(after.tools, difference.name)]]
    case 'section-changed':
      return [[pieceText(before.system, difference.name), pieceText(after.system, difference.name)]]
    case 'tools-added':
    case 'tools-removed':
      return difference.names.map((name) => [pieceText(before.tools, name), pieceText(after.tools, name)])
    case 'sections-added':
    case 'sections-removed':
      return difference.names.map((name) => [pieceText(before.system, name), pieceText(after.system, name)])
    case 'message-changed':
    case 'message-removed':
    case 'message-inserted':
      return [messageSides(question)]
    default:
      return plainSides(difference)
  }
}

function plainSides(difference: Difference): readonly Sides[] {
  return 'before' in difference ? [[difference.before ?? '', difference.after ?? '']] : []
}

function pieceText(pieces: readonly SentPiece[], name: string): string {
  return pieces.find((piece) => piece.name === name)?.text ?? ''
}

/** The block where the requests part, as it was and as it is. */
function messageSides({ before, after, parting }: DiffQuestion): Sides {
  if (parting === null) return ['', '']
  return [textAt(before.messages, parting), textAt(after.messages, parting)]
}

/** The lines of both sides around the first thing that differs. */
function shown(before: string, after: string): readonly string[] {
  if (before === after) return before === '' ? [] : ['  (the same but for what is redacted)']
  const from = Math.max(0, commonLength(before, after) - CONTEXT)
  return [...sideLines('-', before, from), ...sideLines('+', after, from)]
}

function commonLength(one: string, other: string): number {
  let length = 0
  while (length < one.length && one[length] === other[length]) length += 1
  return length
}

function sideLines(sign: '-' | '+', text: string, from: number): readonly string[] {
  if (text === '') return []
  const piece = text.slice(from, from + MOST_OF_A_SIDE)
  const whole = `${from > 0 ? '…' : ''}${piece}${from + MOST_OF_A_SIDE < text.length ? '…' : ''}`
  return whole.split('\n').map((line) => `${sign} ${line}`)
}

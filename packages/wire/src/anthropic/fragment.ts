/**
 * A request body in pieces, one for each thing a cache can keep or lose. The pieces joined are the exact bytes
 * that are sent, so a change is found by comparing what is really on the wire.
 */
import type { Block, JsonObject, Role } from '@tidemark/core'
import {
  arrayText,
  elementsOf,
  type Member,
  memberOf,
  membersOf,
  objectText,
  withMember,
  withoutMember,
} from '@tidemark/core'

export type Zone = 'parameters' | 'tools' | 'system' | 'messages'

export interface Fragment {
  readonly zone: Zone
  /** Where it is in the body: `tools.0`, `system.1`, `messages.4.content.0`; a parameter's name. */
  readonly path: string
  readonly role?: Role
  /** Brackets and commas owed to what came before: they go in front. They say nothing of their own. */
  readonly lead: string
  /** What it says. The first of a message opens the message too: role and fields are part of it. */
  readonly text: string
  /** The same without any cache marker; equal to `text` where there is none. */
  readonly bare: string
  /** Its own `cache_control`, as given. */
  readonly marker?: unknown
}

export type Spelling = Pick<Fragment, 'text' | 'bare' | 'marker'>

const MARKER = 'cache_control'

/** A block or tool as text. `raw` is its exact text where its value would not say the same; markers come from the value. */
export function spell(value: Block | JsonObject, raw?: string): Spelling {
  const marker = value[MARKER]
  const plain = plainText(value, raw)
  const bare = plain.includes(MARKER) ? withoutInnerMarkers(plain) : plain
  return marker === undefined
    ? { text: plain, bare }
    : { text: withKey(plain, markerText(marker)), bare, marker }
}

/** All that it says but its own marker. A reference that was given to a value later is not in its exact text yet. */
export function plainText(value: Block | JsonObject, raw?: string): string {
  const { [MARKER]: _, ...rest } = value
  if (raw === undefined) return JSON.stringify(rest)
  const { cache_reference: reference } = rest
  const exact = withoutKey(raw)
  const isNew = reference !== undefined && memberOf(raw, 'cache_reference') === undefined
  return isNew ? withKey(exact, referenceText(reference)) : exact
}

/** Where in the text of an object a further member comes: before the bracket that closes it. */
export function endOf(text: string): number {
  return text.lastIndexOf('}')
}

export function markerText(marker: unknown): string {
  return `,"${MARKER}":${JSON.stringify(marker)}`
}

export function referenceText(reference: unknown): string {
  return `,"cache_reference":${JSON.stringify(reference)}`
}

function withKey(text: string, member: string): string {
  const end = endOf(text)
  const isFirst = text.slice(0, end).trim() === '{'
  return text.slice(0, end) + (isFirst ? member.slice(1) : member) + text.slice(end)
}

function withoutKey(raw: string): string {
  const members = membersOf(raw)
  return members.some(isMarker) ? objectText(withoutMember(members, MARKER)) : raw
}

/** Blocks inside a tool result, and inside a document made of blocks, may carry markers of their own. */
function withoutInnerMarkers(text: string): string {
  const source = memberOf(text, 'source')
  const inner = source?.startsWith('{') ? withBareContent(source) : source
  const bare = withBareContent(text)
  return inner === undefined || inner === source ? bare : withText(bare, 'source', inner)
}

/** The very same text where nothing in it is marked: white space counts here. */
function withBareContent(text: string): string {
  const content = memberOf(text, 'content')
  if (!content?.startsWith('[')) return text
  const blocks = elementsOf(content)
  const bare = blocks.map((each) => (each.startsWith('{') ? withoutKey(each) : each))
  return bare.every((each, index) => each === blocks[index])
    ? text
    : withText(text, 'content', arrayText(bare))
}

function withText(text: string, key: string, value: string): string {
  return objectText(withMember(membersOf(text), key, value))
}

function isMarker({ key }: Member): boolean {
  return key === MARKER
}

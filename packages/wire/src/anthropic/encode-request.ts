/**
 * Encodes a request body in the order in which the provider caches the prompt: parameters, tools, system, messages.
 * Appending a message then only appends bytes to the body. The body is a list of fragments, so that two requests can be
 * compared part by part.
 */
import type { ApiMessage, Payload, Role } from '@tidemark/core/context/payload'
import { type Block, isToolResult, type MessageContent } from '@tidemark/core/log/block'
import {
  findJsonMember,
  formatJsonArray,
  formatJsonObject,
  type Json,
  type JsonObject,
  splitJsonArray,
  splitJsonObject,
  withJsonMember,
  withoutJsonMember,
} from '@tidemark/core/log/json'
import type { PlannedMarker } from '@tidemark/core/request/cache-markers'

/** Exact JSON texts of values that parsing and stringifying would change, by their place in the request. */
export interface ExactJsonTexts {
  readonly parameters?: ReadonlyMap<string, string>
  readonly tools?: ReadonlyMap<number, string>
  readonly system?: ReadonlyMap<number, string>
  /** One map per message, from block index to the exact JSON text of the block. */
  readonly messages?: readonly (ReadonlyMap<number, string> | undefined)[]
}

export interface EncodeRequestOptions {
  readonly raw?: ExactJsonTexts
  /**
   * How message content that is a string is sent. `blocks` (default): as one text block, so that its bytes stay the
   * same if a later message is merged with it. `keep`: as a string.
   */
  readonly strings?: 'blocks' | 'keep'
}

interface EncodedRequest {
  readonly fragments: readonly Fragment[]
  /** The closing brackets at the end of the request body. */
  readonly end: string
  /** Values for the `anthropic-beta` header, which are not part of the body. */
  readonly betas: readonly string[]
}

export function encodeRequestFragments(payload: Payload, options: EncodeRequestOptions = {}): EncodedRequest {
  const { tools, system, messages, betas, ...parameters } = payload
  const { raw = {} } = options
  const pieces = [
    '{',
    ...encodeParameterPieces(parameters, raw.parameters),
    ...(tools === undefined ? [] : [',"tools":[', ...encodeListPieces('tools', tools, raw.tools), ']']),
    ...(system === undefined ? [] : encodeSystemPieces(system, options)),
    ',"messages":[',
    ...joinWithCommas(messages.map((message, index) => encodeMessagePieces(message, index, options))),
    ']}',
  ]
  return { ...attachPunctuation(pieces), betas: betas ?? [] }
}

export function joinRequestFragments({ fragments, end }: EncodedRequest): string {
  return fragments.map(({ lead, text }) => lead + text).join('') + end
}

type BodyZone = 'parameters' | 'tools' | 'system' | 'messages'

interface Fragment {
  readonly zone: BodyZone
  /** Position in the request body: a parameter's name, or a path such as `tools.0` or `messages.4.content.0`. */
  readonly path: string
  readonly role?: Role
  /** Brackets and commas between this fragment and the previous one. */
  readonly lead: string
  /** JSON text of the fragment. The first fragment of a message begins with the message's role and other fields. */
  readonly text: string
  /** JSON text of the fragment without cache markers. */
  readonly bare: string
  /** The `cache_control` value of this block, tool or parameter; absent if there is none. */
  readonly marker?: unknown
}

type FragmentText = Pick<Fragment, 'text' | 'bare' | 'marker'>

/** A part of the request body: either punctuation (a string) or a fragment. */
type BodyPiece = string | FragmentWithoutLead
type FragmentWithoutLead = Omit<Fragment, 'lead'>

function encodeParameterPieces(parameters: object, raw?: ReadonlyMap<string, string>): readonly BodyPiece[] {
  return joinWithCommas(
    listParameters(parameters).map(([name, value]) => {
      const text = encodeParameter(name, value, raw)
      const marked = name === 'cache_control' ? { bare: '', marker: value } : { bare: text }
      return [{ zone: 'parameters' as const, path: name, text, ...marked }]
    }),
  )
}

/** Returns each parameter as a JSON member, such as `"model":"…"`. Undefined parameters are left out. */
export function encodeParameters(parameters: object): readonly string[] {
  return listParameters(parameters).map(([name, value]) => encodeParameter(name, value))
}

function listParameters(parameters: object): readonly (readonly [string, Json])[] {
  return Object.entries(parameters).filter(([, value]) => value !== undefined)
}

function encodeParameter(name: string, value: Json, raw?: ReadonlyMap<string, string>): string {
  return `${JSON.stringify(name)}:${raw?.get(name) ?? JSON.stringify(value)}`
}

function encodeListPieces(
  zone: BodyZone,
  values: readonly (Block | Readonly<Record<string, Json>>)[],
  raw?: ReadonlyMap<number, string>,
): readonly BodyPiece[] {
  return joinWithCommas(
    values.map((value, index) => [
      { zone, path: `${zone}.${index}`, ...encodeFragment(value, raw?.get(index)) },
    ]),
  )
}

function encodeSystemPieces(
  system: string | readonly Block[],
  { raw, strings }: EncodeRequestOptions,
): readonly BodyPiece[] {
  if (typeof system === 'string' && strings === 'keep')
    return [',"system":', { zone: 'system', path: 'system', ...encodeString(system) }]
  return [',"system":[', ...encodeListPieces('system', toContentBlocks(system), raw?.system), ']']
}

function encodeMessagePieces(
  message: ApiMessage,
  at: number,
  { raw, strings }: EncodeRequestOptions,
): readonly BodyPiece[] {
  const { role, content, ...fields } = message
  const open = `${JSON.stringify({ role, ...fields }).slice(0, -1)},"content":`
  const path = `messages.${at}`
  const toFragment = (place: string, spelling: FragmentText): FragmentWithoutLead => ({
    zone: 'messages',
    path: place,
    role,
    ...spelling,
  })
  if (typeof content === 'string' && strings === 'keep')
    return [toFragment(path, prependText(open, encodeString(content))), '}']
  const texts = raw?.messages?.[at]
  const blocks = toContentBlocks(content).map((block, index) => {
    const spelling = encodeFragment(block, texts?.get(index))
    return [
      toFragment(`${path}.content.${index}`, index === 0 ? prependText(`${open}[`, spelling) : spelling),
    ]
  })
  const empty = { text: `${open}[`, bare: `${open}[` }
  return [...(blocks.length === 0 ? [toFragment(path, empty)] : joinWithCommas(blocks)), ']}']
}

function prependText(open: string, spelling: FragmentText): FragmentText {
  return { ...spelling, text: open + spelling.text, bare: open + spelling.bare }
}

function encodeString(text: string): FragmentText {
  return { text: JSON.stringify(text), bare: JSON.stringify(text) }
}

/**
 * Returns message content as a list of blocks. An empty string gives an empty list, since the API rejects empty text
 * blocks.
 */
export function toContentBlocks(content: MessageContent): readonly Block[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}

function joinWithCommas(items: readonly (readonly BodyPiece[])[]): readonly BodyPiece[] {
  return items.flatMap((pieces, index) => (index === 0 ? pieces : [',', ...pieces]))
}

/**
 * Adds each piece of punctuation to the fragment that follows it. Appending a message then changes no earlier fragment.
 */
function attachPunctuation(pieces: readonly BodyPiece[]): Pick<EncodedRequest, 'fragments' | 'end'> {
  const fragments: Fragment[] = []
  let lead = ''
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      lead += piece
    } else {
      fragments.push({ ...piece, lead })
      lead = ''
    }
  }
  return { fragments, end: lead }
}

const MARKER = 'cache_control'
const REFERENCE = 'cache_reference'

/**
 * Encodes a block or a tool with its cache marker. `raw` is the exact JSON text to use if stringifying the value would
 * change it.
 */
function encodeFragment(value: Block | JsonObject, raw?: string): FragmentText {
  const marker = value[MARKER]
  const plain = encodeWithoutMarker(value, raw)
  const bare = plain.includes(MARKER) ? removeInnerMarkers(plain) : plain
  return marker === undefined
    ? { text: plain, bare }
    : { text: insertMember(plain, encodeCacheControlMember(marker)), bare, marker }
}

/** Returns the JSON text of a block or tool without its own `cache_control`. Nested blocks keep theirs. */
export function encodeWithoutMarker(value: Block | JsonObject, raw?: string): string {
  const { [MARKER]: _, ...rest } = value
  if (raw === undefined) return JSON.stringify(rest)
  return withReference(value, raw, removeMarker(raw))
}

/** Returns the index of the closing bracket in an object's JSON text. New members are inserted before it. */
export function findClosingBracket(text: string): number {
  return text.lastIndexOf('}')
}

/** Returns `,"cache_control":…`, to insert before the closing bracket of the JSON text of an object. */
export function encodeCacheControlMember(marker: unknown): string {
  return `,"${MARKER}":${JSON.stringify(marker)}`
}

// A tool result can have a `cache_reference`. With it, a later API request can delete the tool result from the prompt
// cache.

/**
 * Returns the `cache_reference` member to add to a tool result. Empty if the block already has one or is not a tool
 * result.
 */
export function encodeCacheReferenceMember(block: Block): string {
  const isNew = isToolResult(block) && block[REFERENCE] === undefined
  return isNew ? encodeReferenceMember(block.tool_use_id) : ''
}

/** Adds the value's `cache_reference` to its JSON text, if the original text `raw` does not contain it. */
function withReference(value: Block | JsonObject, raw: string, exact: string): string {
  const isNew = value[REFERENCE] !== undefined && findJsonMember(raw, REFERENCE) === undefined
  return isNew ? insertMember(exact, encodeReferenceMember(value[REFERENCE])) : exact
}

function encodeReferenceMember(reference: unknown): string {
  return `,"${REFERENCE}":${JSON.stringify(reference)}`
}

function insertMember(text: string, member: string): string {
  const end = findClosingBracket(text)
  const isFirst = text.slice(0, end).trim() === '{'
  return text.slice(0, end) + (isFirst ? member.slice(1) : member) + text.slice(end)
}

function removeMarker(raw: string): string {
  const members = splitJsonObject(raw)
  return members.some(({ key }) => key === MARKER)
    ? formatJsonObject(withoutJsonMember(members, MARKER))
    : raw
}

/** Removes cache markers from blocks nested inside a tool result or a document. */
function removeInnerMarkers(text: string): string {
  const source = findJsonMember(text, 'source')
  const inner = source?.startsWith('{') ? removeContentMarkers(source) : source
  const bare = removeContentMarkers(text)
  return inner === undefined || inner === source ? bare : replaceMember(bare, 'source', inner)
}

/** Removes cache markers from the blocks in the `content` member. A text without such markers is returned unchanged. */
function removeContentMarkers(text: string): string {
  const content = findJsonMember(text, 'content')
  if (!content?.startsWith('[')) return text
  const blocks = splitJsonArray(content)
  const bare = blocks.map((each) => (each.startsWith('{') ? removeMarker(each) : each))
  return bare.every((each, index) => each === blocks[index])
    ? text
    : replaceMember(text, 'content', formatJsonArray(bare))
}

function replaceMember(text: string, key: string, value: string): string {
  return formatJsonObject(withJsonMember(splitJsonObject(text), key, value))
}

const plainTextCache = new WeakMap<object, string>()

/**
 * Encodes tools or system blocks with the planned cache markers. The JSON text of each object is cached in this module,
 * because the objects stay the same until the next prefix snapshot.
 */
export function encodeToolsOrSystem(
  zone: 'tools' | 'system',
  values: readonly (Block | JsonObject)[],
  markers: readonly PlannedMarker[],
): readonly string[] {
  return values.map((value, index) => {
    const planned = markers.find(({ place }) => place.zone === zone && place.index === index)
    const control = planned?.control ?? value.cache_control
    const plain = plainTextCache.get(value) ?? encodeWithoutMarker(value)
    plainTextCache.set(value, plain)
    const end = findClosingBracket(plain)
    return control === undefined
      ? plain
      : plain.slice(0, end) + encodeCacheControlMember(control) + plain.slice(end)
  })
}

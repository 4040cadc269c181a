/**
 * A payload as the body of a request. Parameters come first, then tools, system and messages, the order of the provider's
 * cache: appending to the conversation appends to the bytes. The body is kept in fragments, one for each part that the
 * cache can keep or lose; joined, they are the exact bytes sent, so changes are found by comparing them.
 */
import {
  type ApiMessage,
  arrayText,
  type Block,
  type Content,
  elementsOf,
  isToolResult,
  type Json,
  type JsonObject,
  memberOf,
  membersOf,
  objectText,
  type Payload,
  type Role,
  withMember,
  withoutMember,
} from '@tidemark/core'

/** Exact texts of what parsing and stringifying would change, by position in the payload. */
export interface RawTexts {
  readonly parameters?: ReadonlyMap<string, string>
  readonly tools?: ReadonlyMap<number, string>
  readonly system?: ReadonlyMap<number, string>
  /** One entry a message: texts by block index. */
  readonly messages?: readonly (ReadonlyMap<number, string> | undefined)[]
}

export interface EncodeOptions {
  readonly raw?: RawTexts
  /**
   * `blocks` (the default) sends a string as one text block, so that its bytes stay the same when a later message is
   * merged into it; `keep` sends it as a string.
   */
  readonly strings?: 'blocks' | 'keep'
}

export interface EncodedRequest {
  readonly fragments: readonly Fragment[]
  /** The brackets that close the body. */
  readonly end: string
  /** For the `anthropic-beta` header: not part of the body. */
  readonly betas: readonly string[]
}

export function encodeRequest(payload: Payload, options: EncodeOptions = {}): EncodedRequest {
  const { tools, system, messages, betas, ...parameters } = payload
  const { raw = {} } = options
  const pieces = [
    '{',
    ...parameterPieces(parameters, raw.parameters),
    ...(tools === undefined ? [] : [',"tools":[', ...listPieces('tools', tools, raw.tools), ']']),
    ...(system === undefined ? [] : systemPieces(system, options)),
    ',"messages":[',
    ...separated(messages.map((message, index) => messagePieces(message, index, options))),
    ']}',
  ]
  return { ...join(pieces), betas: betas ?? [] }
}

export function bodyText({ fragments, end }: EncodedRequest): string {
  return fragments.map(({ lead, text }) => lead + text).join('') + end
}

type Zone = 'parameters' | 'tools' | 'system' | 'messages'

interface Fragment {
  readonly zone: Zone
  /** Position in the body: a parameter's name, `tools.0`, `system.1`, `messages.4.content.0`. */
  readonly path: string
  readonly role?: Role
  /** Brackets and commas that separate it from the previous fragment. */
  readonly lead: string
  /** Its JSON. The first fragment of a message also opens the message, with role and fields. */
  readonly text: string
  /** `text` without any cache marker. */
  readonly bare: string
  /** Its own `cache_control`, as given. */
  readonly marker?: unknown
}

type Spelling = Pick<Fragment, 'text' | 'bare' | 'marker'>

/** Punctuation, or a fragment. */
type Piece = string | Said
type Said = Omit<Fragment, 'lead'>

function parameterPieces(parameters: object, raw?: ReadonlyMap<string, string>): readonly Piece[] {
  return separated(
    givenParameters(parameters).map(([name, value]) => {
      const text = parameterText(name, value, raw)
      const marked = name === 'cache_control' ? { bare: '', marker: value } : { bare: text }
      return [{ zone: 'parameters' as const, path: name, text, ...marked }]
    }),
  )
}

/** The members of the body other than tools, system and messages. */
export function parameterTexts(parameters: object): readonly string[] {
  return givenParameters(parameters).map(([name, value]) => parameterText(name, value))
}

function givenParameters(parameters: object): readonly (readonly [string, Json])[] {
  return Object.entries(parameters).filter(([, value]) => value !== undefined)
}

function parameterText(name: string, value: Json, raw?: ReadonlyMap<string, string>): string {
  return `${JSON.stringify(name)}:${raw?.get(name) ?? JSON.stringify(value)}`
}

function listPieces(
  zone: Zone,
  values: readonly (Block | Readonly<Record<string, Json>>)[],
  raw?: ReadonlyMap<number, string>,
): readonly Piece[] {
  return separated(
    values.map((value, index) => [{ zone, path: `${zone}.${index}`, ...spell(value, raw?.get(index)) }]),
  )
}

function systemPieces(system: string | readonly Block[], { raw, strings }: EncodeOptions): readonly Piece[] {
  if (typeof system === 'string' && strings === 'keep')
    return [',"system":', { zone: 'system', path: 'system', ...spellText(system) }]
  return [',"system":[', ...listPieces('system', asBlocks(system), raw?.system), ']']
}

function messagePieces(message: ApiMessage, at: number, { raw, strings }: EncodeOptions): readonly Piece[] {
  const { role, content, ...fields } = message
  const open = `${JSON.stringify({ role, ...fields }).slice(0, -1)},"content":`
  const path = `messages.${at}`
  const toFragment = (place: string, spelling: Spelling): Said => ({
    zone: 'messages',
    path: place,
    role,
    ...spelling,
  })
  if (typeof content === 'string' && strings === 'keep')
    return [toFragment(path, behind(open, spellText(content))), '}']
  const texts = raw?.messages?.[at]
  const blocks = asBlocks(content).map((block, index) => {
    const spelling = spell(block, texts?.get(index))
    return [toFragment(`${path}.content.${index}`, index === 0 ? behind(`${open}[`, spelling) : spelling)]
  })
  const empty = { text: `${open}[`, bare: `${open}[` }
  return [...(blocks.length === 0 ? [toFragment(path, empty)] : separated(blocks)), ']}']
}

function behind(open: string, spelling: Spelling): Spelling {
  return { ...spelling, text: open + spelling.text, bare: open + spelling.bare }
}

function spellText(text: string): Spelling {
  return { text: JSON.stringify(text), bare: JSON.stringify(text) }
}

/** An empty string gives no block: the API rejects an empty text block. */
export function asBlocks(content: Content): readonly Block[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}

function separated(items: readonly (readonly Piece[])[]): readonly Piece[] {
  return items.flatMap((pieces, index) => (index === 0 ? pieces : [',', ...pieces]))
}

/** Punctuation goes with the fragment after it, so that appending changes no earlier fragment. */
function join(pieces: readonly Piece[]): Pick<EncodedRequest, 'fragments' | 'end'> {
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

/** A block or tool as text. `raw`: its exact text, if stringifying would change it; markers are taken from `value`. */
function spell(value: Block | JsonObject, raw?: string): Spelling {
  const marker = value[MARKER]
  const plain = plainText(value, raw)
  const bare = plain.includes(MARKER) ? withoutInnerMarkers(plain) : plain
  return marker === undefined
    ? { text: plain, bare }
    : { text: withKey(plain, markerText(marker)), bare, marker }
}

/** The text without its own marker. */
export function plainText(value: Block | JsonObject, raw?: string): string {
  const { [MARKER]: _, ...rest } = value
  if (raw === undefined) return JSON.stringify(rest)
  return withReference(value, raw, withoutKey(raw))
}

/** Where a member can be inserted into the text of an object: before its closing bracket. */
export function endOf(text: string): number {
  return text.lastIndexOf('}')
}

export function markerText(marker: unknown): string {
  return `,"${MARKER}":${JSON.stringify(marker)}`
}

// Cached clearing: a tool result is sent with a reference, by which a later request can delete it from the cache.

/** The member that gives a tool result its reference; empty if it has one, and for other blocks. */
export function newReferenceText(block: Block): string {
  const isNew = isToolResult(block) && block[REFERENCE] === undefined
  return isNew ? referenceText(block.tool_use_id) : ''
}

/** Adds a reference that was given to the value later, and is therefore not in its exact text `raw`. */
function withReference(value: Block | JsonObject, raw: string, exact: string): string {
  const isNew = value[REFERENCE] !== undefined && memberOf(raw, REFERENCE) === undefined
  return isNew ? withKey(exact, referenceText(value[REFERENCE])) : exact
}

function referenceText(reference: unknown): string {
  return `,"${REFERENCE}":${JSON.stringify(reference)}`
}

function withKey(text: string, member: string): string {
  const end = endOf(text)
  const isFirst = text.slice(0, end).trim() === '{'
  return text.slice(0, end) + (isFirst ? member.slice(1) : member) + text.slice(end)
}

function withoutKey(raw: string): string {
  const members = membersOf(raw)
  return members.some(({ key }) => key === MARKER) ? objectText(withoutMember(members, MARKER)) : raw
}

/** Blocks inside a tool result, and inside a document of blocks, may have markers of their own. */
function withoutInnerMarkers(text: string): string {
  const source = memberOf(text, 'source')
  const inner = source?.startsWith('{') ? withBareContent(source) : source
  const bare = withBareContent(text)
  return inner === undefined || inner === source ? bare : withText(bare, 'source', inner)
}

/** Returns the same text, white space included, if no block in it has a marker. */
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

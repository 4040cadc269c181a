/**
 * A payload to the body of a request. Parameters come first, then tools, system and messages, in the order of
 * the provider's cache: what is appended to a conversation is appended to the bytes.
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
  type Member,
  memberOf,
  membersOf,
  objectText,
  type Payload,
  type Role,
  withMember,
  withoutMember,
} from '@tidemark/core'

/** Exact texts of what would not survive parse and stringify, by place in the payload. */
export interface RawTexts {
  readonly parameters?: ReadonlyMap<string, string>
  readonly tools?: ReadonlyMap<number, string>
  readonly system?: ReadonlyMap<number, string>
  /** Beside the messages: texts by index of block. */
  readonly messages?: readonly (ReadonlyMap<number, string> | undefined)[]
}

export interface EncodeOptions {
  readonly raw?: RawTexts
  /**
   * A string is sent as one text block, so that a later message that joins it leaves its bytes alone; `keep`
   * sends it as the string it is.
   */
  readonly strings?: 'blocks' | 'keep'
}

export interface EncodedRequest {
  readonly fragments: readonly Fragment[]
  /** The brackets that close the body. */
  readonly end: string
  /** For the header: they are no part of the body. */
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

/** Punctuation, or something said. */
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

/** The members of the body that are neither tools, system nor messages. */
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
  const said = (place: string, spelling: Spelling): Said => ({
    zone: 'messages',
    path: place,
    role,
    ...spelling,
  })
  if (typeof content === 'string' && strings === 'keep')
    return [said(path, behind(open, spellText(content))), '}']
  const texts = raw?.messages?.[at]
  const blocks = asBlocks(content).map((block, index) => {
    const spelling = spell(block, texts?.get(index))
    return [said(`${path}.content.${index}`, index === 0 ? behind(`${open}[`, spelling) : spelling)]
  })
  return [...(blocks.length === 0 ? [said(path, spellOpening(open))] : separated(blocks)), ']}']
}

function behind(open: string, spelling: Spelling): Spelling {
  return { ...spelling, text: open + spelling.text, bare: open + spelling.bare }
}

function spellText(text: string): Spelling {
  return { text: JSON.stringify(text), bare: JSON.stringify(text) }
}

function spellOpening(open: string): Spelling {
  return { text: `${open}[`, bare: `${open}[` }
}

/** An empty string is no block: an empty text block would be refused. */
function asBlocks(content: Content): readonly Block[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}

function separated(items: readonly (readonly Piece[])[]): readonly Piece[] {
  return items.flatMap((pieces, index) => (index === 0 ? pieces : [',', ...pieces]))
}

/** Punctuation goes with what comes after it, so that what is already said never changes. */
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

// A request body in pieces, one for each thing a cache can keep or lose. The pieces joined are the exact bytes
// that are sent, so a change is found by comparing what is really on the wire.

type Zone = 'parameters' | 'tools' | 'system' | 'messages'

interface Fragment {
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

type Spelling = Pick<Fragment, 'text' | 'bare' | 'marker'>

const MARKER = 'cache_control'
const REFERENCE = 'cache_reference'

/** A block or tool as text. `raw` is its exact text where its value would not say the same; markers come from the value. */
function spell(value: Block | JsonObject, raw?: string): Spelling {
  const marker = value[MARKER]
  const plain = plainText(value, raw)
  const bare = plain.includes(MARKER) ? withoutInnerMarkers(plain) : plain
  return marker === undefined
    ? { text: plain, bare }
    : { text: withKey(plain, markerText(marker)), bare, marker }
}

/** All that it says but its own marker. */
export function plainText(value: Block | JsonObject, raw?: string): string {
  const { [MARKER]: _, ...rest } = value
  if (raw === undefined) return JSON.stringify(rest)
  return withReference(value, raw, withoutKey(raw))
}

/** Where in the text of an object a further member comes: before the bracket that closes it. */
export function endOf(text: string): number {
  return text.lastIndexOf('}')
}

export function markerText(marker: unknown): string {
  return `,"${MARKER}":${JSON.stringify(marker)}`
}

// Cached clearing: a result is sent with the reference under which a deletion can name it.

/** The member that gives a result its reference; empty where it has one, and for other blocks. */
export function newReferenceText(block: Block): string {
  const isNew = isToolResult(block) && block[REFERENCE] === undefined
  return isNew ? referenceText(block.tool_use_id) : ''
}

/** A reference that was given to a value later is not in its exact text `raw` yet. */
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

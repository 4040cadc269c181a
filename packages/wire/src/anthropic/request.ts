/**
 * A payload to the body of a request. Parameters come first, then tools, system and messages, in the order of
 * the provider's cache: what is appended to a conversation is appended to the bytes.
 */
import type { ApiMessage, Block, Content, Json, Payload } from '@tidemark/core'
import { type Fragment, type Spelling, spell, type Zone } from './fragment.ts'

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

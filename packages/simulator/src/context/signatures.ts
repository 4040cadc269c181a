/**
 * Signatures: what the provider puts into a block so that it can tell later what the block was made of. Each
 * is text that only this simulator (this seed) can have written, so one that was cut or changed is noticed.
 */
import { type Block, isObject, textField } from '../protocol/api.ts'
import { digest, type Ids, keyedDigest } from '../protocol/clock-and-ids.ts'
import { textTokens } from '../protocol/tokenizer.ts'

/** The prefix a block is bound to, in the three parts that an error can name. */
export interface PrefixMark {
  readonly system: string
  readonly tools: string
  /** Chain of the messages before the block's own turn, thinking left out. */
  readonly messages: string
}

export interface ThinkingSeal extends PrefixMark {
  readonly kind: 'thinking'
  readonly id: string
  readonly model: string
  readonly organization: string
  /** What was thought, in tokens; the text shown of it may be empty. */
  readonly tokens: number
  readonly shown: string
  /** The thinking that came before it in the conversation. */
  readonly previous: string | null
  /** The compaction block the conversation began with when it was thought. */
  readonly behind: string | null
  /** Its response, and how many thinking blocks that has. */
  readonly response: string
  readonly of: number
}

export interface CompactionSeal extends PrefixMark {
  readonly kind: 'compaction'
  readonly id: string
  readonly organization: string
  readonly content: string
  readonly toolChanges: string
  /** Made by a model that preserves thinking: kept turns go on from where the summarised ones ended. */
  readonly preserves: boolean
  readonly lastRole: string
  /** Blocks that this one has replaced. */
  readonly replaced: readonly string[]
}

export type Seal = ThinkingSeal | CompactionSeal

export interface Sealer {
  seal(value: Seal): string
  /** Null for text this sealer did not write. */
  open(text: string): Seal | null
}

const CODE_LENGTH = 43
const REMEMBERED = 5_000

export function createSealer(seed: string): Sealer {
  const key = `tidemark/${seed}`
  const known = new Map<string, Seal | null>()

  function read(text: string): Seal | null {
    const plain = Buffer.from(text, 'base64').toString('utf8')
    const body = plain.slice(CODE_LENGTH)
    // Decoding forgives stray characters; a signature is what was sent, to the letter.
    if (Buffer.from(plain).toString('base64') !== text) return null
    if (keyedDigest(key, body) !== plain.slice(0, CODE_LENGTH)) return null
    return asSeal(JSON.parse(body))
  }

  return {
    seal(value) {
      const body = padded(JSON.stringify(value), value.kind === 'thinking' ? value.tokens : 0)
      return Buffer.from(`${keyedDigest(key, body)}${body}`).toString('base64')
    },
    open(text) {
      const before = known.get(text)
      if (before !== undefined) return before
      if (known.size >= REMEMBERED) known.clear()
      const seal = read(text)
      known.set(text, seal)
      return seal
    },
  }
}

/** The code in front vouches that a sealer wrote it, so the kind is all there is to check. */
function asSeal(value: unknown): Seal | null {
  if (!isObject(value) || (value.kind !== 'thinking' && value.kind !== 'compaction')) return null
  return value as unknown as Seal
}

/**
 * Real signatures grow with what was thought: about 0.205 tokens a character, less 38. Ours are filled up to
 * that length with spaces, which JSON ignores, so that the rule works on them too.
 */
function padded(json: string, tokens: number): string {
  const characters = (tokens + 38) / 0.205
  const bytes = Math.floor((characters * 3) / 4) - CODE_LENGTH
  return json.padEnd(bytes, ' ')
}

export function textMark(text: string): string {
  return digest(text)
}

// Sealing what a model has thought: the text that may be shown, and the signature that carries the rest.

export interface SealingInput {
  readonly blocks: readonly Block[]
  readonly mark: PrefixMark
  readonly model: string
  readonly organization: string
  readonly response: string
  readonly previous: string | null
  readonly behind: string | null
  readonly display: 'summarized' | 'omitted'
}

/** The blocks with every thought signed; text of thinking is left out where it is not to be shown. */
export function sealThinking(input: SealingInput, sealer: Sealer, ids: Ids): readonly Block[] {
  const of = input.blocks.filter(isUnsigned).length
  let { previous } = input
  return input.blocks.map((block) => {
    if (!isUnsigned(block)) return block
    const thought = textField(block, block.type === 'thinking' ? 'thinking' : 'data')
    const shown = block.type === 'thinking' && input.display === 'summarized' ? thought : ''
    const id = ids.next('thk')
    const { system, tools, messages } = input.mark
    const signature = sealer.seal({
      kind: 'thinking',
      id,
      system,
      tools,
      messages,
      model: input.model,
      organization: input.organization,
      tokens: textTokens(thought),
      shown: textMark(shown),
      previous,
      behind: input.behind,
      response: input.response,
      of,
    })
    previous = id
    if (block.type === 'redacted_thinking') return { type: 'redacted_thinking', data: signature }
    return { type: 'thinking', thinking: shown, signature }
  })
}

function isUnsigned(block: Block): boolean {
  return (block.type === 'thinking' && !block.signature) || block.type === 'redacted_thinking'
}

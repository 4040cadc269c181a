/**
 * Signatures of thinking and compaction blocks. A signature contains what the block was created from, and only a
 * simulator with the same seed can have written it, so a truncated or altered one is rejected. The fields of the
 * signed content are part of response bodies: renaming one changes them.
 */
import { type Block, isObject, readTextField } from '../protocol/api.ts'
import { hashText, hashWithKey, type IdGenerator } from '../protocol/clock-and-ids.ts'
import { countTextTokens } from '../protocol/tokenizer.ts'

/** Hashes of the prefix that a block is bound to, in the three parts that an error can name. */
interface PrefixHashes {
  readonly system: string
  readonly tools: string
  /** Chain of the messages before the turn of the block, without thinking. */
  readonly messages: string
}

export interface ThinkingSignature extends PrefixHashes {
  readonly kind: 'thinking'
  readonly id: string
  readonly model: string
  readonly organization: string
  /** Tokens of the whole thinking, which may be longer than the visible text. */
  readonly tokens: number
  /** Hash of the visible text. */
  readonly shown: string
  /** Id of the thinking block before it in the conversation. */
  readonly previous: string | null
  /** Id of the compaction block that the conversation began with at the time. */
  readonly behind: string | null
  /** Id of its response. */
  readonly response: string
  /** Number of thinking blocks in that response. */
  readonly of: number
}

export interface CompactionSignature extends PrefixHashes {
  readonly kind: 'compaction'
  readonly id: string
  readonly organization: string
  /** Hashes of the block's `content` and `tool_changes`. */
  readonly content: string
  readonly toolChanges: string
  /** The model binds thinking to its prefix, and turns kept after the block continue the summarized prefix. */
  readonly preserves: boolean
  /** Role of the last summarized message. */
  readonly lastRole: string
  /** Ids of the compaction blocks that this one replaced. */
  readonly replaced: readonly string[]
}

type SignedContent = ThinkingSignature | CompactionSignature

export interface Signer {
  sign(value: SignedContent): string
  /** The signed content; null if this signer did not write the text. */
  verify(text: string): SignedContent | null
}

const HASH_LENGTH = 43
const MAX_VERIFIED_SIGNATURES = 5_000

export function createSigner(seed: string): Signer {
  const key = `tidemark/${seed}`
  const known = new Map<string, SignedContent | null>()

  function read(text: string): SignedContent | null {
    const plain = Buffer.from(text, 'base64').toString('utf8')
    const body = plain.slice(HASH_LENGTH)
    // Decoding base64 ignores stray characters, but a signature must be exactly what was sent.
    if (Buffer.from(plain).toString('base64') !== text) return null
    if (hashWithKey(key, body) !== plain.slice(0, HASH_LENGTH)) return null
    return toSignedContent(JSON.parse(body))
  }

  return {
    sign(value) {
      const body = padToThinkingLength(JSON.stringify(value), value.kind === 'thinking' ? value.tokens : 0)
      return Buffer.from(`${hashWithKey(key, body)}${body}`).toString('base64')
    },
    verify(text) {
      const before = known.get(text)
      if (before !== undefined) return before
      if (known.size >= MAX_VERIFIED_SIGNATURES) known.clear()
      const signed = read(text)
      known.set(text, signed)
      return signed
    },
  }
}

/** The keyed hash in front proves that a signer wrote the content, so only its kind is checked. */
function toSignedContent(value: unknown): SignedContent | null {
  if (!isObject(value) || (value.kind !== 'thinking' && value.kind !== 'compaction')) return null
  return value as unknown as SignedContent
}

/**
 * The length of a real signature tells how much was thought: about 0.205 tokens per character, minus 38. The
 * simulator pads its own with spaces, which JSON ignores, so that clients can estimate in the same way.
 */
function padToThinkingLength(json: string, tokens: number): string {
  const characters = (tokens + 38) / 0.205
  const bytes = Math.floor((characters * 3) / 4) - HASH_LENGTH
  return json.padEnd(bytes, ' ')
}

interface SigningInput {
  readonly blocks: readonly Block[]
  readonly prefix: PrefixHashes
  readonly model: string
  readonly organization: string
  readonly response: string
  readonly previous: string | null
  readonly compactionId: string | null
  readonly display: 'summarized' | 'omitted'
}

/** Signs every unsigned thinking block. With `display: 'omitted'` the text of thinking is removed. */
export function signThinking(input: SigningInput, signer: Signer, ids: IdGenerator): readonly Block[] {
  const of = input.blocks.filter(isUnsigned).length
  let { previous } = input
  return input.blocks.map((block) => {
    if (!isUnsigned(block)) return block
    const thought = readTextField(block, block.type === 'thinking' ? 'thinking' : 'data')
    const shown = block.type === 'thinking' && input.display === 'summarized' ? thought : ''
    const id = ids.next('thk')
    const signature = signer.sign({
      kind: 'thinking',
      id,
      ...input.prefix,
      model: input.model,
      organization: input.organization,
      tokens: countTextTokens(thought),
      shown: hashText(shown),
      previous,
      behind: input.compactionId,
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

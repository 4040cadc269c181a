/**
 * Signatures of thinking and compaction blocks. A signature contains facts about the origin of the block, such as the
 * model, and a hash keyed with the simulator's seed. Altered and foreign signatures are therefore rejected. Field
 * names are part of the signature text, so renaming a field changes response bodies.
 */

import { hashText, hashWithKey, type IdGenerator } from '../protocol/clock-and-ids.ts'
import { type Block, isObject, readTextField } from '../protocol/messages-request.ts'
import { countTextTokens } from '../protocol/tokenizer.ts'

/**
 * Hashes of the system prompt, the tools and the messages before a signed block. Later requests are checked against
 * them.
 */
interface PrefixHashes {
  readonly system: string
  readonly tools: string
  /**
   * Hash of the messages before the signed block, without thinking blocks. For thinking, earlier blocks of the same
   * assistant turn are not included.
   */
  readonly messages: string
}

export interface ThinkingSignature extends PrefixHashes {
  readonly kind: 'thinking'
  readonly id: string
  readonly model: string
  readonly organization: string
  /** Token count of the full thinking. The visible text of the block may be shorter. */
  readonly tokens: number
  /** Hash of the visible text of the thinking block. */
  readonly shown: string
  /** Id of the previous thinking block in the conversation; null for the first. */
  readonly previous: string | null
  /**
   * Id of the signed compaction block at the start of the conversation when the thinking was created; null if there
   * was none.
   */
  readonly behind: string | null
  /** Id of the response that contains the thinking block. */
  readonly response: string
  /** Number of thinking blocks in the response, including this one. */
  readonly of: number
}

export interface CompactionSignature extends PrefixHashes {
  readonly kind: 'compaction'
  readonly id: string
  readonly organization: string
  /** Hash of the compaction block's `content`. */
  readonly content: string
  /** Hash of the compaction block's `tool_changes`. */
  readonly toolChanges: string
  /**
   * True if the model checks that the messages before a thinking block are unchanged. Messages kept after the
   * compaction block then count as a continuation of the summarized messages.
   */
  readonly preserves: boolean
  /** Role of the last message that was summarized. */
  readonly lastRole: string
  /** Ids of earlier compaction blocks of the conversation, which this compaction block replaced. */
  readonly replaced: readonly string[]
}

type SignedContent = ThinkingSignature | CompactionSignature

export interface Signer {
  /** Encodes facts about a block as a signature. A signature of thinking grows with the number of its tokens. */
  sign(value: SignedContent): string
  /** Decodes a signature. Returns null if it was altered or was created with another seed. */
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
    // The base64 decoder ignores invalid characters. Encoding the decoded text again detects them.
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

/**
 * Casts decoded JSON to signed content; null if the field `kind` is unknown. Other fields need no check, because the
 * keyed hash was verified.
 */
function toSignedContent(value: unknown): SignedContent | null {
  if (!isObject(value) || (value.kind !== 'thinking' && value.kind !== 'compaction')) return null
  return value as unknown as SignedContent
}

/**
 * Pads the JSON of a signature with spaces, so that its length grows with the thinking, as in real signatures.
 * Clients estimate the thinking tokens from the length: about 0.205 tokens per character, minus 38 tokens.
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

/**
 * Signs every thinking block that has no signature yet, and every redacted one, whose data becomes the signature. With
 * `display: 'omitted'` it also empties the text.
 */
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

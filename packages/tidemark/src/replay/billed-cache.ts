/**
 * Bills a replay by the documented rules of prompt caching. It is independent of the engine's own cache model, to check
 * it. An entry exists only where a marker was, and is found by looking back from a marker. It has the lifetime of the
 * marker that wrote it, also after a later request has read it with other markers.
 */
import { createHash } from 'node:crypto'
import type { TokenRates } from '@tidemark/core/cost/prices'

/** The prices that a replay uses by default, in units of the price of an input token. */
export const RELATIVE_RATES = { input: 1, cacheRead: 0.1, writeShort: 1.25, writeLong: 2, output: 5 }

const LOOK_BACK = 20
const LIFETIME_MS: Readonly<Record<string, number>> = { '5m': 300_000, '1h': 3_600_000 }
/** Average characters per token of a block by its type, as measured on recorded sessions. */
const CHARACTERS_PER_TOKEN: Readonly<Record<string, number>> = { tool_use: 3.27, tool_result: 2.88 }
const TEXT_CHARACTERS_PER_TOKEN = 3.6
/** Newer logs have only the signature of thinking. It has about 2.2 times as many characters as the thinking. */
const SIGNATURE_CHARACTERS_PER_TOKEN = 7.9
const TOKENS_PER_RESULT = 94
const IMAGE_TOKENS = 1_500

type Fields = Readonly<Record<string, unknown>>

export interface BilledTokens {
  readonly read: number
  readonly written: number
  /** The part of `written` with a lifetime of one hour. */
  readonly writtenForHour: number
  readonly input: number
}

/** Returns the rates for a request with this many tokens, cached ones included, in any unit of money. */
export type FindRates = (promptTokens: number) => TokenRates

interface Entry {
  readonly tokens: number
  readonly lifetimeMs: number
  usedAt: number
}

/** A cache marker: the index of its block, and its lifetime as in the request. */
interface Mark {
  readonly at: number
  readonly lifetime: string
}

function isAlive({ usedAt, lifetimeMs }: Entry, now: number): boolean {
  return now - usedAt < lifetimeMs
}

interface WeighedBlock {
  readonly hash: string
  readonly tokens: number
}

interface BilledCacheOptions {
  /** Returns true for a text that a policy attached, such as a file. It is counted like a tool result, for every policy. */
  readonly isAttached?: (text: string) => boolean
  /** Factor for the estimated tokens of message blocks. Default: 1. */
  readonly scale?: number
}

/** The prompt cache of one replayed session, and what its calls cost. */
export class BilledCache {
  readonly #entries = new Map<string, Entry>()
  readonly #weighed = new WeakMap<object, WeighedBlock>()
  #model = ''
  #findTierRates: FindRates = () => RELATIVE_RATES
  /** Tokens of the newest request. Its response is priced at the rates for this size. */
  #sent = 0
  readonly #isAttached: (text: string) => boolean
  readonly #scale: number
  /** Sum of all charges so far, in the unit of the rates. */
  cost = 0

  constructor({ isAttached = () => false, scale = 1 }: BilledCacheOptions = {}) {
    this.#isAttached = isAttached
    this.#scale = scale
  }

  /** Sets the model for later requests. A model does not read cache entries of another model. */
  useModel(model: string, findTierRates: FindRates): void {
    this.#model = model
    this.#findTierRates = findTierRates
  }

  /**
   * Charges a request at the time `now`, and returns the tokens that it read from the cache, wrote to it, and neither.
   * `writes`: false for a side call, which creates no entries.
   */
  billRequest(body: Fields, now: number, writes = true): BilledTokens {
    const chain: { readonly key: string; readonly tokens: number }[] = []
    const marked: Mark[] = []
    let [key, tokens] = [this.#model, 0]
    for (const [at, block] of listBlocks(body).entries()) {
      const { hash, tokens: own } = this.#weigh(block, body)
      key = createHash('sha1')
        .update(key + hash)
        .digest('base64')
      tokens += own
      chain.push({ key, tokens })
      const control = block.cache_control as { readonly ttl?: string } | undefined
      if (control !== undefined) marked.push({ at, lifetime: control.ttl ?? '5m' })
    }
    const found = this.#findLongest(chain, marked, now)
    const read = found?.tokens ?? 0
    const countAfter = (mark: { readonly at: number } | undefined): number =>
      !writes || mark === undefined ? 0 : Math.max(0, (chain[mark.at]?.tokens ?? 0) - read)
    const written = countAfter(marked.at(-1))
    const writtenForHour = countAfter(marked.findLast(({ lifetime }) => lifetime === '1h'))
    if (writes) this.#write(chain, marked, { now, found })
    const billed = { read, written, writtenForHour, input: tokens - read - written }
    this.#charge(billed)
    return billed
  }

  /** Charges the output tokens of a response to the newest request. */
  chargeOutput(tokens: number): void {
    this.cost += tokens * (this.#findTierRates(this.#sent).output ?? 0)
  }

  /** Returns the tokens of a request, cached or not. */
  countTokens(body: Fields): number {
    return listBlocks(body).reduce((sum, block) => sum + this.#weigh(block, body).tokens, 0)
  }

  /** Charges cache reads, one-hour writes up to the last one-hour marker, and other writes up to the last marker. */
  #charge({ read, written, writtenForHour, input }: BilledTokens): void {
    this.#sent = read + written + input
    const { cacheRead, writeLong, writeShort, input: uncached } = this.#findTierRates(this.#sent)
    const writes = writtenForHour * (writeLong ?? 0) + (written - writtenForHour) * (writeShort ?? 0)
    this.cost += read * (cacheRead ?? 0) + writes + input * (uncached ?? 0)
  }

  /** Returns the hash and the tokens of a block. System prompt and tools are not scaled: their size comes from the log. */
  #weigh(block: Fields, { system, tools }: Fields): WeighedBlock {
    const known = this.#weighed.get(block)
    if (known !== undefined) return known
    const { cache_control: _, ...rest } = block
    const isAttached = rest.type === 'text' && this.#isAttached(String(rest.text))
    const tokens = countBlockTokens(isAttached ? { ...rest, type: 'tool_result' } : rest)
    const hash = createHash('sha1').update(JSON.stringify(rest)).digest('base64')
    const isPrefix = [system, tools].some((list) => Array.isArray(list) && list.includes(block))
    const weight = (isAttached ? tokens - TOKENS_PER_RESULT : tokens) * (isPrefix ? 1 : this.#scale)
    const own = { hash, tokens: Math.ceil(weight) }
    this.#weighed.set(block, own)
    return own
  }

  #findLongest(
    chain: readonly { readonly key: string }[],
    marks: readonly Mark[],
    now: number,
  ): Entry | null {
    for (const mark of marks.toReversed())
      for (let at = mark.at; at >= Math.max(0, mark.at - LOOK_BACK + 1); at -= 1) {
        const entry = this.#entries.get(chain[at]?.key ?? '')
        if (entry === undefined || !isAlive(entry, now)) continue
        entry.usedAt = now
        return entry
      }
    return null
  }

  /**
   * Creates an entry at each marker. An entry within the part that was read is not written again, so it keeps the
   * lifetime it had, or that of the entry that was read, whatever its marker says.
   */
  #write(
    chain: readonly { readonly key: string; readonly tokens: number }[],
    marked: readonly Mark[],
    { now, found }: { readonly now: number; readonly found: Entry | null },
  ): void {
    for (const { at, lifetime } of marked) {
      const place = chain[at]
      if (place === undefined) continue
      const { key, tokens } = place
      const known = this.#entries.get(key)
      const isRead = found !== null && tokens <= found.tokens
      const kept = known !== undefined && isAlive(known, now) ? known : found
      const lifetimeMs = (isRead ? kept?.lifetimeMs : LIFETIME_MS[lifetime]) ?? 300_000
      this.#entries.set(key, { tokens, lifetimeMs, usedAt: now })
    }
  }
}

function listBlocks({ tools, system, messages }: Fields): readonly Fields[] {
  const list = (value: unknown): readonly Fields[] => {
    if (typeof value === 'string') return [{ type: 'text', text: value }]
    return Array.isArray(value) ? value : []
  }
  return [...list(tools), ...list(system), ...list(messages).flatMap(({ content }) => list(content))]
}

/** Estimates the tokens of a block by its length in characters, with fixed numbers for images and results. */
export function countBlockTokens(block: object): number {
  const { type, thinking, signature } = block as Fields
  if (type === 'thinking') {
    const [text, sign] = [String(thinking ?? ''), String(signature ?? '')]
    return text === ''
      ? Math.ceil(sign.length / SIGNATURE_CHARACTERS_PER_TOKEN)
      : Math.ceil(text.length / TEXT_CHARACTERS_PER_TOKEN)
  }
  const text = JSON.stringify(block)
  const images = text.split('"type":"image"').length - 1
  const characters = images > 0 ? text.replaceAll(/"data":"[^"]*"/g, '').length : text.length
  return (
    Math.ceil(characters / (CHARACTERS_PER_TOKEN[String(type)] ?? TEXT_CHARACTERS_PER_TOKEN)) +
    images * IMAGE_TOKENS +
    (type === 'tool_result' ? TOKENS_PER_RESULT : 0)
  )
}

/**
 * The bill of a replay: a prompt cache by the documented rules, written apart from the engine's own model of it. An entry
 * exists only where a marker stood, is found from a marker by looking back, and lives for the lifetime of its marker.
 */
import { createHash } from 'node:crypto'

/** Prices in units of the price of an input token. */
export const PRICES = { input: 1, cacheRead: 0.1, write5m: 1.25, write1h: 2, output: 5 }

const LOOK_BACK = 20
const LIFETIME_MS: Readonly<Record<string, number>> = { '5m': 300_000, '1h': 3_600_000 }
/** Characters for each token of a block, as measured on recorded sessions. */
const CHARACTERS_PER_TOKEN: Readonly<Record<string, number>> = { tool_use: 3.27, tool_result: 2.88 }
const TEXT_CHARACTERS_PER_TOKEN = 3.6
const TOKENS_PER_RESULT = 94
const IMAGE_TOKENS = 1_500

type Fields = Readonly<Record<string, unknown>>

export interface BilledTokens {
  readonly read: number
  readonly written: number
  readonly input: number
  /** Name of the lifetime with which the messages were written. */
  readonly lifetime: string
}

interface Entry {
  readonly tokens: number
  readonly lifetimeMs: number
  usedAt: number
}

interface WeighedBlock {
  readonly hash: string
  readonly tokens: number
}

const weighed = new WeakMap<object, WeighedBlock>()

export class BilledCache {
  readonly #entries = new Map<string, Entry>()
  cost = 0

  /** Bills a request and returns the tokens that were read, written and neither. `writes`: false for a side call. */
  send(body: Fields, now: number, writes = true): BilledTokens {
    const blocks = listBlocks(body)
    const chain: { readonly key: string; readonly tokens: number }[] = []
    const marked: { readonly at: number; readonly lifetime: string }[] = []
    let [key, tokens] = ['', 0]
    for (const [at, block] of blocks.entries()) {
      const { hash, tokens: own } = weighBlock(block)
      key = createHash('sha1')
        .update(key + hash)
        .digest('base64')
      tokens += own
      chain.push({ key, tokens })
      const control = block.cache_control as { readonly ttl?: string } | undefined
      if (control !== undefined) marked.push({ at, lifetime: control.ttl ?? '5m' })
    }
    const read = this.#findLongest(
      chain,
      marked.map(({ at }) => at),
      now,
    )
    const last = marked.at(-1)
    const written = last === undefined ? 0 : Math.max(0, (chain[last.at]?.tokens ?? 0) - read)
    if (writes) this.#write(chain, marked, now)
    const lifetime = last?.lifetime ?? '5m'
    const price = lifetime === '1h' ? PRICES.write1h : PRICES.write5m
    const billed = writes ? written : 0
    this.cost += read * PRICES.cacheRead + billed * price + (tokens - read - billed) * PRICES.input
    return { read, written: billed, input: tokens - read - billed, lifetime }
  }

  answer(tokens: number): void {
    this.cost += tokens * PRICES.output
  }

  #findLongest(chain: readonly { readonly key: string }[], marks: readonly number[], now: number): number {
    for (const mark of marks.toReversed())
      for (let at = mark; at >= Math.max(0, mark - LOOK_BACK + 1); at -= 1) {
        const entry = this.#entries.get(chain[at]?.key ?? '')
        if (entry === undefined || now - entry.usedAt >= entry.lifetimeMs) continue
        entry.usedAt = now
        return entry.tokens
      }
    return 0
  }

  #write(
    chain: readonly { readonly key: string; readonly tokens: number }[],
    marked: readonly { readonly at: number; readonly lifetime: string }[],
    now: number,
  ): void {
    for (const { at, lifetime } of marked) {
      const place = chain[at]
      if (place === undefined) continue
      const { key, tokens } = place
      this.#entries.set(key, { tokens, lifetimeMs: LIFETIME_MS[lifetime] ?? 300_000, usedAt: now })
    }
  }
}

export function countBlockTokens(block: object): number {
  return weighBlock(block).tokens
}

function listBlocks({ tools, system, messages }: Fields): readonly Fields[] {
  const list = (value: unknown): readonly Fields[] => {
    if (typeof value === 'string') return [{ type: 'text', text: value }]
    return Array.isArray(value) ? value : []
  }
  return [...list(tools), ...list(system), ...list(messages).flatMap(({ content }) => list(content))]
}

/** Returns hash and tokens of a block without its cache marker. */
function weighBlock(block: object): WeighedBlock {
  const known = weighed.get(block)
  if (known !== undefined) return known
  const { cache_control: _, ...rest } = block as Fields
  const text = JSON.stringify(rest)
  const type = String(rest.type)
  const images = text.split('"type":"image"').length - 1
  const characters = images > 0 ? text.replaceAll(/"data":"[^"]*"/g, '').length : text.length
  const own = {
    hash: createHash('sha1').update(text).digest('base64'),
    tokens:
      Math.ceil(characters / (CHARACTERS_PER_TOKEN[type] ?? TEXT_CHARACTERS_PER_TOKEN)) +
      images * IMAGE_TOKENS +
      (type === 'tool_result' ? TOKENS_PER_RESULT : 0),
  }
  weighed.set(block, own)
  return own
}

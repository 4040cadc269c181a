/**
 * A provider's cache by the rules that providers document, written apart from the engine: entries only where a
 * marker stood, a look-back of so many positions, runs of calls and of results as one, lifetimes from the start
 * of a request. It reads payloads, as a provider does, and knows nothing of how they came about.
 */
import type { Payload, Usage } from '../../src/index.ts'

interface Piece {
  readonly text: string
  readonly zone: string
  readonly type: string
  readonly ttl: string | null
}

interface CacheEntry {
  readonly ttl: string
  expiresAt: number
}

const LIFE: Readonly<Record<string, number>> = { '5m': 300_000, '1h': 3_600_000 }
const LOOK_BACK = 20
const RUNS = new Set(['tool_use', 'tool_result'])

export class ProviderCache {
  readonly #entries = new Map<string, CacheEntry>()
  readonly #minimum: number

  constructor(minimum = 0) {
    this.#minimum = minimum
  }

  get size(): number {
    return this.#entries.size
  }

  /** What the provider would bill, and what it then keeps. */
  ask(payload: Payload, now: number): Usage {
    const pieces = piecesOf(payload)
    const keys = keysOf(pieces, payload)
    const sizes = pieces.map((_, index) => tokensOf(pieces.slice(0, index + 1)))
    const marked = pieces.flatMap(({ ttl }, index) => (ttl === null ? [] : [index]))
    const long = marked.filter((index) => (sizes[index] ?? 0) >= this.#minimum)
    const hit = this.#find(pieces, keys, { marked, now })
    const read = hit === null ? 0 : (sizes[hit] ?? 0)
    const last = Math.max(read, ...long.map((index) => sizes[index] ?? 0))
    if (hit !== null) this.#keep(keys[hit] ?? '', '5m', now)
    for (const index of long) this.#keep(keys[index] ?? '', pieces[index]?.ttl ?? '5m', now)
    return {
      input_tokens: (sizes.at(-1) ?? 0) - last,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: last - read,
      output_tokens: 1,
    }
  }

  #keep(key: string, ttl: string, now: number): void {
    const there = this.#live(key, now)
    const kept = there ?? { ttl, expiresAt: 0 }
    kept.expiresAt = Math.max(kept.expiresAt, now + (LIFE[kept.ttl] ?? 0))
    this.#entries.set(key, kept)
  }

  #live(key: string, now: number): CacheEntry | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && now < entry.expiresAt ? entry : undefined
  }

  #find(
    pieces: readonly Piece[],
    keys: readonly string[],
    { marked, now }: { readonly marked: readonly number[]; readonly now: number },
  ): number | null {
    for (const from of marked.toReversed()) {
      let positions = 0
      for (let at = from; at >= 0; at -= 1) {
        if (at === from || !isSameRun(pieces[at], pieces[at + 1])) positions += 1
        if (positions > LOOK_BACK) break
        if (this.#live(keys[at] ?? '', now) !== undefined) return at
      }
    }
    return null
  }
}

function isSameRun(one: Piece | undefined, other: Piece | undefined): boolean {
  if (one === undefined || other === undefined || !RUNS.has(one.type)) return false
  return one.type === other.type && one.zone === other.zone
}

function piecesOf({ tools = [], system = [], messages }: Payload): readonly Piece[] {
  const blocks = typeof system === 'string' ? [{ type: 'text', text: system }] : system
  return [
    ...tools.map((tool) => pieceOf({ ...tool, type: 'tool' }, 'tools')),
    ...blocks.map((block) => pieceOf(block, 'system')),
    ...messages.flatMap(({ role, content }) => {
      const said = typeof content === 'string' ? [{ type: 'text', text: content }] : content
      return said.map((block) => pieceOf(block, role))
    }),
  ]
}

function pieceOf(block: Readonly<Record<string, unknown>>, zone: string): Piece {
  const { cache_control: control, ...rest } = block as { cache_control?: { ttl?: string } }
  const ttl = control === undefined ? null : (control.ttl ?? '5m')
  return { text: JSON.stringify(rest), zone, type: String(block.type), ttl }
}

/** Images anywhere, and every parameter but those about the length of the answer, are part of what must match. */
function keysOf(pieces: readonly Piece[], payload: Payload): readonly string[] {
  const { tools: _, system: __, messages: ___, max_tokens: ____, metadata: _____, model, ...rest } = payload
  const images = pieces.some(({ text }) => text.includes('"type":"image"'))
  const parameters = JSON.stringify([rest, images])
  let prefix = model
  return pieces.map(({ text, zone }) => {
    prefix += `\n${zone} ${text}`
    return zone === 'tools' || zone === 'system' ? prefix : `${parameters}${prefix}`
  })
}

/** Any measure will do, as long as it is the provider's secret. */
function tokensOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { text, type }) => sum + 3 + type.length + Math.ceil(text.length / 3.7), 0)
}

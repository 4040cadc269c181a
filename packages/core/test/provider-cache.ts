/**
 * A provider's prompt cache for tests, written apart from the engine by the rules that providers document: entries only
 * where a marker stood, a look-back of 20 positions, runs of calls and of results as one position, lifetimes from the
 * start of a request and refreshed by use, a key for each level. It reads a payload as a provider does, or the parts of
 * a request that break detection compares.
 */
import type { SentRequest } from '../src/cache/sent-request.ts'
import type { Payload } from '../src/context/payload.ts'
import { toBlocks } from '../src/log/block.ts'
import type { TokenUsage } from '../src/log/reply-report.ts'

export interface ProviderCacheOptions {
  /** Tokens that a prefix must have to be cached. */
  readonly minimum?: number
  /** Some providers make lifetime and scope of the markers part of the key. */
  readonly keysByMarker?: boolean
  /** Any measure will do, as long as the engine does not know it. */
  readonly countTokens?: (text: string, type: string) => number
}

interface Entry {
  readonly seconds: number
  expiresAt: number
}

/** One block of a request, with the key and the tokens of the prefix that ends with it. */
interface Position {
  readonly key: string
  readonly tokens: number
  /** Neighbours of the same run are one position of the look-back. */
  readonly run: string | null
}

interface Mark {
  readonly at: number
  readonly seconds: number
}

const SECONDS: Readonly<Record<string, number>> = { '5m': 300, '1h': 3_600 }
const LOOK_BACK = 20
const RUNS = new Set(['tool_use', 'tool_result'])

export class ProviderCache {
  readonly #entries = new Map<string, Entry>()
  readonly #options: ProviderCacheOptions

  constructor(options: ProviderCacheOptions = {}) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** Forgets everything, as a provider may at any time. */
  evict(): void {
    this.#entries.clear()
  }

  /** What the provider would bill for a payload, and what it then keeps. */
  ask(payload: Payload, now: number): TokenUsage {
    const { tools = [], system = [], messages, max_tokens: _, metadata: __, model, speed, ...rest } = payload
    const layout = new Layout(this.#options)
    layout.enter(model)
    for (const tool of tools) layout.add(tool, 'tools', 'tool')
    layout.enter(speed)
    for (const block of toBlocks(system)) layout.add(block, 'system')
    layout.enter([rest, messages.some((message) => JSON.stringify(message).includes('"type":"image"'))])
    for (const { role, content } of messages) {
      for (const block of typeof content === 'string' ? [{ type: 'text', text: content }] : content)
        layout.add(block, role)
    }
    return this.#bill(layout.positions, layout.marks, now)
  }

  /** The same for a request of which only the compared parts are known. */
  answer({ tools, system, messages, parameters, markers, at }: SentRequest): TokenUsage {
    const layout = new Layout(this.#options)
    const { model, betas, others, speed, thinking, effort, toolChoice } = parameters
    const keyed = this.#options.keysByMarker === true ? markers.map(({ ttl, scope }) => [ttl, scope]) : []
    const all = [...messages.frozen, ...messages.tail]
    layout.enter([model, betas, others, keyed])
    for (const { text } of tools) layout.addText(text, null, 'tool')
    layout.enter(speed)
    for (const { text } of system) layout.addText(text, null, 'text')
    const hasImages = all.some(({ message }) => JSON.stringify(message).includes('"type":"image"'))
    layout.enter([thinking, effort, toolChoice, hasImages])
    const starts = all.map(({ message: { role, content } }) => {
      const start = layout.positions.length
      for (const block of toBlocks(content)) layout.add(block, role)
      return start
    })
    const placeOf = { tools: 0, system: tools.length }
    const marks = markers.map(({ zone, index, block = 0, seconds }) => ({
      at: zone === 'messages' ? (starts[index] ?? 0) + block : placeOf[zone] + index,
      seconds,
    }))
    return this.#bill(layout.positions, marks, at)
  }

  #bill(positions: readonly Position[], marks: readonly Mark[], now: number): TokenUsage {
    const tokensAt = (at: number): number => positions[at]?.tokens ?? 0
    const long = marks.filter(({ at }) => tokensAt(at) >= (this.#options.minimum ?? 0))
    const hit = this.#find(positions, marks, now)
    const read = hit === null ? 0 : tokensAt(hit)
    if (hit !== null) this.#keep(positions[hit]?.key ?? '', 0, now)
    for (const { at, seconds } of long) this.#keep(positions[at]?.key ?? '', seconds, now)
    const end = (least: number): number =>
      Math.max(read, ...long.filter(({ seconds }) => seconds >= least).map(({ at }) => tokensAt(at)))
    const [hour, last] = [end(3_600), end(0)]
    return {
      input: (positions.at(-1)?.tokens ?? 0) - last,
      output: 10,
      read,
      writes: { short: last - hour, long: hour - read },
    }
  }

  /** An entry that is there keeps its own lifetime, which begins again. */
  #keep(key: string, seconds: number, now: number): void {
    const kept = this.#live(key, now) ?? { seconds, expiresAt: 0 }
    kept.expiresAt = Math.max(kept.expiresAt, now + kept.seconds * 1_000)
    this.#entries.set(key, kept)
  }

  #live(key: string, now: number): Entry | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && now < entry.expiresAt ? entry : undefined
  }

  #find(positions: readonly Position[], marks: readonly Mark[], now: number): number | null {
    for (const mark of marks.toReversed()) {
      let looked = 0
      for (let at = mark.at; at >= 0; at -= 1) {
        const run = positions[at]?.run ?? null
        if (at === mark.at || run === null || run !== positions[at + 1]?.run) looked += 1
        if (looked > LOOK_BACK) break
        if (this.#live(positions[at]?.key ?? '', now) !== undefined) return at
      }
    }
    return null
  }
}

type Fields = Readonly<Record<string, unknown>>

/** The prefixes of a request, laid out block by block. */
class Layout {
  readonly positions: Position[] = []
  readonly marks: Mark[] = []
  readonly #countTokens: (text: string, type: string) => number
  #key = ''
  #tokens = 0

  constructor({ countTokens = countSecretly }: ProviderCacheOptions) {
    this.#countTokens = countTokens
  }

  /** A level begins: all behind it is found only under the same settings. */
  enter(settings: unknown): void {
    this.#key = chain(this.#key, hashText(JSON.stringify(settings) ?? ''))
  }

  add(block: Fields, zone: string, type = String(block.type)): void {
    const control = block.cache_control as { readonly ttl?: string } | undefined
    const { text, hash } = spell(block, zone)
    this.#push(hash, this.#countTokens(text, type), RUNS.has(type) ? `${zone} ${type}` : null)
    if (control !== undefined)
      this.marks.push({ at: this.positions.length - 1, seconds: SECONDS[control.ttl ?? '5m'] ?? 0 })
  }

  addText(text: string, run: string | null, type: string): void {
    this.#push(hashText(text), this.#countTokens(text, type), run)
  }

  #push(hash: string, tokens: number, run: string | null): void {
    this.#key = chain(this.#key, hash)
    this.#tokens += tokens
    this.positions.push({ key: this.#key, tokens: this.#tokens, run })
  }
}

const spelled = new WeakMap<Fields, { readonly text: string; readonly hash: string }>()

/** Without its marker. */
function spell(block: Fields, zone: string): { readonly text: string; readonly hash: string } {
  const known = spelled.get(block)
  if (known !== undefined) return known
  const { cache_control: _, ...rest } = block
  const text = JSON.stringify(rest)
  const found = { text, hash: hashText(`${zone} ${text}`) }
  spelled.set(block, found)
  return found
}

function countSecretly(text: string, type: string): number {
  return 3 + type.length + Math.ceil(text.length / 3.7)
}

function chain(key: string, hash: string): string {
  return hashText(`${key} ${hash}`)
}

function hashText(text: string): string {
  let [one, other] = [0x811c9dc5, 0x9e3779b9]
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    one = Math.imul(one ^ code, 0x01000193)
    other = Math.imul(other ^ code, 0x85ebca6b)
  }
  return `${one >>> 0}.${other >>> 0}`
}

/**
 * The conversation of a trace, told to the engine: records of the right kinds and number, with stand-ins for what was
 * said. What a stand-in weighs is kept beside it.
 */
import {
  advance,
  type Block,
  emptySession,
  emptyView,
  type Flat,
  type Front,
  flatten,
  frontOf,
  type JsonObject,
  reduce,
  type Session,
  type SessionRecord,
  type View,
} from '@tidemark/core'
import type { TraceCall, TracePiece } from './trace.ts'

export class TraceTalk {
  #session: Session = emptySession()
  #view: View = emptyView()
  #flat: Flat = flatten(emptyView())
  /** Calls of the newest answer that have no result yet. */
  #open: string[] = []
  #records = 0
  #blocks = 0
  readonly #weights: Map<string, number>

  /** `front`: tokens of what stands in front of the messages, by the text of its blocks. */
  constructor(front: ReadonlyMap<string, number>) {
    this.#weights = new Map(front)
  }

  /** What was sent before is there no longer as it was; `tokens` of it are left. */
  startAnew(tokens: number): void {
    this.#session = emptySession()
    this.#view = emptyView()
    this.#flat = flatten(this.#view)
    this.#open = []
    this.#say('user', [this.#text(tokens)])
  }

  add(pieces: readonly TracePiece[]): void {
    if (pieces.length > 0)
      this.#say(
        'user',
        pieces.map((piece) => this.#block(piece)),
      )
  }

  /** `next`: the call behind it, whose results answer the calls that this answer must have made. */
  answer({ outputTokens }: TraceCall, next: TraceCall | undefined): void {
    const results = next?.added.filter(({ kind }) => kind === 'result') ?? []
    const calls = results.map(() => this.#call())
    this.#say('assistant', [this.#text(outputTokens), ...calls])
  }

  get flat(): Flat {
    return this.#flat
  }

  weigh(block: Block | JsonObject): number {
    const { text, tool_use_id: id } = block
    const name = typeof text === 'string' ? text : id
    return typeof name === 'string' ? (this.#weights.get(name) ?? 0) : 0
  }

  /** A result whose call is not there any more is told as text. */
  #block({ kind, tokens }: TracePiece): Block {
    const id = kind === 'result' ? this.#open.shift() : undefined
    if (id === undefined) return this.#text(tokens)
    this.#weights.set(id, tokens)
    return { type: 'tool_result', tool_use_id: id, content: `result of ${id}` }
  }

  #text(tokens: number): Block {
    const text = this.#name('text')
    this.#weights.set(text, tokens)
    return { type: 'text', text }
  }

  #call(): Block {
    const id = this.#name('call')
    this.#open.push(id)
    return { type: 'tool_use', id, name: 'tool', input: {} }
  }

  #name(kind: string): string {
    this.#blocks += 1
    return `${kind}-${this.#blocks}`
  }

  #say(role: 'user' | 'assistant', content: readonly Block[]): void {
    this.#records += 1
    const uuid = `record-${this.#records}`
    const parentUuid = this.#session.records.at(this.#session.tip)?.uuid ?? null
    const links = { uuid, parentUuid, sessionId: 'trace', timestamp: '1970-01-01T00:00:00.000Z' }
    const record: SessionRecord =
      role === 'user'
        ? { ...links, type: role, message: { role, content } }
        : { ...links, type: role, message: { id: uuid, role, model: 'trace', content } }
    this.#session = reduce(this.#session, record)
    this.#view = advance(this.#view, this.#session)
    this.#flat = flatten(this.#view, this.#flat)
  }
}

// What stands in front of a trace's conversation, as the engine knows it: sections of a system prompt.

export interface FrontSection {
  readonly part: 'static' | 'dynamic'
  readonly text: string
  readonly tokens: number
}

/** `found`: what the first call read. It was left by others, so it ends where what they share ends. */
export function frontSections(base: number, found: number): readonly FrontSection[] {
  const shared = Math.min(found, base)
  const parts: readonly FrontSection[] = [
    { part: 'static', text: 'static part', tokens: shared },
    { part: 'dynamic', text: 'dynamic part', tokens: base - shared },
  ]
  return parts.filter(({ tokens }) => tokens > 0)
}

export function frontFor(model: string, sections: readonly FrontSection[]): Front {
  const epoch = {
    model,
    tools: [],
    parameters: {},
    sections: sections.map(({ part, text }) => ({ name: part, part, text })),
  }
  return frontOf({ uuid: 'trace', epoch, parameters: {}, isFresh: false })
}

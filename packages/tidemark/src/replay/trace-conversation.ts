/**
 * Rebuilds a conversation from a trace, which has token counts but no texts. The records have the original kinds and
 * order, with placeholder texts. The token count of each placeholder is stored in a separate map.
 */
import {
  appendRecord,
  type Block,
  buildRequestPrefix,
  type ContextView,
  emptyContextView,
  emptySessionLog,
  type FlattenedContext,
  flattenContext,
  type JsonObject,
  type RequestPrefix,
  type SessionLog,
  type SessionRecord,
  updateContextView,
} from '@tidemark/core'
import type { TraceCall, TraceInputBlock } from './trace-file.ts'

export class TraceConversation {
  #session: SessionLog = emptySessionLog()
  #view: ContextView = emptyContextView()
  #flat: FlattenedContext = flattenContext(emptyContextView())
  /** Ids of the tool calls in the newest response whose results have not been added yet. */
  #openCalls: string[] = []
  #recordCount = 0
  #blockCount = 0
  /** Token counts by placeholder text or tool call id. */
  readonly #tokens: Map<string, number>

  /** `prefixTokens` maps the placeholder text of each system prompt block to its token count. */
  constructor(prefixTokens: ReadonlyMap<string, number>) {
    this.#tokens = new Map(prefixTokens)
  }

  /**
   * Replaces the whole conversation by one message of `tokens` tokens. Used where the recorded context was rewritten.
   */
  restart(tokens: number): void {
    this.#session = emptySessionLog()
    this.#view = emptyContextView()
    this.#flat = flattenContext(this.#view)
    this.#openCalls = []
    this.#append('user', [this.#createText(tokens)])
  }

  appendInput(pieces: readonly TraceInputBlock[]): void {
    if (pieces.length === 0) return
    const blocks = pieces.map((piece) => this.#createInput(piece))
    this.#append('user', blocks)
  }

  /**
   * Appends the response of a model call. It gets one tool call for each tool result that the next model call sends.
   */
  appendResponse({ outputTokens }: TraceCall, next: TraceCall | undefined): void {
    const results = next?.added.filter(({ kind }) => kind === 'result') ?? []
    const calls = results.map((): Block => {
      const id = this.#nextName('call')
      this.#openCalls.push(id)
      return { type: 'tool_use', id, name: 'tool', input: {} }
    })
    this.#append('assistant', [this.#createText(outputTokens), ...calls])
  }

  get flat(): FlattenedContext {
    return this.#flat
  }

  /**
   * Returns the tokens of a block. A tool call counts as 0, because its tokens are included in the response's text
   * block.
   */
  countBlockTokens(block: Block | JsonObject): number {
    const { text, tool_use_id: id } = block
    const name = typeof text === 'string' ? text : id
    return typeof name === 'string' ? (this.#tokens.get(name) ?? 0) : 0
  }

  /** Creates the block for an input of the trace. A tool result without an open tool call becomes a text block. */
  #createInput({ kind, tokens }: TraceInputBlock): Block {
    const id = kind === 'result' ? this.#openCalls.shift() : undefined
    if (id === undefined) return this.#createText(tokens)
    this.#tokens.set(id, tokens)
    return { type: 'tool_result', tool_use_id: id, content: `result of ${id}` }
  }

  #createText(tokens: number): Block {
    const text = this.#nextName('text')
    this.#tokens.set(text, tokens)
    return { type: 'text', text }
  }

  #nextName(kind: string): string {
    this.#blockCount += 1
    return `${kind}-${this.#blockCount}`
  }

  #append(role: 'user' | 'assistant', content: readonly Block[]): void {
    this.#recordCount += 1
    const uuid = `record-${this.#recordCount}`
    const parentUuid = this.#session.records.at(this.#session.newestRecord)?.uuid ?? null
    const links = { uuid, parentUuid, sessionId: 'trace', timestamp: '1970-01-01T00:00:00.000Z' }
    const record: SessionRecord =
      role === 'user'
        ? { ...links, type: role, message: { role, content } }
        : { ...links, type: role, message: { id: uuid, role, model: 'trace', content } }
    this.#session = appendRecord(this.#session, record)
    this.#view = updateContextView(this.#view, this.#session)
    this.#flat = flattenContext(this.#view, this.#flat)
  }
}

export interface PrefixSection {
  readonly part: 'static' | 'dynamic'
  readonly text: string
  readonly tokens: number
}

/**
 * Returns the system prompt of a trace as two sections. The first call read `firstRead` tokens from the cache, which
 * other sessions had written. This shared part becomes the `static` section, and the rest the `dynamic` section.
 */
export function toTraceSections(baseTokens: number, firstRead: number): readonly PrefixSection[] {
  const shared = Math.min(firstRead, baseTokens)
  const parts: readonly PrefixSection[] = [
    { part: 'static', text: 'static part', tokens: shared },
    { part: 'dynamic', text: 'dynamic part', tokens: baseTokens - shared },
  ]
  return parts.filter(({ tokens }) => tokens > 0)
}

export function createTracePrefix(model: string, sections: readonly PrefixSection[]): RequestPrefix {
  const epoch = {
    model,
    tools: [],
    parameters: {},
    sections: sections.map(({ part, text }) => ({ name: part, part, text })),
  }
  return buildRequestPrefix({ uuid: 'trace', epoch, parameters: {}, isFresh: false })
}

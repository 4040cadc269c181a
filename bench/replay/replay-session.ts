/**
 * Replays a recorded session through the library: each recorded message is appended, `next` builds the request of each
 * recorded call, and the request is billed. Open loop: the recorded model does not react to what it is shown, except
 * that an edit whose lines are no longer in view costs one more call that reads them again.
 */
import {
  type Block,
  isToolResult,
  isToolUse,
  type KnownRecord,
  type PolicyOverrides,
  toBlocks,
} from '@tidemark/core'
import { createFakeModel } from '@tidemark/core/testing'
import {
  anthropic,
  assistant,
  createTidemark,
  type Session,
  type SessionEvent,
  toolResult,
  user,
} from 'tidemark'
import { BilledCache, type BilledTokens, countBlockTokens, PRICES } from './billed-cache.ts'
import { listEditAnchors, listLines, SeenLines } from './edit-anchors.ts'

export interface ReplayOptions {
  readonly policy: PolicyOverrides
  readonly window: number
  readonly interactive: boolean
}

export interface ReplayTotals {
  calls: number
  cost: number
  edits: number
  editsInView: number
  compactions: number
  /** Tokens after all compactions, and the files that they attached and dropped. */
  tokensAfter: number
  filesBack: number
  filesDropped: number
  emptyHanded: number
  clearings: number
  contextTokens: number
  /** Requests that the library refused to build. */
  refused: number
}

export const NO_TOTALS: ReplayTotals = {
  calls: 0,
  cost: 0,
  edits: 0,
  editsInView: 0,
  compactions: 0,
  tokensAfter: 0,
  filesBack: 0,
  filesDropped: 0,
  emptyHanded: 0,
  clearings: 0,
  contextTokens: 0,
  refused: 0,
}

const REREAD_OUTPUT = 120
const SUMMARY_TOKENS = 3_000

export async function replaySession(
  records: readonly KnownRecord[],
  options: ReplayOptions,
): Promise<ReplayTotals> {
  const replay = new Replay(records, options)
  return replay.run(records)
}

class Replay {
  readonly #totals: ReplayTotals = { ...NO_TOTALS }
  readonly #cache = new BilledCache()
  readonly #seen = new SeenLines()
  readonly #open: Promise<Session>
  readonly #tools: readonly { readonly name: string; readonly input_schema: object }[]
  readonly #calls = new Set<string>()
  #now = 0

  constructor(records: readonly KnownRecord[], { policy, window, interactive }: ReplayOptions) {
    const names = records.flatMap((record) =>
      record.type === 'assistant' ? toBlocks(record.message.content).filter(isToolUse) : [],
    )
    this.#tools = [...new Set(names.map(({ name }) => name))]
      .toSorted()
      .map((name) => ({ name, input_schema: { type: 'object' } }))
    const choice = anthropic('claude-opus-4-6', { apiKey: 'none', window, prices: PRICES })
    const tide = createTidemark({
      model: { ...choice, connect: () => this.#createSummarizer() },
      memory: true,
      policy,
      env: {},
      interactive,
      history: false,
      system: createSystemPrompt(records),
      clock: { now: () => this.#now, sleep: async () => {} },
      deadlines: { within: async (_, work) => ({ ok: true, value: await work({ aborted: false }) }) },
      onEvent: (event) => this.#count(event),
    })
    this.#open = tide.open('replay')
  }

  async run(records: readonly KnownRecord[]): Promise<ReplayTotals> {
    const session = await this.#open
    for (const group of groupResponses(records)) {
      const [first] = group
      if (first === undefined) continue
      this.#now = Math.max(this.#now, Date.parse(first.timestamp) || 0)
      if (first.type === 'assistant') await this.#call(session, group)
      else if (first.type === 'user') await this.#input(session, toBlocks(first.message.content))
    }
    await session.close()
    return { ...this.#totals, cost: this.#cache.cost }
  }

  async #input(session: Session, blocks: readonly Block[]): Promise<void> {
    const known = blocks.filter((block) => !isToolResult(block) || this.#calls.delete(block.tool_use_id))
    if (known.length === 0) return
    for (const block of known) this.#seen.add(block)
    await session.append(user(known))
  }

  async #call(session: Session, group: readonly KnownRecord[]): Promise<void> {
    const blocks = group.flatMap((record) =>
      record.type === 'assistant' ? toBlocks(record.message.content).filter(isReplayed) : [],
    )
    const content = blocks.length === 0 ? [{ type: 'text', text: '(thinking)' }] : blocks
    const output = content.reduce((sum, block) => sum + countBlockTokens(block), 0)
    let body = await this.#send(session)
    if (body === null) return
    const missing = this.#countEdits(body.messages, content)
    if (missing.length > 0) {
      await this.#reread(session, body.tokens, missing)
      body = await this.#send(session)
      if (body === null) return
    }
    this.#cache.answer(output)
    for (const block of content) if (isToolUse(block)) this.#calls.add(block.id)
    await this.#reply(session, content, body.tokens, output)
    for (const block of content) this.#seen.add(block)
  }

  async #send(session: Session): Promise<{
    readonly messages: readonly { readonly content: unknown }[]
    readonly tokens: BilledTokens
  } | null> {
    const request = await session.next({ tools: this.#tools, settle: true })
    if (!request.ok) {
      this.#totals.refused += 1
      return null
    }
    const body = request.body as unknown as Readonly<Record<string, unknown>>
    const tokens = this.#cache.send(body, this.#now)
    this.#totals.calls += 1
    this.#totals.contextTokens += tokens.read + tokens.written + tokens.input
    return { messages: body.messages as readonly { readonly content: unknown }[], tokens }
  }

  /** Counts the edits of a response, and returns the lines of those whose lines the request did not show. */
  #countEdits(
    messages: readonly { readonly content: unknown }[],
    content: readonly Block[],
  ): readonly { readonly path: string | null; readonly line: string }[] {
    const anchors = listEditAnchors(content)
      .map(({ path, lines }) => ({ path, lines: lines.filter((line) => this.#seen.has(line)) }))
      .filter(({ lines }) => lines.length > 0)
    if (anchors.length === 0) return []
    const shown = messages.flatMap(({ content: blocks }) =>
      (typeof blocks === 'string' ? [{ text: blocks }] : (blocks as readonly object[])).map(listLines),
    )
    const missing = anchors.flatMap(({ path, lines }) => {
      const line = lines.find((each) => !shown.some((block) => block.has(each)))
      return line === undefined ? [] : [{ path, line }]
    })
    this.#totals.edits += anchors.length
    this.#totals.editsInView += anchors.length - missing.length
    return missing
  }

  async #reread(
    session: Session,
    tokens: BilledTokens,
    missing: readonly { readonly path: string | null; readonly line: string }[],
  ): Promise<void> {
    const reads = missing.map(({ path, line }, index) => ({
      id: `reread_${this.#totals.calls}_${index}`,
      input: { file_path: path ?? 'unknown', offset: 1 },
      text: this.#seen.findText(line),
    }))
    this.#cache.answer(REREAD_OUTPUT)
    const calls = reads.map(({ id, input }) => ({ type: 'tool_use', id, name: 'Read', input }))
    await this.#reply(session, calls, tokens, REREAD_OUTPUT)
    for (const { id, text } of reads) await session.append(toolResult(id, text))
  }

  async #reply(
    session: Session,
    content: readonly object[],
    { read, written, input, lifetime }: BilledTokens,
    output: number,
  ): Promise<void> {
    const isCall = content.some((block) => (block as { readonly type?: unknown }).type === 'tool_use')
    await session.append(
      assistant({
        id: `reply_${this.#totals.calls}`,
        model: 'claude-opus-4-6',
        content,
        stop_reason: isCall ? 'tool_use' : 'end_turn',
        usage: {
          input_tokens: input,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: written,
          cache_creation: {
            ephemeral_5m_input_tokens: lifetime === '1h' ? 0 : written,
            ephemeral_1h_input_tokens: lifetime === '1h' ? written : 0,
          },
          output_tokens: output,
        },
      }),
    )
  }

  /** A stand-in that writes summaries of a usual length with none of the session's texts in them. */
  #createSummarizer(): ReturnType<typeof createFakeModel> {
    return createFakeModel(({ payload }) => {
      const { read, input } = this.#cache.send(
        payload as unknown as Readonly<Record<string, unknown>>,
        this.#now,
        false,
      )
      this.#cache.answer(SUMMARY_TOKENS)
      const usage = { input_tokens: input, cache_read_input_tokens: read, output_tokens: SUMMARY_TOKENS }
      return { blocks: [{ type: 'text', text: STAND_IN_SUMMARY }], usage }
    })
  }

  #count(event: SessionEvent): void {
    const totals = this.#totals
    if (event.type === 'microcompact') totals.clearings += 1
    if (event.type === 'context-restored') {
      const isFile = (key: string): boolean => key.startsWith('files:')
      const back = event.keys.filter(isFile).length
      totals.filesBack += back
      totals.filesDropped += event.shed.filter(isFile).length
      totals.emptyHanded += back === 0 ? 1 : 0
    }
    if (event.type === 'compact') {
      totals.compactions += 1
      totals.tokensAfter += event.compaction.tokensAfter
    }
  }
}

const SECTIONS = [
  'Primary request and intent',
  'Key technical concepts',
  'Files and code sections',
  'Errors and fixes',
  'Problem solving',
  'All user messages',
  'Pending tasks',
  'Current work',
  'Optional next step',
]
const FILLER = 'The work on this part went on as it was asked for and is described here in general words. '
const STAND_IN_SUMMARY = `<analysis>In order.</analysis>\n<summary>\n${SECTIONS.map(
  (name, index) => `${index + 1}. ${name}:\n${FILLER.repeat(13)}`,
).join('\n\n')}\n</summary>`

/** Thinking is left out: newer logs do not have its text. */
function isReplayed({ type }: Block): boolean {
  return type === 'text' || type === 'tool_use'
}

/** Groups the records of one response; every other record stands alone. */
function groupResponses(records: readonly KnownRecord[]): readonly (readonly KnownRecord[])[] {
  const groups: KnownRecord[][] = []
  for (const record of records) {
    const last = groups.at(-1)?.at(-1)
    const isSame =
      record.type === 'assistant' && last?.type === 'assistant' && last.message.id === record.message.id
    if (isSame) groups.at(-1)?.push(record)
    else groups.push([record])
  }
  return groups
}

/** A log that continues another one begins with a large request, of which most is conversation. */
const MAX_PREFIX = 20_000

/** Returns a text as long as what the recorded host sent before the messages: the first request less its messages. */
function createSystemPrompt(records: readonly KnownRecord[]): string {
  let shown = 0
  for (const record of records) {
    if (record.type !== 'user' && record.type !== 'assistant') continue
    const usage = record.type === 'assistant' ? record.message.usage : undefined
    const {
      input_tokens: input = 0,
      cache_read_input_tokens: read = 0,
      cache_creation_input_tokens: written = 0,
    } = (usage ?? {}) as Readonly<Record<string, number>>
    if (input + read + written > 0) {
      const tokens = Math.min(MAX_PREFIX, Math.max(1_000, input + read + written - shown))
      return FILLER.repeat(Math.ceil((tokens * 3.6) / FILLER.length))
    }
    shown += toBlocks(record.message.content).reduce((sum, block) => sum + countBlockTokens(block), 0)
  }
  return FILLER
}

/**
 * Replays a recorded session under a policy and bills every request. The recorded responses stay the same, whatever the
 * policy shows the model, with one exception: an edit whose lines are no longer in the request costs one more call that
 * reads them again.
 */
import { setImmediate } from 'node:timers/promises'
import type { TokenRates } from '@tidemark/core/cost/prices'
import { type Block, isToolResult, isToolUse } from '@tidemark/core/log/block'
import { BilledCache, type BilledTokens, countBlockTokens, type FindRates } from './billed-cache.ts'
import type { RecordedSession, RecordedStep } from './recorded-session.ts'
import { collectTextLines, listReplacedLines, type ReplacedLines, SeenLines } from './replaced-lines.ts'

/** A request in the form of the Messages API: `system`, `tools` and `messages`, with cache markers on blocks. */
export interface BilledRequest {
  readonly [field: string]: unknown
  readonly messages: readonly ReplayedMessage[]
}

interface ReplayedMessage {
  readonly role: string
  readonly content: string | readonly object[]
}

/** An agent that manages its context by some policy. Its inputs and responses come from a recording. */
export interface ReplayedAgent {
  appendInput(input: ReplayedInput): Promise<void>
  /** Returns the next request, after any rewrite that the policy makes before it; null if there is none to send. */
  buildRequest(): Promise<BilledRequest | null>
  appendReply(content: readonly Block[], usage: BilledTokens & { readonly output: number }): Promise<void>
  /** Reduces the context after the provider refused the last request as too long. Returns false if that is not possible. */
  makeRoom(refused: TooLongRequest): Promise<boolean>
  close(): Promise<void>
}

/** Tokens of a request that the provider refuses, and the maximum that it accepts. */
export interface TooLongRequest {
  readonly tokens: number
  readonly limit: number
}

/** An input of the conversation: tool results, a prompt, or text of the program that recorded the session. */
export type ReplayedInput = Pick<RecordedStep, 'blocks' | 'isPrompt' | 'userInputs'>

/**
 * What the replay gives an agent: the recording, the time in it, the cache that bills its side calls, and a counter of
 * rewrites.
 */
export interface ReplayEnvironment {
  readonly session: RecordedSession
  readonly now: () => number
  readonly cache: BilledCache
  readonly countRewrite: (rewrite: RewriteReport) => void
}

export type RewriteReport =
  | { readonly kind: 'clearing' }
  | {
      readonly kind: 'compaction'
      readonly filesKept: number
      readonly filesShed: number
    }

/** One way to manage the context, which replays compare with others. */
export interface ReplayPolicy {
  readonly name: string
  open(world: ReplayEnvironment): Promise<ReplayedAgent>
}

export interface ReplayTotals {
  readonly calls: number
  /** In the unit of the rates: by default, the price of one input token; with `bill`, a millionth of a dollar. */
  readonly cost: number
  /** Number of edits whose old text was shown before. */
  readonly edits: number
  /** Number of those edits whose request still showed the old text. */
  readonly editsInView: number
  readonly compactions: number
  readonly clearings: number
  readonly filesKept: number
  readonly filesShed: number
  /** Sum of the tokens of all requests. */
  readonly contextTokens: number
  /** Recorded calls that were not replayed, because no request could be built or none fitted the window. */
  readonly refused: number
}

/** How the recorded responses were billed, so that a replay can be compared with the recorded cost. */
export interface RecordedBill {
  /** Returns the rates for the request of this response. */
  findTierRates(response: RecordedStep): FindRates
  /** Returns the billed output tokens of a response; undefined if the log does not have them. */
  findOutput(response: RecordedStep): number | undefined
}

export interface ReplayOptions {
  /**
   * If given, the replay is billed like the recording: sizes scaled to the logged growth, with the conversation of an
   * earlier log that this log continues, with recorded output and rates. Default: relative rates and estimated sizes.
   */
  readonly bill?: RecordedBill
  /** Maximum tokens of a request that the provider accepts, by the sizes of this replay. Default: no limit. */
  readonly window?: number
  /** Prices instead of the relative rates; ignored with `bill`. */
  readonly rates?: TokenRates
  readonly signal?: AbortSignal
  /** Called before each step. */
  readonly onStep?: (step: number) => void
  /** Called with the request of each recorded response. `rewrites`: those since the last call. */
  readonly onRequest?: (request: BilledRequest, step: number, rewrites: readonly RewriteReport[]) => void
  /** Called for each recorded response with the tokens of its request and the total cost so far. */
  readonly onAnswer?: (tokens: number, cost: number) => void
}

/** Assumed output tokens of a call that reads lines again. */
const REREAD_OUTPUT = 120
/** Maximum requests that an agent may build for one call when the provider refuses them as too long. */
const ATTEMPTS = 3
/** Steps between two pauses in which other work of the process, such as the handling of Ctrl-C, can run. */
const STEPS_AT_ONCE = 16

/** Replays the steps in order and returns the totals. Calls no model. Throws if `signal` is aborted. */
export async function replaySession(
  session: RecordedSession,
  policy: ReplayPolicy,
  options: ReplayOptions = {},
): Promise<ReplayTotals> {
  return new Replay(session, options).run(policy)
}

class Replay {
  readonly #session: RecordedSession
  readonly #options: ReplayOptions
  readonly #cache: BilledCache
  readonly #scale: number
  readonly #seen = new SeenLines()
  readonly #rewrites: RewriteReport[] = []
  readonly #counts = { calls: 0, edits: 0, editsInView: 0, contextTokens: 0, refused: 0 }
  /** Ids of recorded tool calls whose response was left out. */
  readonly #unmade = new Set<string>()
  #reported = 0
  #now = 0

  constructor(session: RecordedSession, options: ReplayOptions) {
    const recorded = new Set(session.steps.flatMap(({ blocks }) => blocks.map(({ text }) => text)))
    const isAttached = (text: string): boolean => !recorded.has(text) && isAttachedFile(text)
    this.#session = session
    this.#options = options
    this.#scale = options.bill === undefined ? 1 : session.scale
    this.#cache = new BilledCache({ isAttached, scale: this.#scale })
    const { rates } = options
    if (rates !== undefined) this.#cache.useModel('', () => rates)
  }

  async run(policy: ReplayPolicy): Promise<ReplayTotals> {
    const agent = await policy.open({
      session: this.#session,
      now: () => this.#now,
      cache: this.#cache,
      countRewrite: (rewrite) => this.#rewrites.push(rewrite),
    })
    const { bill, signal, onStep } = this.#options
    if (bill !== undefined) await this.#appendEarlier(agent)
    for (const [index, step] of this.#session.steps.entries()) {
      if (index % STEPS_AT_ONCE === 0) await setImmediate()
      signal?.throwIfAborted()
      onStep?.(index)
      this.#now = step.at
      if (step.kind === 'response') await this.#answer(agent, step, index)
      else await this.#appendInput(agent, step)
      for (const block of step.blocks) this.#seen.add(block)
    }
    await agent.close()
    const compactions = this.#rewrites.filter(({ kind }) => kind === 'compaction')
    const sum = (field: 'filesKept' | 'filesShed'): number =>
      this.#rewrites.reduce((total, each) => total + (each.kind === 'compaction' ? each[field] : 0), 0)
    return {
      ...this.#counts,
      cost: this.#cache.cost,
      compactions: compactions.length,
      clearings: this.#rewrites.length - compactions.length,
      filesKept: sum('filesKept'),
      filesShed: sum('filesShed'),
    }
  }

  /** Appends text of the size of the earlier log's conversation, which the recorded requests also contained. */
  async #appendEarlier(agent: ReplayedAgent): Promise<void> {
    const { earlierTokens, steps } = this.#session
    this.#now = steps[0]?.at ?? 0
    if (earlierTokens === 0) return
    const text = createStandInText(earlierTokens / this.#scale)
    await agent.appendInput({ blocks: [{ type: 'text', text }], isPrompt: false, userInputs: [] })
  }

  /** Appends the input without results of calls that were never made, because their request could not be built. */
  async #appendInput(agent: ReplayedAgent, { blocks, ...input }: RecordedStep): Promise<void> {
    const known = blocks.filter((block) => !isToolResult(block) || !this.#unmade.has(block.tool_use_id))
    if (known.length > 0) await agent.appendInput({ ...input, blocks: known })
  }

  #refuse(blocks: readonly Block[]): void {
    this.#counts.refused += 1
    for (const block of blocks) if (isToolUse(block)) this.#unmade.add(block.id)
  }

  async #answer(agent: ReplayedAgent, step: RecordedStep, index: number): Promise<void> {
    const { blocks, response } = step
    const { bill } = this.#options
    if (bill !== undefined) this.#cache.useModel(response?.model ?? '', bill.findTierRates(step))
    let sent = await this.#send(agent)
    if (sent === null) return this.#refuse(blocks)
    const missing = this.#findMissing(sent.request, blocks)
    if (missing.length > 0) {
      await this.#reread(agent, sent.tokens, missing)
      sent = await this.#send(agent)
      if (sent === null) return this.#refuse(blocks)
    }
    this.#options.onRequest?.(sent.request, index, this.#rewrites.slice(this.#reported))
    this.#reported = this.#rewrites.length
    const estimate = this.#scale * blocks.reduce((sum, block) => sum + countBlockTokens(block), 0)
    const output = bill?.findOutput(step) ?? Math.ceil(estimate)
    this.#cache.chargeOutput(output)
    const { read, written, input } = sent.tokens
    this.#options.onAnswer?.(read + written + input, this.#cache.cost)
    await agent.appendReply(blocks, { ...sent.tokens, output })
  }

  async #send(
    agent: ReplayedAgent,
  ): Promise<{ readonly request: BilledRequest; readonly tokens: BilledTokens } | null> {
    const request = await this.#buildFitting(agent)
    if (request === null) return null
    const tokens = this.#cache.billRequest(request, this.#now)
    this.#counts.calls += 1
    this.#counts.contextTokens += tokens.read + tokens.written + tokens.input
    return { request, tokens }
  }

  /** Returns the next request; null if there is none that fits the window. */
  async #buildFitting(agent: ReplayedAgent): Promise<BilledRequest | null> {
    const { window: limit = Number.POSITIVE_INFINITY } = this.#options
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const request = await agent.buildRequest()
      if (request === null) return null
      const tokens = this.#cache.countTokens(request)
      if (tokens <= limit) return request
      if (!(await agent.makeRoom({ tokens, limit }))) return null
    }
    return null
  }

  /** Counts the edits of a response. Returns those with a line that the request did not show. */
  #findMissing(request: BilledRequest, content: readonly Block[]): readonly ReplacedLines[] {
    const anchors = listReplacedLines(content)
      .map(({ path, lines }) => ({ path, lines: lines.filter((line) => this.#seen.has(line)) }))
      .filter(({ lines }) => lines.length > 0)
    if (anchors.length === 0) return []
    const shown = listRequestBlocks(request).map(collectTextLines)
    const missing = anchors.flatMap(({ path, lines }) => {
      const gone = lines.filter((each) => !shown.some((block) => block.has(each)))
      return gone.length === 0 ? [] : [{ path, lines: gone }]
    })
    this.#counts.edits += anchors.length
    this.#counts.editsInView += anchors.length - missing.length
    return missing
  }

  async #reread(
    agent: ReplayedAgent,
    tokens: BilledTokens,
    missing: readonly ReplacedLines[],
  ): Promise<void> {
    const reads = missing.map(({ path, lines }, index) => ({
      id: `reread_${this.#counts.calls}_${index}`,
      input: { file_path: path ?? 'unknown', offset: 1 },
      text: this.#seen.findText(lines[0] ?? ''),
    }))
    this.#cache.chargeOutput(REREAD_OUTPUT)
    const calls = reads.map(({ id, input }): Block => ({ type: 'tool_use', id, name: 'Read', input }))
    await agent.appendReply(calls, { ...tokens, output: REREAD_OUTPUT })
    const blocks = reads.map(({ id, text }) => ({ type: 'tool_result', tool_use_id: id, content: text }))
    await agent.appendInput({ blocks, isPrompt: false, userInputs: [] })
  }
}

/** An attachment names its file within this many characters from its start, in the engine and in the other policies. */
const FILE_HEAD = 400

function isAttachedFile(text: string): boolean {
  return text.slice(0, FILE_HEAD).includes(ATTACHED_FILE_PREFIX)
}

/** The beginning of the line above the text of an attached file, by which a replay recognizes such a file. */
export const ATTACHED_FILE_PREFIX = 'Content of '

export function listRequestBlocks({ messages }: BilledRequest): readonly object[] {
  return messages.flatMap(({ content }) =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : content,
  )
}

export function hasToolCall(content: readonly Block[]): boolean {
  return content.some(isToolUse)
}

/** Ordinary words from which texts are made that replace system prompts and summaries. They are unrelated to any session. */
const STAND_IN_TEXT =
  'The work on this part went on as it was asked for and is described here in general words. '

/** Returns filler text of about this many tokens. */
export function createStandInText(tokens: number): string {
  return STAND_IN_TEXT.repeat(Math.ceil((tokens * 3.6) / STAND_IN_TEXT.length))
}

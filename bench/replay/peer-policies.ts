/**
 * Policies of others, written apart from the engine, for comparison in the same run: nothing, a summary at a fixed size
 * with the newest files (as Claude Code does), the same with results cleared when the cache has expired, the provider's
 * clearing of tool results, the provider's compaction, and a sliding window.
 */

import { describeToolCall, readToolResultText } from '@tidemark/core/facts/tool-calls'
import { type Block, isToolResult, isToolUse } from '@tidemark/core/log/block'
import {
  ASSUMED_SUMMARY_TOKENS,
  ATTACHED_FILE_PREFIX,
  type BilledRequest,
  countBlockTokens,
  createStandInText,
  type ReplayEnvironment,
  type ReplayedAgent,
  type ReplayedInput,
  type ReplayPolicy,
  type TooLongRequest,
} from 'tidemark/internal'

type Lifetime = '5m' | '1h'
type Message = { readonly role: 'user' | 'assistant'; content: readonly Block[] }

interface PeerOptions {
  readonly ttl: Lifetime
  readonly window: number
}

/** A rewrite of the message list before a request. */
type Rewrite = (peer: Peer) => void

const LIFETIME_MS = { '5m': 300_000, '1h': 3_600_000 }
const CLEARED: Block['content'] = '[Old tool result content cleared]'

/** Window for which the lines and files of the peers are given. In a smaller one they are in proportion. */
const FULL_WINDOW = 200_000

/** Returns the tokens of a window that are kept for a response, by the peers and by Tidemark alike. */
export function findOutputRoom(window: number): number {
  return Math.round(20_000 * Math.min(1, window / FULL_WINDOW))
}

export function listPeerPolicies({ ttl, window }: PeerOptions): readonly ReplayPolicy[] {
  const share = Math.min(1, window / FULL_WINDOW)
  /** The peer's line at 200k is 167,000: the window less 20,000 for output and 13,000 for the summary. */
  const line = Math.round(window - findOutputRoom(window) - 13_000 * share)
  const [clearLine, compactLine] = [100_000 * share, 150_000 * share]
  const summarize = summarizeAt(line, { files: 5, characters: 17_000 * share })
  const inThousands = (tokens: number): string => `${Math.round(tokens / 1_000)}k`
  return [
    createPeer('claude-code-like', ttl, [summarize]),
    createPeer('claude-code-like, clears when cold', ttl, [clearWhenCold(5, LIFETIME_MS[ttl]), summarize]),
    createPeer(`provider's clearing at ${inThousands(clearLine)}, keep 3`, ttl, [
      clearAt(clearLine, 3),
      summarizeAt(line, NO_FILES),
    ]),
    createPeer(`provider's compaction at ${inThousands(compactLine)}`, ttl, [
      summarizeAt(compactLine, NO_FILES),
    ]),
    createPeer('keep the last half', ttl, [keepLast(line)]),
  ]
}

export function createDoNothing(ttl: Lifetime): ReplayPolicy {
  return createPeer(`nothing, unbounded window, ${ttl}`, ttl, [])
}

function createPeer(name: string, ttl: Lifetime, rewrites: readonly Rewrite[]): ReplayPolicy {
  return { name, open: async (world) => new Peer(world, ttl, rewrites) }
}

class Peer implements ReplayedAgent {
  readonly world: ReplayEnvironment
  messages: Message[] = []
  readonly files = new FileTexts()
  readonly #ttl: Lifetime
  readonly #rewrites: readonly Rewrite[]
  readonly #system: readonly Block[]
  repliedAt: number | null = null

  constructor(world: ReplayEnvironment, ttl: Lifetime, rewrites: readonly Rewrite[]) {
    this.world = world
    this.#ttl = ttl
    this.#rewrites = rewrites
    this.#system = [
      {
        type: 'text',
        text: createStandInText(world.session.prefixTokens),
        cache_control: { type: 'ephemeral', ttl },
      },
    ]
  }

  async appendInput({ blocks }: ReplayedInput): Promise<void> {
    this.files.addResults(blocks)
    const last = this.messages.at(-1)
    if (last?.role === 'user') last.content = [...last.content, ...blocks]
    else this.messages.push({ role: 'user', content: blocks })
  }

  async buildRequest(): Promise<BilledRequest | null> {
    for (const rewrite of this.#rewrites) rewrite(this)
    return this.request()
  }

  /** The request with a marker on the system prompt and on the last block of each of the last two user messages. */
  request(): BilledRequest {
    const marked = this.messages
      .flatMap(({ role, content }, index) => (role === 'user' && content.length > 0 ? [index] : []))
      .slice(-2)
    return {
      system: this.#system,
      messages: this.messages.map((message, index) =>
        marked.includes(index) ? { ...message, content: this.#mark(message.content) } : message,
      ),
    }
  }

  async appendReply(content: readonly Block[]): Promise<void> {
    this.files.addCalls(content)
    this.repliedAt = this.world.now()
    this.messages.push({ role: 'assistant', content })
  }

  /** Drops what a summary attached, the oldest file first, then tool results that no response has answered. */
  async makeRoom({ tokens, limit }: TooLongRequest): Promise<boolean> {
    if (this.#rewrites.length === 0) return false
    let over = tokens - limit
    const drop = (
      isDropped: (block: Block) => boolean,
      shorten: (block: Block) => readonly Block[],
    ): void => {
      for (const message of this.messages)
        message.content = message.content.flatMap((block) => {
          if (over <= 0 || !isDropped(block)) return [block]
          const left = shorten(block)
          over -= countBlockTokens(block) - left.reduce((sum, one) => sum + countBlockTokens(one), 0)
          return left
        })
    }
    drop(isFile, () => [])
    drop(isUncleared, (block) => [{ ...block, content: CLEARED }])
    return over <= 0
  }

  async close(): Promise<void> {}

  count(): number {
    return this.world.cache.countTokens(this.request())
  }

  #mark(content: readonly Block[]): readonly Block[] {
    const last = content.at(-1)
    if (last === undefined) return content
    return [...content.slice(0, -1), { ...last, cache_control: { type: 'ephemeral', ttl: this.#ttl } }]
  }
}

const NO_FILES = { files: 0, characters: 0 }

/** Replaces all messages but those after the last response by a summary of a usual size and the newest files. */
function summarizeAt(
  line: number,
  { files, characters }: { readonly files: number; readonly characters: number },
): Rewrite {
  return (peer) => {
    if (peer.count() < line || peer.messages.length < 3) return
    const { world } = peer
    const request = peer.request()
    const ask = { role: 'user', content: [{ type: 'text', text: createStandInText(1_000) }] }
    world.cache.billRequest({ ...request, messages: [...request.messages, ask] }, world.now(), false)
    world.cache.chargeOutput(ASSUMED_SUMMARY_TOKENS)
    const newest = peer.files.listNewest(files)
    const attached = newest.map(
      ({ path, text }) => `${ATTACHED_FILE_PREFIX}${path}:\n${text.slice(0, characters)}`,
    )
    const texts = [createStandInText(ASSUMED_SUMMARY_TOKENS), ...attached, ...listNewPrompt(peer.messages)]
    peer.messages = [{ role: 'user', content: texts.map((text): Block => ({ type: 'text', text })) }]
    world.countRewrite({ kind: 'compaction', filesKept: newest.length, filesShed: 0 })
  }
}

/** Returns the texts of the user's prompt that no response has answered. */
function listNewPrompt(messages: readonly Message[]): readonly string[] {
  const last = messages.at(-1)
  if (last?.role !== 'user') return []
  return last.content.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
}

function clearWhenCold(keep: number, lifetimeMs: number): Rewrite {
  return (peer) => {
    if (peer.repliedAt === null || peer.world.now() - peer.repliedAt < lifetimeMs) return
    clearResults(peer, keep)
  }
}

function clearAt(line: number, keep: number): Rewrite {
  return (peer) => {
    if (peer.count() >= line) clearResults(peer, keep)
  }
}

function clearResults(peer: Peer, keep: number): void {
  const results = peer.messages.flatMap(({ content }) => content.filter(isToolResult))
  const old = new Set(results.slice(0, Math.max(0, results.length - keep)).filter(isUncleared))
  if (old.size === 0) return
  for (const message of peer.messages)
    if (message.content.some((block) => isToolResult(block) && old.has(block)))
      message.content = message.content.map((block) =>
        isToolResult(block) && old.has(block) ? { ...block, content: CLEARED } : block,
      )
  peer.world.countRewrite({ kind: 'clearing' })
}

function isUncleared(block: Block): boolean {
  return isToolResult(block) && block.content !== CLEARED
}

function isFile({ type, text }: Block): boolean {
  return type === 'text' && typeof text === 'string' && text.startsWith(ATTACHED_FILE_PREFIX)
}

/** Drops the oldest rounds until half of the line is left. */
function keepLast(line: number): Rewrite {
  return (peer) => {
    if (peer.count() < line) return
    while (peer.count() > line / 2 && peer.messages.length > 3) peer.messages.splice(0, 2)
    const first = peer.messages[0]
    if (first !== undefined) first.content = first.content.filter((block) => !isToolResult(block))
    if (first?.content.length === 0) first.content = [{ type: 'text', text: createStandInText(1) }]
    peer.world.countRewrite({ kind: 'compaction', filesKept: 0, filesShed: 0 })
  }
}

/** The text of each file as the conversation last showed it, newest use last. */
class FileTexts {
  readonly #texts = new Map<string, string>()
  readonly #reads = new Map<string, string>()

  addCalls(blocks: readonly Block[]): void {
    for (const block of blocks.filter(isToolUse)) {
      const { kind, path, edits } = describeToolCall(block.name, block.input)
      if (path === null) continue
      if (kind === 'read') this.#reads.set(block.id, path)
      const { content } = block.input as { readonly content?: unknown }
      const before = typeof content === 'string' ? content : (this.#texts.get(path) ?? '')
      const after = edits.reduce(
        (text, { oldText, newText }) =>
          oldText !== null && oldText !== '' && text.includes(oldText)
            ? text.replace(oldText, () => newText ?? '')
            : text,
        before,
      )
      if (after !== '') this.#use(path, after)
    }
  }

  addResults(blocks: readonly Block[]): void {
    for (const block of blocks.filter(isToolResult)) {
      const path = this.#reads.get(block.tool_use_id)
      if (path !== undefined)
        this.#use(path, readToolResultText(block.content).replaceAll(/^\s*\d+(?:→|\t)/gm, ''))
    }
  }

  listNewest(count: number): readonly { readonly path: string; readonly text: string }[] {
    if (count === 0) return []
    return [...this.#texts].slice(-count).map(([path, text]) => ({ path, text }))
  }

  #use(path: string, text: string): void {
    this.#texts.delete(path)
    this.#texts.set(path, text)
  }
}

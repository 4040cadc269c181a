/** Asking the model behind the simulator, and keeping what it says within bounds. */

import { type Prompt, totalTokens } from '../prompt-cache/prompt.ts'
import {
  type Block,
  blocksOf,
  type MessagesBody,
  messagesFrom,
  type Piece,
  textField,
} from '../protocol/api.ts'
import type { Ids } from '../protocol/clock-and-ids.ts'
import { BYTES_PER_TOKEN, blockTokens, CALL_TOKENS, textTokens } from '../protocol/tokenizer.ts'
import type { Reply, ReplyBlock, ScriptRequest, StopReason } from '../scripts/script.ts'
import type { Headers } from './accounts.ts'
import type { Prepared } from './prepare-prompt.ts'
import type { World } from './simulator-state.ts'

export interface Question {
  readonly kind: ScriptRequest['kind']
  readonly instructions: string | null
  readonly pieces: readonly Piece[]
  readonly prompt: Prompt
  /** Tokens of what the provider adds to the prompt by itself. */
  readonly added: number
}

export interface Asked {
  readonly reply: Reply
  readonly output: Output
}

export async function askScript(
  world: World,
  prepared: Prepared,
  asked: { readonly question: Question; readonly headers: Headers; readonly number: number },
): Promise<Asked> {
  const { question, headers, number } = asked
  const { body, model } = prepared
  const inputTokens = totalTokens(question.prompt) + question.added
  const maxTokens = body.max_tokens ?? model.maxOutput
  const written = await world.settings.script(
    {
      kind: question.kind,
      instructions: question.instructions,
      model: body.model,
      maxTokens,
      system: blocksOf(body.system),
      tools: body.tools ?? [],
      messages: messagesFrom(question.pieces),
      body,
      headers,
    },
    {
      index: number - 1,
      turn: responsesIn(question.pieces),
      inputTokens,
      random: world.random,
      now: world.clock.now(),
    },
  )
  const reply = {
    ...written,
    blocks: thinksNow(prepared) ? withThinking(written.blocks, body) : withoutThinking(written.blocks),
  }
  const stopSequences = question.kind === 'message' ? (body.stop_sequences ?? []) : []
  const room = Math.max(0, model.window - inputTokens)
  return { reply, output: limitOutput(reply, { stopSequences, maxTokens, room }, world.ids) }
}

/** A script may think; the model it plays does so only where thinking is on. */
function thinksNow({ body, model, shown }: Prepared): boolean {
  const mode = body.thinking?.type ?? model.thinkingDefault
  if (mode === 'between_tools') return shown.at(-1)?.block.type === 'tool_result'
  return mode !== 'disabled'
}

/** With a budget of its own a model thinks before it calls a tool, and the next request must show that it did. */
function withThinking(blocks: readonly ReplyBlock[], body: MessagesBody): readonly ReplyBlock[] {
  const calls = blocks.some(({ type }) => type === 'tool_use')
  if (body.thinking?.type !== 'enabled' || !calls || blocks.some(isThought)) return blocks
  return [{ type: 'thinking', thinking: 'A tool will tell.' }, ...blocks]
}

function isThought({ type }: ReplyBlock): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

function withoutThinking(blocks: readonly ReplyBlock[]): readonly ReplyBlock[] {
  return blocks.filter((block) => !isThought(block))
}

/** Turns of the model so far. */
function responsesIn(pieces: readonly Piece[]): number {
  let turns = 0
  let role: string | null = null
  for (const piece of pieces) {
    if (piece.role === 'assistant' && role !== 'assistant') turns += 1
    role = piece.role
  }
  return turns
}

// What a script wrote, as far as it may be sent: stop sequences, the length asked for, the end of the window.

export interface Output {
  readonly blocks: readonly Block[]
  /** Calls whose input broke off, by index in the blocks: the JSON that came of it. */
  readonly cutInputs: readonly { readonly index: number; readonly text: string }[]
  readonly stopReason: StopReason
  readonly stopSequence: string | null
  readonly tokens: number
  readonly thinkingTokens: number
}

export interface OutputLimits {
  readonly stopSequences: readonly string[]
  readonly maxTokens: number
  /** Tokens left in the window. */
  readonly room: number
}

export function limitOutput(reply: Reply, limits: OutputLimits, ids: Ids): Output {
  const written = reply.blocks.map((block) => named(block, ids))
  const stopped = stopAt(written, limits.stopSequences)
  const length = Math.min(limits.maxTokens, limits.room)
  const cut = cutTo(stopped.blocks, length)
  const reason = cut.isCut
    ? limits.room < limits.maxTokens
      ? 'model_context_window_exceeded'
      : 'max_tokens'
    : stopped.sequence === null
      ? (reply.stopReason ?? naturalStop(cut.blocks))
      : 'stop_sequence'
  return {
    blocks: cut.blocks,
    cutInputs: cut.cutInputs,
    stopReason: reason,
    stopSequence: reason === 'stop_sequence' ? (stopped.sequence ?? reply.stopSequence ?? null) : null,
    tokens: cut.tokens,
    thinkingTokens: cut.blocks.reduce((sum, block) => sum + thoughtTokens(block), 0),
  }
}

/** The id a call goes by, unless the script gave one. */
function named(block: ReplyBlock, ids: Ids): Block {
  const open: Block = { ...block }
  if (open.type === 'tool_use' && open.id === undefined)
    return { type: 'tool_use', id: ids.next('toolu'), name: textField(open, 'name'), input: open.input ?? {} }
  return open
}

function naturalStop(blocks: readonly Block[]): StopReason {
  return blocks.some((block) => block.type === 'tool_use') ? 'tool_use' : 'end_turn'
}

interface Stopped {
  readonly blocks: readonly Block[]
  readonly sequence: string | null
}

function stopAt(blocks: readonly Block[], sequences: readonly string[]): Stopped {
  for (const [index, block] of blocks.entries()) {
    if (block.type !== 'text') continue
    const first = firstOf(textField(block, 'text'), sequences)
    if (first === null) continue
    const text = textField(block, 'text').slice(0, first.at)
    const kept = blocks.slice(0, index)
    return { blocks: text === '' ? kept : [...kept, { ...block, text }], sequence: first.sequence }
  }
  return { blocks, sequence: null }
}

function firstOf(text: string, sequences: readonly string[]): { at: number; sequence: string } | null {
  const found = sequences
    .map((sequence) => ({ sequence, at: text.indexOf(sequence) }))
    .filter(({ at }) => at >= 0)
    .sort((one, other) => one.at - other.at)
  return found[0] ?? null
}

interface CutOutput {
  readonly blocks: readonly Block[]
  readonly cutInputs: Output['cutInputs']
  readonly tokens: number
  readonly isCut: boolean
}

function cutTo(blocks: readonly Block[], length: number): CutOutput {
  const kept: Block[] = []
  let left = length
  for (const block of blocks) {
    const cost = outputTokens(block)
    if (cost <= left) {
      kept.push(block)
      left -= cost
      continue
    }
    const part = partOf(block, left)
    const cutInputs = part?.input === undefined ? [] : [{ index: kept.length, text: part.input }]
    if (part !== null) kept.push(part.block)
    return { blocks: kept, cutInputs, tokens: length, isCut: true }
  }
  return { blocks: kept, cutInputs: [], tokens: length - left, isCut: false }
}

interface Part {
  readonly block: Block
  readonly input?: string
}

/** As much of a block as fits; null where that is nothing. */
function partOf(block: Block, tokens: number): Part | null {
  if (block.type === 'text' || block.type === 'thinking') {
    const field = block.type
    const text = firstBytes(textField(block, field), tokens * BYTES_PER_TOKEN)
    return text === '' ? null : { block: { ...block, [field]: text } }
  }
  if (block.type !== 'tool_use' || tokens <= CALL_TOKENS) return null
  const input = firstBytes(JSON.stringify(block.input), (tokens - CALL_TOKENS) * BYTES_PER_TOKEN)
  return { block: { ...block, input: {} }, input }
}

/** The longest beginning of so many bytes that ends between two characters. */
function firstBytes(text: string, bytes: number): string {
  const all = Buffer.from(text)
  let end = Math.min(Math.max(0, bytes), all.length)
  while (end > 0 && isContinuation(all[end])) end -= 1
  return all.toString('utf8', 0, end)
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

export function outputTokens(block: Block): number {
  return blockTokens(block, thoughtTokens)
}

/** Thinking as the script wrote it: not yet signed, and with all of its text. */
function thoughtTokens(block: Block): number {
  if (block.type === 'thinking') return textTokens(textField(block, 'thinking'))
  return block.type === 'redacted_thinking' ? textTokens(textField(block, 'data')) : 0
}

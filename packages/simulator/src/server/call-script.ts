/**
 * Calls the script that plays the model, and limits its output by stop sequences, `max_tokens` and the context
 * window.
 */
import { countPromptTokens, type Prompt } from '../prompt-cache/prompt.ts'
import type { IdGenerator } from '../protocol/clock-and-ids.ts'
import {
  type Block,
  groupIntoMessages,
  isThinkingBlock,
  type MessagesBody,
  type RequestBlock,
  readTextField,
  toBlocks,
} from '../protocol/messages-request.ts'
import {
  BYTES_PER_TOKEN,
  CALL_OVERHEAD_TOKENS,
  countBlockTokens,
  countTextTokens,
} from '../protocol/tokenizer.ts'
import type { Reply, ReplyBlock, ScriptRequest, StopReason } from '../scripts/script.ts'
import type { RequestHeaders } from './accounts.ts'
import type { PreparedRequest } from './prepare-prompt.ts'
import type { SimulatorState } from './simulator-state.ts'

interface ScriptQuery {
  readonly kind: ScriptRequest['kind']
  readonly instructions: string | null
  readonly pieces: readonly RequestBlock[]
  readonly prompt: Prompt
  /** Tokens that the provider's summary instructions add to the prompt; 0 for an ordinary request. */
  readonly added: number
}

interface ScriptResult {
  readonly reply: Reply
  readonly output: ModelOutput
}

/** Calls the script with the prompt as the model sees it, and limits what it returns. Rejects if the script throws. */
export async function callScript(
  state: SimulatorState,
  prepared: PreparedRequest,
  question: ScriptQuery,
  { headers, number }: { readonly headers: RequestHeaders; readonly number: number },
): Promise<ScriptResult> {
  const { body, model } = prepared
  const inputTokens = countPromptTokens(question.prompt) + question.added
  const maxTokens = body.max_tokens ?? model.maxOutput
  const written = await state.settings.script(
    {
      kind: question.kind,
      instructions: question.instructions,
      model: body.model,
      maxTokens,
      system: toBlocks(body.system),
      tools: body.tools ?? [],
      messages: groupIntoMessages(question.pieces),
      body,
      headers,
    },
    {
      index: number - 1,
      turn: countAssistantTurns(question.pieces),
      inputTokens,
      random: state.random,
      now: state.clock.now(),
    },
  )
  const reply = {
    ...written,
    blocks: isThinkingOn(prepared)
      ? addRequiredThinking(written.blocks, body)
      : written.blocks.filter((block) => !isThinkingBlock(block)),
  }
  const stopSequences = question.kind === 'message' ? (body.stop_sequences ?? []) : []
  const windowTokensLeft = Math.max(0, model.window - inputTokens)
  return { reply, output: limitModelOutput(reply, { stopSequences, maxTokens, windowTokensLeft }, state.ids) }
}

/** Checks whether thinking is on for a request. If it is off, thinking that the script generates is not sent. */
function isThinkingOn({ body, model, shown }: PreparedRequest): boolean {
  const mode = body.thinking?.type ?? model.thinkingDefault
  if (mode === 'between_tools') return shown.at(-1)?.block.type === 'tool_result'
  return mode !== 'disabled'
}

/**
 * Adds a thinking block to a response with tool calls if `thinking.type` is `enabled` and the script wrote no
 * thinking. Without it, the API would reject the next request.
 */
function addRequiredThinking(blocks: readonly ReplyBlock[], body: MessagesBody): readonly ReplyBlock[] {
  const calls = blocks.some(({ type }) => type === 'tool_use')
  if (body.thinking?.type !== 'enabled' || !calls || blocks.some(isThinkingBlock)) return blocks
  return [{ type: 'thinking', thinking: 'A tool will tell.' }, ...blocks]
}

/** Counts the assistant turns. Consecutive assistant blocks are one turn. */
function countAssistantTurns(pieces: readonly RequestBlock[]): number {
  let turns = 0
  let role: string | null = null
  for (const piece of pieces) {
    if (piece.role === 'assistant' && role !== 'assistant') turns += 1
    role = piece.role
  }
  return turns
}

/** The output of a script, cut to stop sequences, `max_tokens` and the context window. */
export interface ModelOutput {
  readonly blocks: readonly Block[]
  /** Tool calls whose input was cut off. `index` is the index of the block, `text` the incomplete JSON of the input. */
  readonly cutInputs: readonly { readonly index: number; readonly text: string }[]
  readonly stopReason: StopReason
  readonly stopSequence: string | null
  readonly tokens: number
  readonly thinkingTokens: number
}

export interface OutputLimits {
  readonly stopSequences: readonly string[]
  readonly maxTokens: number
  /** Tokens left in the context window after the prompt. */
  readonly windowTokensLeft: number
}

/** Gives tool calls their ids, cuts the output at the first limit that it reaches, and finds the stop reason. */
export function limitModelOutput(reply: Reply, limits: OutputLimits, ids: IdGenerator): ModelOutput {
  const written = reply.blocks.map((block) => assignCallId(block, ids))
  const stopped = stopAtSequence(written, limits.stopSequences)
  const length = Math.min(limits.maxTokens, limits.windowTokensLeft)
  const cut = cutToTokens(stopped.blocks, length)
  const reason = cut.isCut
    ? limits.windowTokensLeft < limits.maxTokens
      ? 'model_context_window_exceeded'
      : 'max_tokens'
    : stopped.sequence === null
      ? (reply.stopReason ?? defaultStopReason(cut.blocks))
      : 'stop_sequence'
  return {
    blocks: cut.blocks,
    cutInputs: cut.cutInputs,
    stopReason: reason,
    stopSequence: reason === 'stop_sequence' ? (stopped.sequence ?? reply.stopSequence ?? null) : null,
    tokens: cut.tokens,
    thinkingTokens: cut.blocks.reduce((sum, block) => sum + countUnsignedThinking(block), 0),
  }
}

/** Gives a tool call an id, unless the script gave it one. */
function assignCallId(block: ReplyBlock, ids: IdGenerator): Block {
  const open: Block = { ...block }
  if (open.type === 'tool_use' && open.id === undefined)
    return {
      type: 'tool_use',
      id: ids.next('toolu'),
      name: readTextField(open, 'name'),
      input: open.input ?? {},
    }
  return open
}

function defaultStopReason(blocks: readonly Block[]): StopReason {
  return blocks.some((block) => block.type === 'tool_use') ? 'tool_use' : 'end_turn'
}

interface StopResult {
  readonly blocks: readonly Block[]
  readonly sequence: string | null
}

function stopAtSequence(blocks: readonly Block[], sequences: readonly string[]): StopResult {
  for (const [index, block] of blocks.entries()) {
    if (block.type !== 'text') continue
    const first = findFirstSequence(readTextField(block, 'text'), sequences)
    if (first === null) continue
    const text = readTextField(block, 'text').slice(0, first.at)
    const kept = blocks.slice(0, index)
    return { blocks: text === '' ? kept : [...kept, { ...block, text }], sequence: first.sequence }
  }
  return { blocks, sequence: null }
}

function findFirstSequence(
  text: string,
  sequences: readonly string[],
): { at: number; sequence: string } | null {
  const found = sequences
    .map((sequence) => ({ sequence, at: text.indexOf(sequence) }))
    .filter(({ at }) => at >= 0)
    .sort((one, other) => one.at - other.at)
  return found[0] ?? null
}

interface CutResult {
  readonly blocks: readonly Block[]
  readonly cutInputs: ModelOutput['cutInputs']
  readonly tokens: number
  readonly isCut: boolean
}

function cutToTokens(blocks: readonly Block[], length: number): CutResult {
  const kept: Block[] = []
  let left = length
  for (const block of blocks) {
    const cost = countOutputTokens(block)
    if (cost <= left) {
      kept.push(block)
      left -= cost
      continue
    }
    const part = takeBlockPart(block, left)
    const cutInputs = part?.input === undefined ? [] : [{ index: kept.length, text: part.input }]
    if (part !== null) kept.push(part.block)
    return { blocks: kept, cutInputs, tokens: length, isCut: true }
  }
  return { blocks: kept, cutInputs: [], tokens: length - left, isCut: false }
}

interface BlockPart {
  readonly block: Block
  readonly input?: string
}

/** Returns the part of a block that fits into `tokens`; null if no part fits. */
function takeBlockPart(block: Block, tokens: number): BlockPart | null {
  if (block.type === 'text' || block.type === 'thinking') {
    const field = block.type
    const text = takeBytes(readTextField(block, field), tokens * BYTES_PER_TOKEN)
    return text === '' ? null : { block: { ...block, [field]: text } }
  }
  if (block.type !== 'tool_use' || tokens <= CALL_OVERHEAD_TOKENS) return null
  const input = takeBytes(JSON.stringify(block.input), (tokens - CALL_OVERHEAD_TOKENS) * BYTES_PER_TOKEN)
  return { block: { ...block, input: {} }, input }
}

/** Returns the longest start of the text that has at most `bytes` bytes and ends between two characters. */
function takeBytes(text: string, bytes: number): string {
  const all = Buffer.from(text)
  let end = Math.min(Math.max(0, bytes), all.length)
  while (end > 0 && isContinuationByte(all[end])) end -= 1
  return all.toString('utf8', 0, end)
}

function isContinuationByte(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

export function countOutputTokens(block: Block): number {
  return countBlockTokens(block, countUnsignedThinking)
}

/** Counts the tokens of a thinking block that is not signed yet. Signing may remove its text. */
function countUnsignedThinking(block: Block): number {
  if (block.type === 'thinking') return countTextTokens(readTextField(block, 'thinking'))
  return block.type === 'redacted_thinking' ? countTextTokens(readTextField(block, 'data')) : 0
}

/** Asking the model behind the simulator, and keeping what it says within bounds. */
import { blocksOf, type MessagesBody } from '../api.ts'
import type { Prompt } from '../cache/prompt.ts'
import { totalTokens } from '../cache/split.ts'
import { messagesFrom, type Piece } from '../context/piece.ts'
import type { Reply, ReplyBlock, ScriptRequest } from '../script/script.ts'
import type { Headers } from './account.ts'
import { limitOutput, type Output } from './output.ts'
import type { Prepared } from './prepare.ts'
import type { World } from './world.ts'

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

/** The response of Chat Completions: the message that a script generated, as one object or as chunks of a stream. */
import { type Block, isObject, readTextField } from '../../protocol/messages-request.ts'
import type { OpenaiTokenSplit } from '../cache/prompt-units.ts'
import type { Dialect } from '../dialects.ts'
import type { JsonFields } from '../openai-shape.ts'
import type { GeneratedBlocks } from '../responses/output-items.ts'
import { splitIntoDeltas } from '../responses/response-stream.ts'
import type { ToolView } from '../script-view.ts'
import type { ChatMessage } from '../validation/chat-shape.ts'

export interface Completion {
  readonly id: string
  /** Time in milliseconds since 1970. */
  readonly createdAt: number
  readonly model: string
  readonly message: ChatMessage
  readonly finishReason: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  readonly usage: JsonFields
  readonly serviceTier: string
}

/** Creates the message of a response. It contains reasoning only if the server's dialect sends it. */
export function createChatMessage(
  { blocks, cutInputs, isRefusal }: GeneratedBlocks,
  { custom }: ToolView,
  { reasoningField }: Dialect,
): ChatMessage {
  const text = joinTexts(blocks, 'text')
  const reasoning = joinTexts(blocks, 'thinking')
  const calls = blocks.flatMap((block, index) => {
    if (block.type !== 'tool_use') return []
    return [createCall(block, cutInputs.find((each) => each.index === index)?.text, custom)]
  })
  return {
    role: 'assistant',
    content: isRefusal || (text === '' && calls.length > 0) ? null : text,
    refusal: isRefusal ? text : null,
    annotations: [],
    ...(reasoningField !== null && reasoning !== '' ? { [reasoningField]: reasoning } : {}),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}

function joinTexts(blocks: readonly Block[], type: 'text' | 'thinking'): string {
  return blocks
    .filter((block) => block.type === type)
    .map((block) => readTextField(block, type))
    .join('')
}

function createCall(block: Block, cut: string | undefined, custom: ReadonlySet<string>): JsonFields {
  const name = readTextField(block, 'name')
  const id = readTextField(block, 'id')
  const { input } = block
  if (!custom.has(name))
    return { id, type: 'function', function: { name, arguments: cut ?? JSON.stringify(input ?? {}) } }
  const text = isObject(input) && typeof input.input === 'string' ? input.input : JSON.stringify(input ?? {})
  return { id, type: 'custom', custom: { name, input: cut ?? text } }
}

/**
 * Creates the usage of an answer. Cached and written tokens are part of `prompt_tokens`; the dialect decides which
 * details are reported.
 */
export function createChatUsage(
  split: OpenaiTokenSplit,
  output: number,
  reasoning: number,
  { cacheReport }: Dialect,
): JsonFields {
  const { read, write30m, write12h, input } = split
  const prompt = read + write30m + write12h + input
  const totals = { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output }
  if (cacheReport === 'none') return totals
  const written = write30m + write12h
  return {
    ...totals,
    prompt_tokens_details: {
      cached_tokens: read,
      audio_tokens: 0,
      ...(written === 0 ? {} : { cache_write_tokens: written }),
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    ...(cacheReport === 'hit-and-miss'
      ? { prompt_cache_hit_tokens: read, prompt_cache_miss_tokens: prompt - read }
      : {}),
  }
}

function createHead({ id, createdAt, model, serviceTier }: Completion, object: string): JsonFields {
  return {
    id,
    object,
    created: Math.floor(createdAt / 1_000),
    model,
    service_tier: serviceTier,
    system_fingerprint: 'fp_simulated',
  }
}

export function createCompletionBody(completion: Completion): JsonFields {
  const { message, finishReason, usage } = completion
  return {
    ...createHead(completion, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason }],
    usage,
  }
}

interface CompletionChunk {
  readonly data: JsonFields
  /** Which delay of the reply comes before the chunk. `block-piece`: a piece with which a block begins, so both delays. */
  readonly delay: 'start' | 'block' | 'piece' | 'block-piece' | 'none'
}

/** Lists the chunks of a response. Usage has a separate chunk, sent only if the request asked for usage. */
export function listCompletionChunks(
  completion: Completion,
  { deltaSize, hasUsage }: { readonly deltaSize: number; readonly hasUsage: boolean },
): readonly CompletionChunk[] {
  const head = createHead(completion, 'chat.completion.chunk')
  const pending = hasUsage ? { usage: null } : {}
  const chunk = (delta: JsonFields, finish: string | null = null): JsonFields => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...pending,
  })
  return [
    { data: chunk({ role: 'assistant', content: '', refusal: null }), delay: 'start' },
    ...listDeltas(completion.message, deltaSize).map(
      ({ delta, delay }): CompletionChunk => ({
        data: chunk(delta),
        delay,
      }),
    ),
    { data: chunk({}, completion.finishReason), delay: 'none' },
    ...(hasUsage
      ? [{ data: { ...head, choices: [], usage: completion.usage }, delay: 'none' } as const]
      : []),
  ]
}

interface MessageDelta {
  readonly delta: JsonFields
  readonly delay: CompletionChunk['delay']
}

function listDeltas(message: ChatMessage, deltaSize: number): readonly MessageDelta[] {
  const texts = ['reasoning_content', 'reasoning', 'content', 'refusal'].flatMap((field) => {
    const text = message[field]
    if (typeof text !== 'string') return []
    return splitIntoDeltas(text, deltaSize).map((part, at) => ({ field, part, isStart: at === 0 }))
  })
  const deltas = texts.map(({ field, part, isStart }, index): MessageDelta => {
    const delay = isStart && index > 0 ? 'block-piece' : 'piece'
    return { delta: { [field]: part }, delay }
  })
  return [
    ...deltas,
    ...(message.tool_calls ?? []).flatMap((call, index) =>
      listCallDeltas(call, { index, deltaSize, isFirstBlock: index === 0 && texts.length === 0 }),
    ),
  ]
}

function listCallDeltas(
  call: JsonFields,
  {
    index,
    deltaSize,
    isFirstBlock,
  }: { readonly index: number; readonly deltaSize: number; readonly isFirstBlock: boolean },
): readonly MessageDelta[] {
  const isCustom = call.type === 'custom'
  const [field, argument] = isCustom ? (['custom', 'input'] as const) : (['function', 'arguments'] as const)
  const named = isObject(call[field]) ? call[field] : {}
  const first = { index, id: call.id, type: call.type, [field]: { name: named.name, [argument]: '' } }
  return [
    { delta: { tool_calls: [first] }, delay: isFirstBlock ? 'none' : 'block' },
    ...splitIntoDeltas(String(named[argument] ?? ''), deltaSize).map(
      (part): MessageDelta => ({
        delta: { tool_calls: [{ index, [field]: { [argument]: part } }] },
        delay: 'piece',
      }),
    ),
  ]
}

export function encodeChunk({ data }: CompletionChunk): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

/** The line that ends a stream of chunks. */
export const END_OF_CHUNKS = 'data: [DONE]\n\n'

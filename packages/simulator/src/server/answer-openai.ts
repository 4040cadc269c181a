/**
 * Creates the response to an accepted request to OpenAI's APIs: reads the prompt cache, calls the script that plays the
 * model, and builds a response, completion or compaction with its usage.
 */
import type { Fault } from '../faults/fault.ts'
import { readCacheOptions } from '../openai/cache/breakpoint-cache.ts'
import { PREFIX_RETENTION_MS } from '../openai/cache/prefix-cache.ts'
import { createUnitPrompt, type OpenaiCacheResult, type PromptUnit } from '../openai/cache/prompt-units.ts'
import { listMessageUnits } from '../openai/chat/chat-prompt.ts'
import { type Completion, createChatMessage, createChatUsage } from '../openai/chat/completion.ts'
import type { JsonFields } from '../openai/openai-shape.ts'
import {
  createCompactionItem,
  createOutputItems,
  type GeneratedBlocks,
} from '../openai/responses/output-items.ts'
import {
  createFinishedResponse,
  createPendingResponse,
  createResponseUsage,
  type ResponseBodyInput,
  readServiceTier,
} from '../openai/responses/response-body.ts'
import { buildResponsePrompt } from '../openai/responses/response-prompt.ts'
import type { ItemWithPath } from '../openai/validation/responses-rules.ts'
import { isObject, isThinkingBlock, type MessagesBody, readTextField } from '../protocol/messages-request.ts'
import { countTextTokens } from '../protocol/tokenizer.ts'
import type { ReplyDelays, ScriptRequest } from '../scripts/script.ts'
import type { RequestHeaders } from './accounts.ts'
import {
  formatCacheScope,
  type PreparedChat,
  type PreparedOpenai,
  type PreparedResponses,
} from './admit-openai.ts'
import { limitModelOutput, type ModelOutput } from './call-script.ts'
import { extractSummary, PROVIDER_SUMMARY_PROMPT } from './provider-compaction.ts'
import type { SimulatorState } from './simulator-state.ts'

export interface OpenaiCallContext {
  readonly id: string
  readonly number: number
  readonly now: number
  readonly headers: RequestHeaders
}

/** What a script generated, and the result of the prompt cache. */
interface GeneratedAnswer {
  readonly cache: OpenaiCacheResult
  readonly output: ModelOutput
  readonly delays: ReplyDelays
  readonly fault: Fault | null
}

interface AnswerBase extends Omit<GeneratedAnswer, 'output'> {
  readonly outputTokens: number
  readonly stopReason: string
  /** The model's output, as units of later prompts. */
  readonly answerUnits: readonly PromptUnit[]
  /** Tokens of a summary that the provider made before the response; null if it made none. */
  readonly summary: { readonly cache: OpenaiCacheResult; readonly outputTokens: number } | null
}

export interface ResponsesAnswer extends AnswerBase {
  readonly info: ResponseBodyInput
  readonly pending: JsonFields
  readonly finished: JsonFields
  readonly output: readonly JsonFields[]
}

export interface ChatAnswer extends AnswerBase {
  readonly completion: Completion
}

/** Determines what a request reads from the cache, and what it will write. */
function applyCache(
  { openai }: SimulatorState,
  prepared: PreparedOpenai,
  prompt: PreparedOpenai['prompt'],
  now: number,
): OpenaiCacheResult {
  const { body, model, dialect } = prepared
  const scope = formatCacheScope(prepared)
  if (model.hasBreakpoints)
    return openai.breakpoints.apply({ prompt, scope, options: readCacheOptions(body), now })
  const retention = body.prompt_cache_retention === 'in_memory' ? 'in_memory' : '24h'
  const lifetimeMs = PREFIX_RETENTION_MS[retention]
  return openai.prefixes.apply({ prompt, scope, rules: dialect.cache, lifetimeMs, now })
}

/** Calls the script with the API-independent view of the request, and limits its output. */
async function generate(
  state: SimulatorState,
  prepared: PreparedOpenai,
  call: OpenaiCallContext,
  kind: ScriptRequest['kind'] = 'message',
): Promise<GeneratedAnswer> {
  const { prompt, view, model, maxTokens, body } = prepared
  const cache = applyCache(state, prepared, prompt, call.now)
  const { system, tools, messages } = view
  const isCompaction = kind === 'compaction'
  const instructions = isCompaction ? PROVIDER_SUMMARY_PROMPT : null
  const inputTokens = prompt.tokens + (isCompaction ? countTextTokens(PROVIDER_SUMMARY_PROMPT) : 0)
  const written = await state.settings.script(
    {
      kind,
      instructions,
      model: body.model,
      maxTokens,
      system,
      tools,
      messages,
      body: toScriptBody(prepared),
      headers: call.headers,
    },
    {
      index: call.number - 1,
      turn: messages.filter(({ role }) => role === 'assistant').length,
      inputTokens,
      random: state.random,
      now: state.clock.now(),
    },
  )
  const blocks = written.blocks
    .filter((block) => isReasoningOn(prepared) || !isThinkingBlock(block))
    .map((block) =>
      block.type === 'tool_use' && block.id === undefined ? { ...block, id: state.ids.next('call') } : block,
    )
  const limits = {
    stopSequences: readStopSequences(body),
    maxTokens,
    // A server that truncates also drops the oldest tokens while it generates.
    windowTokensLeft: prepared.dialect.truncatesSilently
      ? maxTokens
      : Math.max(0, model.window - inputTokens),
  }
  const output = limitModelOutput({ ...written, blocks }, limits, state.ids)
  return { cache, output, delays: written.delays ?? {}, fault: written.fault ?? null }
}

/** Describes the request in the fields of the Messages API, from which scripts read the session and the output format. */
function toScriptBody({ body, view, maxTokens }: PreparedOpenai): MessagesBody {
  const user = body.prompt_cache_key ?? body.safety_identifier ?? body.user
  const format = readJsonSchema(body)
  return {
    model: body.model,
    max_tokens: maxTokens,
    messages: view.messages,
    system: view.system,
    tools: view.tools,
    ...(typeof user === 'string' ? { metadata: { user_id: user } } : {}),
    ...(format === null ? {} : { output_format: { type: 'json_schema', schema: format } as never }),
  }
}

/** Returns the JSON schema for the response; null if the request has none. */
function readJsonSchema(body: JsonFields): unknown {
  const text = isObject(body.text) ? body.text : {}
  if (isObject(text.format) && text.format.type === 'json_schema') return text.format.schema
  const { response_format: format } = body
  return isObject(format) && isObject(format.json_schema) ? format.json_schema.schema : null
}

function readStopSequences({ stop }: JsonFields): readonly string[] {
  if (typeof stop === 'string') return [stop]
  return Array.isArray(stop) ? stop.filter((each) => typeof each === 'string') : []
}

function isReasoningOn({ model, body, dialect }: PreparedOpenai): boolean {
  if (dialect.isLenient) return dialect.reasoningField !== null
  const reasoning = isObject(body.reasoning) ? body.reasoning : {}
  return model.efforts.length > 0 && (reasoning.effort ?? body.reasoning_effort) !== 'none'
}

function toGenerated({ blocks, cutInputs, stopReason }: ModelOutput): GeneratedBlocks {
  const isCut = stopReason === 'max_tokens' || stopReason === 'model_context_window_exceeded'
  return { blocks, cutInputs, isCut, isRefusal: stopReason === 'refusal' }
}

const NO_OUTPUT: ModelOutput = {
  blocks: [],
  cutInputs: [],
  stopReason: 'end_turn',
  stopSequence: null,
  tokens: 0,
  thinkingTokens: 0,
}

/**
 * Answers a request to `/v1/responses`. If the prompt has reached the threshold, compacts first; if asked to compact,
 * only compacts.
 */
export async function answerResponses(
  state: SimulatorState,
  prepared: PreparedResponses,
  call: OpenaiCallContext,
): Promise<ResponsesAnswer> {
  const { body, items } = prepared
  if (items.at(-1)?.item.type === 'compaction_trigger') return answerTrigger(state, prepared, call)
  if (isObject(body.prompt_cache_options) && body.prompt_cache_options.prewarm === true) {
    const cache = applyCache(state, prepared, prepared.prompt, call.now)
    const generated = { cache, output: NO_OUTPUT, delays: {}, fault: null }
    return finishResponses(state, prepared, call, { generated })
  }
  if (prepared.prompt.tokens < readThreshold(body))
    return finishResponses(state, prepared, call, { generated: await generate(state, prepared, call) })
  const summary = await summarize(state, prepared, call)
  const shorter = replaceItems(state, prepared, [...listUserItems(items), toPlaced(summary.item)])
  return finishResponses(state, shorter, call, { generated: await generate(state, shorter, call), summary })
}

/** Returns the number of tokens at which the provider compacts automatically. */
function readThreshold(body: JsonFields): number {
  const list = Array.isArray(body.context_management) ? body.context_management : []
  const found: unknown = list.find((each) => isObject(each) && each.type === 'compaction')
  const threshold = isObject(found) ? found.compact_threshold : null
  return typeof threshold === 'number' ? threshold : Number.POSITIVE_INFINITY
}

interface SummaryResult {
  readonly item: JsonFields
  readonly generated: GeneratedAnswer
}

/** Lets the script write a summary, and encrypts it into a compaction item. */
async function summarize(
  state: SimulatorState,
  prepared: PreparedResponses,
  call: OpenaiCallContext,
): Promise<SummaryResult> {
  const generated = await generate(state, prepared, call, 'compaction')
  const texts = generated.output.blocks.filter(({ type }) => type === 'text')
  const text = extractSummary(texts.map((block) => readTextField(block, 'text')).join('\n'), true)
  const { organization } = prepared.account
  const item = createCompactionItem(text, { ids: state.ids, sealer: state.openai.sealer, organization })
  return { item, generated }
}

async function answerTrigger(
  state: SimulatorState,
  prepared: PreparedResponses,
  call: OpenaiCallContext,
): Promise<ResponsesAnswer> {
  const { item, generated } = await summarize(state, prepared, call)
  const alone = { ...generated, output: { ...generated.output, blocks: [], thinkingTokens: 0 } }
  return finishResponses(state, prepared, call, { generated: alone, front: [item] })
}

function toPlaced(item: JsonFields): ItemWithPath {
  return { item, path: 'compaction' }
}

/** Lists the user's messages, which a compaction keeps. */
function listUserItems(items: readonly ItemWithPath[]): readonly ItemWithPath[] {
  return items.filter(({ item }) => item.role === 'user')
}

function replaceItems(
  state: SimulatorState,
  prepared: PreparedResponses,
  items: readonly ItemWithPath[],
): PreparedResponses {
  const { body, account, fingerprint } = prepared
  const { organization } = account
  const built = buildResponsePrompt({ body, items, sealer: state.openai.sealer, organization })
  if (!built.ok) return prepared
  const prompt = createUnitPrompt(built.prompt.units)
  return { ...prepared, items, prompt, view: built.prompt.view, fingerprint: { ...fingerprint, prompt } }
}

/** What a response is made of. */
interface ResponseParts {
  readonly generated: GeneratedAnswer
  /** The summary that the provider made before the response, if any. */
  readonly summary?: SummaryResult
  /** Items before those that the script generated. */
  readonly front?: readonly JsonFields[]
}

function finishResponses(
  state: SimulatorState,
  prepared: PreparedResponses,
  call: OpenaiCallContext,
  { generated, summary, front = summary === undefined ? [] : [summary.item] }: ResponseParts,
): ResponsesAnswer {
  const { body, model, account, view, fingerprint } = prepared
  const { cache, output, delays, fault } = generated
  const reasoning = isObject(body.reasoning) ? body.reasoning : {}
  const items = createOutputItems(toGenerated(output), {
    ids: state.ids,
    sealer: state.openai.sealer,
    organization: account.organization,
    tools: view,
    hasSummaries: reasoning.summary != null,
  })
  const options = isObject(body.prompt_cache_options) ? body.prompt_cache_options : {}
  const compared = options.comparison_response_id
  const diagnosis =
    typeof compared === 'string' ? state.openai.diagnostics.diagnose(compared, fingerprint) : null
  const { id, now } = call
  const info = { id, createdAt: now, completedAt: state.clock.now(), body, model, diagnosis }
  const all = [...front, ...items]
  const split = summary === undefined ? cache.split : addSplits(summary.generated.cache.split, cache.split)
  const tokens = output.tokens + (summary?.generated.output.tokens ?? 0)
  const finished = createFinishedResponse(info, {
    output: all,
    usage: createResponseUsage(split, tokens, output.thinkingTokens),
    incomplete: toGenerated(output).isCut ? 'max_output_tokens' : null,
  })
  return {
    info,
    pending: createPendingResponse(info),
    finished,
    output: all,
    cache,
    delays,
    fault,
    outputTokens: output.tokens,
    stopReason: output.stopReason,
    answerUnits: [],
    summary:
      summary === undefined
        ? null
        : { cache: summary.generated.cache, outputTokens: summary.generated.output.tokens },
  }
}

function addSplits(
  one: OpenaiCacheResult['split'],
  other: OpenaiCacheResult['split'],
): OpenaiCacheResult['split'] {
  return {
    read: one.read + other.read,
    write30m: one.write30m + other.write30m,
    write12h: one.write12h + other.write12h,
    input: one.input + other.input,
  }
}

/** Answers a request to `/v1/responses/compact`: all messages of the user, and one item with the summary. */
export async function answerCompactRequest(
  state: SimulatorState,
  prepared: PreparedResponses,
  call: OpenaiCallContext,
): Promise<ResponsesAnswer> {
  const { item, generated } = await summarize(state, prepared, call)
  const users = listUserItems(prepared.items).map(({ item: { id, content } }) => ({
    id: typeof id === 'string' ? id : state.ids.next('msg'),
    type: 'message',
    status: 'completed',
    role: 'user',
    content: typeof content === 'string' ? [{ type: 'input_text', text: content }] : content,
  }))
  const answer = finishResponses(state, prepared, call, {
    generated: { ...generated, output: NO_OUTPUT },
    front: [...users, item],
  })
  const { tokens, thinkingTokens } = generated.output
  const finished = {
    id: call.id,
    object: 'response.compaction',
    created_at: Math.floor(call.now / 1_000),
    output: answer.output,
    usage: createResponseUsage(generated.cache.split, tokens, thinkingTokens),
  }
  return { ...answer, finished, outputTokens: tokens, stopReason: 'compaction' }
}

/** Answers a request to `/v1/chat/completions`. */
export async function answerChat(
  state: SimulatorState,
  prepared: PreparedChat,
  call: OpenaiCallContext,
): Promise<ChatAnswer> {
  const { body, dialect, view } = prepared
  const { cache, output, delays, fault } = await generate(state, prepared, call)
  const message = createChatMessage(toGenerated(output), view, dialect)
  return {
    completion: {
      id: call.id,
      createdAt: call.now,
      model: body.model,
      message,
      finishReason: findFinishReason(output, message.tool_calls != null),
      usage: createChatUsage(cache.split, output.tokens, output.thinkingTokens, dialect),
      serviceTier: readServiceTier(body),
    },
    cache,
    delays,
    fault,
    outputTokens: output.tokens,
    stopReason: output.stopReason,
    answerUnits: listMessageUnits(message, 'answer'),
    summary: null,
  }
}

function findFinishReason(output: ModelOutput, hasCalls: boolean): Completion['finishReason'] {
  if (toGenerated(output).isCut) return 'length'
  if (output.stopReason === 'refusal') return 'stop'
  return hasCalls ? 'tool_calls' : 'stop'
}

/**
 * Decides whether to accept a request to OpenAI's APIs: shape, model, settings, items and window. The prompt of an
 * accepted request is ready for the cache and for the script.
 */
import type { PromptFingerprint } from '../openai/cache/prompt-cache-diagnostics.ts'
import { createUnitPrompt, type UnitPrompt } from '../openai/cache/prompt-units.ts'
import { buildChatPrompt, dropOldestMessages } from '../openai/chat/chat-prompt.ts'
import { createUnknownDialectError, DIALECT_HEADER, type Dialect, findDialect } from '../openai/dialects.ts'
import {
  createOpenaiError,
  createParameterError,
  type OpenaiError,
  toOpenaiRefusal,
} from '../openai/openai-error.ts'
import { createUnlistedModel, type OpenaiModel } from '../openai/openai-models.ts'
import type { JsonFields } from '../openai/openai-shape.ts'
import { readServiceTier } from '../openai/responses/response-body.ts'
import { buildResponsePrompt } from '../openai/responses/response-prompt.ts'
import type { ScriptView } from '../openai/script-view.ts'
import { checkChatRules } from '../openai/validation/chat-rules.ts'
import { type ChatBody, type ChatMessage, checkChatShape } from '../openai/validation/chat-shape.ts'
import {
  checkConversationItems,
  checkResponsesSettings,
  type ItemWithPath,
} from '../openai/validation/responses-rules.ts'
import {
  checkResponsesShape,
  type ResponsesBody,
  type ResponsesEndpoint,
} from '../openai/validation/responses-shape.ts'
import type { Account } from '../prompt-cache/cache-key.ts'
import { isObject } from '../protocol/messages-request.ts'
import type { RequestHeaders } from './accounts.ts'
import type { SimulatorState } from './simulator-state.ts'

/** What accepted requests to both APIs have in common. */
interface PreparedPrompt {
  readonly account: Account
  readonly model: OpenaiModel
  readonly dialect: Dialect
  readonly prompt: UnitPrompt
  readonly view: ScriptView
  readonly fingerprint: PromptFingerprint
  readonly maxTokens: number
}

export interface PreparedResponses extends PreparedPrompt {
  readonly api: 'responses'
  readonly body: ResponsesBody
  /** The whole conversation, with the items of earlier responses and of references. */
  readonly items: readonly ItemWithPath[]
}

export interface PreparedChat extends PreparedPrompt {
  readonly api: 'chat'
  readonly body: ChatBody
}

export type PreparedOpenai = PreparedResponses | PreparedChat

interface OpenaiRequest {
  readonly value: unknown
  readonly headers: RequestHeaders
  readonly account: Account
  readonly now: number
}

/**
 * An accepted request, or a refusal. If only the prompt was too long, the refusal includes the prepared request,
 * because the error may then be sent in a stream.
 */
export type AdmissionResult<Prepared> =
  | { readonly ok: true; readonly prepared: Prepared }
  | { readonly ok: false; readonly error: OpenaiError; readonly tooLong?: Prepared }

export function admitResponses(
  state: SimulatorState,
  endpoint: ResponsesEndpoint,
  { value, account, now }: OpenaiRequest,
): AdmissionResult<PreparedResponses> {
  const { openai, settings } = state
  const shape = checkResponsesShape(value, endpoint)
  if (shape !== null) return toOpenaiRefusal(shape)
  // The cast is safe because the shape has just been checked.
  const body = value as ResponsesBody
  const model = settings.openaiModels.find(body.model)
  if (model === undefined) return toOpenaiRefusal(describeUnknownModel(body.model, 400))
  const wrong = checkResponsesSettings(body, model)
  if (wrong !== null) return toOpenaiRefusal(wrong)
  const resolved = openai.stored.collectConversation(body, account.organization)
  if (!resolved.ok) return resolved
  const { items } = resolved
  const refused = checkConversationItems(items, openai.reasoning.find)
  if (refused !== null) return toOpenaiRefusal(refused)
  const { organization } = account
  const built = buildResponsePrompt({ body, items, sealer: openai.sealer, organization })
  if (!built.ok) return built
  const prompt = createUnitPrompt(built.prompt.units)
  const { view, tools } = built.prompt
  const maxTokens = body.max_output_tokens ?? model.maxOutput
  const fingerprint = createFingerprint({ body, model, prompt, tools, account, now, items })
  const dialect = requireDialect('openai')
  const prepared: PreparedResponses = {
    api: 'responses',
    body,
    items,
    account,
    model,
    dialect,
    prompt,
    view,
    fingerprint,
    maxTokens,
  }
  const isTooLong = endpoint !== 'input_tokens' && prompt.tokens > model.maxInput
  return isTooLong ? { ok: false, error: INPUT_TOO_LONG, tooLong: prepared } : { ok: true, prepared }
}

const INPUT_TOO_LONG: OpenaiError = createParameterError(
  'Your input exceeds the context window of this model. Please adjust your input and try again.',
  'input',
  'context_length_exceeded',
)

export function admitChat(
  state: SimulatorState,
  { value, headers, account, now }: OpenaiRequest,
): AdmissionResult<PreparedChat> {
  const { settings } = state
  const name = headers[DIALECT_HEADER] ?? settings.openai.dialect
  const dialect = findDialect(name)
  if (dialect === undefined) return toOpenaiRefusal(createUnknownDialectError(name))
  const shape = checkChatShape(value, dialect)
  if (shape !== null) return toOpenaiRefusal(shape)
  // The cast is safe because the shape has just been checked.
  const sent = value as ChatBody
  const model = findChatModel(state, sent.model, dialect)
  if (model === undefined) return toOpenaiRefusal(describeUnknownModel(sent.model, 404))
  const wrong = checkChatRules(sent, model, dialect)
  if (wrong !== null) return toOpenaiRefusal(wrong)
  const read =
    dialect.reasoningField === null ? { ...sent, messages: sent.messages.map(dropReasoning) } : sent
  const body = dialect.truncatesSilently
    ? { ...read, messages: dropOldestMessages(read, model.maxInput).messages }
    : read
  const { units, view, tools } = buildChatPrompt(body)
  const prompt = limitUnits(createUnitPrompt(units), dialect, model)
  const limit = body.max_completion_tokens ?? body.max_tokens
  const prepared: PreparedChat = {
    api: 'chat',
    body,
    account,
    model,
    dialect,
    prompt,
    view,
    fingerprint: createFingerprint({ body, model, prompt, tools, account, now, items: [] }),
    maxTokens: typeof limit === 'number' ? limit : model.maxOutput,
  }
  if (prompt.tokens <= model.maxInput) return { ok: true, prepared }
  return { ok: false, error: dialect.describeOverflow(prompt.tokens, model.maxInput), tooLong: prepared }
}

/** Removes reasoning from a message, for a server that does not return reasoning and ignores it in requests. */
function dropReasoning({ reasoning_content: _ignored, ...message }: ChatMessage): ChatMessage {
  return message
}

/** Counts at most the window on a server that truncates, where even a single message over the window is cut. */
function limitUnits(
  prompt: UnitPrompt,
  { truncatesSilently }: Dialect,
  { maxInput }: OpenaiModel,
): UnitPrompt {
  if (!truncatesSilently || prompt.tokens <= maxInput) return prompt
  return { ...prompt, tokens: maxInput }
}

function findChatModel({ settings }: SimulatorState, id: string, dialect: Dialect): OpenaiModel | undefined {
  if (!dialect.isLenient) return settings.openaiModels.find(id)
  return createUnlistedModel(id, settings.window ?? dialect.window)
}

function requireDialect(name: Dialect['name']): Dialect {
  const found = findDialect(name)
  if (found === undefined) throw new Error(`no dialect ${name}`)
  return found
}

function describeUnknownModel(id: string, status: 400 | 404): OpenaiError {
  const message =
    status === 400
      ? `The requested model '${id}' does not exist.`
      : `The model \`${id}\` does not exist or you do not have access to it.`
  return createOpenaiError(status, message, { param: 'model', code: 'model_not_found' })
}

interface FingerprintInput {
  readonly body: JsonFields
  readonly model: OpenaiModel
  readonly prompt: UnitPrompt
  readonly tools: number
  readonly account: Account
  readonly now: number
  readonly items: readonly ItemWithPath[]
}

/** Returns the data of a request on which its prompt cache depends. */
function createFingerprint({
  body,
  model,
  prompt,
  tools,
  account,
  now,
  items,
}: FingerprintInput): PromptFingerprint {
  const reasoning = isObject(body.reasoning) ? body.reasoning : {}
  const text = isObject(body.text) ? body.text : {}
  return {
    organization: account.organization,
    at: now,
    model: model.id,
    key: typeof body.prompt_cache_key === 'string' ? body.prompt_cache_key : '',
    tier: readServiceTier(body),
    effort: String(reasoning.effort ?? body.reasoning_effort ?? ''),
    verbosity: String(text.verbosity ?? body.verbosity ?? ''),
    format: JSON.stringify(text.format ?? body.response_format ?? null),
    compactions: items.flatMap(({ item }) =>
      item.type === 'compaction' ? [String(item.id ?? item.encrypted_content)] : [],
    ),
    tools,
    // Fingerprints do not keep the texts of the units.
    prompt: { chains: prompt.chains, ends: prompt.ends, tokens: prompt.tokens },
  }
}

/** Returns a key of what must be equal for two requests to share cached prefixes: account, dialect, model and settings. */
export function formatCacheScope({ account, fingerprint, dialect }: PreparedOpenai): string {
  const { model, key, tier, effort, verbosity, format } = fingerprint
  return JSON.stringify([
    account.organization,
    account.workspace,
    dialect.name,
    model,
    key,
    tier,
    effort,
    verbosity,
    format,
  ])
}

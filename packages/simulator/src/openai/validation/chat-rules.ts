/**
 * Rules of Chat Completions besides the shape of requests: settings that a model does not support, tool messages that
 * do not follow their calls, and successive assistant messages.
 */
import { isObject } from '../../protocol/messages-request.ts'
import type { Dialect } from '../dialects.ts'
import { createParameterError, type OpenaiError } from '../openai-error.ts'
import type { OpenaiModel } from '../openai-models.ts'
import type { JsonFields } from '../openai-shape.ts'
import type { ChatBody, ChatMessage } from './chat-shape.ts'
import {
  checkCacheSettings,
  checkEffort,
  checkStreamOptions,
  createUnsimulatedError,
} from './responses-rules.ts'

/** Checks the settings and the messages of a request whose shape is right. Returns the first error, or null. */
export function checkChatRules(body: ChatBody, model: OpenaiModel, dialect: Dialect): OpenaiError | null {
  return (
    checkUnsimulatedChat(body) ??
    (dialect.isLenient ? null : checkModelSettings(body, model)) ??
    checkStreamOptions(body) ??
    checkToolSettings(body) ??
    checkToolMessages(body.messages) ??
    checkAssistantRuns(body.messages) ??
    (dialect.needsReasoningBack ? checkReasoningSent(body.messages) : null)
  )
}

function checkUnsimulatedChat(body: ChatBody): OpenaiError | null {
  for (const name of ['functions', 'function_call', 'audio', 'web_search_options'])
    if (body[name] != null) return createUnsimulatedError(name)
  return typeof body.n === 'number' && body.n > 1 ? createUnsimulatedError('n') : null
}

function checkModelSettings(body: ChatBody, model: OpenaiModel): OpenaiError | null {
  const { efforts, hasSampling } = model
  if (body.max_tokens != null && efforts.length > 0)
    return createParameterError(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_tokens',
      'unsupported_parameter',
    )
  for (const name of ['temperature', 'top_p'])
    if (body[name] != null && body[name] !== 1 && !hasSampling)
      return createParameterError(
        `Unsupported value: '${name}' does not support ${String(body[name])} with this model. Only the default (1) value is supported.`,
        name,
        'unsupported_value',
      )
  if (body.stop != null && efforts.length > 0)
    return createParameterError(
      "Unsupported parameter: 'stop' is not supported with this model.",
      'stop',
      'unsupported_parameter',
    )
  return checkEffort(body.reasoning_effort, 'reasoning_effort', model) ?? checkCacheSettings(body, model)
}

function checkToolSettings({
  tools,
  tool_choice: choice,
  parallel_tool_calls: parallel,
}: ChatBody): OpenaiError | null {
  const isWithout = tools == null || tools.length === 0
  for (const [name, value] of [
    ['tool_choice', choice],
    ['parallel_tool_calls', parallel],
  ] as const)
    if (isWithout && value != null)
      return createParameterError(
        `Invalid value for '${name}': '${name}' is only allowed when 'tools' are specified.`,
        name,
      )
  const wanted = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined
  if (wanted === undefined || (tools ?? []).some((tool) => readToolName(tool) === wanted)) return null
  return createParameterError(
    `Invalid value for 'tool_choice': no function named '${String(wanted)}' was specified in the 'tools' parameter.`,
    'tool_choice',
  )
}

function readToolName(tool: JsonFields): unknown {
  return isObject(tool.function) ? tool.function.name : undefined
}

/**
 * Checks that each call has one tool message, directly after the message with the call, and that no tool message lacks
 * a call.
 */
function checkToolMessages(messages: readonly ChatMessage[]): OpenaiError | null {
  let open = new Set<string>()
  let callers: readonly string[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') {
      const found = checkToolMessage(message, index, { open, callers })
      if (found !== null) return found
      open.delete(String(message.tool_call_id))
      continue
    }
    if (open.size > 0) return describeUnanswered(open, index)
    callers = (message.tool_calls ?? []).map(({ id }) => String(id))
    open = new Set(callers)
  }
  return open.size > 0 ? describeUnanswered(open, messages.length) : null
}

function checkToolMessage(
  { tool_call_id: id }: ChatMessage,
  index: number,
  { open, callers }: { readonly open: ReadonlySet<string>; readonly callers: readonly string[] },
): OpenaiError | null {
  if (open.has(String(id))) return null
  if (callers.includes(String(id)))
    return createParameterError(
      `Duplicate value for 'tool_call_id' of '${id}' in message[${index}].`,
      `messages.[${index}].tool_call_id`,
    )
  return createParameterError(
    callers.length === 0
      ? "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
      : `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`,
    `messages.[${index}].${callers.length === 0 ? 'role' : 'tool_call_id'}`,
  )
}

function describeUnanswered(open: ReadonlySet<string>, index: number): OpenaiError {
  return createParameterError(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
    `messages.[${index}].role`,
  )
}

/** Refuses two assistant messages in a row. */
function checkAssistantRuns(messages: readonly ChatMessage[]): OpenaiError | null {
  const at = messages.findIndex(
    ({ role }, index) => role === 'assistant' && messages[index - 1]?.role === 'assistant',
  )
  if (at < 0) return null
  return createParameterError(
    `Invalid parameter: messages[${at}] has the role 'assistant' and follows a message with the role 'assistant'. Merge them into one message.`,
    `messages.[${at}].role`,
  )
}

/** Refuses tool calls without their reasoning: DeepSeek and Kimi want it sent back in every later request. */
function checkReasoningSent(messages: readonly ChatMessage[]): OpenaiError | null {
  const isMissing = messages.some(
    (message) => message.tool_calls != null && typeof message.reasoning_content !== 'string',
  )
  if (!isMissing) return null
  return createParameterError(
    'The reasoning_content in the thinking mode must be passed back to the API.',
    null,
    'invalid_request_error',
  )
}

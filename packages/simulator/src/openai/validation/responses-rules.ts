/**
 * Rules of the Responses API besides the shape of requests: settings that a model does not support, and calls, outputs
 * or reasoning without their counterpart. Checks the whole conversation, with items of `previous_response_id` and
 * references resolved.
 */
import { isObject } from '../../protocol/messages-request.ts'
import { createParameterError, type OpenaiError } from '../openai-error.ts'
import type { OpenaiModel } from '../openai-models.ts'
import { formatChoices, type JsonFields } from '../openai-shape.ts'
import type { ResponsesBody } from './responses-shape.ts'

/**
 * An item of the conversation with its origin: its path in the request, such as `input[3]`, or the response that it
 * came from.
 */
export interface ItemWithPath {
  readonly item: JsonFields
  readonly path: string
}

/** Returns the id of the reasoning item after which an item was generated; undefined if there was none or the item is unknown. */
type ReasoningLookup = (itemId: string) => string | undefined

/** Checks the settings that depend on the model or on each other. Returns the first error, or null. */
export function checkResponsesSettings(body: ResponsesBody, model: OpenaiModel): OpenaiError | null {
  return (
    checkUnsimulated(body) ??
    checkSampling(body, model) ??
    checkEffort(readReasoning(body).effort, 'reasoning.effort', model) ??
    checkCacheSettings(body, model) ??
    checkStreamOptions(body) ??
    checkToolChoice(body)
  )
}

function readReasoning(body: ResponsesBody): JsonFields {
  return isObject(body.reasoning) ? body.reasoning : {}
}

/** Refuses features that the simulator does not implement, with an error that says so, and settings that exclude each other. */
function checkUnsimulated(body: ResponsesBody): OpenaiError | null {
  if (body.conversation != null && body.previous_response_id != null)
    return createParameterError(
      "Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.",
      'conversation',
      'mutually_exclusive_parameters',
    )
  for (const name of ['conversation', 'prompt']) if (body[name] != null) return createUnsimulatedError(name)
  if (body.truncation === 'auto') return createUnsimulatedError('truncation')
  return body.background === true ? createUnsimulatedError('background') : null
}

export function createUnsimulatedError(name: string): OpenaiError {
  return createParameterError(`'${name}' is not simulated.`, name, 'not_simulated')
}

function checkSampling(body: ResponsesBody, { hasSampling }: OpenaiModel): OpenaiError | null {
  if (hasSampling) return null
  for (const name of ['temperature', 'top_p'])
    if (body[name] != null)
      return createParameterError(`Unsupported parameter: '${name}' is not supported with this model.`, name)
  return null
}

/** Checks that the model has this effort. A model that does not reason accepts none. */
export function checkEffort(effort: unknown, path: string, { id, efforts }: OpenaiModel): OpenaiError | null {
  if (effort === undefined || effort === null || efforts.includes(String(effort))) return null
  if (efforts.length === 0)
    return createParameterError(
      `Unsupported parameter: '${path}' is not supported with this model.`,
      path,
      'unsupported_parameter',
    )
  return createParameterError(
    `Unsupported value: '${String(effort)}' is not supported with the '${id}' model. Supported values are: ${formatChoices(efforts)}.`,
    path,
    'unsupported_value',
  )
}

/** Refuses settings of prompt caching that the model does not have. */
export function checkCacheSettings(
  body: JsonFields,
  { id, hasBreakpoints, efforts }: OpenaiModel,
): OpenaiError | null {
  const options = isObject(body.prompt_cache_options) ? body.prompt_cache_options : null
  if (!hasBreakpoints) {
    const path = options === null ? findBreakpoint(body) : 'prompt_cache_options'
    if (path !== null)
      return createParameterError(
        `Unsupported parameter: '${path}' is not supported with this model.`,
        path,
        'unsupported_parameter',
      )
  }
  const isRecent = hasBreakpoints || (efforts.length > 0 && id.startsWith('gpt-5.5'))
  if (body.prompt_cache_retention === 'in_memory' && isRecent)
    return createParameterError(
      `Unsupported value: 'in_memory' is not supported with the '${id}' model. Supported values are: '24h'.`,
      'prompt_cache_retention',
      'unsupported_value',
    )
  // `prompt_cache_options.ttl` may be set as well: by the SDK's types, the two settings are independent.
  return null
}

/** Returns the path of the first content part with a breakpoint; null if there is none. */
function findBreakpoint(body: JsonFields): string | null {
  const [name, list] = Array.isArray(body.input) ? ['input', body.input] : ['messages', body.messages]
  if (!Array.isArray(list)) return null
  for (const [index, item] of list.entries())
    for (const field of ['content', 'output']) {
      const parts: unknown = isObject(item) ? item[field] : null
      if (!Array.isArray(parts)) continue
      const at = parts.findIndex((part) => isObject(part) && part.prompt_cache_breakpoint != null)
      if (at >= 0) return `${name}[${index}].${field}[${at}].prompt_cache_breakpoint`
    }
  return null
}

export function checkStreamOptions(body: JsonFields): OpenaiError | null {
  if (body.stream_options == null || body.stream === true) return null
  return createParameterError(
    "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    'stream_options',
  )
}

function checkToolChoice({ tool_choice: choice, tools }: ResponsesBody): OpenaiError | null {
  if (!isObject(choice) || (choice.type !== 'function' && choice.type !== 'custom')) return null
  const isThere = (tools ?? []).some((tool) => tool.type === choice.type && tool.name === choice.name)
  if (isThere) return null
  return createParameterError(`Tool choice '${choice.type}' not found in 'tools' parameter.`, 'tool_choice')
}

/** Checks the items of a conversation: ids, pairs of calls and outputs, and reasoning. */
export function checkConversationItems(
  items: readonly ItemWithPath[],
  findReasoning: ReasoningLookup,
): OpenaiError | null {
  return (
    checkIds(items) ??
    checkTrigger(items) ??
    checkOutputs(items) ??
    checkCalls(items) ??
    checkReasoningFollowed(items) ??
    checkReasoningPresent(items, findReasoning)
  )
}

/** The prefix of ids by type of item. */
const ID_PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  compaction: 'cmp',
}

export function readItemType(item: JsonFields): string {
  if (typeof item.type === 'string') return item.type
  return item.role === undefined ? 'item_reference' : 'message'
}

function checkIds(items: readonly ItemWithPath[]): OpenaiError | null {
  const seen = new Set<string>()
  for (const { item, path } of items) {
    const { id } = item
    if (typeof id !== 'string') continue
    const prefix = ID_PREFIXES[readItemType(item)]
    // The id of a user message may come from the client, so its prefix is not checked.
    const isOurs = prefix !== undefined && (item.role === undefined || item.role === 'assistant')
    if (!/^[a-zA-Z0-9_-]+$/.test(id))
      return createParameterError(
        `Invalid '${path}.id': '${id}'. Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters.`,
        `${path}.id`,
        'invalid_value',
      )
    if (isOurs && !id.startsWith(prefix))
      return createParameterError(
        `Invalid '${path}.id': '${id}'. Expected an ID that begins with '${prefix}'.`,
        `${path}.id`,
        'invalid_value',
      )
    if (seen.has(id))
      return createParameterError(
        `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`,
        'input',
      )
    seen.add(id)
  }
  return null
}

function checkTrigger(items: readonly ItemWithPath[]): OpenaiError | null {
  const at = items.findIndex(({ item }) => item.type === 'compaction_trigger')
  if (at < 0 || at === items.length - 1) return null
  return createParameterError(
    "Item of type 'compaction_trigger' must be the final input item.",
    items[at]?.path ?? 'input',
    'invalid_value',
  )
}

/** Types of calls that the client must answer, each with the type of the output item and its name in error texts. */
const CALL_TYPES: Readonly<Record<string, { readonly output: string; readonly name: string }>> = {
  function_call: { output: 'function_call_output', name: 'function call' },
  custom_tool_call: { output: 'custom_tool_call_output', name: 'custom tool call' },
  shell_call: { output: 'shell_call_output', name: 'shell call' },
  local_shell_call: { output: 'local_shell_call_output', name: 'local shell call' },
  apply_patch_call: { output: 'apply_patch_call_output', name: 'apply patch call' },
  computer_call: { output: 'computer_call_output', name: 'computer call' },
}

function checkOutputs(items: readonly ItemWithPath[]): OpenaiError | null {
  const called = new Set<string>()
  for (const { item } of items) {
    const type = readItemType(item)
    const call = CALL_TYPES[type]
    if (call !== undefined) called.add(`${call.output}/${String(item.call_id)}`)
    const answered = Object.values(CALL_TYPES).find(({ output }) => output === type)
    if (answered !== undefined && !called.has(`${type}/${String(item.call_id)}`))
      return createParameterError(
        `No tool call found for ${answered.name} output with call_id ${String(item.call_id)}.`,
        'input',
      )
  }
  return null
}

function checkCalls(items: readonly ItemWithPath[]): OpenaiError | null {
  const answered = new Set(items.map(({ item }) => `${readItemType(item)}/${String(item.call_id)}`))
  for (const { item } of items) {
    const call = CALL_TYPES[readItemType(item)]
    if (call !== undefined && !answered.has(`${call.output}/${String(item.call_id)}`))
      return createParameterError(`No tool output found for ${call.name} ${String(item.call_id)}.`, 'input')
  }
  return null
}

/** Checks that each reasoning item is followed by an item that the model generated. */
function checkReasoningFollowed(items: readonly ItemWithPath[]): OpenaiError | null {
  for (const [index, { item }] of items.entries()) {
    if (item.type !== 'reasoning') continue
    const next = items[index + 1]?.item
    if (next === undefined || !isGenerated(next))
      return createParameterError(
        `Item '${String(item.id ?? '')}' of type 'reasoning' was provided without its required following item.`,
        'input',
      )
  }
  return null
}

/** Checks whether an item is one that the model generates. */
function isGenerated(item: JsonFields): boolean {
  const type = readItemType(item)
  if (type === 'message') return item.role === 'assistant'
  return type === 'reasoning' || type === 'mcp_list_tools' || type === 'program' || type.endsWith('_call')
}

/** Checks that the reasoning of each generated item is present. Items without an id cannot be checked. */
function checkReasoningPresent(
  items: readonly ItemWithPath[],
  findReasoning: ReasoningLookup,
): OpenaiError | null {
  const before = new Set<string>()
  for (const { item } of items) {
    const { id } = item
    if (typeof id !== 'string') continue
    if (item.type === 'reasoning') before.add(id)
    const needed = findReasoning(id)
    if (needed !== undefined && !before.has(needed))
      return createParameterError(
        `Item '${id}' of type '${readItemType(item)}' was provided without its required 'reasoning' item: '${needed}'.`,
        'input',
      )
  }
  return null
}

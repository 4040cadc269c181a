/**
 * Validation rules for message roles: their order, the blocks each may contain, empty content, prefill, and system
 * messages.
 */
import { type ApiError, createInvalidRequestError } from '../protocol/answer.ts'
import {
  type Block,
  formatBlockPath,
  isServerToolResult,
  isServerToolUse,
  isThinkingBlock,
  type MessageParam,
  readTextField,
  toBlocks,
} from '../protocol/messages-request.ts'
import { isOnDemandCompaction, type RequestRule } from './rule.ts'

export const checkHasMessage: RequestRule = ({ body }) =>
  findFirstMessage(body.messages) === undefined
    ? createInvalidRequestError('messages: at least one message is required')
    : null

export const checkFirstRole: RequestRule = ({ body, settings }) => {
  const first = findFirstMessage(body.messages)
  if (first === undefined || first.role === 'user') return null
  if (first.role === 'system')
    return createInvalidRequestError("messages.0: role 'system' may not be the first message")
  if (settings.firstRole === 'any' || toBlocks(first.content)[0]?.type === 'compaction') return null
  return createInvalidRequestError('messages: first message must use the "user" role')
}

/** Returns the first message, except system messages without content: these only set the effort, and may be anywhere. */
const findFirstMessage = (messages: readonly MessageParam[]): MessageParam | undefined =>
  messages.find((message) => message.role !== 'system' || !hasNoContent(message))

/**
 * Rejects user and assistant messages without content. Only a final assistant message, which the response continues,
 * may be empty.
 */
export const checkContentNotEmpty: RequestRule = ({ body }) => {
  const index = body.messages.findIndex((message, at) => {
    const last = at === body.messages.length - 1 && message.role === 'assistant'
    return !last && message.role !== 'system' && hasNoContent(message)
  })
  return index < 0
    ? null
    : createInvalidRequestError(
        `messages.${index}: all messages must have non-empty content except for the optional final assistant message`,
      )
}

export const checkTextNotEmpty: RequestRule = ({ body }) => {
  const inSystem = findBlankText(toBlocks(body.system))
  if (inSystem !== null && body.system !== '') return createInvalidRequestError(`system: ${inSystem}`)
  for (const message of body.messages) {
    // `checkContentNotEmpty` rejects a message whose content is an empty string.
    if (message.content === '') continue
    const found = findBlankText(toBlocks(message.content))
    if (found !== null) return createInvalidRequestError(`messages: ${found}`)
  }
  return null
}

function findBlankText(blocks: readonly Block[]): string | null {
  for (const block of blocks) {
    const inner = block.type === 'tool_result' && Array.isArray(block.content) ? block.content : []
    const found = inner.length === 0 ? null : findBlankText(toBlocks(inner))
    if (found !== null) return found
    if (block.type !== 'text') continue
    const text = readTextField(block, 'text')
    if (text === '') return 'text content blocks must be non-empty'
    if (text.trim() === '') return 'text content blocks must contain non-whitespace text'
  }
  return null
}

const ASSISTANT_ONLY = new Set(['thinking', 'redacted_thinking', 'tool_use', 'fallback', 'mcp_tool_listing'])
const USER_ONLY = new Set(['tool_result', 'cache_edits', 'image'])
const SYSTEM_ONLY = new Set(['tool_addition', 'tool_removal'])

/** Returns the only role whose messages may contain a block of this type; undefined if several roles may. */
function findRequiredRole(block: Block): MessageParam['role'] | undefined {
  if (block.type === 'tool_result') return 'user'
  if (ASSISTANT_ONLY.has(block.type) || isServerToolUse(block) || isServerToolResult(block))
    return 'assistant'
  if (USER_ONLY.has(block.type)) return 'user'
  return SYSTEM_ONLY.has(block.type) ? 'system' : undefined
}

export const checkBlockRoles: RequestRule = ({ pieces }) => {
  for (const piece of pieces) {
    const found = describeWrongRole(piece.block, piece.role)
    if (found !== null) return createInvalidRequestError(`${formatBlockPath(piece)}: ${found}`)
  }
  return null
}

function describeWrongRole(block: Block, role: MessageParam['role']): string | null {
  const home = findRequiredRole(block)
  if (home !== undefined && home !== role)
    return `\`${block.type}\` blocks can only be in \`${home}\` messages`
  // `findCompactionBlock` rejects a signed compaction block in a system message later, with another error.
  if (role === 'system' && home === undefined && block.type !== 'text' && block.type !== 'compaction')
    return `\`${block.type}\` blocks cannot be in \`system\` messages`
  return null
}

/**
 * Rejects a conversation that ends with an assistant message, unless the model supports prefill or the provider
 * interrupted that turn.
 */
export const checkPrefill: RequestRule = (request) => {
  const { body, model } = request
  const last = body.messages.findLast((message) => message.role !== 'system')
  if (last?.role !== 'assistant' || isOnDemandCompaction(request)) return null
  const tail = toBlocks(last.content).at(-1)
  if (tail !== undefined && isInterruptedTurn(tail)) return null
  if (!model.prefill)
    return createInvalidRequestError(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  return findTrailingWhitespace(tail)
}

/** Checks whether the last block shows that the provider interrupted the turn. The response then continues the turn. */
function isInterruptedTurn(tail: Block): boolean {
  return tail.type === 'compaction' || isServerToolUse(tail) || isServerToolResult(tail)
}

export const checkNoFinalThinking: RequestRule = ({ body }) => {
  const index = body.messages.findLastIndex((message) => message.role !== 'system')
  const last = body.messages[index]
  const tail = last?.role === 'assistant' ? toBlocks(last.content).at(-1) : undefined
  return tail !== undefined && isThinkingBlock(tail)
    ? createInvalidRequestError(
        `messages.${index}: The final block in an assistant message cannot be \`${tail.type}\`.`,
      )
    : null
}

function findTrailingWhitespace(tail: Block | undefined): ApiError | null {
  if (tail?.type !== 'text') return null
  const text = readTextField(tail, 'text')
  return text === text.trimEnd()
    ? null
    : createInvalidRequestError('messages: final assistant content cannot end with trailing whitespace')
}

// Rules for system messages in mid-conversation: their position, and the content of turn-scoped ones.

export const checkClearAtRole: RequestRule = ({ body }) => {
  const index = body.messages.findIndex(({ role, clear_at }) => role !== 'system' && clear_at != null)
  return index < 0
    ? null
    : createInvalidRequestError(
        `messages.${index}.clear_at: clear_at is only permitted on role 'system' messages`,
      )
}

export const checkTurnScopedMessages: RequestRule = ({ body }) => {
  for (const [index, message] of body.messages.entries()) {
    if (message.clear_at !== 'next_user_message') continue
    const found = describeTurnScopeViolation(message)
    if (found !== null) return createInvalidRequestError(`messages.${index}${found}`)
  }
  return null
}

const TURN_SCOPE = "(clear_at: 'next_user_message')"

function describeTurnScopeViolation(message: MessageParam): string | null {
  const blocks = toBlocks(message.content)
  if (blocks.some((block) => block.type !== 'text'))
    return `: a turn-scoped system message supports text blocks only ${TURN_SCOPE}`
  if (message.output_config != null)
    return `: output_config is not permitted on a turn-scoped system message ${TURN_SCOPE}`
  const marked = blocks.findIndex((block) => block.cache_control != null)
  return marked < 0
    ? null
    : `.content.${marked}: cache_control is not permitted on a turn-scoped system message ${TURN_SCOPE}`
}

export const checkMessageEffort: RequestRule = ({ body, model }) => {
  const index = body.messages.findIndex((message) => message.output_config != null)
  return index < 0 || model.messageEffort
    ? null
    : createInvalidRequestError(
        `messages.${index}.output_config: per-message effort is not supported for this model`,
      )
}

export const checkOutputConfigRole: RequestRule = ({ body }) => {
  const index = body.messages.findIndex(
    (message) => message.role !== 'system' && message.output_config !== undefined,
  )
  return index < 0
    ? null
    : createInvalidRequestError(
        `messages.${index}.output_config: output_config is only permitted on role 'system' messages`,
      )
}

function hasNoContent({ content }: MessageParam): boolean {
  return content === '' || toBlocks(content).length === 0
}

/** Checks whether a system message has no content and only sets the effort. Such a message may be anywhere. */
function onlySetsEffort(message: MessageParam): boolean {
  return (
    message.role === 'system' && hasNoContent(message) && typeof message.output_config?.effort === 'string'
  )
}

export const checkSystemMessages: RequestRule = ({ body, model }) => {
  for (const [index, message] of body.messages.entries()) {
    if (message.role !== 'system') continue
    if (!model.systemMessages)
      return createInvalidRequestError(
        `messages.${index}.role: role 'system' is not supported for this model`,
      )
    if (onlySetsEffort(message)) continue
    if (hasNoContent(message))
      return createInvalidRequestError(
        `messages.${index}: a system message must have content or output_config`,
      )
    const found = describeMisplacement(body.messages, index)
    if (found !== null) return createInvalidRequestError(`messages.${index}: ${found}`)
  }
  return null
}

function describeMisplacement(messages: readonly MessageParam[], index: number): string | null {
  const before = messages.slice(0, index).findLast((message) => message.role !== 'system')
  if (before === undefined || !canPrecedeSystemMessage(before))
    return "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result"
  const after = messages.slice(index + 1).find((message) => message.role !== 'system')
  return after === undefined || after.role === 'assistant'
    ? null
    : "role 'system' must be the last message or be followed by an 'assistant' message"
}

function canPrecedeSystemMessage(message: MessageParam): boolean {
  if (message.role === 'user') return true
  const tail = toBlocks(message.content).at(-1)
  return tail !== undefined && tail.type !== 'tool_result' && isServerToolResult(tail)
}

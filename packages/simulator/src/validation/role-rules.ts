/** Rules for roles: their order, the blocks each may hold, empty content, prefill, and system messages. */

import { invalid, type Refusal } from '../protocol/answer.ts'
import {
  type Block,
  blocksOf,
  isServerToolResult,
  isServerToolUse,
  isThinking,
  type MessageParam,
  pathOf,
  textField,
} from '../protocol/api.ts'
import { asksForCompaction, type Rule } from './rule.ts'

export const notEmpty: Rule = ({ body }) =>
  body.messages.length === 0 ? invalid('messages: at least one message is required') : null

export const firstRole: Rule = ({ body, settings }) => {
  const first = body.messages[0]
  if (first === undefined || first.role === 'user') return null
  if (first.role === 'system') return invalid("messages.0: role 'system' may not be the first message")
  if (settings.firstRole === 'any' || blocksOf(first.content)[0]?.type === 'compaction') return null
  return invalid('messages: first message must use the "user" role')
}

/** The last message may be empty if it is an assistant message, which the response then continues. */
export const contentNotEmpty: Rule = ({ body }) => {
  const index = body.messages.findIndex((message, at) => {
    const last = at === body.messages.length - 1 && message.role === 'assistant'
    return !last && message.role !== 'system' && isSilent(message)
  })
  return index < 0
    ? null
    : invalid(
        `messages.${index}: all messages must have non-empty content except for the optional final assistant message`,
      )
}

export const textNotEmpty: Rule = ({ body }) => {
  const inSystem = blankText(blocksOf(body.system))
  if (inSystem !== null && body.system !== '') return invalid(`system: ${inSystem}`)
  for (const message of body.messages) {
    // An empty string is no block; `checkContentNotEmpty` handles it.
    if (message.content === '') continue
    const found = blankText(blocksOf(message.content))
    if (found !== null) return invalid(`messages: ${found}`)
  }
  return null
}

function blankText(blocks: readonly Block[]): string | null {
  for (const block of blocks) {
    const inner = block.type === 'tool_result' && Array.isArray(block.content) ? block.content : []
    const found = inner.length === 0 ? null : blankText(blocksOf(inner))
    if (found !== null) return found
    if (block.type !== 'text') continue
    const text = textField(block, 'text')
    if (text === '') return 'text content blocks must be non-empty'
    if (text.trim() === '') return 'text content blocks must contain non-whitespace text'
  }
  return null
}

const ASSISTANT_ONLY = new Set(['thinking', 'redacted_thinking', 'tool_use', 'fallback', 'mcp_tool_listing'])
const USER_ONLY = new Set(['tool_result', 'cache_edits', 'image'])
const SYSTEM_ONLY = new Set(['tool_addition', 'tool_removal'])

/** The only role that may hold a block of this type; undefined if any role may. */
function homeOf(block: Block): MessageParam['role'] | undefined {
  if (block.type === 'tool_result') return 'user'
  if (ASSISTANT_ONLY.has(block.type) || isServerToolUse(block) || isServerToolResult(block))
    return 'assistant'
  if (USER_ONLY.has(block.type)) return 'user'
  return SYSTEM_ONLY.has(block.type) ? 'system' : undefined
}

export const blocksAtHome: Rule = ({ pieces }) => {
  for (const piece of pieces) {
    const found = awayFromHome(piece.block, piece.role)
    if (found !== null) return invalid(`${pathOf(piece)}: ${found}`)
  }
  return null
}

function awayFromHome(block: Block, role: MessageParam['role']): string | null {
  const home = homeOf(block)
  if (home !== undefined && home !== role)
    return `\`${block.type}\` blocks can only be in \`${home}\` messages`
  // A compaction block in a system message is rejected later, by `readCompaction`, with another error.
  if (role === 'system' && home === undefined && block.type !== 'text' && block.type !== 'compaction')
    return `\`${block.type}\` blocks cannot be in \`system\` messages`
  return null
}

/** The conversation may end with an assistant message only if the model supports prefill or the turn was paused. */
export const prefill: Rule = (request) => {
  const { body, model } = request
  const last = body.messages.findLast((message) => message.role !== 'system')
  if (last?.role !== 'assistant' || asksForCompaction(request)) return null
  const tail = blocksOf(last.content).at(-1)
  if (tail !== undefined && resumes(tail)) return null
  if (!model.prefill)
    return invalid(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  return trailingSpace(tail)
}

/** A turn that the provider itself interrupted and that the response continues. */
function resumes(tail: Block): boolean {
  return tail.type === 'compaction' || isServerToolUse(tail) || isServerToolResult(tail)
}

export const endsInThinking: Rule = ({ body }) => {
  const index = body.messages.findLastIndex((message) => message.role !== 'system')
  const last = body.messages[index]
  const tail = last?.role === 'assistant' ? blocksOf(last.content).at(-1) : undefined
  return tail !== undefined && isThinking(tail)
    ? invalid(`messages.${index}: The final block in an assistant message cannot be \`${tail.type}\`.`)
    : null
}

function trailingSpace(tail: Block | undefined): Refusal | null {
  if (tail?.type !== 'text') return null
  const text = textField(tail, 'text')
  return text === text.trimEnd()
    ? null
    : invalid('messages: final assistant content cannot end with trailing whitespace')
}

// System messages in mid-conversation: their place, and the content of turn-scoped ones.

export const clearAt: Rule = ({ body }) => {
  const index = body.messages.findIndex(({ role, clear_at }) => role !== 'system' && clear_at != null)
  return index < 0
    ? null
    : invalid(`messages.${index}.clear_at: clear_at is only permitted on role 'system' messages`)
}

export const turnScoped: Rule = ({ body }) => {
  for (const [index, message] of body.messages.entries()) {
    if (message.clear_at !== 'next_user_message') continue
    const found = turnScopedBreach(message)
    if (found !== null) return invalid(`messages.${index}${found}`)
  }
  return null
}

const SCOPE = "(clear_at: 'next_user_message')"

function turnScopedBreach(message: MessageParam): string | null {
  const blocks = blocksOf(message.content)
  if (blocks.some((block) => block.type !== 'text'))
    return `: a turn-scoped system message supports text blocks only ${SCOPE}`
  if (message.output_config != null)
    return `: output_config is not permitted on a turn-scoped system message ${SCOPE}`
  const marked = blocks.findIndex((block) => block.cache_control != null)
  return marked < 0
    ? null
    : `.content.${marked}: cache_control is not permitted on a turn-scoped system message ${SCOPE}`
}

export const messageEffort: Rule = ({ body, model }) => {
  const index = body.messages.findIndex((message) => message.output_config != null)
  return index < 0 || model.messageEffort
    ? null
    : invalid(`messages.${index}.output_config: per-message effort is not supported for this model`)
}

export const outputConfigHome: Rule = ({ body }) => {
  const index = body.messages.findIndex(
    (message) => message.role !== 'system' && message.output_config !== undefined,
  )
  return index < 0
    ? null
    : invalid(`messages.${index}.output_config: output_config is only permitted on role 'system' messages`)
}

function isSilent({ content }: MessageParam): boolean {
  return content === '' || blocksOf(content).length === 0
}

/** A message without content that sets the effort may stand anywhere. */
function onlySetsEffort(message: MessageParam): boolean {
  return message.role === 'system' && isSilent(message) && typeof message.output_config?.effort === 'string'
}

export const systemPlacement: Rule = ({ body, model }) => {
  for (const [index, message] of body.messages.entries()) {
    if (message.role !== 'system') continue
    if (!model.systemMessages)
      return invalid(`messages.${index}.role: role 'system' is not supported for this model`)
    if (onlySetsEffort(message)) continue
    if (isSilent(message))
      return invalid(`messages.${index}: a system message must have content or output_config`)
    const found = misplaced(body.messages, index)
    if (found !== null) return invalid(`messages.${index}: ${found}`)
  }
  return null
}

function misplaced(messages: readonly MessageParam[], index: number): string | null {
  const before = messages.slice(0, index).findLast((message) => message.role !== 'system')
  if (before === undefined || !mayPrecede(before))
    return "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result"
  const after = messages.slice(index + 1).find((message) => message.role !== 'system')
  return after === undefined || after.role === 'assistant'
    ? null
    : "role 'system' must be the last message or be followed by an 'assistant' message"
}

function mayPrecede(message: MessageParam): boolean {
  if (message.role === 'user') return true
  const tail = blocksOf(message.content).at(-1)
  return tail !== undefined && tail.type !== 'tool_result' && isServerToolResult(tail)
}

/** System messages in mid-conversation: where they may stand, and what a turn-scoped one may hold. */
import { type Block, blocksOf, isServerToolResult, type MessageParam } from '../api.ts'
import { invalid } from '../refusal.ts'
import type { Rule } from './rule.ts'

export const clearAt: Rule = ({ body }) => {
  for (const [index, message] of body.messages.entries()) {
    if (message.clear_at === undefined || message.clear_at === null) continue
    if (message.role !== 'system')
      return invalid(`messages.${index}.clear_at: clear_at is only permitted on role 'system' messages`)
  }
  return null
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
  if (message.output_config !== undefined && message.output_config !== null)
    return `: output_config is not permitted on a turn-scoped system message ${SCOPE}`
  const marked = blocks.findIndex((block) => isMarked(block))
  return marked < 0
    ? null
    : `.content.${marked}: cache_control is not permitted on a turn-scoped system message ${SCOPE}`
}

function isMarked(block: Block): boolean {
  return block.cache_control !== undefined && block.cache_control !== null
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

/** A message that only sets the effort says nothing and may stand anywhere. */
export function onlySetsEffort(message: MessageParam): boolean {
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

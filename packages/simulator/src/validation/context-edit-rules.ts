/**
 * Validation rules for `context_management` and `compaction`: order of edits, supported models, forbidden
 * combinations.
 */
import { createInvalidRequestError, createRequestErrorWithCode } from '../protocol/answer.ts'
import { isObject, type MessagesBody } from '../protocol/messages-request.ts'
import { hasOutputFormat, isToolUseForced } from './parameter-rules.ts'
import { isOnDemandCompaction, type RequestRule } from './rule.ts'

/** The smallest `trigger.value` that `compact_20260112` accepts, in tokens. */
export const MIN_COMPACT_TRIGGER = 50_000

/** Returns `context_management.edits`; an empty list if the request has none. */
export function listContextEdits(body: MessagesBody): readonly Readonly<Record<string, unknown>>[] {
  const edits: unknown = body.context_management?.edits
  return Array.isArray(edits) ? edits.filter(isObject) : []
}

export const checkThinkingEditFirst: RequestRule = ({ body }) => {
  const types = listContextEdits(body).map((edit) => edit.type)
  return types.lastIndexOf('clear_thinking_20251015') > 0
    ? createInvalidRequestError('context_management.edits: `clear_thinking_20251015` must be the first edit')
    : null
}

export const checkThinkingEditNeedsThinking: RequestRule = ({ body, model }) => {
  const clears = listContextEdits(body).some((edit) => edit.type === 'clear_thinking_20251015')
  const mode = body.thinking?.type ?? model.thinkingDefault
  return clears && mode === 'disabled'
    ? createInvalidRequestError(
        '`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive',
      )
    : null
}

export const checkEditSupport: RequestRule = ({ body, model }) => {
  const clears = listContextEdits(body).find((edit) => edit.type !== 'compact_20260112')
  return clears === undefined || model.contextEditing
    ? null
    : createInvalidRequestError(
        `context_management: \`${String(clears.type)}\` is not supported for this model`,
      )
}

export const checkCompactTrigger: RequestRule = ({ body }) => {
  for (const [index, edit] of listContextEdits(body).entries()) {
    if (edit.type !== 'compact_20260112' || !isObject(edit.trigger)) continue
    if (Number(edit.trigger.value) < MIN_COMPACT_TRIGGER)
      return createInvalidRequestError(
        `context_management.edits.${index}.compact_20260112: trigger.value must be at least ${MIN_COMPACT_TRIGGER}`,
      )
  }
  return null
}

export const checkCompactionSupport: RequestRule = (request) => {
  const threshold = listContextEdits(request.body).some((edit) => edit.type === 'compact_20260112')
  const hasBlock = request.pieces.some(({ block }) => block.type === 'compaction')
  if (request.model.compaction || !(threshold || hasBlock || isOnDemandCompaction(request))) return null
  return createInvalidRequestError('compaction is not supported for this model')
}

export const checkCompactionContent: RequestRule = (request) => {
  if (!isOnDemandCompaction(request) || request.endpoint === 'count_tokens') return null
  return request.pieces.some(({ role }) => role !== 'system')
    ? null
    : createRequestErrorWithCode(
        'compaction_nothing_to_summarize',
        '`messages` holds no `user` or `assistant` content to summarize.',
      )
}

/** Rejects an on-demand compaction request that has parameters for an ordinary response. */
export const checkCompactionParameters: RequestRule = (request) => {
  if (!isOnDemandCompaction(request) || request.endpoint === 'count_tokens') return null
  const clash = findCompactionClash(request.body)
  return clash === null ? null : createInvalidRequestError(`compaction: cannot be combined with ${clash}`)
}

function findCompactionClash(body: MessagesBody): string | null {
  if (body.context_management != null) return '`context_management`'
  if (body.stop_sequences != null) return '`stop_sequences`'
  if (hasOutputFormat(body)) return '`output_config.format`'
  if (isToolUseForced(body.tool_choice)) return '`tool_choice` of type `any` or `tool`'
  const budget: unknown = body.output_config?.task_budget
  return isObject(budget) && budget.remaining != null ? '`output_config.task_budget.remaining`' : null
}

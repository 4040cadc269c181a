/** Validation rules for tool calls and tool results, of client tools and of server tools, and for tool changes. */

import { type ApiError, createInvalidRequestError, createRequestErrorWithCode } from '../protocol/answer.ts'
import {
  BETA_NAMES,
  formatBlockPath,
  isObject,
  isServerToolResult,
  isServerToolUse,
  type MessagesBody,
  type RequestBlock,
  readTextField,
} from '../protocol/messages-request.ts'
import { type ConversationTurn, isOnDemandCompaction, type RequestRule, type RuleContext } from './rule.ts'

export const checkUniqueCallIds: RequestRule = ({ pieces }) => {
  const seen = new Set<string>()
  for (const piece of pieces) {
    if (piece.block.type !== 'tool_use' && !isServerToolUse(piece.block)) continue
    const id = readTextField(piece.block, 'id')
    if (seen.has(id))
      return createInvalidRequestError(`${formatBlockPath(piece)}: \`tool_use\` ids must be unique`)
    seen.add(id)
  }
  return null
}

/**
 * Checks that the turn after tool calls begins with the results of all these calls, and that every tool result
 * belongs to a call in the turn before it.
 */
export const checkToolPairing: RequestRule = (request) => {
  const turns = request.turns.filter((turn) => turn.role !== 'system')
  for (const [index, turn] of turns.entries()) {
    const found =
      turn.role === 'assistant'
        ? findMissingResult(turn, turns[index + 1], request)
        : findUnexpectedResult(turn, turns[index - 1])
    if (found !== null) return found
  }
  return null
}

function findMissingResult(
  turn: ConversationTurn,
  next: ConversationTurn | undefined,
  request: RuleContext,
): ApiError | null {
  const calls = turn.blocks.filter(({ block }) => block.type === 'tool_use')
  const answers = new Set(listLeadingResults(next).map(({ block }) => readTextField(block, 'tool_use_id')))
  const missing = calls.filter(({ block }) => !answers.has(readTextField(block, 'id')))
  const first = missing[0]
  if (first === undefined) return null
  if (next === undefined && isOnDemandCompaction(request))
    return createRequestErrorWithCode(
      'compaction_incomplete_turn',
      'The last `assistant` turn ends in a tool call with no result. Send the tool results, then compact.',
    )
  const ids = missing.map(({ block }) => readTextField(block, 'id')).join(', ')
  return createInvalidRequestError(
    `messages.${first.message}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  )
}

function listLeadingResults(turn: ConversationTurn | undefined): readonly RequestBlock[] {
  const blocks = turn?.blocks ?? []
  const end = blocks.findIndex(({ block }) => block.type !== 'tool_result')
  return end < 0 ? blocks : blocks.slice(0, end)
}

function findUnexpectedResult(turn: ConversationTurn, before: ConversationTurn | undefined): ApiError | null {
  const calls = (before?.blocks ?? []).filter(({ block }) => block.type === 'tool_use')
  const callIds = new Set(calls.map(({ block }) => readTextField(block, 'id')))
  const resultIds = new Set<string>()
  for (const piece of turn.blocks) {
    if (piece.block.type !== 'tool_result') continue
    const id = readTextField(piece.block, 'tool_use_id')
    if (!callIds.has(id))
      return createInvalidRequestError(
        `${formatBlockPath(piece)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      )
    if (resultIds.has(id))
      return createInvalidRequestError(
        `${formatBlockPath(piece)}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      )
    resultIds.add(id)
  }
  return null
}

// Rules for server tools, which the provider runs: their calls and results are both in assistant turns.

export const checkServerToolResults: RequestRule = ({ pieces }) => {
  const callIds = new Set<string>()
  for (const piece of pieces) {
    const { block } = piece
    if (isServerToolUse(block)) callIds.add(readTextField(block, 'id'))
    if (!isServerToolResult(block)) continue
    const id = readTextField(block, 'tool_use_id')
    if (callIds.delete(id)) continue
    const call = block.type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use'
    return createInvalidRequestError(
      `${formatBlockPath(piece)}: unexpected \`tool_use_id\` found in \`${block.type}\` blocks: ${id}. Each \`${block.type}\` block must have a corresponding \`${call}\` block before it.`,
    )
  }
  return null
}

export const checkServerToolCalls: RequestRule = ({ body, turns: all }) => {
  const turns = all.filter((turn) => turn.role !== 'system')
  for (const [index, turn] of turns.entries()) {
    for (const call of turn.blocks.filter(({ block }) => isServerToolUse(block))) {
      if (hasServerResult(turn, call)) continue
      const state = serverCallState(turns, index, call)
      if (state === 'broken')
        return createInvalidRequestError(`messages.${call.message}: ${describeMissingServerResult(call)}`)
      if (state === 'waiting' && body.compaction != null)
        return createRequestErrorWithCode(
          'compaction_incomplete_turn',
          'The last `assistant` turn waits for a server tool. Let it finish, then compact.',
        )
      if (state === 'waiting' && !hasMcpServers(body) && !hasServerTool(body.tools ?? [], call))
        return createInvalidRequestError(
          `messages.${call.message}: ${describeMissingServerResult(call)}, but no \`${readTextField(call.block, 'name')}\` tool was provided`,
        )
    }
  }
  return null
}

function hasServerResult(turn: ConversationTurn | undefined, call: RequestBlock): boolean {
  const id = readTextField(call.block, 'id')
  return (turn?.blocks ?? []).some(
    ({ block }) => isServerToolResult(block) && readTextField(block, 'tool_use_id') === id,
  )
}

/**
 * Returns the state of a server tool call without a result in its own turn. `waiting`: the conversation ends before the
 * result. `answered`: the next turn has only client tool results, and the assistant turn after it has the result. If
 * that turn calls client tools again, as code does, or holds a compaction, after which the provider pauses, the turns
 * after it decide. `broken`: it is missing.
 */
function serverCallState(
  turns: readonly ConversationTurn[],
  index: number,
  call: RequestBlock,
): 'waiting' | 'answered' | 'broken' {
  const next = turns[index + 1]
  if (next === undefined) return 'waiting'
  const onlyResults = next.blocks.every(({ block }) => block.type === 'tool_result')
  if (!onlyResults) return 'broken'
  if (turns[index + 2] === undefined) return 'waiting'
  if (hasServerResult(turns[index + 2], call)) return 'answered'
  const isPaused = turns[index + 2]?.blocks.some(({ block }) => PAUSING_TYPES.has(block.type))
  return isPaused === true ? serverCallState(turns, index + 2, call) : 'broken'
}

const PAUSING_TYPES: ReadonlySet<string> = new Set(['tool_use', 'compaction'])

function hasMcpServers({ mcp_servers: servers }: MessagesBody): boolean {
  return Array.isArray(servers) && servers.length > 0
}

function hasServerTool(
  tools: readonly Readonly<Record<string, unknown>>[],
  { block }: RequestBlock,
): boolean {
  if (block.type !== 'server_tool_use') return true
  const name = readTextField(block, 'name')
  // The tool `code_execution` has several call names, such as `bash_code_execution`.
  if (name.endsWith('code_execution')) return tools.some((tool) => tool.name === 'code_execution')
  return tools.some((tool) => tool.name === name)
}

function describeMissingServerResult({ block }: RequestBlock): string {
  const name = readTextField(block, 'name')
  const result =
    block.type === 'mcp_tool_use' ? 'mcp' : name.replace(/_(regex|bm25)$/, '').replace(/_tool$/, '')
  return `\`${name}\` tool use with id \`${readTextField(block, 'id')}\` was found without a corresponding \`${result}_tool_result\` block`
}

// Rules for blocks that add or remove a tool in mid-conversation. Such a block refers to a declared tool or contains
// a tool definition.

const TOOL_CHANGE_TYPES = new Set(['tool_addition', 'tool_removal'])

export const checkToolChanges: RequestRule = (request) => {
  const defined = new Set<unknown>((request.body.tools ?? []).map((tool) => tool.name))
  for (const [index, turn] of request.turns.entries()) {
    const paused = request.turns[index - 1]?.role === 'assistant'
    for (const piece of turn.blocks) {
      if (!TOOL_CHANGE_TYPES.has(piece.block.type)) continue
      const found = findToolChangeError(piece, request, defined, paused)
      if (found !== null) return found
    }
  }
  return null
}

/**
 * Checks a block that adds or removes a tool. Returns null if it is valid. If the block defines a tool, its name is
 * added to `defined`, so that later blocks may refer to it.
 */
function findToolChangeError(
  piece: RequestBlock,
  { model, features }: RuleContext,
  defined: Set<unknown>,
  paused: boolean,
): ApiError | null {
  const path = formatBlockPath(piece)
  const { tool, type } = piece.block
  if (!model.toolChanges)
    return createInvalidRequestError(`${path}: \`${type}\` blocks are not supported for this model`)
  if (paused) return createInvalidRequestError(`${path}: \`${type}\` blocks may not follow a paused turn`)
  if (!isObject(tool)) return null
  if (tool.type === 'tool_definition') {
    if (!features.betas.has(BETA_NAMES.inlineTools) || type === 'tool_removal')
      return createInvalidRequestError(
        `${path}.${type}.tool: Input tag 'tool_definition' found using 'type' does not match any of the expected tags`,
      )
    if (isObject(tool.definition)) defined.add(tool.definition.name)
    return null
  }
  return tool.type === 'tool_reference' && !defined.has(tool.name)
    ? createRequestErrorWithCode(
        'tool_reference_unresolved',
        `${path}: tool \`${String(tool.name)}\` is not defined at this point`,
      )
    : null
}

/** Rules for tool calls and results, of the client's tools and of server tools, and for tool changes. */

import { coded, invalid, type Refusal } from '../protocol/answer.ts'
import {
  BETA,
  isObject,
  isServerToolResult,
  isServerToolUse,
  type MessagesBody,
  type Piece,
  pathOf,
  textField,
} from '../protocol/api.ts'
import { asksForCompaction, type CheckedRequest, type Rule, type Turn } from './rule.ts'

export const uniqueCalls: Rule = ({ pieces }) => {
  const seen = new Set<string>()
  for (const piece of pieces) {
    if (piece.block.type !== 'tool_use' && !isServerToolUse(piece.block)) continue
    const id = textField(piece.block, 'id')
    if (seen.has(id)) return invalid(`${pathOf(piece)}: \`tool_use\` ids must be unique`)
    seen.add(id)
  }
  return null
}

/** The results of all calls come first in the next turn, and every result belongs to a call of the turn before. */
export const pairedCalls: Rule = (request) => {
  const turns = request.turns.filter((turn) => turn.role !== 'system')
  for (const [index, turn] of turns.entries()) {
    const found =
      turn.role === 'assistant'
        ? unanswered(turn, turns[index + 1], request)
        : unasked(turn, turns[index - 1])
    if (found !== null) return found
  }
  return null
}

function unanswered(turn: Turn, next: Turn | undefined, request: CheckedRequest): Refusal | null {
  const calls = turn.blocks.filter(({ block }) => block.type === 'tool_use')
  const answers = new Set(leadingResults(next).map(({ block }) => textField(block, 'tool_use_id')))
  const missing = calls.filter(({ block }) => !answers.has(textField(block, 'id')))
  const first = missing[0]
  if (first === undefined) return null
  if (next === undefined && asksForCompaction(request))
    return coded(
      'compaction_incomplete_turn',
      'The last `assistant` turn ends in a tool call with no result. Send the tool results, then compact.',
    )
  const ids = missing.map(({ block }) => textField(block, 'id')).join(', ')
  return invalid(
    `messages.${first.message}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  )
}

function leadingResults(turn: Turn | undefined): readonly Piece[] {
  const blocks = turn?.blocks ?? []
  const end = blocks.findIndex(({ block }) => block.type !== 'tool_result')
  return end < 0 ? blocks : blocks.slice(0, end)
}

function unasked(turn: Turn, before: Turn | undefined): Refusal | null {
  const calls = (before?.blocks ?? []).filter(({ block }) => block.type === 'tool_use')
  const callIds = new Set(calls.map(({ block }) => textField(block, 'id')))
  const resultIds = new Set<string>()
  for (const piece of turn.blocks) {
    if (piece.block.type !== 'tool_result') continue
    const id = textField(piece.block, 'tool_use_id')
    if (!callIds.has(id))
      return invalid(
        `${pathOf(piece)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      )
    if (resultIds.has(id))
      return invalid(
        `${pathOf(piece)}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      )
    resultIds.add(id)
  }
  return null
}

// Server tools: call and result are both in an assistant turn.

export const serverResultsHaveCalls: Rule = ({ pieces }) => {
  const callIds = new Set<string>()
  for (const piece of pieces) {
    const { block } = piece
    if (isServerToolUse(block)) callIds.add(textField(block, 'id'))
    if (!isServerToolResult(block)) continue
    const id = textField(block, 'tool_use_id')
    if (callIds.delete(id)) continue
    const call = block.type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use'
    return invalid(
      `${pathOf(piece)}: unexpected \`tool_use_id\` found in \`${block.type}\` blocks: ${id}. Each \`${block.type}\` block must have a corresponding \`${call}\` block before it.`,
    )
  }
  return null
}

export const serverCallsHaveResults: Rule = ({ body, turns: all }) => {
  const turns = all.filter((turn) => turn.role !== 'system')
  for (const [index, turn] of turns.entries()) {
    for (const call of turn.blocks.filter(({ block }) => isServerToolUse(block))) {
      if (answeredIn(turn, call)) continue
      const state = waiting(turns, index, call)
      if (state === 'broken') return invalid(`messages.${call.message}: ${unansweredTextServerPairing(call)}`)
      if (state === 'waiting' && body.compaction != null)
        return coded(
          'compaction_incomplete_turn',
          'The last `assistant` turn waits for a server tool. Let it finish, then compact.',
        )
      if (state === 'waiting' && !isServed(body) && !hasTool(body.tools ?? [], call))
        return invalid(
          `messages.${call.message}: ${unansweredTextServerPairing(call)}, but no \`${textField(call.block, 'name')}\` tool was provided`,
        )
    }
  }
  return null
}

function answeredIn(turn: Turn | undefined, call: Piece): boolean {
  const id = textField(call.block, 'id')
  return (turn?.blocks ?? []).some(
    ({ block }) => isServerToolResult(block) && textField(block, 'tool_use_id') === id,
  )
}

/**
 * A call may be pending at the end of the conversation, or across one turn that holds only client tool results.
 * Its result then comes in the next assistant turn.
 */
function waiting(turns: readonly Turn[], index: number, call: Piece): 'waiting' | 'answered' | 'broken' {
  const next = turns[index + 1]
  if (next === undefined) return 'waiting'
  const onlyResults = next.blocks.every(({ block }) => block.type === 'tool_result')
  if (!onlyResults) return 'broken'
  if (turns[index + 2] === undefined) return 'waiting'
  return answeredIn(turns[index + 2], call) ? 'answered' : 'broken'
}

function isServed({ mcp_servers: servers }: MessagesBody): boolean {
  return Array.isArray(servers) && servers.length > 0
}

function hasTool(tools: readonly Readonly<Record<string, unknown>>[], { block }: Piece): boolean {
  if (block.type !== 'server_tool_use') return true
  const name = textField(block, 'name')
  // Code execution is called under several names, all of which one tool provides.
  if (name.endsWith('code_execution')) return tools.some((tool) => tool.name === 'code_execution')
  return tools.some((tool) => tool.name === name)
}

function unansweredTextServerPairing({ block }: Piece): string {
  const name = textField(block, 'name')
  const result =
    block.type === 'mcp_tool_use' ? 'mcp' : name.replace(/_(regex|bm25)$/, '').replace(/_tool$/, '')
  return `\`${name}\` tool use with id \`${textField(block, 'id')}\` was found without a corresponding \`${result}_tool_result\` block`
}

// Tools added and removed in mid-conversation, by reference to a declared tool or with a definition.

const CHANGES = new Set(['tool_addition', 'tool_removal'])

export const toolChanges: Rule = (request) => {
  const defined = new Set<unknown>((request.body.tools ?? []).map((tool) => tool.name))
  for (const [index, turn] of request.turns.entries()) {
    const paused = request.turns[index - 1]?.role === 'assistant'
    for (const piece of turn.blocks) {
      if (!CHANGES.has(piece.block.type)) continue
      const found = changeBreach(piece, request, defined, paused)
      if (found !== null) return found
    }
  }
  return null
}

/** Adds the name of an inline definition to `defined`: later references may use it. */
function changeBreach(
  piece: Piece,
  { model, features }: CheckedRequest,
  defined: Set<unknown>,
  paused: boolean,
): Refusal | null {
  const path = pathOf(piece)
  const { tool, type } = piece.block
  if (!model.toolChanges) return invalid(`${path}: \`${type}\` blocks are not supported for this model`)
  if (paused) return invalid(`${path}: \`${type}\` blocks may not follow a paused turn`)
  if (!isObject(tool)) return null
  if (tool.type === 'tool_definition') {
    if (!features.betas.has(BETA.inlineTools) || type === 'tool_removal')
      return invalid(
        `${path}.${type}.tool: Input tag 'tool_definition' found using 'type' does not match any of the expected tags`,
      )
    if (isObject(tool.definition)) defined.add(tool.definition.name)
    return null
  }
  return tool.type === 'tool_reference' && !defined.has(tool.name)
    ? coded(
        'tool_reference_unresolved',
        `${path}: tool \`${String(tool.name)}\` is not defined at this point`,
      )
    : null
}

/** Calls of the client's tools and their results. */

import { coded, invalid, type Refusal } from '../protocol/answer.ts'
import {
  BETA,
  type Block,
  isObject,
  isServerToolResult,
  isServerToolUse,
  type MessagesBody,
  textField,
} from '../protocol/api.ts'
import { asksForCompaction } from './role-rules.ts'
import { type CheckedRequest, type PlacedBlock, pathOf, type Rule, type Turn } from './rule.ts'

export const uniqueCalls: Rule = ({ turns }) => {
  const seen = new Set<string>()
  for (const turn of turns) {
    for (const placed of turn.blocks) {
      if (placed.block.type !== 'tool_use' && !isServerToolUse(placed.block)) continue
      const id = textField(placed.block, 'id')
      if (seen.has(id)) return invalid(`${pathOf(placed)}: \`tool_use\` ids must be unique`)
      seen.add(id)
    }
  }
  return null
}

/** Every call is answered at the head of the next turn, and every answer there has its call. */
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
  const calls = turn.blocks.filter((placed) => placed.block.type === 'tool_use')
  const answers = new Set(leadingResults(next).map((placed) => textField(placed.block, 'tool_use_id')))
  const missing = calls.filter((placed) => !answers.has(textField(placed.block, 'id')))
  const first = missing[0]
  if (first === undefined) return null
  if (next === undefined && asksForCompaction(request))
    return coded(
      'compaction_incomplete_turn',
      'The last `assistant` turn ends in a tool call with no result. Send the tool results, then compact.',
    )
  return invalid(unansweredText(first.message, missing))
}

function unansweredText(message: number, missing: readonly PlacedBlock[]): string {
  const ids = missing.map((placed) => textField(placed.block, 'id')).join(', ')
  return `messages.${message}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
}

function leadingResults(turn: Turn | undefined): readonly PlacedBlock[] {
  const blocks = turn?.blocks ?? []
  const end = blocks.findIndex((placed) => !isResult(placed.block))
  return end < 0 ? blocks : blocks.slice(0, end)
}

function isResult(block: Block): boolean {
  return block.type === 'tool_result'
}

function unasked(turn: Turn, before: Turn | undefined): Refusal | null {
  const asked = new Set((before?.blocks ?? []).map((placed) => callId(placed.block)))
  const answered = new Set<string>()
  for (const placed of turn.blocks) {
    if (!isResult(placed.block)) continue
    const id = textField(placed.block, 'tool_use_id')
    if (!asked.has(id)) return invalid(unaskedText(placed, id))
    if (answered.has(id))
      return invalid(
        `${pathOf(placed)}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      )
    answered.add(id)
  }
  return null
}

function callId(block: Block): string | undefined {
  return block.type === 'tool_use' ? textField(block, 'id') : undefined
}

function unaskedText(placed: PlacedBlock, id: string): string {
  return `${pathOf(placed)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
}

// Calls that the provider runs itself: call and answer live in the model's own turn and stay together.

export const serverResultsHaveCalls: Rule = ({ turns }) => {
  const called = new Set<string>()
  for (const turn of turns) {
    for (const placed of turn.blocks) {
      if (isServerToolUse(placed.block)) called.add(textField(placed.block, 'id'))
      if (!isServerToolResult(placed.block)) continue
      const id = textField(placed.block, 'tool_use_id')
      if (!called.delete(id)) return invalid(orphanText(placed, id))
    }
  }
  return null
}

function orphanText({ block, message, index }: PlacedBlock, id: string): string {
  const call = block.type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use'
  return `${pathOf({ block, message, index })}: unexpected \`tool_use_id\` found in \`${block.type}\` blocks: ${id}. Each \`${block.type}\` block must have a corresponding \`${call}\` block before it.`
}

export const serverCallsHaveResults: Rule = ({ body, turns: all }) => {
  const turns = all.filter((turn) => turn.role !== 'system')
  for (const [index, turn] of turns.entries()) {
    for (const call of turn.blocks.filter((placed) => isServerToolUse(placed.block))) {
      if (answeredIn(turn, call)) continue
      const state = waiting(turns, index, call)
      if (state === 'broken') return invalid(`messages.${call.message}: ${unansweredTextServerPairing(call)}`)
      if (state === 'waiting' && body.compaction != null)
        return coded(
          'compaction_incomplete_turn',
          'The last `assistant` turn waits for a server tool. Let it finish, then compact.',
        )
      if (state === 'waiting' && !isServed(body) && !hasTool(body.tools ?? [], call))
        return invalid(`messages.${call.message}: ${noToolText(call)}`)
    }
  }
  return null
}

function answeredIn(turn: Turn | undefined, call: PlacedBlock): boolean {
  const id = textField(call.block, 'id')
  return (turn?.blocks ?? []).some(
    ({ block }) => isServerToolResult(block) && textField(block, 'tool_use_id') === id,
  )
}

/**
 * A call may wait at the end of the conversation, or over one turn that only answers the client's own calls;
 * its result then comes with the model's next turn.
 */
function waiting(
  turns: readonly Turn[],
  index: number,
  call: PlacedBlock,
): 'waiting' | 'answered' | 'broken' {
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

function hasTool(tools: readonly Readonly<Record<string, unknown>>[], { block }: PlacedBlock): boolean {
  if (block.type !== 'server_tool_use') return true
  const name = textField(block, 'name')
  // Code execution runs under several names, and one tool offers them all.
  if (name.endsWith('code_execution')) return tools.some((tool) => tool.name === 'code_execution')
  return tools.some((tool) => tool.name === name)
}

function resultName({ block }: PlacedBlock): string {
  return block.type === 'mcp_tool_use' ? 'mcp' : textField(block, 'name').replace(/_(regex|bm25)$/, '')
}

function unansweredTextServerPairing(call: PlacedBlock): string {
  const name = textField(call.block, 'name')
  const id = textField(call.block, 'id')
  const result = resultName(call).replace(/_tool$/, '')
  return `\`${name}\` tool use with id \`${id}\` was found without a corresponding \`${result}_tool_result\` block`
}

function noToolText(call: PlacedBlock): string {
  const name = textField(call.block, 'name')
  return `${unansweredTextServerPairing(call)}, but no \`${name}\` tool was provided`
}

// Tools added and withdrawn in mid-conversation: by reference to a declared one, or with a definition.

const CHANGES = new Set(['tool_addition', 'tool_removal'])

export const toolChanges: Rule = (request) => {
  const defined = new Set<unknown>((request.body.tools ?? []).map((tool) => tool.name))
  for (const [index, turn] of request.turns.entries()) {
    for (const placed of turn.blocks) {
      if (!CHANGES.has(placed.block.type)) continue
      const paused = request.turns[index - 1]?.role === 'assistant'
      const found = changeBreach(placed, request, { defined, paused })
      if (found !== null) return found
    }
  }
  return null
}

function changeBreach(
  placed: PlacedBlock,
  { model, gate }: CheckedRequest,
  { defined, paused }: { readonly defined: Set<unknown>; readonly paused: boolean },
): Refusal | null {
  const path = pathOf(placed)
  const { tool, type } = placed.block
  if (!model.toolChanges) return invalid(`${path}: \`${type}\` blocks are not supported for this model`)
  if (paused) return invalid(`${path}: \`${type}\` blocks may not follow a paused turn`)
  if (!isObject(tool)) return null
  if (tool.type === 'tool_definition') {
    if (!gate.betas.has(BETA.inlineTools) || type === 'tool_removal')
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

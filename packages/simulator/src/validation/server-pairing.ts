/** Calls that the provider runs itself: call and answer live in the model's own turn and stay together. */
import { isServerToolResult, isServerToolUse, type MessagesBody, textField } from '../api.ts'
import { coded, invalid } from '../refusal.ts'
import { type PlacedBlock, pathOf, type Rule, type Turn } from './rule.ts'

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
      if (state === 'broken') return invalid(`messages.${call.message}: ${unansweredText(call)}`)
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

function unansweredText(call: PlacedBlock): string {
  const name = textField(call.block, 'name')
  const id = textField(call.block, 'id')
  const result = resultName(call).replace(/_tool$/, '')
  return `\`${name}\` tool use with id \`${id}\` was found without a corresponding \`${result}_tool_result\` block`
}

function noToolText(call: PlacedBlock): string {
  const name = textField(call.block, 'name')
  return `${unansweredText(call)}, but no \`${name}\` tool was provided`
}

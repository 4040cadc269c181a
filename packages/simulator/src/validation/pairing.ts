/** Calls of the client's tools and their results. */
import { type Block, isServerToolUse, textField } from '../api.ts'
import { coded, invalid, type Refusal } from '../refusal.ts'
import { asksForCompaction } from './roles.ts'
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

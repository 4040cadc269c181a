/** The calls of a conversation that went well, newest first: what carriers learn from its records. */
import { type Block, blocksOf, isToolResult, isToolUse, type ToolUseBlock } from '../conversation/block.ts'
import { isKnown } from '../conversation/record.ts'
import type { Session } from '../conversation/session.ts'
import { recordAt } from '../conversation/tree.ts'

export interface WalkedCall {
  readonly call: ToolUseBlock
  /** Of the record that holds the call. */
  readonly index: number
}

/** Along the branch that counts. Calls that failed or have no answer are left out. */
export function* callsNewestFirst(session: Session, tools: ReadonlySet<string>): Generator<WalkedCall> {
  const answered = new Set<string>()
  for (let position = session.branch.length - 1; position >= 0; position -= 1) {
    const index = session.branch.at(position) ?? 0
    const blocks = blocksAt(session, index)
    for (const block of blocks)
      if (isToolResult(block) && block.is_error !== true) answered.add(block.tool_use_id)
    for (const call of blocks.filter(isToolUse).reverse())
      if (tools.has(call.name) && answered.has(call.id)) yield { call, index }
  }
}

function blocksAt(session: Session, index: number): readonly Block[] {
  const record = recordAt(session, index)
  if (!isKnown(record) || (record.type !== 'user' && record.type !== 'assistant')) return []
  return blocksOf(record.message.content)
}

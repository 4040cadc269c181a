/** A user message on its way into the log: large tool results in it are put aside. */
import {
  arrive,
  type Block,
  blocksOf,
  type Content,
  isKnown,
  isToolResult,
  isToolUse,
  type Session,
  type Spilled,
  TidemarkError,
  type ToolUseBlock,
  type TurnEvent,
  type TurnRun,
  type Unlinked,
} from '@tidemark/core'

export async function* arrivingRecord(run: TurnRun, content: Content): AsyncGenerator<TurnEvent, Unlinked> {
  if (typeof content === 'string') return { type: 'user', message: { role: 'user', content } }
  const blocks: Block[] = []
  const spilled: Spilled[] = []
  for (const block of content) {
    if (!isToolResult(block)) blocks.push(block)
    else {
      const arrived = yield* arrive(run, callOf(run.state.session, block.tool_use_id), block)
      blocks.push(arrived.result)
      spilled.push(...(arrived.body.spilled ?? []))
    }
  }
  const record: Unlinked = { type: 'user', message: { role: 'user', content: blocks } }
  return spilled.length === 0 ? record : { ...record, spilled }
}

/** A result without its call would be left out of every request: it is refused rather than lost. */
function callOf({ records }: Session, id: string): ToolUseBlock {
  for (let index = records.length - 1; index >= 0; index -= 1) {
    const record = records.at(index)
    if (record === undefined || !isKnown(record) || record.type !== 'assistant') continue
    const call = blocksOf(record.message.content).find((block) => isToolUse(block) && block.id === id)
    if (call !== undefined && isToolUse(call)) return call
  }
  throw new TidemarkError(
    'bad-record',
    `append: there is no call ${id} in this session. Append the response that made it first.`,
    { details: { id } },
  )
}

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
import type { Said } from './messages.ts'

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

/** Ids of the calls that are answered by what is said. */
export function answeredBy(said: readonly Said[]): readonly string[] {
  return said
    .flatMap((one) => (one.role === 'attachment' ? [] : [...blocksOf(one.content)]))
    .flatMap((block) => (isToolResult(block) ? [block.tool_use_id] : []))
}

/** A second result for a call would be in no request: it is refused rather than lost. `arriving`: on their way. */
export function checkResults(session: Session, ids: readonly string[], arriving: ReadonlySet<string>): void {
  for (const [place, id] of ids.entries())
    if (arriving.has(id) || ids.indexOf(id) !== place || isAnswered(session, id)) throw answeredAlready(id)
}

function isAnswered({ records }: Session, id: string): boolean {
  for (let index = records.length - 1; index >= 0; index -= 1) {
    const record = records.at(index)
    if (record === undefined || !isKnown(record)) continue
    if (record.type !== 'user' && record.type !== 'assistant') continue
    for (const block of blocksOf(record.message.content)) {
      if (isToolResult(block) && block.tool_use_id === id) return true
      if (isToolUse(block) && block.id === id) return false
    }
  }
  return false
}

function answeredAlready(id: string): TidemarkError {
  return new TidemarkError(
    'bad-record',
    `append: the call ${id} has its result already, and the model would not see a second one. A turn that goes on without a result answers the call itself.`,
    { details: { id } },
  )
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

/** What is said goes into the log: durable, behind all that is there, whoever else is at work on the session. */
import {
  afterAnswer,
  append,
  arrive,
  type Block,
  blocksOf,
  type Content,
  closeCall,
  type Halt,
  type Ids,
  isKnown,
  isText,
  isToolResult,
  isToolUse,
  type Reply,
  refresh,
  type Session,
  type SessionRecord,
  type Spilled,
  TidemarkError,
  type ToolUseBlock,
  type TurnEvent,
  type TurnRun,
  UNDO_NOTICE,
  type Unlinked,
  undoings,
} from '@tidemark/core'
import { fromResponse } from '@tidemark/wire'
import { drain } from './events.ts'
import { checkedSaid, type Said, type SaidMessage } from './messages.ts'
import { type Desk, deskRun, promptRun, told, working } from './open-session.ts'

/** uuids of the records, in order: a response has one for each of its blocks. */
export async function appendSaid(desk: Desk, given: readonly unknown[]): Promise<readonly string[]> {
  return working(desk, async () => {
    const uuids: string[] = []
    for (const work of worksOf(desk, given.map(checkedSaid))) uuids.push(...(await work()))
    return uuids
  })
}

/** Gives back the uuids of its records. */
type Work = () => Promise<readonly string[]>

/** One batch for all that comes in a row; a response goes in by itself, since it ends the call that it answers. */
function worksOf(desk: Desk, said: readonly Said[]): readonly Work[] {
  const works: Work[] = []
  let others: Said[] = []
  const flush = (): void => {
    const group = others
    if (group.length > 0) works.push(() => written(desk, () => appendOthers(desk, group)))
    others = []
  }
  for (const one of said) {
    if (one.role !== 'assistant') others.push(one)
    else {
      flush()
      const reply = sayReply(one, { ids: desk.settings.ids, model: desk.fitted.choice.id })
      works.push(async () => repeated(desk, reply) ?? (await written(desk, () => appendReply(desk, reply))))
    }
  }
  flush()
  return works
}

/** Another process may have written meanwhile: that is taken in, and what is said comes behind it. */
const MOST_TRIES = 8

type Writing = () => AsyncGenerator<TurnEvent, Halt | null>

async function written(desk: Desk, work: Writing): Promise<readonly string[]> {
  for (let tried = 0; tried < MOST_TRIES; tried += 1) {
    const records: SessionRecord[] = []
    const halt = await drain({ events: work(), onEvent: (event) => told(desk, event) }, (event) => {
      if (event.type === 'appended') records.push(...event.records)
    })
    if (halt === null) return uuidsOf(records)
    if (halt.reason !== 'conflict') throw refused(desk, halt)
    await refresh(deskRun(desk))
  }
  throw new TidemarkError('busy', `append: others keep writing to the session ${desk.id}. Try again.`)
}

function uuidsOf(records: readonly SessionRecord[]): readonly string[] {
  return records.flatMap((record) => {
    if (!isKnown(record) || record.type === 'system') return []
    return record.type === 'attachment' && record.attachment.type === UNDO_NOTICE ? [] : [record.uuid]
  })
}

function refused({ id }: Desk, halt: Halt): TidemarkError {
  if (halt.reason !== 'locked') return new TidemarkError('io-failed', `append: ${halt.reason}.`)
  const { owner, message } = halt.refusal as { readonly owner: string; readonly message: string }
  return new TidemarkError('locked', message, { details: { session: id, owner } })
}

async function* appendOthers(desk: Desk, said: readonly Said[]): AsyncGenerator<TurnEvent, Halt | null> {
  const run = promptRun(desk)
  const results = answeredBy(said)
  if (results.length > 0 && desk.busyWith === 'run')
    throw new TidemarkError('busy', 'append: a run is under way, and the results in it are its own.')
  checkResults(run.state.session, results, desk.arriving)
  for (const id of results) desk.arriving.add(id)
  try {
    const bodies: Unlinked[] = []
    for (const one of said) bodies.push(yield* bodyOf(run, one))
    const speaks = said.some(({ role }) => role === 'user')
    return yield* append(run, [...(speaks ? undoings(run) : []), ...bodies])
  } finally {
    for (const id of results) desk.arriving.delete(id)
  }
}

async function* bodyOf(run: TurnRun, said: Said): AsyncGenerator<TurnEvent, Unlinked> {
  if (said.role !== 'attachment') return yield* arrivingRecord(run, said.content)
  return { type: 'attachment', isMeta: true, attachment: said.attachment }
}

/** A response that is there already is not said twice; one that answers a request is, whatever its id. */
function repeated({ pending, shared }: Desk, reply: Reply): readonly string[] | null {
  return pending === null ? recordsOfResponse(shared.state.session, reply) : null
}

async function* appendReply(desk: Desk, reply: Reply): AsyncGenerator<TurnEvent, Halt | null> {
  if (desk.busyWith === 'run')
    throw new TidemarkError('busy', 'append: a run is under way, and the responses in it are its own.')
  const run: TurnRun = deskRun(desk)
  const bodies = responseRecords(reply)
  const { pending } = desk
  if (pending === null) return yield* append(run, bodies)
  const { message } = reply
  const { lineage, watch } = run.state
  const { halt } = yield* closeCall(run, pending, { message, bodies, isSaid: true })
  if (halt !== null) {
    // It is not in the log: what was learnt of it would be learnt again with the next try.
    run.state = { ...run.state, lineage, watch }
    return halt
  }
  if (desk.pending === pending) desk.pending = null
  yield { type: 'answered', reply, usage: message.usage ?? null, forecast: pending.forecast }
  return yield* afterAnswer(run, reply)
}

// A user message on its way into the log: large tool results in it are put aside.

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

// A response as an SDK gives it, and the records it becomes: one for each block, as a reply of a run does.

export interface ReplySource {
  readonly ids: Ids
  /** For a response that does not say who made it. */
  readonly model: string
}

export function sayReply(said: SaidMessage, { ids, model }: ReplySource): Reply {
  const { content, ...fields } = said
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const whole = { id: ids.next('response'), model, ...fields, type: 'message', content: blocks }
  const read = fromResponse(JSON.stringify(whole))
  if (read.ok) return read.reply
  throw new TidemarkError('bad-record', `append: this is no response of the model. ${read.failure.message}.`)
}

export function responseRecords({ message }: Reply): readonly Unlinked[] {
  const blocks = blocksOf(message.content)
  if (blocks.length === 0) return [{ type: 'assistant', message: { ...message, content: [] } }]
  return blocks.map((block) => ({ type: 'assistant', message: { ...message, content: [block] } }))
}

/** uuids of the records that say all of it; null where it is not in the session, or not all of it. */
export function recordsOfResponse({ records }: Session, { message }: Reply): readonly string[] | null {
  const uuids: string[] = []
  const blocks = blocksOf(message.content).map((block) => JSON.stringify(block))
  let found = blocks.length
  for (let index = records.length - 1; index >= 0 && found > 0; index -= 1) {
    const record = records.at(index)
    if (record === undefined || !isKnown(record) || record.type !== 'assistant') continue
    if (record.message.id !== message.id) continue
    const said = blocksOf(record.message.content).map((block) => JSON.stringify(block))
    const isNext = said.length > 0 && said.join() === blocks.slice(found - said.length, found).join()
    if (!isNext) return null
    found -= said.length
    uuids.unshift(record.uuid)
  }
  return uuids.length > 0 && found === 0 ? uuids : null
}

/** What it says, without thinking and calls. */
export function textOf({ message }: Reply): string {
  return blocksOf(message.content)
    .flatMap((block) => (isText(block) ? [block.text] : []))
    .join('')
}

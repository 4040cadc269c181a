/** What is said goes into the log: durable, behind all that is there, whoever else is at work on the session. */
import {
  afterAnswer,
  append,
  closeCall,
  type Halt,
  isKnown,
  type Reply,
  refresh,
  type SessionRecord,
  TidemarkError,
  type TurnEvent,
  type TurnRun,
  UNDO_NOTICE,
  type Unlinked,
  undoings,
} from '@tidemark/core'
import { answeredBy, arrivingRecord, checkResults } from './arriving-record.ts'
import { type Desk, deskRun, promptRun, told, working } from './desk.ts'
import { drain } from './event-stream.ts'
import { checkedSaid, type Said } from './messages.ts'
import { recordsOfResponse, responseRecords, sayReply } from './response.ts'

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

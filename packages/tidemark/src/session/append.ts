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
import { arrivingRecord } from './arriving-record.ts'
import { checkOpen, type Desk, deskRun, promptRun, told } from './desk.ts'
import { drain } from './event-stream.ts'
import { checkedSaid, type Said } from './messages.ts'
import { responseRecords, sayReply } from './response.ts'

/** uuids of the records, in order: a response has one for each of its blocks. */
export async function appendSaid(desk: Desk, given: readonly unknown[]): Promise<readonly string[]> {
  checkOpen(desk)
  const uuids: string[] = []
  for (const work of worksOf(desk, given.map(checkedSaid))) uuids.push(...(await written(desk, work)))
  return uuids
}

type Work = () => AsyncGenerator<TurnEvent, Halt | null>

/** One batch for all that comes in a row; a response goes in by itself, since it ends the call that it answers. */
function worksOf(desk: Desk, said: readonly Said[]): readonly Work[] {
  const works: Work[] = []
  let others: Said[] = []
  const flush = (): void => {
    const group = others
    if (group.length > 0) works.push(() => appendOthers(desk, group))
    others = []
  }
  for (const one of said) {
    if (one.role !== 'assistant') others.push(one)
    else {
      flush()
      const reply = sayReply(one, { ids: desk.settings.ids, model: desk.fitted.choice.id })
      works.push(() => appendReply(desk, reply))
    }
  }
  flush()
  return works
}

/** Another process may have written meanwhile: that is taken in, and what is said comes behind it. */
const MOST_TRIES = 8

async function written(desk: Desk, work: Work): Promise<readonly string[]> {
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
  const bodies: Unlinked[] = []
  for (const one of said) {
    if (one.role === 'attachment')
      bodies.push({ type: 'attachment', isMeta: true, attachment: one.attachment })
    else bodies.push(yield* arrivingRecord(run, one.content))
  }
  const speaks = said.some(({ role }) => role === 'user')
  return yield* append(run, [...(speaks ? undoings(run) : []), ...bodies])
}

async function* appendReply(desk: Desk, reply: Reply): AsyncGenerator<TurnEvent, Halt | null> {
  if (desk.busyWith === 'run')
    throw new TidemarkError('busy', 'append: a run is under way, and the responses in it are its own.')
  const run: TurnRun = deskRun(desk)
  const bodies = responseRecords(reply)
  const { pending } = desk
  desk.pending = null
  if (pending === null) return yield* append(run, bodies)
  const { message } = reply
  const { halt } = yield* closeCall(run, pending, { message, bodies, isSaid: true })
  if (halt !== null) return halt
  yield { type: 'answered', reply, usage: message.usage ?? null, forecast: pending.forecast }
  return yield* afterAnswer(run, reply)
}

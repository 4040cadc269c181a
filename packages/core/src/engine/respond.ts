/**
 * One call to the model, into the log as it comes. Each block is a record as soon as the next one is there; the
 * last is held back until the reply has ended, so that it and the final usage are there together or not at all.
 */
import type { AssistantMessage, AssistantRecord } from '../conversation/record.ts'
import { callOf } from '../prompt/spell.ts'
import { closeCall, type OpenedCall } from './close-call.ts'
import { type Assembly, assemble, emptyAssembly, replyOf } from './collect.ts'
import type { NextRequest } from './next-request.ts'
import type { BlockEnded, Reply, ReplyEnded, ReplyFailed } from './reply.ts'
import type { Halt, TurnEvent } from './turn-event.ts'
import { append, linked, type TurnRun, type Unlinked } from './turn-run.ts'
import { watchRequest } from './watch-cache.ts'

export type Responded = { readonly ok: true; readonly reply: Reply } | Halt

/** The request goes out now, by whoever sends it: from here on its answer is waited for. */
export function openCall(run: TurnRun, { request, forecast }: NextRequest): OpenedCall {
  const opened: OpenedCall = { request, source: run.host.source, forecast, isWatched: true }
  run.state = { ...watchRequest(run.state, opened, run.host), sent: request }
  return opened
}

export async function* respond(run: TurnRun, opened: OpenedCall): AsyncGenerator<TurnEvent, Responded> {
  const { request, forecast } = opened
  yield { type: 'request-sent', request, forecast }
  let assembly = emptyAssembly
  let held: BlockEnded | null = null
  for await (const event of run.host.model.stream(callOf(request), run.signal)) {
    yield { type: 'reply', event }
    assembly = assemble(assembly, event)
    if (event.type === 'reply-ended' || event.type === 'reply-failed')
      return yield* closed(run, event, { held, opened })
    if (event.type !== 'block-ended') continue
    const halt: Halt | null = held === null ? null : yield* append(run, recordsSoFar(assembly, held))
    if (halt !== null) return withUnsaved(run, halt, recordsSoFar(assembly, event))
    held = event
  }
  return failedWith(BROKEN_OFF)
}

export const BROKEN_OFF: ReplyFailed = {
  type: 'reply-failed',
  failure: { kind: 'bad-reply', retryable: true, message: 'The reply stopped without an end.' },
  reply: null,
}

/** What had come and was still to be written goes with the halt. */
function withUnsaved(run: TurnRun, halt: Halt, bodies: readonly Unlinked[]): Halt {
  if (halt.reason !== 'conflict' && halt.reason !== 'locked') return halt
  return { ...halt, unsaved: [...halt.unsaved, ...linked(run, bodies, halt.unsaved.at(-1)?.uuid)] }
}

interface Ending {
  readonly held: BlockEnded | null
  readonly opened: OpenedCall
}

async function* closed(
  run: TurnRun,
  event: ReplyEnded | ReplyFailed,
  { held, opened }: Ending,
): AsyncGenerator<TurnEvent, Responded> {
  const { reply } = event
  const isWhole = event.type === 'reply-ended'
  if (reply !== null) {
    const bodies = lastRecords(reply.message, held, isWhole)
    const isSaid = bodies.length > 0 || reply.message.content.length > 0
    const { halt } = yield* closeCall(run, opened, { message: reply.message, bodies, isSaid })
    if (halt !== null) return halt
  }
  if (event.type === 'reply-failed') return failedWith(event)
  const usage = event.reply.message.usage ?? null
  yield { type: 'answered', reply: event.reply, usage, forecast: opened.forecast }
  return { ok: true, reply: event.reply }
}

export function failedWith({ failure }: ReplyFailed): Halt {
  return failure.kind === 'aborted'
    ? { ok: false, reason: 'aborted' }
    : { ok: false, reason: 'failed', failure }
}

/** A whole reply without any block still tells what it cost. */
function lastRecords(
  message: AssistantMessage,
  held: BlockEnded | null,
  isWhole: boolean,
): readonly Unlinked[] {
  if (held !== null) return [recordOf(message, held)]
  return isWhole ? [{ type: 'assistant', message: { ...message, content: [] } }] : []
}

function recordsSoFar(assembly: Assembly, block: BlockEnded): readonly Unlinked[] {
  const message = replyOf(assembly)?.message
  return message === undefined ? [] : [recordOf(message, block)]
}

type AssistantBody = Pick<AssistantRecord, 'type' | 'message' | 'rawBlocks'>

function recordOf(message: AssistantMessage, { block, raw }: BlockEnded): AssistantBody {
  const said = { type: 'assistant' as const, message: { ...message, content: [block] } }
  return raw === undefined ? said : { ...said, rawBlocks: [{ index: 0, text: raw }] }
}

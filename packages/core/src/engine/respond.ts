/**
 * One call to the model, into the log as it comes. Each block is a record as soon as the next one is there; the
 * last is held back until the reply has ended, so that it and the final usage are there together or not at all.
 */
import type { AssistantMessage, AssistantRecord, Usage } from '../conversation/record.ts'
import type { Forecast } from '../prompt/forecast.ts'
import { learnFromResponse } from '../prompt/learn.ts'
import { payloadOf, rawTextsOf } from '../prompt/spell.ts'
import { type Assembly, assemble, emptyAssembly, replyOf } from './collect.ts'
import type { NextRequest } from './next-request.ts'
import type { BlockEnded, Reply, ReplyEnded, ReplyFailed } from './reply.ts'
import type { Halt, TurnEvent } from './turn-event.ts'
import { append, type TurnRun, type Unlinked } from './turn-run.ts'

export type Responded = { readonly ok: true; readonly reply: Reply } | Halt

export async function* respond(
  run: TurnRun,
  { request, forecast }: NextRequest,
): AsyncGenerator<TurnEvent, Responded> {
  run.state = { ...run.state, sent: request }
  yield { type: 'request-sent', request, forecast }
  const call = { payload: payloadOf(request), raw: rawTextsOf(request) }
  let assembly = emptyAssembly
  let held: BlockEnded | null = null
  for await (const event of run.host.model.stream(call, run.signal)) {
    yield { type: 'reply', event }
    assembly = assemble(assembly, event)
    if (event.type === 'reply-ended' || event.type === 'reply-failed')
      return yield* closed(run, event, { held, forecast })
    if (event.type !== 'block-ended') continue
    const halt: Halt | null = held === null ? null : yield* append(run, recordsSoFar(assembly, held))
    if (halt !== null) return halt
    held = event
  }
  return failed(BROKEN_OFF)
}

const BROKEN_OFF: ReplyFailed = {
  type: 'reply-failed',
  failure: { kind: 'bad-reply', retryable: true, message: 'The reply stopped without an end.' },
  reply: null,
}

interface Closing {
  readonly held: BlockEnded | null
  readonly forecast: Forecast
}

async function* closed(
  run: TurnRun,
  event: ReplyEnded | ReplyFailed,
  { held, forecast }: Closing,
): AsyncGenerator<TurnEvent, Responded> {
  const { reply } = event
  const usage = reply?.message.usage ?? null
  if (usage !== null) learn(run, forecast, usage)
  const last = reply === null ? [] : lastRecords(reply.message, held, event.type === 'reply-ended')
  const halt = yield* append(run, last)
  if (halt !== null) return halt
  if (event.type === 'reply-failed') return failed(event)
  yield { type: 'answered', reply: event.reply, usage, forecast }
  return { ok: true, reply: event.reply }
}

function learn(run: TurnRun, forecast: Forecast, usage: Usage): void {
  const { lineage } = run.state
  if (lineage !== null) run.state = { ...run.state, lineage: learnFromResponse(lineage, forecast, usage) }
}

function failed({ failure }: ReplyFailed): Halt {
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

/** What is done to a session in these tests, and what its next request would be. */
import {
  type Committed,
  type CompactAsked,
  compact,
  makeRoom,
  openSession,
  payloadOf,
  pinRecord,
  rawTextsOf,
  runTurn,
  type SessionState,
  type TurnEvent,
  type TurnRun,
  type UndoAsked,
  type Undone,
  undoAct,
} from '@tidemark/core'
import type { FakeClock } from '@tidemark/core/testing'
import { bodyText, encodeRequest } from '@tidemark/wire'
import { nextRequest } from '../../packages/core/src/engine/next-request.ts'
import { SESSION, type WorkHost } from './work-host.ts'

export const HOUR_MS = 3_600_000
export const MANUAL: CompactAsked = { trigger: 'manual', cause: 'person' }

/** Runs to the end, and gives what it returns. */
export async function endOf<End>(
  events: AsyncGenerator<TurnEvent, End>,
  seen: (event: TurnEvent) => void = () => {},
): Promise<End> {
  for (;;) {
    const step = await events.next()
    if (step.done === true) return step.value
    seen(step.value)
  }
}

export async function opened(host: WorkHost): Promise<TurnRun> {
  return { state: await openSession(host.journal, SESSION), host, signal: undefined }
}

export async function promptOnce(host: WorkHost, prompt: string): Promise<SessionState> {
  const outcome = await endOf(runTurn(await openSession(host.journal, SESSION), { prompt }, host))
  if (!outcome.ok) throw new Error(`the turn ended: ${outcome.reason}`)
  return outcome.state
}

export async function compactOnce(host: WorkHost, asked: CompactAsked = MANUAL): Promise<Committed> {
  return endOf(compact(await opened(host), host.room, asked))
}

export async function undoOnce(host: WorkHost, asked: UndoAsked = {}): Promise<Undone> {
  return endOf(undoAct(await opened(host), host.room, asked))
}

/** Time passes until the cache is cold, and what is due before the next request is done: old results go. */
export async function clearOnce(host: WorkHost): Promise<void> {
  await (host.clock as FakeClock).advance(2 * HOUR_MS)
  const run = await opened(host)
  const before = run.state.view.acts.length
  const halt = await endOf(makeRoom(run, 'prompt'))
  if (halt !== null || run.state.view.acts.length !== before + 1)
    throw new Error(`nothing was cleared: ${JSON.stringify(halt)}`)
}

export async function pinOnce(host: WorkHost, uuid: string): Promise<void> {
  const end = await endOf(pinRecord(await opened(host), uuid, true))
  if (!end.ok) throw new Error(end.message)
}

/** The body of the next request as the log alone tells it, and what a provider would refuse it for. */
export async function nextBody(
  host: WorkHost,
): Promise<{ readonly body: string; readonly findings: readonly unknown[] }> {
  return bodyOf(host, await openSession(host.journal, SESSION))
}

export function bodyOf(
  host: WorkHost,
  state: SessionState,
): { readonly body: string; readonly findings: readonly unknown[] } {
  const { standing } = state.told
  if (standing === null) throw new Error('no request was ever sent')
  const { request, findings } = nextRequest(state, standing, host)
  return {
    body: bodyText(encodeRequest(payloadOf(request), { raw: { messages: rawTextsOf(request) } })),
    findings,
  }
}

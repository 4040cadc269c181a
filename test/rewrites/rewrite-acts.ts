/** Acts on a session: a prompt, a compaction, a clearing, an undo, a pin; and the request it would send next. */

import type { CompactionResult } from '@tidemark/core/compaction/commit-draft'
import { compact } from '@tidemark/core/compaction/compact'
import type { CompactionOptions } from '@tidemark/core/compaction/plan-compaction'
import type { TurnHost } from '@tidemark/core/engine/host'
import { readSessionState, type SessionState } from '@tidemark/core/engine/session-state'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { listExactBlockTexts, toPayload } from '@tidemark/core/request/build-request'
import { type FakeClock, runSingleTurn, runToEnd } from '@tidemark/core/testing'
import { setRecordPin } from '@tidemark/core/turn/pin'
import { reduceContext } from '@tidemark/core/turn/reduce-context'
import { type UndoResult, type UndoRewriteOptions, undoRewrite } from '@tidemark/core/turn/undo'
import { encodeRequestFragments, joinRequestFragments } from '@tidemark/wire/anthropic/encode-request'
import { buildNextRequest } from '../../packages/core/src/engine/next-request.ts'
import { SESSION } from './rewrite-host.ts'

export const HOUR_MS = 3_600_000
export const MANUAL: CompactionOptions = { trigger: 'manual', cause: 'person' }

export async function openRun(host: TurnHost): Promise<TurnContext> {
  return { state: await readSessionState(host.journal, SESSION), host, signal: undefined }
}

export async function promptSession(host: TurnHost, prompt: string): Promise<SessionState> {
  const outcome = await runToEnd(
    runSingleTurn(await readSessionState(host.journal, SESSION), { prompt }, host),
  )
  if (!outcome.ok) throw new Error(`the turn ended: ${outcome.reason}`)
  return outcome.state
}

export async function compactSession(
  host: TurnHost,
  asked: CompactionOptions = MANUAL,
): Promise<CompactionResult> {
  return runToEnd(compact(await openRun(host), asked))
}

export async function undoSession(host: TurnHost, asked: UndoRewriteOptions = {}): Promise<UndoResult> {
  return runToEnd(undoRewrite(await openRun(host), asked))
}

/** Time passes until the cache is cold; then old results are cleared, as before a prompt. */
export async function clearSession(host: TurnHost): Promise<void> {
  await (host.clock as FakeClock).advance(2 * HOUR_MS)
  const run = await openRun(host)
  const before = run.state.view.rewrites.length
  const halt = await runToEnd(reduceContext(run, 'prompt'))
  if (halt !== null || run.state.view.rewrites.length !== before + 1)
    throw new Error(`nothing was cleared: ${JSON.stringify(halt)}`)
}

export async function pinRecordOf(host: TurnHost, uuid: string): Promise<void> {
  const end = await runToEnd(setRecordPin(await openRun(host), uuid, true))
  if (!end.ok) throw new Error(end.message)
}

/** The body of the next request, from the log alone, and what a provider would refuse about it. */
export async function nextBody(
  host: TurnHost,
): Promise<{ readonly body: string; readonly findings: readonly unknown[] }> {
  return buildBody(host, await readSessionState(host.journal, SESSION))
}

export function buildBody(
  host: TurnHost,
  state: SessionState,
): { readonly body: string; readonly findings: readonly unknown[] } {
  const { current: standing } = state.prefix
  if (standing === null) throw new Error('no request was ever sent')
  const { request, findings } = buildNextRequest(state, standing, host)
  return {
    body: joinRequestFragments(
      encodeRequestFragments(toPayload(request), { raw: { messages: listExactBlockTexts(request) } }),
    ),
    findings,
  }
}

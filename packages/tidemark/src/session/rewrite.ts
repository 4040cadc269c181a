/**
 * Operations that the caller requests: compacting (in one step or in three), undoing a compaction or clearing, and
 * pinning a record.
 */
import { type CompactionResult, commitReviewedDraft } from '@tidemark/core/compaction/commit-draft'
import { compact } from '@tidemark/core/compaction/compact'
import type { CompactionDraft } from '@tidemark/core/compaction/draft'
import {
  type CompactionOptions,
  type CompactionPlan,
  planCompaction,
} from '@tidemark/core/compaction/plan-compaction'
import { prepareDraftForReview } from '@tidemark/core/compaction/prepare-draft'
import { toApiMessages } from '@tidemark/core/context/flatten-context'
import type { RefusedRewrite, TurnEvent } from '@tidemark/core/engine/events'
import { measureContext, updatePlanningStateInSlices } from '@tidemark/core/engine/measure-context'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { isObject, omitUndefined } from '@tidemark/core/log/json'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import type { CompactionForm } from '@tidemark/core/summary/select-span'
import { type ClearingResult, clearChosenResults } from '@tidemark/core/turn/clear-chosen'
import { setRecordPin } from '@tidemark/core/turn/pin'
import { type UndoResult, type UndoRewriteOptions, undoRewrite } from '@tidemark/core/turn/undo'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import {
  checkSessionOpen,
  type OpenSession,
  refreshFromLog,
  reserveSession,
  runOperation,
  trackWork,
} from './open-session.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

export interface CompactOptions extends RewriteOptions {
  /** `full`: summarizes the whole context. `from` and `up_to`: summarize the records from `pivot` on, or those before it. */
  readonly form?: CompactionForm
  /** The uuid of the record at which `from` or `up_to` divides the context, as returned by `append`. */
  readonly pivot?: string
  /** Instructions for the summary, such as which details to keep. */
  readonly instructions?: string
  /** Maximum tokens of the context after the compaction. */
  readonly target?: number
  /** `local` makes the summary without a model, whatever the policy says. */
  readonly summarizer?: 'local' | 'model'
}

export interface RewriteOptions {
  readonly signal?: AbortSignal
  /**
   * Discards the request that `next` returned. Without this option, the operation is refused until the response to that
   * request was appended.
   */
  readonly abandon?: boolean
}

export const REWRITE_OPTION_NAMES: readonly (keyof RewriteOptions)[] = ['signal', 'abandon']
const COMPACT_OPTIONS: readonly (keyof CompactOptions)[] = [
  'form',
  'pivot',
  'instructions',
  'target',
  'summarizer',
  ...REWRITE_OPTION_NAMES,
]

/**
 * A refusal because another operation has reserved the session, or because the response to a request of `next` has not
 * been appended. The session was not changed.
 */
export interface BusyOutcome {
  readonly ok: false
  readonly reason: 'busy'
  readonly message: string
}

export async function compactSession(
  session: OpenSession,
  options: CompactOptions,
): Promise<CompactionResult | BusyOutcome> {
  checkOptionNames('compact', options, COMPACT_OPTIONS)
  return runRewrite(session, 'compact', options, (run) => compact(run, toCompactInput(options)))
}

/**
 * Compacts for a client that asks for it, without calling a model: with the notes, else with a summary from the log. The client's
 * limit is about the present size, so the result has at most half of it. Otherwise the client would ask again after a few calls.
 */
export async function compactForClient(session: OpenSession): Promise<CompactionResult | BusyOutcome> {
  return runRewrite(session, 'compact', { abandon: true }, (run) => {
    const host = createTurnHost(session)
    const { expected } = measureContext(run.state, host)
    const target = Math.floor(expected / 2)
    return compact(run, {
      trigger: 'auto',
      cause: 'threshold',
      isForced: true,
      summarizer: 'local',
      target,
    })
  })
}

export async function planSessionCompaction(
  session: OpenSession,
  options: CompactOptions,
): Promise<CompactionPlan | RefusedRewrite> {
  checkOptionNames('planCompaction', options, COMPACT_OPTIONS)
  checkSessionOpen(session)
  const run = createTurnContext(session)
  await refreshFromLog(session, run)
  const host = createTurnHost(session)
  await updatePlanningStateInSlices(run)
  return planCompaction(run.state, toCompactInput(options), host)
}

/** Prepares the draft of a compaction without reserving the session: turns and appends can continue meanwhile. */
export async function prepareSessionDraft(
  session: OpenSession,
  plan: CompactionPlan,
  signal: AbortSignal | undefined,
): Promise<CompactionDraft | RefusedRewrite> {
  checkStepInput('prepare', plan, ['request', 'span', 'entries'])
  return trackWork(session, () => {
    const run = createTurnContext(session, { signals: [signal] })
    return runOperation(session, prepareDraftForReview(run, plan))
  })
}

export async function commitSessionDraft(
  session: OpenSession,
  draft: CompactionDraft,
  options: RewriteOptions = {},
): Promise<CompactionResult | BusyOutcome> {
  checkStepInput('commit', draft, ['plan', 'summary', 'receipt'])
  checkOptionNames('commit', options, REWRITE_OPTION_NAMES)
  return runRewrite(session, 'commit', options, (run) => commitReviewedDraft(run, draft))
}

export type UndoOptions = Omit<UndoRewriteOptions, 'id'> & RewriteOptions

export async function undoSessionRewrite(
  session: OpenSession,
  id: string | undefined,
  options: UndoOptions,
): Promise<UndoResult | BusyOutcome> {
  checkOptionNames('undo', options, ['force', ...REWRITE_OPTION_NAMES])
  if (id !== undefined && typeof id !== 'string')
    throw badOptionError(
      'id',
      `undo: the id is ${formatErrorValue(id)}; expected that of a compaction or clearing, or nothing for the newest.`,
    )
  const { force = false } = options
  const outcome = await runRewrite(session, 'undo', options, (run) =>
    undoRewrite(run, { force, ...omitUndefined({ id }) }),
  )
  // The undo of `clear` leaves the conversation that it began, so SessionStart hooks do not run. If that undo is undone, they do.
  if (outcome.ok && outcome.kind === 'rewind' && session.startSource === 'clear') session.startSource = null
  if (outcome.ok && id !== undefined && toApiMessages(session.state.flat).length === 0)
    session.startSource = 'clear'
  return outcome
}

export async function clearSessionResults(
  session: OpenSession,
  uuids: readonly string[],
): Promise<ClearingResult | BusyOutcome> {
  if (!Array.isArray(uuids) || !uuids.every((uuid) => typeof uuid === 'string'))
    throw badOptionError(
      'uuids',
      `clearResults: ${formatErrorValue(uuids)} is not a list of uuids of records, as breakdown lists them.`,
    )
  return runRewrite(session, 'clearResults', {}, (run) => clearChosenResults(run, uuids))
}

/** The result of `pin` and `unpin`. `note` explains to the user why the pin has no effect at present. */
export type PinOutcome = { readonly ok: true; readonly note?: string } | RefusedRewrite

export async function pinSessionRecord(
  session: OpenSession,
  uuid: string,
  isPinned: boolean,
): Promise<PinOutcome> {
  return trackWork(session, async () => {
    const run = createTurnContext(session)
    await refreshFromLog(session, run)
    return runOperation(session, setRecordPin(run, uuid, isPinned))
  })
}

/**
 * Runs a compaction, clearing, undo or move. Refused if another operation has reserved the session, or if the response
 * to a request of `next` has not been appended and `options.abandon` is not given.
 */
export async function runRewrite<End>(
  session: OpenSession,
  operation: string,
  options: RewriteOptions,
  rewrite: (run: TurnContext) => AsyncGenerator<TurnEvent, End>,
): Promise<End | BusyOutcome> {
  checkSessionOpen(session)
  const busy =
    refuseIfBusy(session, operation) ??
    (options.abandon === true ? null : refuseIfPending(session, operation))
  if (busy !== null) return busy
  const release = reserveSession(session, operation)
  try {
    session.awaited.abandon()
    const run = createTurnContext(session, { signals: [options.signal] })
    await refreshFromLog(session, run)
    return await runOperation(session, rewrite(run))
  } finally {
    release()
  }
}

/** Returns a refusal if an operation has reserved the session; otherwise null. */
export function refuseIfBusy({ id, busyWith }: OpenSession, operation: string): BusyOutcome | null {
  if (busyWith === null) return null
  const message = `${operation}: the session ${id} is busy with ${busyWith}; nothing was changed. Try again when that has ended.`
  return { ok: false, reason: 'busy', message }
}

/**
 * Returns a refusal if the response to a request of `next` has not been appended; otherwise null. That response belongs
 * to the present context. After a rewrite, its usage would not measure the new context.
 */
export function refuseIfPending({ id, awaited }: OpenSession, operation: string): BusyOutcome | null {
  if (awaited.request === null) return null
  const advice =
    operation === 'switchModel'
      ? 'Append the response first, or call refused if none will come.'
      : 'Append the response first, or give { abandon: true } if none will come.'
  const message = `${operation}: next gave a request of the session ${id} whose response has not been appended; nothing was changed. ${advice}`
  return { ok: false, reason: 'busy', message }
}

/** Checks the input of a compaction step. Throws unless `input` is the successful result of the previous step. */
function checkStepInput(step: 'prepare' | 'commit', input: unknown, fields: readonly string[]): void {
  if (isObject(input) && input.ok === true && fields.every((field) => isObject(input[field]))) return
  const expected = step === 'prepare' ? 'a plan, as planCompaction' : 'a draft, as prepare'
  const isRefusal = isObject(input) && typeof input.message === 'string'
  const found = isRefusal ? `a refusal: ${input.message}` : `${formatErrorValue(input)}.`
  throw badOptionError(step, `${step}: expected ${expected} returns it if ok, found ${found}`)
}

function toCompactInput(options: CompactOptions): CompactionOptions {
  const { form, pivot, instructions, target, summarizer } = options
  return {
    trigger: 'manual',
    cause: 'person',
    ...omitUndefined({ form, pivot, instructions, target, summarizer }),
  }
}

/** Rewrites that the caller asks for: compact, in one step or in three, undo, pin. */
import {
  type CommitResult,
  type CompactionDraft,
  type CompactionForm,
  type CompactionPlan,
  type CompactionRequest,
  commitCompaction,
  compact,
  formatValue,
  isObject,
  pinRecord,
  planCompaction,
  prepareCompaction,
  type RefusedRewrite,
  type TurnContext,
  type TurnEvent,
  type UndoRequest,
  type UndoResult,
  undoRewrite,
} from '@tidemark/core'
import { omitUndefined } from '@tidemark/wire'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import {
  checkOpen,
  createTurnContext,
  type OpenSession,
  refreshFromLog,
  reserveSession,
  runAndEmit,
  trackWork,
  turnHost,
} from './open-session.ts'

export interface CompactOptions extends RewriteOptions {
  /** `full`, or from or up to the record `pivot`. */
  readonly form?: CompactionForm
  /** uuid of a record, as returned by `append`. */
  readonly pivot?: string
  /** What the summary should pay attention to. */
  readonly instructions?: string
  /** How many tokens the context may have afterwards. */
  readonly target?: number
  /** `local`: without a model, whatever the policy says. */
  readonly summarizer?: 'local' | 'model'
}

export interface RewriteOptions {
  readonly signal?: AbortSignal
  /** The request returned by `next` will not be answered. Without this, its response must be appended first. */
  readonly abandon?: boolean
}

const REWRITE_OPTIONS: readonly (keyof RewriteOptions)[] = ['signal', 'abandon']
const COMPACT_OPTIONS: readonly (keyof CompactOptions)[] = [
  'form',
  'pivot',
  'instructions',
  'target',
  'summarizer',
  ...REWRITE_OPTIONS,
]

/** Another operation has reserved the session. Nothing was changed. */
export interface BusyOutcome {
  readonly ok: false
  readonly reason: 'busy'
  readonly message: string
}

export async function compactSession(
  session: OpenSession,
  options: CompactOptions,
): Promise<CommitResult | BusyOutcome> {
  checkOptionNames('compact', options, COMPACT_OPTIONS)
  return runRewrite(session, 'compact', options, (run) =>
    compact(run, turnHost(session).compaction, toCompactInput(options)),
  )
}

export async function planSessionCompaction(
  session: OpenSession,
  options: CompactOptions,
): Promise<CompactionPlan | RefusedRewrite> {
  checkOptionNames('planCompaction', options, COMPACT_OPTIONS)
  checkOpen(session)
  const run = createTurnContext(session)
  await refreshFromLog(session, run)
  const host = turnHost(session)
  return planCompaction(run.state, toCompactInput(options), { host, compaction: host.compaction })
}

/** Reserves nothing: a turn may continue and messages may be appended while the summary is written. */
export async function prepareSessionDraft(
  session: OpenSession,
  plan: CompactionPlan,
  signal: AbortSignal | undefined,
): Promise<CompactionDraft | RefusedRewrite> {
  checkStepInput('prepare', plan, ['request', 'span', 'entries'])
  return trackWork(session, () => {
    const run = createTurnContext(session, { signals: [signal] })
    return runAndEmit(session, prepareCompaction(run, turnHost(session).compaction, plan))
  })
}

export async function commitSessionDraft(
  session: OpenSession,
  draft: CompactionDraft,
  options: RewriteOptions = {},
): Promise<CommitResult | BusyOutcome> {
  checkStepInput('commit', draft, ['plan', 'summary', 'receipt'])
  checkOptionNames('commit', options, REWRITE_OPTIONS)
  return runRewrite(session, 'commit', options, (run) =>
    commitCompaction(run, turnHost(session).compaction, draft),
  )
}

export type UndoOptions = Omit<UndoRequest, 'id'> & RewriteOptions

export async function undoSessionRewrite(
  session: OpenSession,
  id: string | undefined,
  options: UndoOptions,
): Promise<UndoResult | BusyOutcome> {
  checkOptionNames('undo', options, ['force', ...REWRITE_OPTIONS])
  if (id !== undefined && typeof id !== 'string')
    throw badOptionError(
      'id',
      `undo: the id is ${formatValue(id)}; expected that of a compaction or clearing, or nothing for the newest.`,
    )
  const { force = false } = options
  return runRewrite(session, 'undo', options, (run) =>
    undoRewrite(run, turnHost(session).compaction, { force, ...omitUndefined({ id }) }),
  )
}

/** `note`: why the pin has no effect now, for the user. */
export type PinOutcome = { readonly ok: true; readonly note?: string } | RefusedRewrite

export async function pinSessionRecord(
  session: OpenSession,
  uuid: string,
  isPinned: boolean,
): Promise<PinOutcome> {
  return trackWork(session, async () => {
    const run = createTurnContext(session)
    await refreshFromLog(session, run)
    return runAndEmit(session, pinRecord(run, uuid, isPinned))
  })
}

/** Runs a rewrite if nothing else has reserved the session and no response is outstanding. */
async function runRewrite<End>(
  session: OpenSession,
  operation: string,
  options: RewriteOptions,
  rewrite: (run: TurnContext) => AsyncGenerator<TurnEvent, End>,
): Promise<End | BusyOutcome> {
  checkOpen(session)
  const busy = checkNotBusy(session, operation)
  if (busy !== null) return busy
  // After a rewrite, the answer to the old context could not be used to measure the new one.
  if (session.pendingRequest !== null && options.abandon !== true) {
    const message = `${operation}: next gave a request of the session ${session.id} whose response has not been appended; nothing was changed. Append the response first, or give { abandon: true } if none will come.`
    return { ok: false, reason: 'busy', message }
  }
  const release = reserveSession(session, operation)
  try {
    session.pendingRequest = null
    const run = createTurnContext(session, { signals: [options.signal] })
    await refreshFromLog(session, run)
    return await runAndEmit(session, rewrite(run))
  } finally {
    release()
  }
}

/** Null if no operation has reserved the session. */
export function checkNotBusy({ id, busyWith }: OpenSession, operation: string): BusyOutcome | null {
  if (busyWith === null) return null
  const message = `${operation}: the session ${id} is busy with ${busyWith}; nothing was changed. Try again when that has ended.`
  return { ok: false, reason: 'busy', message }
}

/** A step needs the result of the step before it, not its refusal. */
function checkStepInput(step: 'prepare' | 'commit', input: unknown, fields: readonly string[]): void {
  if (isObject(input) && input.ok === true && fields.every((field) => isObject(input[field]))) return
  const expected = step === 'prepare' ? 'a plan, as planCompaction' : 'a draft, as prepare'
  const isRefusal = isObject(input) && typeof input.message === 'string'
  const found = isRefusal ? `a refusal: ${input.message}` : `${formatValue(input)}.`
  throw badOptionError(step, `${step}: expected ${expected} returns it if ok, found ${found}`)
}

function toCompactInput(options: CompactOptions): CompactionRequest {
  const { form, pivot, instructions, target, summarizer } = options
  return {
    trigger: 'manual',
    cause: 'person',
    ...omitUndefined({ form, pivot, instructions, target, summarizer }),
  }
}

/**
 * The context of a running turn, and functions that append records to its session. Each batch is appended only if the
 * log is still at the expected position.
 */
import { describeThrown } from '../errors.ts'
import type {
  AssistantRecord,
  AttachmentRecord,
  CompactCause,
  RecordBase,
  SessionRecord,
  SystemRecord,
  UserRecord,
} from '../log/record.ts'
import { NO_PARENT, requireRecordAt } from '../log/session-log.ts'
import { runStepsInSlices, type WorkInSteps } from '../log/work-steps.ts'
import { repairRecordSurrogates } from '../text/truncate-text.ts'
import { type RefusedRewrite, refuseRewrite, type TurnEvent, type TurnFailure } from './events.ts'
import { type CommittedRewrite, runCleanups, type TurnHost } from './host.ts'
import type { AppendOutcome, NewRecord, Signal } from './ports.ts'
import { applyRecords, refreshSessionState, type SessionState } from './session-state.ts'

/** Everything that the steps of a turn share. `state` is replaced after every append. */
export interface TurnContext {
  state: SessionState
  /** Replaced only if a truncated prompt shows that the context window has another size than assumed. */
  host: TurnHost
  readonly signal: Signal | undefined
  /** Runs writes one after another, for turns that share one session state. */
  readonly writeLock?: WriteLock
  /** The summary that is prepared beside the turn. Without it, every compaction is made within the turn. */
  readonly prepared?: PreparedSummarySlot
}

/** A summary that is prepared beside the turns of a session, and replaces the conversation when that is needed. */
export interface PreparedSummarySlot {
  readonly phase: 'none' | 'preparing' | 'ready'
  /**
   * Starts to prepare a summary and returns true at once. Returns false if a summary exists already, if one was dropped
   * since the last prompt, or if none can be planned.
   */
  prepare(): boolean
  /** Resolves when no summary is being prepared any more. */
  settle(): Promise<void>
  /** Commits the summary. Returns true if the context was replaced; if not, the summary is dropped with an event. */
  swapIn(turn: TurnContext, cause: CompactCause): AsyncGenerator<TurnEvent, boolean>
}

/** Runs `work` once all work that was given before has ended. */
export type WriteLock = <T>(work: () => Promise<T>) => Promise<T>

/** Runs `work` while no other turn that shares the session state can write. */
export function withWriteLock<T>({ writeLock }: TurnContext, work: () => Promise<T>): Promise<T> {
  return writeLock === undefined ? work() : writeLock(work)
}

/** A record before it is linked into the log. The writer adds uuid, parent, time and session id. */
export type UnlinkedRecord = WithoutLinks<UserRecord | AssistantRecord | AttachmentRecord | SystemRecord>

type WithoutLinks<R extends RecordBase> = R extends unknown
  ? Omit<R, 'uuid' | 'parentUuid' | 'timestamp' | 'sessionId' | 'seq' | 'batch'>
  : never

/** Appends records as one batch after the last record of the conversation. Returns null on success, otherwise the failure. */
export async function* appendUnlinkedRecords(
  turn: TurnContext,
  bodies: readonly UnlinkedRecord[],
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  return bodies.length === 0 ? null : yield* appendUnlinkedBatches(turn, [bodies])
}

/**
 * Appends batches, with one flush to disk for all. Each batch is in the log as a whole or not at all. Written batches
 * are removed from `batches`, so that the rest can be tried again after a failure.
 */
export async function* appendUnlinkedBatches(
  turn: TurnContext,
  batches: (readonly UnlinkedRecord[])[],
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const end = yield* writeBatches(turn, () => {
    const records = [...linkRecords(turn, batches.flat())]
    return batches.map(({ length }) => records.splice(0, length))
  })
  batches.splice(0, end.written)
  return end.failure
}

/**
 * Appends records that already have a uuid and a parent, such as a compaction boundary, as one batch. Returns null on
 * success. Returns a conflict if the session changed before the write, because the records depend on its state.
 */
export async function* appendLinkedRecords(
  turn: TurnContext,
  records: readonly NewRecord[],
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  if (records.length === 0) return null
  return (yield* writeBatches(turn, () => [records], turn.state.position)).failure
}

/** Number of attempts before a rewrite is given up because other writers keep appending. */
const MAX_TRIES = 8

/**
 * Appends the records that `prepare` creates for the session as it is now. If another writer was faster, reads its records and
 * prepares again. `unchanged`: what a refusal says about the session; `advice`: what can be done if others keep writing.
 */
export async function* appendRewrite<Prepared extends { readonly records: readonly NewRecord[] }>(
  turn: TurnContext,
  prepare: () => Prepared | RefusedRewrite,
  { unchanged, advice }: { readonly unchanged: string; readonly advice: string },
): AsyncGenerator<TurnEvent, Prepared | RefusedRewrite> {
  for (let tried = 0; tried < MAX_TRIES; tried += 1) {
    const prepared = prepare()
    if ('ok' in prepared) return prepared
    const failure = yield* appendLinkedRecords(turn, prepared.records)
    if (failure === null) return prepared
    if (failure.reason !== 'conflict')
      return refuseFailedAppend(failure, `Another writer holds the session; ${unchanged}.`)
    await refreshSession(turn)
    await yieldToHost(turn)
  }
  return refuseRewrite('superseded', `Others kept writing to the session; ${unchanged}. ${advice}`)
}

/** Runs the cleanups of the host for a rewrite that is in the log. Returns the event that reports it. */
export function reportRewrite(
  { host: { source, compaction } }: TurnContext,
  kind: CommittedRewrite['kind'],
  released: Pick<CommittedRewrite, 'toolUseIds' | 'filePaths'> = { toolUseIds: [], filePaths: [] },
): TurnEvent {
  const rewritten = { kind, source, ...released }
  return { type: 'rewritten', rewritten, faults: runCleanups(compaction.cleanups ?? [], rewritten) }
}

/** Returns the refusal of a rewrite whose records could not be appended. `message`: for the user, unless the storage failed. */
export function refuseFailedAppend(failure: TurnFailure, message: string): RefusedRewrite {
  if (failure.reason === 'port') return refuseRewrite('port', failure.message)
  return refuseRewrite(failure.reason === 'locked' ? 'locked' : 'superseded', message)
}

interface WriteEnd {
  /** Number of batches that are in the log. */
  readonly written: number
  readonly failure: TurnFailure | null
}

/**
 * Appends the batches that `create` returns, while holding the write lock. `createdAt`: log position at which the
 * records were created. If the log is at another position, the append is a conflict.
 */
async function* writeBatches(
  turn: TurnContext,
  create: () => readonly (readonly NewRecord[])[],
  createdAt?: number,
): AsyncGenerator<TurnEvent, WriteEnd> {
  const appended: SessionRecord[] = []
  const end = await withWriteLock(turn, async (): Promise<WriteEnd> => {
    const batches = create().map((records) => records.map(repairRecordSurrogates))
    const { position } = turn.state
    if (createdAt !== undefined && createdAt !== position) {
      const refusal = { ok: false, reason: 'conflict', position } as const
      return { written: 0, failure: { ok: false, reason: 'conflict', refusal, unsaved: batches.flat() } }
    }
    let after = position
    const appends = batches.map((records) => {
      const append = appendOrExplain(turn, after, records)
      after += records.length
      return append
    })
    const results = await Promise.all(appends)
    let [written, last] = [0, position]
    for (const result of results) {
      if (typeof result === 'string' || !result.ok) break
      appended.push(...result.records)
      last = result.position
      written += 1
    }
    // The state may have changed during the append, so the records are added to the current state.
    if (written > 0) turn.state = applyRecords(turn.state, appended, last)
    const refusal = results[written]
    const unsaved = batches.slice(written).flat()
    if (typeof refusal === 'string')
      return { written, failure: { ok: false, reason: 'port', message: refusal, unsaved } }
    if (refusal === undefined || refusal.ok) return { written, failure: null }
    return { written, failure: { ok: false, reason: refusal.reason, refusal, unsaved } }
  })
  if (appended.length > 0) yield { type: 'appended', records: appended }
  return end
}

/** Appends records to the journal. Returns a sentence for the user if the journal throws, as on a full disk. */
async function appendOrExplain(
  { state, host }: TurnContext,
  after: number,
  records: readonly NewRecord[],
): Promise<AppendOutcome | string> {
  try {
    return await host.journal.append(state.id, after, records)
  } catch (thrown) {
    const why = describeThrown(thrown)
    return `The session could not be saved: ${why.replace(/\.$/, '')}. Everything before is in the log; repair the storage, then continue.`
  }
}

/** Reads the records that other writers appended into the turn's state. Call it after a conflict. */
export function refreshSession(turn: TurnContext): Promise<void> {
  return withWriteLock(turn, async () => {
    for (;;) {
      const before = turn.state
      const after = await refreshSessionState(turn.host.journal, before)
      if (turn.state !== before) continue
      turn.state = after
      return
    }
  })
}

/** Links the records to each other, and the first one to `parent`. Default parent: the last record of the conversation. */
export function linkRecords(
  { state, host }: TurnContext,
  bodies: readonly UnlinkedRecord[],
  parent: string | null = findLastRecordUuid(state),
): readonly NewRecord[] {
  const timestamp = new Date(host.clock.now()).toISOString()
  const cwd = host.cwd === undefined ? {} : { cwd: host.cwd }
  let parentUuid = parent
  return bodies.map((body) => {
    const uuid = host.ids.next('record')
    const record = { ...body, uuid, parentUuid, timestamp, sessionId: state.id, ...cwd }
    parentUuid = uuid
    return record
  })
}

/** Returns the uuid of the last record of the conversation; null if there is none. */
export function findLastRecordUuid({ session }: SessionState): string | null {
  return session.newestRecord === NO_PARENT
    ? null
    : (requireRecordAt(session, session.newestRecord).uuid ?? null)
}

export function isTurnAborted({ signal }: TurnContext): boolean {
  return signal?.aborted === true
}

/** Lets the host run other work for a moment; messages may be appended meanwhile. Returns false if the turn was aborted. */
export async function yieldToHost({ host, signal }: Pick<TurnContext, 'host' | 'signal'>): Promise<boolean> {
  await host.pause?.()
  return signal?.aborted !== true
}

/** Runs long work in slices, between which the host runs other work. Returns null if the turn was aborted. */
export function runSlicesUnlessAborted<Result>(
  turn: Pick<TurnContext, 'host' | 'signal'>,
  steps: WorkInSteps<Result>,
): Promise<Result | null> {
  return runStepsInSlices(steps, () => yieldToHost(turn))
}

/** Runs work as `runSlicesUnlessAborted` does; if the turn is aborted, the rest of the work is done at once. */
export async function runSlicesToEnd<Result>(
  { host, signal }: Pick<TurnContext, 'host' | 'signal'>,
  steps: WorkInSteps<Result>,
): Promise<Result> {
  const pause = async (): Promise<boolean> =>
    signal?.aborted === true || yieldToHost({ host, signal: undefined })
  return (await runStepsInSlices(steps, pause)) as Result
}

/** Time for a model or a tool to stop and return what it has after the turn was aborted. */
const GRACE_MS = 250
/** A model or a tool has no time limit here. A single wait lasts this long and is then renewed. */
const ONE_WAIT_MS = 86_400_000

/**
 * Waits for work that may ignore the abort signal. Returns null if the turn was aborted and the work did not end within
 * a moment; the work is then abandoned. Without a signal it waits until the work ends.
 */
export async function waitUnlessAborted<T>(
  { host, signal }: TurnContext,
  work: Promise<T>,
): Promise<{ readonly value: T } | null> {
  const { deadlines } = host.compaction
  if (signal === undefined) return { value: await work }
  for (;;) {
    const end = await deadlines.within(ONE_WAIT_MS, () => work, signal)
    if (end.ok) return { value: end.value }
    if (end.why === 'timeout') continue
    const late = await deadlines.within(GRACE_MS, () => work)
    return late.ok ? { value: late.value } : null
  }
}

/** Returns the session as it would be with `records`, to measure and validate a rewrite. Appends nothing. */
export function previewAppend(state: SessionState, records: readonly NewRecord[]): SessionState {
  const of = records.length
  const stamped = records.map(
    (record, index): SessionRecord =>
      ({
        ...record,
        seq: state.position + index + 1,
        batch: { id: PREVIEW_BATCH_ID, index, of },
      }) as SessionRecord,
  )
  return applyRecords(state, stamped, state.position + of)
}

const PREVIEW_BATCH_ID = 'trial'

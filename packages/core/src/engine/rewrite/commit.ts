/**
 * Commits a compaction: one batch, compared and swapped on the log's position. What has come meanwhile stands behind
 * it; a view that somebody else has rewritten is left alone.
 */
import { isCompactBoundary } from '../../conversation/boundary.ts'
import { advanceCheck, startCheck } from '../../view/checked.ts'
import { openCalls } from '../../view/settle.ts'
import type { Finding } from '../../view/validate/finding.ts'
import { checkMessage } from '../../view/validate/messages.ts'
import { nextRequest } from '../next-request.ts'
import type { NewRecord } from '../ports.ts'
import type { SessionState } from '../session-state.ts'
import type { TurnEvent } from '../turn-event.ts'
import type { TurnHost } from '../turn-host.ts'
import { appendRecords, linked, refresh, type TurnRun } from '../turn-run.ts'
import { CLOSED } from './breaker.ts'
import { runCleanups } from './cleanups.ts'
import type { CompactionDraft } from './draft.ts'
import { recordsOf } from './draft.ts'
import { asEdited } from './edited.ts'
import { lateEntries } from './late.ts'
import { pinnedMeanwhile } from './pins.ts'
import { measureNow, withRoom } from './plan-now.ts'
import { receiptFor } from './receipt-for.ts'
import { ABORTED, type RewriteRefused, refused, SUPERSEDED } from './refused.ts'
import { releasedBy } from './released-by.ts'
import type { Compacted } from './rewrite-event.ts'
import type { Room } from './room.ts'
import { chainLink, compactedNow } from './tracking.ts'
import { trial } from './trial.ts'
import { untilDone } from './until-done.ts'

export type Committed = { readonly ok: true; readonly compaction: Compacted } | RewriteRefused

/** Others may write too: as often as that is tried again before it is given up. */
const MOST_TRIES = 8

export function commitCompaction(
  run: TurnRun,
  room: Room,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, Committed> {
  return untilDone(committed(run, room, draft))
}

/** The same without saying that it is over, for whoever has begun it. */
export async function* committed(
  run: TurnRun,
  room: Room,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, Committed> {
  for (let tried = 0; tried < MOST_TRIES; tried += 1) {
    if (run.signal?.aborted === true) return ABORTED
    const ready = readyRecords(run, room, draft)
    if ('ok' in ready) return ready
    const before = run.state
    const halt = yield* appendRecords(run, ready.records)
    if (halt === null) return yield* done(run, room, { before, ...ready })
    if (halt.reason === 'locked')
      return refused('locked', 'Another writer holds the session; nothing was changed.')
    if (halt.reason !== 'conflict') return refused('superseded', SUPERSEDED)
    await refresh(run)
  }
  return refused('superseded', 'Others kept writing to the session; nothing was changed. Compact again.')
}

interface Ready {
  /** As it is committed: without secrets, and with the receipt of what it now says. */
  readonly draft: CompactionDraft
  readonly records: readonly NewRecord[]
  readonly after: number
}

/** Everything is looked at again on what the session is now: it may have grown since the draft was made. */
function readyRecords(run: TurnRun, room: Room, given: CompactionDraft): Ready | RewriteRefused {
  const draft = asEdited(given)
  const { state, host } = run
  if (draft.summary.text.trim() === '' && draft.summary.block === null)
    return refused('no-summary', 'The summary is empty; give it a text.')
  if (openCalls(state.flat).length > 0)
    return refused('pending-call', 'A tool call waits for its answer; compact when it is there.')
  if (pinnedMeanwhile(draft.plan, state.pins).length > 0) return refused('superseded', PINNED)
  const tried = recordsOf(run, room, draft, null)
  if (tried === null) return refused('superseded', SUPERSEDED)
  const next = trial(state, tried)
  const after = measureNow(next, host, room).expected
  if (after >= measureNow(state, host, room).expected)
    return refused(
      'not-smaller',
      `The result would have ${after} tokens, no fewer than now: nothing is gained.`,
    )
  const wrong = findingIn(next, run)
  if (wrong !== null) return refused('invalid', `A provider would refuse the result: ${wrong}`)
  const receipt = receiptNow(run, room, { draft, given, next })
  return { draft: { ...draft, receipt }, records: withPostTokens(tried, after), after }
}

const PINNED =
  'A message was pinned that the summary already stands for. Nothing was changed; compact again to keep it.'

interface Told {
  readonly draft: CompactionDraft
  readonly given: CompactionDraft
  /** The session as it would be. */
  readonly next: SessionState
}

/** The one that was prepared holds while nobody has edited the summary and nothing has come. */
function receiptNow(
  { state }: TurnRun,
  room: Room,
  { draft, given, next }: Told,
): CompactionDraft['receipt'] {
  const isAsPrepared = draft === given && lateEntries(draft.plan, state.view)?.length === 0
  return isAsPrepared ? given.receipt : receiptFor(room, { drafted: draft, before: state, after: next })
}

function withPostTokens(records: readonly NewRecord[], postTokens: number): readonly NewRecord[] {
  return records.map((record) =>
    isCompactBoundary(record as never)
      ? ({
          ...record,
          compactMetadata: { ...(record as { compactMetadata: object }).compactMetadata, postTokens },
        } as NewRecord)
      : record,
  )
}

/** What a provider would newly find wrong. What it finds wrong already is no reason to leave it as it is. */
function findingIn(next: SessionState, run: TurnRun): string | null {
  const { host } = run
  const [first] = findingsOf(prompted({ ...run, state: next }), host)
  if (first === undefined || findingsOf(prompted(run), host).length > 0) return null
  return `${first.path}: ${first.message}`
}

/** Where the model has spoken last, nothing is sent before the person has said something. */
function prompted(run: TurnRun): SessionState {
  const { state } = run
  const last = state.flat.tail.at(-1) ?? state.flat.frozen.last
  if (last?.message.role !== 'assistant') return state
  return trial(state, linked(run, [{ type: 'user', message: { role: 'user', content: 'Go on.' } }]))
}

/** Of the whole request where there is a prefix for it; else of the messages alone. */
function findingsOf(state: SessionState, host: TurnHost): readonly Finding[] {
  const { standing } = state.told
  if (standing !== null) return nextRequest(state, standing, host).findings
  let { state: checked } = advanceCheck(startCheck(host.profile), state.flat)
  for (const { message } of state.flat.tail) checked = checkMessage(checked, message)
  return checked.findings.toArray()
}

interface Done extends Ready {
  readonly before: SessionState
}

async function* done(
  run: TurnRun,
  room: Room,
  { draft, before, after, records }: Done,
): AsyncGenerator<TurnEvent, Committed> {
  const known = withRoom(before, room).room
  const { plan, summary, receipt, durationMs } = draft
  const compaction: Compacted = {
    id: records[0]?.uuid ?? '',
    trigger: plan.asked.trigger,
    cause: plan.asked.cause,
    tokensBefore: plan.before.expected,
    tokensAfter: after,
    summarizer: summary.summarizer,
    fallbackReason: summary.fallbackReason,
    recordsCoveredLocally: summary.recordsCoveredLocally,
    durationMs,
    receipt,
    notes: plan.notes,
    usage: draft.usage,
    firedBy: plan.asked.firedBy ?? null,
    steps: summary.steps,
    link: chainLink(known.tracking, run.host.policy.turn.auto),
    willRetrigger: plan.line !== null && after >= plan.line,
  }
  run.state = settled(run, room, { known, after, draft })
  yield { type: 'compact', compaction }
  yield* forgotten(run, room, draft)
  return { ok: true, compaction }
}

interface Settling {
  readonly known: ReturnType<typeof withRoom>['room']
  readonly after: number
  readonly draft: CompactionDraft
}

/** What was learnt of the old view is let go with it. */
function settled({ state, host }: TurnRun, room: Room, { known, after, draft }: Settling): SessionState {
  const summary = room.estimator.text(draft.summary.text)
  const carried = [...draft.front, ...draft.carried, ...draft.hooks].reduce(
    (sum, { tokens }) => sum + tokens,
    0,
  )
  const next = {
    ...known,
    breaker: CLOSED,
    tracking: compactedNow(known.tracking, host.ids.next('turn')),
    outlook: { after, summary, carried },
  }
  return withRoom({ ...state, room: next }, room)
}

function* forgotten(run: TurnRun, room: Room, { plan }: CompactionDraft): Generator<TurnEvent, void> {
  const released = releasedBy(plan.entries, run.state.view.entries, room.rules)
  const rewritten = { kind: 'compact' as const, source: run.host.source, ...released }
  yield { type: 'rewritten', rewritten, faults: runCleanups(room.cleanups ?? [], rewritten) }
}

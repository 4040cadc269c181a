/**
 * Commits a compaction: one batch, compared and swapped on the log's position. What has come meanwhile stands behind
 * it; a view that somebody else has rewritten is left alone.
 */

import { showsFile } from '../clearing/select-results.ts'
import { emptyRegister, type Register, type RegisterRules } from '../clearing/tool-result-index.ts'
import { advanceRegister } from '../clearing/update-index.ts'
import type { View } from '../context/context-view.ts'
import { openCalls } from '../context/flatten.ts'
import {
  ABORTED,
  type Compacted,
  type RewriteRefused,
  refused,
  SUPERSEDED,
  type TurnEvent,
  untilDone,
} from '../engine/events.ts'
import { type Rewritten, type Room, runCleanups, type TurnHost } from '../engine/host.ts'
import { measureNow, withRoom } from '../engine/measure-context.ts'
import { nextRequest } from '../engine/next-request.ts'
import type { NewRecord } from '../engine/ports.ts'
import {
  CLOSED,
  chainLink,
  compactedNow,
  pinnedMeanwhile,
  type SessionState,
} from '../engine/session-state.ts'
import { appendRecords, linked, refresh, type TurnRun, trial } from '../engine/session-writer.ts'
import { isCompactBoundary } from '../log/record.ts'
import type { Finding } from '../validate/finding.ts'
import { advanceCheck, checkMessage, startCheck } from '../validate/validate.ts'
import { asEdited, type CompactionDraft, lateEntries, receiptFor, recordsOf } from './draft.ts'

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

// What left the view with a compaction: whatever a host holds to be "already in the context" must be let go.

type Entries = View['entries']

/** A file stays known while a complete read or a whole write of it is among the messages kept. */
export function releasedBy(
  before: Entries,
  after: Entries,
  rules: RegisterRules,
): Pick<Rewritten, 'toolUseIds' | 'filePaths'> {
  const [had, has] = [registerOf(before, rules), registerOf(after, rules)]
  const ids = [...had.results].map(({ call }) => call.id)
  const shown = filesShown(has)
  return {
    toolUseIds: ids.filter((id) => has.resultPlaces.get(id) === undefined),
    filePaths: [...pathsIn(had)].filter((path) => !shown.has(path)),
  }
}

function registerOf(entries: Entries, rules: RegisterRules): Register {
  return advanceRegister(emptyRegister(rules), { entries })
}

function pathsIn({ calls }: Register): ReadonlySet<string> {
  return new Set([...calls].flatMap(({ path }) => (path === null ? [] : [path])))
}

function filesShown(register: Register): ReadonlySet<string> {
  const whole = [...register.results].filter((result) => showsFile(register, result))
  return new Set(whole.flatMap(({ call }) => call.path ?? []))
}

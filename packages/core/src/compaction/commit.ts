/**
 * Commits a draft as one batch, compared and swapped on the log's position. Entries appended meanwhile stay after it; a
 * context that another writer has rewritten is left alone.
 */

import { showsFile } from '../clearing/select-results.ts'
import { emptyRegister, type RegisterRules } from '../clearing/tool-result-index.ts'
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
  type ChainLink,
  CLOSED,
  chainLink,
  compactedNow,
  type RoomState,
  type SessionState,
} from '../engine/session-state.ts'
import { appendRecords, linked, refresh, type TurnRun, trial } from '../engine/session-writer.ts'
import { redact } from '../summary/redact.ts'
import type { Finding } from '../validate/finding.ts'
import { advanceCheck, checkMessage, startCheck } from '../validate/validate.ts'
import { type CompactionDraft, lateEntries, receiptFor, recordsOf } from './draft.ts'

export type Committed = { readonly ok: true; readonly compaction: Compacted } | RewriteRefused

/** Attempts before giving up, if other writers keep appending. */
const MAX_TRIES = 8

/** Commits a draft that was prepared earlier, and emits the phase `done`. */
export function commitCompaction(
  turn: TurnRun,
  compaction: Room,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, Committed> {
  return untilDone(committed(turn, compaction, draft))
}

/** The same without the phase `done`, for a caller that emits it. */
export async function* committed(
  turn: TurnRun,
  compaction: Room,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, Committed> {
  for (let tried = 0; tried < MAX_TRIES; tried += 1) {
    if (turn.signal?.aborted === true) return ABORTED
    const valid = validateDraft(turn, compaction, draft)
    if ('ok' in valid) return valid
    const before = turn.state
    const failure = yield* appendRecords(turn, valid.records)
    if (failure === null) {
      const known = withRoom(before, compaction).room
      const link = chainLink(known.tracking, turn.host.policy.turn.auto)
      const tracking = compactedNow(known.tracking, turn.host.ids.next('turn'))
      const result = describeCompaction(valid, link)
      turn.state = stateAfterCompaction(turn.state, compaction, { ...known, tracking }, valid)
      yield { type: 'compact', compaction: result }
      const released = releasedBy(draft.plan.entries, turn.state.view.entries, compaction.rules)
      const rewritten = { kind: 'compact' as const, source: turn.host.source, ...released }
      yield { type: 'rewritten', rewritten, faults: runCleanups(compaction.cleanups ?? [], rewritten) }
      return { ok: true, compaction: result }
    }
    if (failure.reason === 'locked')
      return refused('locked', 'Another writer holds the session; nothing was changed.')
    if (failure.reason !== 'conflict') return refused('superseded', SUPERSEDED)
    await refresh(turn)
  }
  return refused('superseded', 'Others kept writing to the session; nothing was changed. Compact again.')
}

interface ValidDraft {
  /** As committed: secrets removed, with the receipt of what it now contains. */
  readonly draft: CompactionDraft
  readonly records: readonly NewRecord[]
  readonly after: number
}

/** Validates the draft against the session as it is now: it may have grown since the draft was prepared. */
function validateDraft(turn: TurnRun, compaction: Room, given: CompactionDraft): ValidDraft | RewriteRefused {
  const draft = applyEdit(given)
  const { state, host } = turn
  if (draft.summary.text.trim() === '' && draft.summary.block === null)
    return refused('no-summary', 'The summary is empty; give it a text.')
  if (openCalls(state.flat).length > 0)
    return refused('pending-call', 'A tool call waits for its answer; compact when it is there.')
  const { plan } = draft
  const isNewlyPinned = plan.span.summarised.some(
    ({ record: { uuid } }) => state.pins.has(uuid) && !plan.pins.has(uuid),
  )
  if (isNewlyPinned) return refused('superseded', PINNED)
  const records = recordsOf(turn, compaction, draft)
  if (records === null) return refused('superseded', SUPERSEDED)
  const next = trial(state, records)
  const after = measureNow(next, host, compaction).expected
  if (after >= measureNow(state, host, compaction).expected)
    return refused(
      'not-smaller',
      `The result would have ${after} tokens, no fewer than now: nothing is gained.`,
    )
  const problem = findNewProblem(next, turn)
  if (problem !== null) return refused('invalid', `A provider would refuse the result: ${problem}`)
  // The prepared receipt holds unless the summary was edited or entries were appended.
  const isAsPrepared = draft === given && lateEntries(plan, state.view)?.length === 0
  const receipt = isAsPrepared ? given.receipt : receiptFor(compaction, draft, { before: state, after: next })
  const [boundary, ...others] = records as [{ readonly compactMetadata: object } & NewRecord, ...NewRecord[]]
  const measured = { ...boundary, compactMetadata: { ...boundary.compactMetadata, postTokens: after } }
  return { draft: { ...draft, receipt }, records: [measured as NewRecord, ...others], after }
}

const PINNED =
  'A message was pinned that the summary already stands for. Nothing was changed; compact again to keep it.'

/**
 * The draft with the user's edit of its summary, secrets removed; the same draft if it was not edited. An edit replaces
 * a provider's own block. What the check could not fit in says nothing about an edited text.
 */
function applyEdit(draft: CompactionDraft): CompactionDraft {
  const { summary, prepared } = draft
  if (summary.text === prepared) return draft
  return { ...draft, summary: { ...summary, text: redact(summary.text), block: null, unfit: [] } }
}

/** A provider rule that the compacted context would break; null if the present one breaks rules already. */
function findNewProblem(next: SessionState, turn: TurnRun): string | null {
  const { host } = turn
  const [first] = findProblems(withProbePrompt({ ...turn, state: next }), host)
  if (first === undefined || findProblems(withProbePrompt(turn), host).length > 0) return null
  return `${first.path}: ${first.message}`
}

/** If the conversation ends with a response, a prompt will be appended before the next request: a stand-in for it. */
function withProbePrompt(turn: TurnRun): SessionState {
  const { state } = turn
  const last = state.flat.tail.at(-1) ?? state.flat.frozen.last
  if (last?.message.role !== 'assistant') return state
  return trial(state, linked(turn, [{ type: 'user', message: { role: 'user', content: 'Go on.' } }]))
}

/** Of the whole request if there is a prefix for it, else of the messages alone. */
function findProblems(state: SessionState, host: TurnHost): readonly Finding[] {
  const { standing } = state.told
  if (standing !== null) return nextRequest(state, standing, host).findings
  let { state: checked } = advanceCheck(startCheck(host.profile), state.flat)
  for (const { message } of state.flat.tail) checked = checkMessage(checked, message)
  return checked.findings.toArray()
}

function describeCompaction({ draft, after, records }: ValidDraft, link: ChainLink): Compacted {
  const { plan, summary, receipt, durationMs, usage } = draft
  return {
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
    usage,
    firedBy: plan.asked.firedBy ?? null,
    steps: summary.steps,
    link,
    willRetrigger: plan.line !== null && after >= plan.line,
  }
}

/** Closes the breaker, and keeps the size of what the compaction left as the estimate for the next one. */
function stateAfterCompaction(
  state: SessionState,
  compaction: Room,
  known: RoomState,
  { draft, after }: ValidDraft,
): SessionState {
  const summary = compaction.estimator.text(draft.summary.text)
  const sources = [...draft.front, ...draft.carried, ...draft.hooks]
  const carried = sources.reduce((sum, { tokens }) => sum + tokens, 0)
  const next: RoomState = { ...known, breaker: CLOSED, outlook: { after, summary, carried } }
  return withRoom({ ...state, room: next }, compaction)
}

/**
 * Tool calls and files whose content left the context: a host must not treat them as already read. A file stays as
 * long as a complete read or a full write of it is among the kept messages.
 */
export function releasedBy(
  before: View['entries'],
  after: View['entries'],
  rules: RegisterRules,
): Pick<Rewritten, 'toolUseIds' | 'filePaths'> {
  const had = advanceRegister(emptyRegister(rules), { entries: before })
  const has = advanceRegister(emptyRegister(rules), { entries: after })
  const shown = new Set(
    [...has.results].flatMap((result) => (showsFile(has, result) ? (result.call.path ?? []) : [])),
  )
  const paths = new Set([...had.calls].flatMap(({ path }) => path ?? []))
  return {
    toolUseIds: [...had.results]
      .map(({ call }) => call.id)
      .filter((id) => has.resultPlaces.get(id) === undefined),
    filePaths: [...paths].filter((path) => !shown.has(path)),
  }
}

/** A compaction that is ready to be committed, or to be looked at and edited first. */

import type { View } from '../context/context-view.ts'
import type { Entry } from '../context/entry.ts'
import { isShown } from '../context/entry.ts'
import type { SummaryUsage } from '../engine/events.ts'
import type { Room, WrittenSummary } from '../engine/host.ts'
import type { Ids, NewRecord } from '../engine/ports.ts'
import { type SessionState, thinkingLost } from '../engine/session-state.ts'
import { type TurnRun, tipOf } from '../engine/session-writer.ts'
import type {
  AssistantRecord,
  Attachment,
  CompactMetadata,
  Epoch,
  PreservedMessages,
  UserRecord,
} from '../log/record.ts'
import type { Profile } from '../policy/provider-profile.ts'
import { epochRecord, type RecordBody } from '../request/prefix-updates.ts'
import type { Carried } from '../sources/context-source.ts'
import { type Receipt, receiptOf } from '../summary/receipt.ts'
import { redact } from '../summary/redact.ts'
import { keptUuids } from '../summary/select-span.ts'
import { continuationFor, summaryRecord } from '../summary/summary-message.ts'
import type { CompactForm } from '../summary/summary-prompt.ts'
import type { ContextTokens } from '../tokens/usage.ts'
import type { CompactionPlan } from './plan-compaction.ts'
import { historyBefore } from './write-summary.ts'

export interface CompactionDraft {
  readonly ok: true
  readonly plan: CompactionPlan
  /** May be edited: `text` is what the next request will contain. */
  readonly summary: WrittenSummary
  /** What comes back, in front of the summary and behind it. */
  readonly front: readonly Carried[]
  readonly carried: readonly Carried[]
  /** All that comes back in the order it was rendered, the newest first: what is shed goes by it. */
  readonly rendered: readonly Carried[]
  /** uuids of kept attachments that are out of date: not kept. */
  readonly superseded: readonly string[]
  /** What hooks have to say to the model. */
  readonly hooks: readonly Carried[]
  /** The epoch that begins with it; null where the prefix stays. */
  readonly epoch: Epoch | null
  /** Tokens of the next request, as estimated. */
  readonly after: ContextTokens
  /** The text of the summary as it was prepared: another one was written by the person. */
  readonly prepared: string
  readonly receipt: Receipt
  /** What the calls for the summary have taken so far. */
  readonly usage: SummaryUsage
  readonly durationMs: number
}

export type Drafted = Omit<CompactionDraft, 'ok' | 'after' | 'prepared' | 'receipt' | 'usage'>

/** The records that would be appended now; null where the view is no longer what the plan was made of. */
export function recordsOf(
  run: TurnRun,
  room: Room,
  draft: Drafted,
  postTokens: number | null,
): readonly NewRecord[] | null {
  const { host, state } = run
  const parts = partsOf(state, room, { draft, postTokens, profile: host.profile })
  if (parts === null) return null
  return compactionRecords(parts, {
    ids: host.ids,
    timestamp: new Date(host.clock.now()).toISOString(),
    sessionId: state.id,
    tip: tipOf(state),
  })
}

interface PartsQuestion {
  readonly draft: Drafted
  readonly postTokens: number | null
  readonly profile: Profile
}

function partsOf(
  state: SessionState,
  room: Room,
  { draft, postTokens, profile }: PartsQuestion,
): CompactionParts | null {
  const late = lateEntries(draft.plan, state.view)
  if (late === null) return null
  const { span } = draft.plan
  const { superseded } = draft
  const gone = new Set(superseded)
  const lost = thinkingLost({ span, superseded, isBlock: draft.summary.block !== null, late }, profile)
  return {
    form: span.form,
    metadata: {
      ...metadataOf(draft, postTokens),
      ...(lost.length === 0 ? {} : { clearedThinking: lost }),
    },
    summary: summaryBody(room, draft),
    kept: keptUuids(span).filter((uuid) => !gone.has(uuid)),
    behind: [...span.unanswered, ...late.filter(isShown)].map(({ record }) => record.uuid),
    front: draft.front.map(({ attachment }) => bodyOf(attachment)),
    epoch: draft.epoch,
    carried: [
      ...notesBeside(draft),
      ...[...draft.carried, ...draft.hooks].map(({ attachment }) => attachment),
    ].map(bodyOf),
  }
}

function metadataOf(
  { plan, summary, durationMs }: Drafted,
  postTokens: number | null,
): CompactionParts['metadata'] {
  const { asked, before, span } = plan
  return {
    trigger: asked.trigger,
    cause: asked.cause,
    preTokens: before.expected,
    ...(postTokens === null ? {} : { postTokens }),
    durationMs,
    messagesSummarized: span.summarised.length,
    ...(asked.instructions === undefined ? {} : { userContext: asked.instructions }),
    summarizer: summary.summarizer,
    ...(summary.fallbackReason === null ? {} : { fallbackReason: summary.fallbackReason }),
    ...(summary.recordsCoveredLocally === 0 ? {} : { recordsCoveredLocally: summary.recordsCoveredLocally }),
  }
}

function summaryBody({ retrieval, isAutonomous = false }: Room, { plan, summary }: Drafted): SummaryBody {
  const { block } = summary
  if (block !== null) return blockBody(block, plan)
  return summaryRecord({
    summary: summary.text,
    span: plan.span,
    transcript: whereTheRestIs(retrieval),
    continuation: continuationFor(plan.asked.trigger, isAutonomous),
  })
}

/** The provider's own summary goes back as it came, first of all messages. */
function blockBody(block: NonNullable<WrittenSummary['block']>, { at }: CompactionPlan): SummaryBody {
  return {
    type: 'assistant',
    message: { id: `summary-${at}`, role: 'assistant', model: 'summary', content: [block] },
    isCompactSummary: true,
    isVisibleInTranscriptOnly: true,
  }
}

/** What stands in the summary's message otherwise: beside a provider's own block it comes with the next words. */
function notesBeside({ plan, summary }: Drafted): readonly Attachment[] {
  if (summary.block === null || summary.beside === '') return []
  const goesOn = plan.asked.trigger === 'auto' ? CONTINUATION : ''
  return [
    { type: 'summary_notes', content: [summary.beside, goesOn].filter((text) => text !== '').join('\n\n') },
  ]
}

const CONTINUATION = 'Work that was under way goes on from where it stopped, as if there had been no break.'

function whereTheRestIs({ historyTool, transcript }: Room['retrieval']): string | null {
  if (historyTool !== null) return `the tool ${historyTool} searches and reads it`
  return transcript
}

function bodyOf(attachment: Attachment): RecordBody {
  return { type: 'attachment', isMeta: true, attachment }
}

// The records of a compaction, one batch: boundary, what stands in front of the summary, summary, epoch, what was
// brought back. What is kept verbatim is named in the boundary and stands where its anchor does.

type SummaryBody =
  | Pick<UserRecord, 'type' | 'message' | 'isCompactSummary' | 'isVisibleInTranscriptOnly' | 'isMeta'>
  | Pick<AssistantRecord, 'type' | 'message' | 'rawBlocks' | 'isCompactSummary' | 'isVisibleInTranscriptOnly'>

export interface CompactionParts {
  readonly form: CompactForm
  readonly metadata: Omit<CompactMetadata, 'preservedMessages' | 'unansweredMessages'>
  readonly summary: SummaryBody
  /** uuids that stay verbatim, in order: in front of the summary for `from`, behind it else. */
  readonly kept: readonly string[]
  /** uuids that come last: what nobody has answered, and all that came while the summary was made. */
  readonly behind: readonly string[]
  /** Carriers that stand in front of the summary, where they stay cached. */
  readonly front: readonly RecordBody[]
  /** The epoch that begins; null where the prefix stays. */
  readonly epoch: Epoch | null
  readonly carried: readonly RecordBody[]
}

interface Links {
  readonly ids: Ids
  readonly timestamp: string
  readonly sessionId: string
  /** The last record before the boundary; null where there is none. */
  readonly tip: string | null
}

export function compactionRecords(parts: CompactionParts, links: Links): readonly NewRecord[] {
  const bodies: readonly (RecordBody | SummaryBody)[] = [
    ...parts.front,
    parts.summary,
    ...(parts.epoch === null ? [] : [epochRecord(parts.epoch)]),
    ...parts.carried,
  ]
  const { ids, timestamp, sessionId, tip } = links
  const boundaryUuid = ids.next('record')
  const uuids = bodies.map(() => ids.next('record'))
  const summaryUuid = uuids[parts.front.length] ?? boundaryUuid
  const anchors = { boundaryUuid, summaryUuid, lastUuid: uuids.at(-1) ?? boundaryUuid }
  const boundary: NewRecord = {
    type: 'system',
    subtype: 'compact_boundary',
    content: 'Conversation compacted',
    level: 'info',
    isMeta: false,
    uuid: boundaryUuid,
    parentUuid: null,
    logicalParentUuid: tip,
    timestamp,
    sessionId,
    compactMetadata: { ...parts.metadata, ...preserved(parts, anchors) },
  }
  const others = bodies.map((body, index) => ({
    ...body,
    uuid: uuids[index] as string,
    parentUuid: index === 0 ? boundaryUuid : (uuids[index - 1] as string),
    timestamp,
    sessionId,
  }))
  return [boundary, ...others]
}

interface Anchors {
  readonly boundaryUuid: string
  readonly summaryUuid: string
  readonly lastUuid: string
}

function preserved(
  { form, kept, behind }: CompactionParts,
  { boundaryUuid, summaryUuid, lastUuid }: Anchors,
): Pick<CompactMetadata, 'preservedMessages' | 'unansweredMessages'> {
  const keptList: PreservedMessages = {
    anchorUuid: form === 'from' ? boundaryUuid : summaryUuid,
    uuids: kept,
  }
  return {
    ...(kept.length === 0 ? {} : { preservedMessages: keptList }),
    ...(behind.length === 0 ? {} : { unansweredMessages: { anchorUuid: lastUuid, uuids: behind } }),
  }
}

// A draft whose summary the person has written anew: their words stand as they are, without what is secret in them.

/**
 * The same draft where nobody has touched it. A provider's own block cannot be edited: the text takes its place.
 * What the gate found and had no room for says nothing of a text that it has not seen.
 */
export function asEdited(draft: CompactionDraft): CompactionDraft {
  const { summary, prepared } = draft
  if (summary.text === prepared) return draft
  return { ...draft, summary: { ...summary, text: redact(summary.text), block: null, unfit: [] } }
}

// The receipt of a drafted compaction, told on the session as it is and as it would be.

interface ReceiptFor {
  readonly drafted: Drafted
  /** With all that has come since it was planned. */
  readonly before: SessionState
  readonly after: SessionState
}

export function receiptFor({ scaled, estimator }: Room, { drafted, before, after }: ReceiptFor): Receipt {
  const { plan, front, carried, summary } = drafted
  return receiptOf({
    before: before.view.entries.toArray(),
    history: historyBefore(before, plan),
    after: after.view.entries.toArray(),
    summarised: plan.span.summarised,
    carried: [...front, ...carried],
    unfit: summary.unfit,
    unpinned: plan.span.unpinned.map(({ record }) => record.uuid),
    clean: redact,
    messages: scaled.budgets.userMessages,
    estimate: estimator,
  })
}

// What has come into a view since a rewrite of it was begun.

/** A view as it was when a rewrite of it was begun. */
type SeenView = Pick<View, 'entries' | 'acts'>

/**
 * The entries behind those that `seen` had; null where the view is no longer what it was: another rewrite, an
 * undo or a rewind has come in between, and what was made of the old view would put it back.
 */
export function lateEntries(seen: SeenView, { entries, acts }: View): readonly Entry[] | null {
  return acts === seen.acts && entries.extends(seen.entries) ? entries.toArray(seen.entries.length) : null
}

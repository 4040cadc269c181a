/**
 * A compaction draft is prepared but not yet committed, so that it can be reviewed and edited. This file also reads the
 * history that a draft summarizes, and creates its log records and its receipt.
 */
import {
  type ContextEntry,
  findThinkingResponseIds,
  isProviderClearing,
  isVisibleToModel,
} from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import type { SideCallUsage } from '../engine/events.ts'
import { type CompactionServices, type CompleteSummary, readPolicyToolNames } from '../engine/host.ts'
import type { IdGenerator, NewRecord } from '../engine/ports.ts'
import type { SessionState } from '../engine/session-state.ts'
import { findLastRecordUuid, runSlicesUnlessAborted, type TurnContext } from '../engine/session-writer.ts'
import { addRecordsInSteps, createFactsKeeper, type SessionFacts } from '../facts/session-facts.ts'
import {
  type AssistantRecord,
  type Attachment,
  type CompactMetadata,
  isKnownRecord,
  type KnownRecord,
  type PrefixSnapshot,
  readMessageRole,
  type UserRecord,
} from '../log/record.ts'
import { requireRecordAt } from '../log/session-log.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import type { RewrittenContextPrice } from '../planner/plan-input.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import { listLoadedToolNames } from '../request/prefix-snapshot.ts'
import { createSnapshotRecord, type RecordBody } from '../request/prefix-updates.ts'
import type { CollectedSources, SourceAttachment } from '../sources/context-source.ts'
import { type RankedName, rankNames } from '../summary/ledger.ts'
import { createLocalSummaryPieces } from '../summary/local-summary.ts'
import { createReceipt, type Receipt } from '../summary/receipt.ts'
import { type CompactionForm, type CompactionSpan, listKeptUuids } from '../summary/select-span.ts'
import type { SummaryPiece } from '../summary/summary-pieces.ts'
import { chooseContinuation, createSummaryRecordBody } from '../summary/summary-prompt.ts'
import type { ContextTokens } from '../tokens/usage.ts'
import type { CompactionPlan } from './plan-compaction.ts'

/** A compaction that can be committed as it is, or with an edited `summary.text`. */
export interface CompactionDraft extends UnmeasuredDraft {
  readonly ok: true
  /** Estimated tokens of the next API request after the compaction. */
  readonly after: ContextTokens
  /** The summary text before any edit. If `summary.text` differs, the user has edited the summary. */
  readonly preparedText: string
  readonly receipt: Receipt
  /** What it costs to commit the draft, without the model calls that wrote it; null if a price is unknown. */
  readonly price: RewrittenContextPrice | null
  /** Usage of the model calls that wrote the summary. */
  readonly usage: SideCallUsage
}

/** A compaction draft whose size has not been measured yet. */
export interface UnmeasuredDraft {
  readonly plan: CompactionPlan
  /** The summary for the next API request. The user may edit its `text`. */
  readonly summary: CompleteSummary
  /** Attachments from context sources, such as todos or files, placed before the summary; `sourcesAfter`: after it. */
  readonly sourcesBefore: readonly SourceAttachment[]
  readonly sourcesAfter: readonly SourceAttachment[]
  /** All attachments from context sources, by kind, then newest first. If the draft is too large, optional ones are dropped. */
  readonly allSources: readonly SourceAttachment[]
  /** uuids of attachments in the messages that stay and are out of date. The compacted context leaves them out. */
  readonly outdated: readonly string[]
  /** Context sources that failed or took too long. Items that they supplied before that are attached. */
  readonly failedSources: CollectedSources['failed']
  /** Attachments with text that hooks added to the context. */
  readonly hookContext: readonly SourceAttachment[]
  /** New prefix snapshot (system prompt, tools, model, parameters) that starts with the compaction; null if unchanged. */
  readonly snapshot: PrefixSnapshot | null
  readonly durationMs: number
}

/**
 * Creates the log records of a compaction draft for the current session, without appending them. Entries appended after
 * the draft was planned are kept. Returns null if the context was rewritten since.
 */
export function createDraftRecords(turn: TurnContext, draft: UnmeasuredDraft): readonly NewRecord[] | null {
  const { host, state } = turn
  const late = listEntriesSincePlan(draft.plan, state.view)
  if (late === null) return null
  const { span } = draft.plan
  const { outdated, summary } = draft
  const gone = new Set(outdated)
  const isCurrent = (uuid: string): boolean => !gone.has(uuid)
  const lost = listResponsesLosingThinking(
    { span, outdated, isBlock: summary.block !== null, added: late },
    host.profile,
  )
  const loaded = listLoadedToolNames(state.prefix)
  const attachments: Attachment[] = [
    ...createNotesBesideBlock(draft),
    ...[...draft.sourcesAfter, ...draft.hookContext].map(toAttachment),
  ]
  // A clearing by the provider is repeated in each request, so its record stays with the messages.
  const added = late.filter((entry) => isVisibleToModel(entry) || isProviderClearing(entry.record))
  const unsummarized = [...span.unanswered, ...added]
  const last = unsummarized.map(({ record }) => record.uuid).filter(isCurrent)
  const endsInSummary = !unsummarized.some((entry) => isVisibleToModel(entry) && isCurrent(entry.record.uuid))
  if (endsInSummary && attachments.length === 0 && wouldEndInResponse(draft.plan))
    attachments.push({ type: 'summary_notes', content: CONTINUATION_TEXT })
  const parts: CompactionRecordParts = {
    form: span.form,
    metadata: {
      ...toMetadata(draft),
      ...(loaded.length === 0 ? {} : { preCompactDiscoveredTools: loaded }),
      ...(lost.length === 0 ? {} : { clearedThinking: lost }),
    },
    summary: createSummaryBody(turn.host.compaction, draft),
    kept: listKeptUuids(span).filter(isCurrent),
    last,
    sourcesBefore: draft.sourcesBefore.map(toAttachment).map(toAttachmentBody),
    snapshot: draft.snapshot,
    sourcesAfter: attachments.map(toAttachmentBody),
  }
  return createCompactionRecords(parts, {
    ids: host.ids,
    timestamp: new Date(host.clock.now()).toISOString(),
    sessionId: state.id,
    tip: findLastRecordUuid(state),
  })
}

/**
 * True if a pinned or kept response would become the last message although a prompt or a tool result awaits its answer.
 * The provider refuses such a request, or takes the response for the beginning of the next one.
 */
function wouldEndInResponse({ span, entries }: CompactionPlan): boolean {
  const findLastRole = (some: readonly ContextEntry[]): string | null | undefined =>
    some
      .filter(isVisibleToModel)
      .map(({ record }) => readMessageRole(record))
      .at(-1)
  const kept = span.form === 'from' ? [] : [...span.pinned, ...span.kept]
  return findLastRole(kept) === 'assistant' && findLastRole(entries.toArray()) !== 'assistant'
}

/** Entries of the context, and the compactions and clearings in force, when a compaction was planned. */
type PlannedView = Pick<ContextView, 'entries' | 'rewrites'>

/**
 * Returns the entries appended after the draft was planned. Returns null if the context was rewritten meanwhile, by a
 * compaction, a clearing, an undo or a rewind. The draft is then stale and must not be committed.
 */
export function listEntriesSincePlan(
  seen: PlannedView,
  { entries, rewrites }: ContextView,
): readonly ContextEntry[] | null {
  return rewrites === seen.rewrites && entries.extends(seen.entries)
    ? entries.toArray(seen.entries.length)
    : null
}

/** The messages that a compaction keeps, and what it changes before them. This decides which thinking stays valid. */
export interface KeptContext {
  readonly span: CompactionSpan
  /** uuids of attachments in the kept messages that are out of date. The compacted context leaves them out. */
  readonly outdated: readonly string[]
  /** True if the provider wrote the summary as a compaction block. Thinking that directly follows the block stays valid. */
  readonly isBlock: boolean
  /** Entries appended while the summary was being written. */
  readonly added: readonly ContextEntry[]
}

/**
 * Returns the `message.id` of each kept response that loses its thinking, in order. Some providers accept thinking only
 * if all earlier messages are unchanged, so every response after the first changed message loses its thinking. The log
 * keeps the thinking, and an undo restores it.
 */
export function listResponsesLosingThinking(
  { span, outdated, isBlock, added }: KeptContext,
  profile: ProviderProfile,
): readonly string[] {
  if (profile.thinking.binding !== 'prefix') return []
  const isIntact = isBlock || span.form === 'from'
  const firstChange = span.kept.findIndex(({ record }) => outdated.includes(record.uuid))
  const changed = isIntact ? (firstChange === -1 ? [] : span.kept.slice(firstChange)) : span.kept
  return findThinkingResponseIds([...changed, ...span.pinned, ...added])
}

function toMetadata({ plan, summary, durationMs }: UnmeasuredDraft): CompactionRecordParts['metadata'] {
  const { request, before, span } = plan
  return {
    trigger: request.trigger,
    cause: request.cause,
    preTokens: before.expected,
    durationMs,
    messagesSummarized: span.summarised.length,
    ...(request.instructions === undefined ? {} : { userContext: request.instructions }),
    summarizer: summary.summarizer,
    ...(summary.fallbackReason === null ? {} : { fallbackReason: summary.fallbackReason }),
    ...(summary.recordsCoveredLocally === 0 ? {} : { recordsCoveredLocally: summary.recordsCoveredLocally }),
  }
}

function createSummaryBody(
  { retrieval, isAutonomous = false }: CompactionServices,
  { plan, summary }: UnmeasuredDraft,
): SummaryBody {
  if (summary.block !== null) return createBlockBody(summary.block, plan)
  const { historyTool, transcript } = retrieval
  return createSummaryRecordBody({
    summary: summary.text,
    span: plan.span,
    transcript: historyTool === null ? transcript : `the tool ${historyTool} searches and reads it`,
    continuation: chooseContinuation(plan.request.trigger, isAutonomous, plan.span),
  })
}

/**
 * Creates the record of the provider's compaction block. Each request sends the block back byte for byte as the first message.
 */
function createBlockBody(block: NonNullable<CompleteSummary['block']>, { at }: CompactionPlan): SummaryBody {
  return {
    type: 'assistant',
    message: { id: `summary-${at}`, role: 'assistant', model: 'summary', content: [block] },
    isCompactSummary: true,
    isVisibleInTranscriptOnly: true,
  }
}

/**
 * Creates an attachment with notes that a summary text would contain. A compaction block must not change, so its notes
 * go into the next user message. Empty if the summary is not a compaction block.
 */
function createNotesBesideBlock({ plan, summary }: UnmeasuredDraft): readonly Attachment[] {
  if (summary.block === null || summary.besideBlock === '') return []
  const goesOn = plan.request.trigger === 'auto' ? CONTINUATION_TEXT : ''
  return [
    {
      type: 'summary_notes',
      content: [summary.besideBlock, goesOn].filter((text) => text !== '').join('\n\n'),
    },
  ]
}

const CONTINUATION_TEXT =
  'Work that was under way goes on from where it stopped, as if there had been no break.'

function toAttachment({ attachment }: SourceAttachment): Attachment {
  return attachment
}

function toAttachmentBody(attachment: Attachment): RecordBody {
  return { type: 'attachment', isMeta: true, attachment }
}

type SummaryBody =
  | Pick<UserRecord, 'type' | 'message' | 'isCompactSummary' | 'isVisibleInTranscriptOnly' | 'isMeta'>
  | Pick<AssistantRecord, 'type' | 'message' | 'rawBlocks' | 'isCompactSummary' | 'isVisibleInTranscriptOnly'>

/** The parts from which the log records of a compaction are created. */
export interface CompactionRecordParts {
  readonly form: CompactionForm
  readonly metadata: Omit<CompactMetadata, 'preservedMessages' | 'unansweredMessages'>
  readonly summary: SummaryBody
  /**
   * uuids of records kept verbatim, in order. With form `from` (everything from a record on is summarized) they come
   * before the summary, otherwise after it.
   */
  readonly kept: readonly string[]
  /** uuids of records placed last: user messages without a response, and messages appended while the summary was written. */
  readonly last: readonly string[]
  /** Attachments placed before the summary, where unchanged ones stay cached. */
  readonly sourcesBefore: readonly RecordBody[]
  /** The new prefix snapshot; null if the prefix stays the same. */
  readonly snapshot: PrefixSnapshot | null
  readonly sourcesAfter: readonly RecordBody[]
}

interface RecordLinks {
  readonly ids: IdGenerator
  readonly timestamp: string
  readonly sessionId: string
  /** uuid of the last record before the compaction; null if there is none. */
  readonly tip: string | null
}

/**
 * Creates the records of a compaction as one batch: boundary record, attachments before the summary, summary, prefix snapshot,
 * attachments after the summary. The boundary record lists the kept records and names the last record before the compaction.
 */
export function createCompactionRecords(
  parts: CompactionRecordParts,
  links: RecordLinks,
): readonly NewRecord[] {
  const bodies: readonly (RecordBody | SummaryBody)[] = [
    ...parts.sourcesBefore,
    parts.summary,
    ...(parts.snapshot === null ? [] : [createSnapshotRecord(parts.snapshot)]),
    ...parts.sourcesAfter,
  ]
  const { ids, timestamp, sessionId, tip } = links
  const boundaryUuid = ids.next('record')
  const uuids = bodies.map(() => ids.next('record'))
  const summaryUuid = uuids[parts.sourcesBefore.length] ?? boundaryUuid
  const lastUuid = uuids.at(-1) ?? boundaryUuid
  const { form, kept, last } = parts
  const preserved = { anchorUuid: form === 'from' ? boundaryUuid : summaryUuid, uuids: kept }
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
    compactMetadata: {
      ...parts.metadata,
      ...(kept.length === 0 ? {} : { preservedMessages: preserved }),
      ...(last.length === 0 ? {} : { unansweredMessages: { anchorUuid: lastUuid, uuids: last } }),
    },
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

/**
 * Creates the receipt: the list of what the draft removes from the context. `before`: the current session state, with
 * all records appended after the draft was planned.
 */
export function createDraftReceipt(
  { plan, sourcesBefore, sourcesAfter, failedSources, hookContext, summary }: UnmeasuredDraft,
  { before, after }: { readonly before: SessionState; readonly after: SessionState },
): WorkInSteps<Receipt> {
  return createReceipt({
    before: before.view.entries.toArray(),
    history: listSummarizedRecords(before, plan),
    after: after.view.entries.toArray(),
    summarised: plan.span.summarised,
    carried: [...sourcesBefore, ...sourcesAfter, ...hookContext],
    leftOut: failedSources.map(({ carrier, why }) => ({ source: carrier, why })),
    unfit: summary.missingFacts,
    unpinned: plan.span.unpinned.map(({ record }) => record.uuid),
  })
}

/** The records that a compaction summarizes, read once for all of its steps. */
export interface SummarizedHistory {
  readonly facts: SessionFacts
  /** The names in the records, those that are most likely to be needed first. */
  readonly names: readonly RankedName[]
  /** The pieces for a summary without a model; empty if the notes are the summary, since no such summary is written then. */
  readonly pieces: readonly SummaryPiece[]
}

/** Reads the records to summarize in slices. Returns null if the turn was aborted. */
export function readSummarizedHistory(
  turn: TurnContext,
  { estimator }: Pick<CompactionServices, 'estimator'>,
  plan: CompactionPlan,
): Promise<SummarizedHistory | null> {
  const records = listSummarizedRecords(turn.state, plan)
  return runSlicesUnlessAborted(turn, readInSteps())

  function* readInSteps(): WorkInSteps<SummarizedHistory> {
    const keeper = createFactsKeeper({ tools: readPolicyToolNames(turn.host.policy) })
    yield* addRecordsInSteps(keeper, records)
    const facts = withAnsweredMessages(keeper.read())
    const names = yield* rankNames(records, estimator)
    return {
      facts,
      names,
      pieces: plan.request.notesText === undefined ? yield* createLocalSummaryPieces(facts) : [],
    }
  }
}

/**
 * Marks all user messages as answered. Unanswered ones are kept verbatim and are not among these; the last one only looks
 * unanswered if its answer is among the kept messages. A long message is shortened if it is answered, and left out whole if not.
 */
function withAnsweredMessages(facts: SessionFacts): SessionFacts {
  return { ...facts, messages: facts.messages.map((message) => ({ ...message, isAnswered: true })) }
}

/**
 * Lists the log records that the summary replaces, including those that left the context in earlier compactions. Begins
 * with the first record of the branch or, for form `from`, with the first summarized one; ends with the last summarized
 * one. Records kept verbatim are left out.
 */
function listSummarizedRecords(
  { session, view }: SessionState,
  { span }: CompactionPlan,
): readonly KnownRecord[] {
  const shown = new Set([...span.kept, ...span.pinned, ...span.unanswered].map(({ record }) => record.uuid))
  const indexes = span.summarised.map(({ index }) => index)
  const last = indexes.reduce((most, index) => Math.max(most, index), -1)
  const first = span.form === 'from' ? indexes.reduce((least, index) => Math.min(least, index), last) : 0
  const records: KnownRecord[] = []
  for (let position = 0; position < view.branch.length; position += 1) {
    const index = view.branch.at(position) ?? -1
    if (index < first || index > last) continue
    const record = requireRecordAt(session, index)
    if (isKnownRecord(record) && !shown.has(record.uuid)) records.push(record)
  }
  return records
}

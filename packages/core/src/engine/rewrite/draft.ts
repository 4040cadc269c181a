/** A compaction that is ready to be committed, or to be looked at and edited first. */
import type { Carried } from '../../carry/carrier.ts'
import type { Attachment, Epoch } from '../../conversation/record.ts'
import type { ContextTokens } from '../../measure/usage.ts'
import type { Profile } from '../../policy/profile.ts'
import type { RecordBody } from '../../prompt/tell.ts'
import { keptUuids } from '../../summarize/kept-metadata.ts'
import type { Receipt } from '../../summarize/receipt.ts'
import { continuationFor, summaryRecord } from '../../summarize/summary-message.ts'
import { isShown } from '../../view/parts.ts'
import type { NewRecord } from '../ports.ts'
import type { SessionState } from '../session-state.ts'
import { type TurnRun, tipOf } from '../turn-run.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import { type CompactionParts, compactionRecords, type SummaryBody } from './compaction-records.ts'
import { lateEntries } from './late.ts'
import { thinkingLost } from './lost-thinking.ts'
import type { Room } from './room.ts'
import type { SummaryUsage } from './summary-usage.ts'
import type { WrittenSummary } from './written-summary.ts'

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

/**
 * Selects what a compaction summarises and what it keeps: everything, `from` a record on, or `up_to` one. Tool calls
 * stay with their results, and every record of the context is in exactly one class.
 */

import type { ContextView } from '../context/context-view.ts'
import { findCutPoints } from '../context/cut-points.ts'
import type { ContextEntry } from '../context/entry.ts'
import { isVisibleToModel } from '../context/entry.ts'
import { flatten, listWaitingCallIds } from '../context/flatten.ts'
import { isMedia, toBlocks } from '../log/block.ts'
import {
  type CompactMetadata,
  isClearedByProvider,
  isMicrocompactBoundary,
  isPrompt,
  isSyntheticError,
  type KnownRecord,
  readTypedText,
} from '../log/record.ts'
import type { CompactionForm } from './summary-prompt.ts'

export interface SpanOptions {
  readonly form: CompactionForm
  /** uuid of the record the user picked; the cut is in front of it. Required for `from` and `up_to`. */
  readonly pivot?: string
  readonly pins?: PinOptions
  /** Cut between messages of different roles if possible: a provider's compaction block requires it. */
  readonly betweenRoles?: boolean
}

export interface CompactionSpan {
  readonly form: CompactionForm
  /** What the summary replaces, including earlier summaries and what earlier compactions kept. */
  readonly summarised: readonly ContextEntry[]
  /** The other side of the cut, verbatim: in front of the summary for `from`, behind it for `up_to`. */
  readonly kept: readonly ContextEntry[]
  /** Kept verbatim on the summarised side: pinned records, with the rest of their round. */
  readonly pinned: readonly ContextEntry[]
  /** User messages without a response yet: verbatim, at the very end. */
  readonly unanswered: readonly ContextEntry[]
  /** Records that are never sent to a model, such as notices. */
  readonly notSent: readonly ContextEntry[]
  /** Input for the summarizer, in the order of the context. */
  readonly input: readonly ContextEntry[]
  /** Pinned records beyond the budget: summarised like the rest, and reported. */
  readonly unpinned: readonly ContextEntry[]
  /** The first record after the cut; null for a full compaction. */
  readonly pivot: string | null
  /** The record the user picked, if the cut had to be moved away from it. */
  readonly movedFrom: string | null
  /** A sentence for the user about the moved cut. */
  readonly note: string | null
}

export type SpanRefusalReason =
  | 'empty-conversation'
  | 'nothing-to-summarise'
  | 'pending-call'
  | 'unknown-pivot'
  | 'empty-side'

interface SpanRefusal {
  readonly ok: false
  readonly reason: SpanRefusalReason
  readonly message: string
}

type SpanResult = { readonly ok: true; readonly span: CompactionSpan } | SpanRefusal

export function chooseSpan(view: Pick<ContextView, 'entries'>, options: SpanOptions): SpanResult {
  const entries = view.entries.toArray()
  const records = entries.map((entry) => entry.record)
  if (!entries.some(isVisibleToModel)) return refuseSpan('empty-conversation')
  const waiting = listWaitingCallIds(flatten(view))
  if (waiting.length > 0) return refuseSpan('pending-call', waiting.join(', '))
  const cut = findCut(records, options)
  return 'ok' in cut ? cut : createSpan(entries, cut, options)
}

interface SpanCut {
  readonly position: number
  readonly pivot: string | null
  readonly movedFrom: string | null
  readonly cuts: readonly number[]
}

function findCut(
  records: readonly KnownRecord[],
  { form, pivot, betweenRoles }: SpanOptions,
): SpanCut | SpanRefusal {
  // No call is pending here: the caller has refused that already.
  const cuts = findCutPoints(records, [])
  if (form === 'full') return { position: records.length, pivot: null, movedFrom: null, cuts }
  const picked = records.findIndex((record) => record.uuid === pivot)
  if (pivot === undefined || picked === -1) return refuseSpan('unknown-pivot', pivot ?? '(none was given)')
  const nearest = findNearestCut(cuts, picked, form)
  const position =
    betweenRoles === true && form === 'up_to' ? findCutBetweenRoles(records, cuts, nearest) : nearest
  const first = records[position]?.uuid ?? null
  return { position, pivot: first, movedFrom: first === pivot ? null : pivot, cuts }
}

/** Moves towards keeping more: `from` keeps what comes before the cut, `up_to` what comes after it. */
function findNearestCut(cuts: readonly number[], picked: number, form: CompactionForm): number {
  if (form === 'from') return cuts.find((cut) => cut >= picked) ?? Number.POSITIVE_INFINITY
  return cuts.findLast((cut) => cut <= picked) ?? 0
}

/** The last cut up to `position` between messages of different roles; `position` if there is none. */
function findCutBetweenRoles(
  records: readonly KnownRecord[],
  cuts: readonly number[],
  position: number,
): number {
  const roles = records.map(messageRole)
  const between = cuts.findLast((cut) => {
    if (cut > position) return false
    const before = roles.slice(0, cut).findLast((role) => role !== null)
    const behind = roles.slice(cut).find((role) => role !== null)
    return before !== undefined && behind !== 'system' && before !== behind
  })
  return between ?? position
}

function createSpan(
  entries: readonly ContextEntry[],
  cut: SpanCut,
  { form, pins = NO_PINS }: SpanOptions,
): SpanResult {
  const sides = assignSides(entries, cut, form)
  const isFree = (at: number): boolean => sides[at] === 'out'
  const { pinned, unpinned } = selectPinned(entries, { pins, cuts: cut.cuts, isFree })
  const on = (side: SpanSide): readonly ContextEntry[] => entries.filter((_, at) => sides[at] === side)
  const span: CompactionSpan = {
    form,
    summarised: entries.filter((_, at) => isFree(at) && !pinned.has(at)),
    kept: on('kept'),
    pinned: entries.filter((_, at) => pinned.has(at)),
    unanswered: on('unanswered'),
    notSent: on('aside'),
    input: entries.filter((entry, at) => isVisibleToModel(entry) && (form !== 'up_to' || at < cut.position)),
    unpinned: unpinned.flatMap((at) => entries[at] ?? []),
    pivot: cut.pivot,
    movedFrom: cut.movedFrom,
    note: formatMovedCut(cut),
  }
  return refuseEmptySide(span) ?? { ok: true, span }
}

type SpanSide = 'out' | 'kept' | 'unanswered' | 'aside'

/** The class of each entry before pins are considered. */
function assignSides(
  entries: readonly ContextEntry[],
  { position }: SpanCut,
  form: CompactionForm,
): readonly SpanSide[] {
  const response = findLastResponse(entries)
  return entries.map((entry, at) => {
    const isOut = form === 'from' ? at >= position : at < position
    if (!isVisibleToModel(entry)) return !isOut && isProviderClearing(entry.record) ? 'kept' : 'aside'
    if (at > response && isUserPrompt(entry.record)) return 'unanswered'
    return isOut ? 'out' : 'kept'
  })
}

function refuseEmptySide(span: CompactionSpan): SpanRefusal | null {
  const { form, summarised, kept, pinned, unanswered } = span
  if (form === 'full') return summarised.length === 0 ? refuseSpan('nothing-to-summarise') : null
  if (summarised.length === 0 && pinned.length === 0)
    return refuseSpan('empty-side', form === 'from' ? 'behind' : 'before')
  if (summarised.length === 0) return refuseSpan('nothing-to-summarise')
  const others = kept.some(isVisibleToModel) || (form === 'up_to' && unanswered.length > 0)
  return others ? null : refuseSpan('empty-side', form === 'from' ? 'kept in front' : 'kept behind')
}

function formatMovedCut({ pivot, movedFrom }: SpanCut): string | null {
  if (movedFrom === null) return null
  return `The cut was moved from ${movedFrom} to ${pivot ?? 'the end'}, so that no tool call is parted from its result and no response from its own records. More is kept than was asked for.`
}

function refuseSpan(reason: SpanRefusalReason, what = ''): SpanRefusal {
  return { ok: false, reason, message: REFUSAL_MESSAGES[reason](what) }
}

const REFUSAL_MESSAGES: Readonly<Record<SpanRefusalReason, (what: string) => string>> = {
  'empty-conversation': () => 'There is nothing to compact: the conversation is empty.',
  'nothing-to-summarise': () =>
    'There is nothing to summarise: every message is pinned or still waits for its answer. Unpin some, or wait for the answer.',
  'pending-call': (calls) =>
    `A conversation cannot be compacted while tool calls wait for their results (${calls}). Wait for them, or interrupt them, and try again.`,
  'unknown-pivot': (pivot) =>
    `The record to compact at is not among those the model is shown: ${pivot}. Pick one of the view.`,
  'empty-side': (side) =>
    side.startsWith('kept')
      ? `Nothing would be ${side} of the cut. Compact the whole conversation, or pick another message.`
      : `There is nothing to summarise ${side} the picked message. Pick another one.`,
}

// Pinned records on the summarised side: kept within a budget, newest first, together with the rest of their round.

interface PinOptions {
  /** uuids of the records to keep verbatim. */
  readonly targets: readonly string[]
  /** Tokens for all of them together. */
  readonly budgetTokens: number
  readonly countTokens: (entry: ContextEntry) => number
}

const NO_PINS: PinOptions = { targets: [], budgetTokens: 0, countTokens: () => 0 }

interface PinSelection {
  readonly pins: PinOptions
  readonly cuts: readonly number[]
  /** Whether the entry at this position would be summarised if it were not pinned. */
  readonly isFree: (at: number) => boolean
}

function selectPinned(entries: readonly ContextEntry[], context: PinSelection) {
  const { pins, isFree } = context
  const targets = new Set(pins.targets)
  const pinned = new Set<number>()
  const unpinned: number[] = []
  let left = pins.budgetTokens
  for (let at = entries.length - 1; at >= 0; at -= 1) {
    if (!isPinnable(entries[at], targets) || !isFree(at) || pinned.has(at)) continue
    const group = findRoundAt(at, entries.length, context).filter((place) => !pinned.has(place))
    const groupEntries = group.flatMap((place) => entries[place] ?? [])
    const tokens = groupEntries.reduce((sum, entry) => sum + pins.countTokens(entry), 0)
    if (tokens > left) unpinned.unshift(at)
    else for (const place of group) pinned.add(place)
    left -= tokens > left ? 0 : tokens
  }
  return { pinned, unpinned }
}

/** A summary cannot be pinned: it is rewritten each time. */
function isPinnable(entry: ContextEntry | undefined, targets: ReadonlySet<string>): boolean {
  return entry !== undefined && targets.has(entry.record.uuid) && entry.record.isCompactSummary !== true
}

function findRoundAt(at: number, length: number, { cuts, isFree }: PinSelection): readonly number[] {
  const start = cuts.findLast((cut) => cut <= at) ?? 0
  const end = cuts.find((cut) => cut > at) ?? length
  return Array.from({ length: end - start }, (_, index) => start + index).filter(isFree)
}

// What the boundary record stores about the records its compaction kept.

/** uuids kept verbatim beside the summary, in order: in front of it for `from`, otherwise behind it. */
export function listKeptUuids({ form, kept, pinned }: CompactionSpan): readonly string[] {
  return listUuids(form === 'from' ? [...kept, ...pinned] : [...pinned, ...kept])
}

/** `lastUuid`: the last record the compaction writes; unanswered messages follow it. */
export function createKeptMetadata(
  span: CompactionSpan,
  {
    boundaryUuid,
    summaryUuid,
    lastUuid,
  }: { readonly boundaryUuid: string; readonly summaryUuid: string; readonly lastUuid: string },
): Pick<CompactMetadata, 'preservedMessages' | 'unansweredMessages' | 'messagesSummarized'> {
  const uuids = listKeptUuids(span)
  const unanswered = listUuids(span.unanswered)
  const anchorUuid = span.form === 'from' ? boundaryUuid : summaryUuid
  return {
    messagesSummarized: span.summarised.length,
    ...(uuids.length === 0 ? {} : { preservedMessages: { anchorUuid, uuids } }),
    ...(unanswered.length === 0 ? {} : { unansweredMessages: { anchorUuid: lastUuid, uuids: unanswered } }),
  }
}

function listUuids(entries: readonly ContextEntry[]): readonly string[] {
  return entries.map((entry) => entry.record.uuid)
}

/** The role of the message a record becomes part of; null if it is not sent. */
export function messageRole(record: KnownRecord): 'user' | 'assistant' | 'system' | null {
  if (record.type === 'assistant') return isSyntheticError(record) ? null : 'assistant'
  if (record.type === 'user') return record.message.role
  return record.type === 'attachment' && record.isScreenOnly !== true ? 'user' : null
}

/** Written by the user: typed text, also beside a tool result, or an image without text. */
function isUserPrompt(record: KnownRecord): boolean {
  if (record.type !== 'user') return false
  if (readTypedText(record) !== null) return true
  return isPrompt(record) && toBlocks(record.message.content).some(isMedia)
}

/** Position of the last record of a response; −1 if there is none. */
function findLastResponse(entries: readonly ContextEntry[]): number {
  return entries.findLastIndex(({ record }) => record.type === 'assistant' && !isSyntheticError(record))
}

/** A clearing done by the provider is part of every request as long as its tool results are. */
function isProviderClearing(record: KnownRecord): boolean {
  return isMicrocompactBoundary(record) && isClearedByProvider(record.microcompactMetadata)
}

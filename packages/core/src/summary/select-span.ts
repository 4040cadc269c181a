/**
 * Selects which records a compaction summarises and which it keeps. It summarises all records, those `from` a record
 * on, or those `up_to` a record. A tool call always stays together with its result.
 */

import { type ContextEntry, isProviderClearing, isVisibleToModel } from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import {
  type FlattenedContext,
  findCutPoints,
  flattenContext,
  listWaitingCallIds,
} from '../context/flatten-context.ts'
import { isUserMessage } from '../facts/user-input.ts'
import { isMediaBlock, toBlocks } from '../log/block.ts'
import { isPrompt, isSyntheticError, type KnownRecord, readMessageRole } from '../log/record.ts'

/** The part of a conversation that a summary replaces: all of it, the part after a cut, or the part before a cut. */
export type CompactionForm = 'full' | 'from' | 'up_to'

export interface SpanOptions {
  readonly form: CompactionForm
  /** uuid of the record that the user picked. The cut is made before this record. Required for `from` and `up_to`. */
  readonly pivot?: string
  readonly pins?: PinOptions
  /** Cuts between messages of different roles if possible, since a provider's compaction block requires a role change. */
  readonly betweenRoles?: boolean
}

/** The entries of the context, divided by what a compaction does with them. */
export interface CompactionSpan {
  readonly form: CompactionForm
  /** Entries that the summary replaces, including earlier summaries and messages that earlier compactions kept. */
  readonly summarised: readonly ContextEntry[]
  /** Entries on the other side of the cut, kept verbatim: before the summary for `from`, after it for `up_to`. */
  readonly kept: readonly ContextEntry[]
  /** Pinned entries on the summarised side. They are kept verbatim, with the rest of their round (response and tool results). */
  readonly pinned: readonly ContextEntry[]
  /**
   * User messages without a response yet, and what hooks have added since the last response, kept verbatim at the end of
   * the new context.
   */
  readonly unanswered: readonly ContextEntry[]
  /** Entries sent to the summarizer, in the order of the context. */
  readonly input: readonly ContextEntry[]
  /** Pinned entries that exceed the pin budget; they are summarised like unpinned ones and reported. */
  readonly unpinned: readonly ContextEntry[]
  /** uuid of the first record after the cut; null for a full compaction or a cut at the end. */
  readonly pivot: string | null
  /** uuid of the record that the user picked, if the cut had to be moved away from it; otherwise null. */
  readonly movedFrom: string | null
  /** A message to the user about a moved cut; null if the cut was not moved. */
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

export type SpanResult = { readonly ok: true; readonly span: CompactionSpan } | SpanRefusal

/**
 * Divides the context into what a compaction summarizes and what it keeps. Refuses, with a message for the user, if there
 * is nothing to summarize or tool calls wait for their results. `flat`: the same context as API messages, if at hand.
 */
export function chooseCompactionSpan(
  view: Pick<ContextView, 'entries'>,
  options: SpanOptions,
  flat: FlattenedContext = flattenContext(view),
): SpanResult {
  const entries = view.entries.toArray()
  const records = entries.map((entry) => entry.record)
  if (!entries.some(isVisibleToModel)) return refuseSpan('empty-conversation')
  const waiting = listWaitingCallIds(flat)
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
  // The caller has already refused contexts with pending tool calls, so none are passed.
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

/** Returns the allowed cut nearest to the picked record, in the direction that keeps more messages. */
function findNearestCut(cuts: readonly number[], picked: number, form: CompactionForm): number {
  if (form === 'from') return cuts.find((cut) => cut >= picked) ?? Number.POSITIVE_INFINITY
  return cuts.findLast((cut) => cut <= picked) ?? 0
}

/**
 * Returns the last cut at or before `position` between messages of different roles; returns `position` if there is
 * none. A cut without a message after it is not moved: the compaction is refused for its empty side.
 */
function findCutBetweenRoles(
  records: readonly KnownRecord[],
  cuts: readonly number[],
  position: number,
): number {
  const roles = records.map(readMessageRole)
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
    input: entries.filter((entry, at) => isVisibleToModel(entry) && (form !== 'up_to' || at < cut.position)),
    unpinned: unpinned.flatMap((at) => entries[at] ?? []),
    pivot: cut.pivot,
    movedFrom: cut.movedFrom,
    note: formatMovedCut(cut),
  }
  return refuseEmptySide(span) ?? { ok: true, span }
}

type SpanSide = 'out' | 'kept' | 'unanswered' | 'aside'

/** Decides for each entry whether it is summarised, kept, unanswered or never sent, before pins are considered. */
function assignSides(
  entries: readonly ContextEntry[],
  { position }: SpanCut,
  form: CompactionForm,
): readonly SpanSide[] {
  const response = findLastResponse(entries)
  // A prompt or tool results that the model has not read yet. Context of SessionStart hooks comes before a prompt.
  const unread = entries.findIndex(({ record }, at) => at > response && record.type === 'user')
  return entries.map((entry, at) => {
    const isOut = form === 'from' ? at >= position : at < position
    if (!isVisibleToModel(entry)) return !isOut && isProviderClearing(entry.record) ? 'kept' : 'aside'
    if (at > response && isUserPrompt(entry.record)) return 'unanswered'
    if (unread !== -1 && at > unread && isHookContext(entry.record)) return 'unanswered'
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

// Pinned records on the summarised side are kept, newest first, within a token budget. Each is kept together with its
// round (a response with its tool results).

interface PinOptions {
  /** uuids of the pinned records to keep verbatim. */
  readonly targets: readonly string[]
  /** Maximum tokens of all pinned records together. */
  readonly budgetTokens: number
  readonly countTokens: (entry: ContextEntry) => number
}

const NO_PINS: PinOptions = { targets: [], budgetTokens: 0, countTokens: () => 0 }

interface PinSelection {
  readonly pins: PinOptions
  readonly cuts: readonly number[]
  /** Checks whether the entry at a position would be summarised if it were not pinned. */
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

/** Checks whether an entry is pinned. A summary never counts as pinned, since every compaction rewrites it. */
function isPinnable(entry: ContextEntry | undefined, targets: ReadonlySet<string>): boolean {
  return entry !== undefined && targets.has(entry.record.uuid) && entry.record.isCompactSummary !== true
}

function findRoundAt(at: number, length: number, { cuts, isFree }: PinSelection): readonly number[] {
  const start = cuts.findLast((cut) => cut <= at) ?? 0
  const end = cuts.find((cut) => cut > at) ?? length
  return Array.from({ length: end - start }, (_, index) => start + index).filter(isFree)
}

// uuids of kept records, for the boundary record of a compaction.

/** Returns the uuids of the records kept verbatim, in order. For form `from` they come before the summary, otherwise after it. */
export function listKeptUuids({ form, kept, pinned }: CompactionSpan): readonly string[] {
  const entries = form === 'from' ? [...kept, ...pinned] : [...pinned, ...kept]
  return entries.map(({ record }) => record.uuid)
}

/**
 * Checks whether the user wrote a record: typed text, also beside a tool result, or an image without text. Words of the user
 * inside a tool result do not count, since the result cannot be kept without its tool call; the summary quotes them.
 */
function isUserPrompt(record: KnownRecord): boolean {
  if (isUserMessage(record)) return true
  return isPrompt(record) && toBlocks(record.message.content).some(isMediaBlock)
}

function isHookContext(record: KnownRecord): boolean {
  return record.type === 'attachment' && record.attachment.type === 'hook_context'
}

/** Returns the position of the last entry that is part of a model's response; −1 if there is none. */
function findLastResponse(entries: readonly ContextEntry[]): number {
  return entries.findLastIndex(({ record }) => record.type === 'assistant' && !isSyntheticError(record))
}

/**
 * What a compaction takes out and what it keeps: full, `from` a record on, or `up_to` one. Cuts fall where they are
 * legal, and every record of the view is in exactly one class.
 */

import type { View } from '../context/context-view.ts'
import { legalCuts } from '../context/cut-points.ts'
import type { Entry } from '../context/entry.ts'
import { flatten, waitingIds } from '../context/flatten.ts'
import { isShown } from '../context/message-parts.ts'
import { blocksOf, isMedia } from '../log/block.ts'
import {
  type CompactMetadata,
  isClearedRemotely,
  isMicrocompactBoundary,
  isPrompt,
  isSyntheticError,
  type KnownRecord,
  typedText,
} from '../log/record.ts'
import type { CompactForm } from './summary-prompt.ts'

export interface SpanOptions {
  readonly form: CompactForm
  /** uuid of the record the person picked: the cut is in front of it. Needed for `from` and `up_to`. */
  readonly pivot?: string
  readonly pins?: Pins
  /** Cut between messages of different roles, where there is such a place: a provider's own block demands it. */
  readonly apart?: boolean
}

export interface Span {
  readonly form: CompactForm
  /** What the summary stands for. Earlier summaries, and what earlier compactions kept, are among it. */
  readonly summarised: readonly Entry[]
  /** The other side of the cut, verbatim; in front of the summary for `from`, behind it for `up_to`. */
  readonly kept: readonly Entry[]
  /** Verbatim, though it lies on the summarised side: with all that a pinned record cannot be parted from. */
  readonly pinned: readonly Entry[]
  /** Said by the person and not yet answered: verbatim, last of all. */
  readonly unanswered: readonly Entry[]
  /** Notices and the like, which no model is ever shown. */
  readonly aside: readonly Entry[]
  /** What a summariser is to be shown, in the order of the view. */
  readonly input: readonly Entry[]
  /** Pins that found no room: summarised like the rest, and to be told. */
  readonly unpinned: readonly Entry[]
  /** The first record behind the cut; null for a full compaction. */
  readonly pivot: string | null
  /** The record the person picked, where the cut is not in front of it. */
  readonly movedFrom: string | null
  /** A sentence for the person about the moved cut. */
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

type SpanChoice = { readonly ok: true; readonly span: Span } | SpanRefusal

export function chooseSpan(view: Pick<View, 'entries'>, options: SpanOptions): SpanChoice {
  const entries = view.entries.toArray()
  const records = entries.map((entry) => entry.record)
  if (!entries.some(isShown)) return refusal('empty-conversation')
  const waiting = waitingIds(flatten(view))
  if (waiting.length > 0) return refusal('pending-call', waiting.join(', '))
  const cut = cutFor(records, options)
  return 'ok' in cut ? cut : classified(entries, cut, options)
}

interface Cut {
  readonly position: number
  readonly pivot: string | null
  readonly movedFrom: string | null
  readonly cuts: readonly number[]
}

/** `chooseSpan` refuses before where a call waits. */
const NOTHING_WAITS: readonly string[] = []

function cutFor(records: readonly KnownRecord[], { form, pivot, apart }: SpanOptions): Cut | SpanRefusal {
  const cuts = legalCuts(records, NOTHING_WAITS)
  if (form === 'full') return { position: records.length, pivot: null, movedFrom: null, cuts }
  const picked = records.findIndex((record) => record.uuid === pivot)
  if (pivot === undefined || picked === -1) return refusal('unknown-pivot', pivot ?? '(none was given)')
  const position = moved(cuts, picked, form)
  const parted = apart === true && form === 'up_to' ? partedCut(records, cuts, position) : position
  const first = records[parted]?.uuid ?? null
  return { position: parted, pivot: first, movedFrom: first === pivot ? null : pivot, cuts }
}

/** Towards keeping more: what comes in front is kept for `from`, what comes behind for `up_to`. */
function moved(cuts: readonly number[], picked: number, form: CompactForm): number {
  if (form === 'from') return cuts.find((cut) => cut >= picked) ?? Number.POSITIVE_INFINITY
  return cuts.findLast((cut) => cut <= picked) ?? 0
}

function partedCut(records: readonly KnownRecord[], cuts: readonly number[], position: number): number {
  const parted = cuts.findLast((cut) => {
    if (cut > position) return false
    const before = roleBefore(records, cut)
    const behind = roleBehind(records, cut)
    return before !== null && behind !== 'system' && before !== behind
  })
  return parted ?? position
}

function roleBefore(records: readonly KnownRecord[], cut: number): string | null {
  for (let at = cut - 1; at >= 0; at -= 1) {
    const role = roleAt(records, at)
    if (role !== null) return role
  }
  return null
}

function roleBehind(records: readonly KnownRecord[], cut: number): string | null {
  for (let at = cut; at < records.length; at += 1) {
    const role = roleAt(records, at)
    if (role !== null) return role
  }
  return null
}

function roleAt(records: readonly KnownRecord[], at: number): string | null {
  const record = records[at]
  return record === undefined ? null : roleOf(record)
}

function classified(entries: readonly Entry[], cut: Cut, { form, pins = NO_PINS }: SpanOptions): SpanChoice {
  const sides = sidesOf(entries, cut, form)
  const isFree = (at: number): boolean => sides[at] === 'out'
  const { pinned, unpinned } = pinnedIn(entries, { pins, cuts: cut.cuts, isFree })
  const on = (side: Side): readonly Entry[] => entries.filter((_, at) => sides[at] === side)
  const span: Span = {
    form,
    summarised: entries.filter((_, at) => isFree(at) && !pinned.has(at)),
    kept: on('kept'),
    pinned: entries.filter((_, at) => pinned.has(at)),
    unanswered: on('unanswered'),
    aside: on('aside'),
    input: entries.filter((entry, at) => isShown(entry) && (form !== 'up_to' || at < cut.position)),
    unpinned: unpinned.flatMap((at) => entries[at] ?? []),
    pivot: cut.pivot,
    movedFrom: cut.movedFrom,
    note: noteOn(cut),
  }
  return emptySide(span) ?? { ok: true, span }
}

type Side = 'out' | 'kept' | 'unanswered' | 'aside'

/** Where each entry goes, pins aside: exactly one place. */
function sidesOf(entries: readonly Entry[], { position }: Cut, form: CompactForm): readonly Side[] {
  const response = lastResponse(entries)
  return entries.map((entry, at) => {
    const isOut = form === 'from' ? at >= position : at < position
    if (!isShown(entry)) return !isOut && isCarriedOn(entry.record) ? 'kept' : 'aside'
    if (at > response && isPersons(entry.record)) return 'unanswered'
    return isOut ? 'out' : 'kept'
  })
}

function emptySide(span: Span): SpanRefusal | null {
  const { form, summarised, kept, pinned, unanswered } = span
  if (form === 'full') return summarised.length === 0 ? refusal('nothing-to-summarise') : null
  if (summarised.length === 0 && pinned.length === 0)
    return refusal('empty-side', form === 'from' ? 'behind' : 'before')
  if (summarised.length === 0) return refusal('nothing-to-summarise')
  const others = kept.some(isShown) || (form === 'up_to' && unanswered.length > 0)
  return others ? null : refusal('empty-side', form === 'from' ? 'kept in front' : 'kept behind')
}

function noteOn({ pivot, movedFrom }: Cut): string | null {
  if (movedFrom === null) return null
  return `The cut was moved from ${movedFrom} to ${pivot ?? 'the end'}, so that no tool call is parted from its result and no response from its own records. More is kept than was asked for.`
}

function refusal(reason: SpanRefusalReason, what = ''): SpanRefusal {
  return { ok: false, reason, message: MESSAGES[reason](what) }
}

const MESSAGES: Readonly<Record<SpanRefusalReason, (what: string) => string>> = {
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

// Pinned records on the summarised side of a compaction: kept within a budget, newest first, never torn out of a round.

interface Pins {
  /** uuids of the records that are to survive verbatim. */
  readonly targets: readonly string[]
  /** Tokens that all of them together may take. */
  readonly budgetTokens: number
  readonly tokensOf: (entry: Entry) => number
}

const NO_PINS: Pins = { targets: [], budgetTokens: 0, tokensOf: () => 0 }

interface PinContext {
  readonly pins: Pins
  readonly cuts: readonly number[]
  /** Whether the entry at this place would be summarised if it were not pinned. */
  readonly isFree: (at: number) => boolean
}

interface Pinned {
  /** Places of the entries kept: each pinned record with those between the same two cuts. */
  readonly pinned: ReadonlySet<number>
  /** Places of pinned records that found no room. */
  readonly unpinned: readonly number[]
}

function pinnedIn(entries: readonly Entry[], context: PinContext): Pinned {
  const { pins, isFree } = context
  const targets = new Set(pins.targets)
  const pinned = new Set<number>()
  const unpinned: number[] = []
  let left = pins.budgetTokens
  for (let at = entries.length - 1; at >= 0; at -= 1) {
    if (!isPinnable(entries[at], targets) || !isFree(at) || pinned.has(at)) continue
    const group = groupAt(at, entries.length, context).filter((place) => !pinned.has(place))
    const tokens = group.reduce((sum, place) => sum + tokensAt(entries, place, pins), 0)
    if (tokens > left) unpinned.unshift(at)
    else for (const place of group) pinned.add(place)
    left -= tokens > left ? 0 : tokens
  }
  return { pinned, unpinned }
}

/** A summary is never a pin: it is written anew each time. */
function isPinnable(entry: Entry | undefined, targets: ReadonlySet<string>): boolean {
  return entry !== undefined && targets.has(entry.record.uuid) && entry.record.isCompactSummary !== true
}

function groupAt(at: number, length: number, { cuts, isFree }: PinContext): readonly number[] {
  const start = cuts.findLast((cut) => cut <= at) ?? 0
  const end = cuts.find((cut) => cut > at) ?? length
  return Array.from({ length: end - start }, (_, index) => start + index).filter(isFree)
}

function tokensAt(entries: readonly Entry[], place: number, { tokensOf }: Pins): number {
  const entry = entries[place]
  return entry === undefined ? 0 : tokensOf(entry)
}

// What a boundary says of the records its compaction kept.

interface SpanAnchors {
  readonly boundaryUuid: string
  readonly summaryUuid: string
  /** The last record that the compaction writes: unanswered messages come behind it. */
  readonly lastUuid: string
}

type KeptMetadata = Pick<CompactMetadata, 'preservedMessages' | 'unansweredMessages' | 'messagesSummarized'>

/** uuids that stay verbatim beside the summary, in order: in front of it for `from`, behind it else. */
export function keptUuids({ form, kept, pinned }: Span): readonly string[] {
  return uuidsOf(form === 'from' ? [...kept, ...pinned] : [...pinned, ...kept])
}

export function keptMetadata(span: Span, anchors: SpanAnchors): KeptMetadata {
  const { boundaryUuid, summaryUuid, lastUuid } = anchors
  const uuids = keptUuids(span)
  const unanswered = uuidsOf(span.unanswered)
  const anchorUuid = span.form === 'from' ? boundaryUuid : summaryUuid
  return {
    messagesSummarized: span.summarised.length,
    ...(uuids.length === 0 ? {} : { preservedMessages: { anchorUuid, uuids } }),
    ...(unanswered.length === 0 ? {} : { unansweredMessages: { anchorUuid: lastUuid, uuids: unanswered } }),
  }
}

function uuidsOf(entries: readonly Entry[]): readonly string[] {
  return entries.map((entry) => entry.record.uuid)
}

/** The role of the message a record goes into; null where it goes into none. */
export function roleOf(record: KnownRecord): 'user' | 'assistant' | 'system' | null {
  if (record.type === 'assistant') return isSyntheticError(record) ? null : 'assistant'
  if (record.type === 'user') return record.message.role
  return record.type === 'attachment' && record.isScreenOnly !== true ? 'user' : null
}

// What an entry is to a compaction: the person's own word, a response, or a notice that must go on standing.

/** Said by the person: text they typed, also beside the answer to a call, or a picture without a word. */
function isPersons(record: KnownRecord | undefined): boolean {
  if (record === undefined || record.type !== 'user') return false
  if (typedText(record) !== null) return true
  return isPrompt(record) && blocksOf(record.message.content).some(isMedia)
}

/** Place of the last record of a response; −1 where the model has said nothing. */
function lastResponse(entries: readonly Entry[]): number {
  return entries.findLastIndex(({ record }) => record.type === 'assistant' && !isSyntheticError(record))
}

/** A clearing that the provider makes has to be sent again with every request for as long as its results are. */
function isCarriedOn(record: KnownRecord | undefined): boolean {
  return (
    record !== undefined && isMicrocompactBoundary(record) && isClearedRemotely(record.microcompactMetadata)
  )
}

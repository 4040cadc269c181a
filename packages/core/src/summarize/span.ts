/**
 * What a compaction takes out and what it keeps: full, `from` a record on, or `up_to` one. Cuts fall where they are
 * legal, and every record of the view is in exactly one class.
 */
import type { KnownRecord } from '../conversation/record.ts'
import type { Entry } from '../view/entry.ts'
import { isShown } from '../view/parts.ts'
import type { View } from '../view/view.ts'
import { cutsOf, pendingCalls, roleOf } from './cuts.ts'
import { isCarriedOn, isPersons, lastResponse } from './entry-class.ts'
import { NO_PINS, type Pins, pinnedIn } from './pinned.ts'
import type { CompactForm } from './sections.ts'

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

export interface SpanRefusal {
  readonly ok: false
  readonly reason: SpanRefusalReason
  readonly message: string
}

export type SpanChoice = { readonly ok: true; readonly span: Span } | SpanRefusal

export function chooseSpan(view: Pick<View, 'entries'>, options: SpanOptions): SpanChoice {
  const entries = view.entries.toArray()
  const records = entries.map((entry) => entry.record)
  if (!entries.some(isShown)) return refusal('empty-conversation')
  const waiting = pendingCalls(records)
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

function cutFor(records: readonly KnownRecord[], { form, pivot, apart }: SpanOptions): Cut | SpanRefusal {
  const cuts = cutsOf(records)
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

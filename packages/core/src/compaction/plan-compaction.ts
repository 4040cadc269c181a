/** What a compaction would do: what goes, what stays, how large it is now and what it aims at. Changes nothing. */

import type { Act } from '../context/context-view.ts'
import type { Entry } from '../context/entry.ts'
import { type RewriteRefused, refused } from '../engine/events.ts'
import type { Room, TurnHost } from '../engine/host.ts'
import { contextNow, type Known, measureNow } from '../engine/measure-context.ts'
import type { PinnedUuids, SessionState } from '../engine/session-state.ts'
import type { List } from '../log/persistent-collections.ts'
import type { CompactCause, CompactTrigger } from '../log/record.ts'
import {
  type CompactionOutlook,
  type OptimalTrigger,
  optimalTrigger,
  usualOutlook,
} from '../planner/plan-input.ts'
import type { CompactPolicy } from '../policy/policy.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { chooseSpan, type Span } from '../summary/select-span.ts'
import type { CompactForm } from '../summary/summary-prompt.ts'
import { growthPerCall } from '../tokens/context-meter.ts'
import { type ContextTokens, scaleOf } from '../tokens/usage.ts'

export interface CompactAsked {
  readonly trigger: CompactTrigger
  readonly cause: CompactCause
  readonly form?: CompactForm
  /** uuid of the record that the person picked, for `from` and `up_to`. */
  readonly pivot?: string
  readonly instructions?: string
  /** Tokens that the view may have after it; half of the auto-compact line unless told. */
  readonly target?: number
  /** `local`: without a model. Else the policy's chain of asking. */
  readonly summarizer?: 'local' | 'model'
  /** The session could not go on without it: a veto is told and not obeyed. */
  readonly isForced?: boolean
  /** What made it start by itself: the auto-compact line, or that it pays. */
  readonly firedBy?: 'threshold' | 'price'
}

export interface CompactionPlan {
  readonly ok: true
  readonly asked: CompactAsked
  readonly span: Span
  /** The view it was made of, and the acts that stood then. */
  readonly entries: List<Entry>
  readonly acts: readonly Act[]
  /** The records that were pinned then. */
  readonly pins: PinnedUuids
  /** Sentences for the person: a cut that was moved, pins that found no room. */
  readonly notes: readonly string[]
  readonly before: ContextTokens
  /** Null: none applies, it must only become smaller. */
  readonly target: number | null
  /** At or above this it would start again at once; null where the window is not known. */
  readonly line: number | null
  /** Dollars, and the calls after which it has paid for itself; null where nobody can tell. */
  readonly price: OptimalTrigger | null
  /** Milliseconds since 1970. */
  readonly at: number
}

export function planCompaction(
  state: SessionState,
  asked: CompactAsked,
  { host, room }: { readonly host: TurnHost; readonly room: Room },
): CompactionPlan | RewriteRefused {
  const off = switchedOff(asked, host)
  if (off !== null) return off
  const { form = 'full', pivot } = asked
  const choice = chooseSpan(state.view, {
    form,
    ...(pivot === undefined ? {} : { pivot }),
    pins: {
      targets: [...state.pins],
      budgetTokens: host.policy.compact.pinTokens,
      tokensOf: room.estimator.entry,
    },
    apart: host.profile.thinking.binding === 'prefix',
  })
  if (!choice.ok) return refused(choice.reason, choice.message)
  const before = measureNow(state, host, room)
  return {
    ok: true,
    asked: { ...asked, isForced: asked.isForced === true || isBlocked(before, room) },
    span: choice.span,
    entries: state.view.entries,
    acts: state.view.acts,
    pins: state.pins,
    notes: notesOn(choice.span, host.policy.compact),
    before,
    ...linesFor(asked, room),
    price: compactionPrice(state, {
      host,
      room,
      isLocal: asked.summarizer === 'local',
      span: choice.span,
      tokens: before.expected,
    }),
    at: host.clock.now(),
  }
}

/** Above the blocking line nothing more can be said: what stands in the way of room is overruled. */
function isBlocked({ high }: ContextTokens, { scaled }: Room): boolean {
  return scaled.known && high >= scaled.lines.blocking
}

function notesOn({ note, unpinned }: Span, { pinTokens }: CompactPolicy): readonly string[] {
  const count = unpinned.length
  const which = unpinned.map(({ record }) => record.uuid).join(', ')
  const pins =
    count === 0
      ? []
      : [
          `Pinned records may take ${pinTokens} tokens in all, and ${count} of them found no room and will be summarised: ${which}. Let others go, or raise compact.pinTokens.`,
        ]
  return [...(note === null ? [] : [note]), ...pins]
}

/** A partial compaction by hand frees what the person picked, however much that is. */
function linesFor(
  { target, form = 'full' }: CompactAsked,
  { scaled }: Room,
): Pick<CompactionPlan, 'target' | 'line'> {
  const line = scaled.known ? scaled.lines.autoCompact : null
  if (target !== undefined) return { target, line }
  return { target: form === 'full' && scaled.known ? scaled.lines.target : null, line }
}

function switchedOff(
  { trigger }: CompactAsked,
  { policy, switches = NO_SWITCHES }: TurnHost,
): RewriteRefused | null {
  const states = mechanismStates(policy, switches)
  const state = trigger === 'manual' ? states.manual : states.auto
  return state.on
    ? null
    : refused('off', `Compaction is switched off by ${state.because}. Unset it to compact.`)
}

// What a compaction would cost now, told by what it would really send: the span, the cache as it is, its lifetime.

interface PriceQuestion {
  readonly host: TurnHost
  readonly room: Room
  /** It is made without a model. */
  readonly isLocal: boolean
  readonly span: Span
  /** Of the context now. */
  readonly tokens: number
}

/** Null where nobody can tell. */
function compactionPrice(state: SessionState, question: PriceQuestion): OptimalTrigger | null {
  const { host, room, tokens } = question
  const known = contextNow(state, host, room, 'call')
  const { rates, cache, write, meter } = known.context
  const growth = growthPerCall(meter)
  if (rates === null || growth === null) return null
  return optimalTrigger({
    context: tokens,
    outlook: outlookOf(known, question),
    growthPerCall: growth,
    rates,
    write,
    isWarm: cache.isWarm && state.sent !== null && host.policy.compact.chain.fork,
    isAsked: isAsked(question),
  })
}

/** A model is paid for the summary: not where the host writes it, nor where it is made without one. */
function isAsked({ isLocal, host, room }: PriceQuestion): boolean {
  return room.writeSummary === undefined && !isLocal && host.policy.compact.chain.local !== 'only'
}

/** A summary has some 15% of what it stands for, and no more than the last one; hardly ever more than so many tokens. */
const SUMMARY = { part: 0.15, most: 3_000 }

/** What is kept in front of a summary stays cached where it is; what is kept behind it is written again. */
function outlookOf({ context, state }: Known, { room, span }: PriceQuestion): CompactionOutlook {
  const sizeOf = (entries: readonly Entry[]): number =>
    scaleOf(context.calibration) * entries.reduce((sum, entry) => sum + room.estimator.entry(entry), 0)
  const most = state.room?.outlook?.summary ?? SUMMARY.most
  const summary = Math.min(most, SUMMARY.part * sizeOf(span.summarised))
  const [kept, others] = [sizeOf(span.kept), sizeOf([...span.pinned, ...span.unanswered])]
  const back = others + (span.form === 'from' ? 0 : kept) + carriersSize({ context, state }, room)
  const front = span.form === 'from' ? kept : 0
  return {
    after: Math.round(context.prefixTokens + front + summary + back),
    summary: Math.round(summary),
    carried: Math.round(back),
  }
}

/** As much as the last time. */
function carriersSize({ context, state }: Known, { carriers = [], scaled }: Room): number {
  if (carriers.length === 0) return 0
  const usual = usualOutlook(context.prefixTokens, scaled.known ? scaled.lines.target : null)
  return (state.room?.outlook ?? usual).carried
}

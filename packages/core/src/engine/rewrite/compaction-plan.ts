/** What a compaction would do: what goes, what stays, how large it is now and what it aims at. Changes nothing. */
import type { List } from '../../conversation/list.ts'
import type { CompactCause, CompactTrigger } from '../../conversation/metadata.ts'
import type { ContextTokens } from '../../measure/usage.ts'
import type { OptimalTrigger } from '../../plan/optimal-trigger.ts'
import type { CompactPolicy } from '../../policy/groups/compact-policy.ts'
import { mechanismStates } from '../../policy/mechanisms.ts'
import { NO_SWITCHES } from '../../policy/switches.ts'
import type { CompactForm } from '../../summarize/sections.ts'
import { chooseSpan, type Span } from '../../summarize/span.ts'
import type { Entry } from '../../view/entry.ts'
import type { Act } from '../../view/view.ts'
import type { SessionState } from '../session-state.ts'
import type { TurnHost } from '../turn-host.ts'
import { compactionPrice } from './compaction-price.ts'
import type { PinnedUuids } from './pins.ts'
import { measureNow } from './plan-now.ts'
import { type RewriteRefused, refused } from './refused.ts'
import type { Room } from './room.ts'

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

/** What a compaction would do: what goes, what stays, how large it is now and what it aims at. Changes nothing. */
import type { List } from '../../conversation/list.ts'
import type { CompactCause, CompactTrigger } from '../../conversation/metadata.ts'
import type { ContextTokens } from '../../measure/usage.ts'
import { growthPerCall } from '../../plan/meter.ts'
import { type OptimalTrigger, optimalTrigger, usualOutlook } from '../../plan/optimal-trigger.ts'
import { mechanismStates } from '../../policy/mechanisms.ts'
import { NO_SWITCHES } from '../../policy/switches.ts'
import type { CompactForm } from '../../summarize/sections.ts'
import { chooseSpan, type Span } from '../../summarize/span.ts'
import type { Entry } from '../../view/entry.ts'
import type { Act } from '../../view/view.ts'
import type { SessionState } from '../session-state.ts'
import type { TurnHost } from '../turn-host.ts'
import { measureNow, prefixTokens, ratesNow, withRoom } from './plan-now.ts'
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
}

export interface CompactionPlan {
  readonly ok: true
  readonly asked: CompactAsked
  readonly span: Span
  /** The view it was made of, and the acts that stood then. */
  readonly entries: List<Entry>
  readonly acts: readonly Act[]
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

const PIN_BUDGET = 20_000

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
      budgetTokens: room.pinBudgetTokens ?? PIN_BUDGET,
      tokensOf: room.estimator.entry,
    },
    apart: host.profile.thinking.binding === 'prefix',
  })
  if (!choice.ok) return refused(choice.reason, choice.message)
  const before = measureNow(state, host, room)
  return {
    ok: true,
    asked,
    span: choice.span,
    entries: state.view.entries,
    acts: state.view.acts,
    before,
    ...linesFor(asked, room),
    price: priceOf(state, { host, room, tokens: before.expected }),
    at: host.clock.now(),
  }
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

interface PriceQuestion {
  readonly host: TurnHost
  readonly room: Room
  readonly tokens: number
}

function priceOf(state: SessionState, { host, room, tokens }: PriceQuestion): OptimalTrigger | null {
  const rates = ratesNow(host, tokens)
  const known = withRoom(state, room).room
  const growth = growthPerCall(known.meter)
  if (rates === null || growth === null) return null
  return optimalTrigger({
    context: tokens,
    outlook:
      known.outlook ??
      usualOutlook(
        prefixTokens(state, host, room.estimator),
        room.scaled.known ? room.scaled.lines.target : null,
      ),
    growthPerCall: growth,
    rates,
    write: 'write5m',
    isWarm: state.sent !== null,
  })
}

/**
 * Does a drafted compaction fit? It is measured on the session as it would be. Above its target, what may go is shed;
 * what then still does not fit, and how small a summary would have to be, is said.
 */
import type { Carried } from '../../carry/carrier.ts'
import { shed } from '../../carry/shed.ts'
import type { ContextTokens } from '../../measure/usage.ts'
import type { TurnRun } from '../turn-run.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import { type CompactionDraft, type Drafted, recordsOf } from './draft.ts'
import { floorOf } from './floor.ts'
import { measureNow } from './plan-now.ts'
import { receiptFor } from './receipt-for.ts'
import { type RewriteRefused, refused, SUPERSEDED } from './refused.ts'
import type { Room } from './room.ts'
import { NO_SUMMARY_USAGE } from './summary-usage.ts'
import { trial } from './trial.ts'

export interface Fit {
  readonly outcome: CompactionDraft | RewriteRefused
  /** Tokens that are still too many; 0 where it fits. */
  readonly over: number
  /** Tokens that the summary may have for it to fit; 0 where none is small enough. */
  readonly largestSummary: number
}

export function fit(run: TurnRun, room: Room, drafted: Drafted): Fit {
  const whole = measured(run, room, drafted)
  if (whole === null) return { outcome: refused('superseded', SUPERSEDED), over: 0, largestSummary: 0 }
  const fitted = shedding(run, room, whole)
  const over = overBy(drafted.plan, fitted.after)
  const summary = room.estimator.text(drafted.summary.text)
  return {
    outcome: judged(run, room, fitted),
    over,
    largestSummary: over === 0 ? 0 : Math.max(0, summary - over),
  }
}

interface Measured {
  readonly drafted: Drafted
  readonly after: ContextTokens
  readonly state: TurnRun['state']
}

function measured(run: TurnRun, room: Room, drafted: Drafted): Measured | null {
  const records = recordsOf(run, room, drafted, null)
  if (records === null) return null
  const state = trial(run.state, records)
  return { drafted, after: measureNow(state, run.host, room), state }
}

/** Tokens above the target, or above what there is now: a compaction that is not smaller is none. */
function overBy({ target, before }: CompactionPlan, after: ContextTokens): number {
  const aboveTarget = target === null ? 0 : after.high - target
  return Math.max(0, aboveTarget, after.expected - before.expected + 1)
}

/** What is freed is estimated thing by thing and measured as a whole, so it may take more than one round. */
const MOST_ROUNDS = 3

function shedding(run: TurnRun, room: Room, whole: Measured): Measured {
  const { plan, front, carried, rendered } = whole.drafted
  const isLeft = (one: Carried): boolean => front.includes(one) || carried.includes(one)
  const candidates = rendered.filter(isLeft)
  let best = whole
  let wanted = 0
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const over = overBy(plan, best.after)
    if (over === 0) break
    wanted += over
    const { kept } = shed(candidates, wanted, run.host.policy.compact.target)
    const less = (list: readonly Carried[]): readonly Carried[] => list.filter((one) => kept.includes(one))
    const shorter = { ...whole.drafted, front: less(front), carried: less(carried) }
    best = measured(run, room, shorter) ?? best
  }
  return best
}

function judged(run: TurnRun, room: Room, fitted: Measured): CompactionDraft | RewriteRefused {
  const { drafted, after, state } = fitted
  const { plan } = drafted
  if (after.expected >= plan.before.expected) {
    return refused(
      'not-smaller',
      `The result would have ${after.expected} tokens, and there are ${plan.before.expected} now: nothing is gained.`,
    )
  }
  const limit = limitOf(plan)
  if (limit !== null && after.high >= limit) return floorOf({ drafted, after, state, room, limit })
  const receipt = receiptFor(room, { drafted, before: run.state, after: state })
  return { ...drafted, ok: true, after, prepared: drafted.summary.text, receipt, usage: NO_SUMMARY_USAGE }
}

/** A partial compaction by hand frees what the person picked, however much that is; it is told that it will not last. */
function limitOf({ asked, line, span }: CompactionPlan): number | null {
  if (asked.target !== undefined) return asked.target + 1
  return span.form === 'full' ? line : null
}

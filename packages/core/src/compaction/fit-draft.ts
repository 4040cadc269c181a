/**
 * Does a drafted compaction fit? It is measured on the session as it would be. Above its target, what may go is shed;
 * what then still does not fit, and how small a summary would have to be, is said.
 */

import { isShown } from '../context/entry.ts'
import {
  type FloorItem,
  NO_SUMMARY_USAGE,
  type RewriteRefused,
  refused,
  SUPERSEDED,
} from '../engine/events.ts'
import type { Room } from '../engine/host.ts'
import { measureNow } from '../engine/measure-context.ts'
import type { SessionState } from '../engine/session-state.ts'
import { type TurnRun, trial } from '../engine/session-writer.ts'
import { shed } from '../sources/collect.ts'
import type { Carried } from '../sources/context-source.ts'
import type { ContextTokens } from '../tokens/usage.ts'
import { type CompactionDraft, type Drafted, receiptFor, recordsOf } from './draft.ts'
import type { CompactionPlan } from './plan-compaction.ts'

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

// What is left when all that may go has gone, and still does not fit.

interface FloorQuestion {
  readonly drafted: Drafted
  readonly after: ContextTokens
  /** The session as it would be. */
  readonly state: SessionState
  readonly room: Room
  readonly limit: number
}

const MOST_ITEMS = 5

function floorOf({ after, state, room, limit, drafted }: FloorQuestion): RewriteRefused {
  const entries = state.view.entries.toArray().filter(isShown)
  const unanswered = new Set(drafted.plan.span.unanswered.map(({ record }) => record.uuid))
  const items = entries.map((entry): FloorItem => {
    const { record } = entry
    const what =
      record.isCompactSummary === true
        ? 'the summary'
        : record.type === 'attachment'
          ? `attachment ${record.attachment.type ?? 'unknown'}`
          : unanswered.has(record.uuid)
            ? `message not yet answered ${record.uuid}`
            : `kept message ${record.uuid}`
    return { what, tokens: room.estimator.entry(entry) }
  })
  const messages = items.reduce((sum, { tokens }) => sum + tokens, 0)
  const prefix: FloorItem = {
    what: 'system prompt and tools',
    tokens: Math.max(0, after.expected - messages),
  }
  const floor = [...items, prefix].toSorted((a, b) => b.tokens - a.tokens).slice(0, MOST_ITEMS)
  const told = floor.map(({ what, tokens }) => `${what} (${tokens})`).join(', ')
  return refused(
    'floor',
    `What cannot be left out still has ${after.expected} tokens, and the line is ${limit}: ${told}. Shorten or rewind what fills it, or use a model with a larger window.`,
    { floor },
  )
}

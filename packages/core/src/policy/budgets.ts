/** How much of each kind of content a model's window bears: the policy's figures, shrunk to their shares. */
import type { SharePolicy } from './groups/ladder-policy.ts'
import type { Lines } from './lines.ts'
import type { Policy } from './policy.ts'
import { wholeTokens } from './whole-tokens.ts'

/** In tokens, unless the name says otherwise. */
export interface Budgets {
  readonly files: { readonly each: number; readonly total: number }
  readonly skills: { readonly each: number; readonly total: number }
  /** Of one carrier of the host's own. */
  readonly host: { readonly each: number; readonly total: number }
  readonly notes: {
    readonly section: number
    readonly total: number
    readonly start: number
    readonly growth: number
  }
  readonly keptMessages: { readonly minimum: number; readonly maximum: number }
  readonly clear: ClearBudgets
  readonly ambient: number
  readonly userMessages: { readonly each: number; readonly total: number }
  readonly ledger: { readonly files: number; readonly names: number }
  readonly hookOutputCharacters: number
  readonly spill: SpillBudgets
  readonly historyPage: number
}

/** Of one text of a tool result: where it is put aside, and how much of it is then shown. */
export interface SpillBudgets {
  readonly threshold: number
  readonly head: number
  readonly tail: number
}

export interface ClearBudgets {
  readonly idleMinimumFreed: number
  readonly target: number
  readonly minimumFreed: number
  readonly nativeKeep: number
  readonly nativeClearAtLeast: number
  readonly largeInput: number
}

/** `lines` is null where the window is not known: the policy's figures then stand as they are. */
export function budgetsFor(policy: Policy, lines: Lines | null): Budgets {
  const share = shares(policy.shares, lines)
  const { rehydrate, ledger, memoryFiles, turn, estimate } = policy
  return {
    files: capped(rehydrate.files, share('files')),
    skills: capped(rehydrate.skills, share('skills')),
    host: capped(rehydrate.host, share('host')),
    notes: notes(policy, share),
    keptMessages: kept(policy, share('keptMessages')),
    clear: clear(policy, Math.min(share('clearableResults'), lowWater(lines))),
    ambient: Math.min(memoryFiles.reminderTokens, share('ambient')),
    userMessages: capped(
      { eachTokens: ledger.userMessageTokens, totalTokens: ledger.userMessagesTokens },
      share('userMessages'),
    ),
    ledger: {
      files: Math.min(ledger.filesTokens, share('ledger')),
      names: Math.min(ledger.namesTokens, share('ledger')),
    },
    hookOutputCharacters: Math.min(
      turn.hooks.outputCharacters,
      wholeTokens(share('hookOutput') * estimate.charactersPerToken),
    ),
    spill: spill(policy, share('spill')),
    historyPage: Math.min(policy.history.pageTokens, share('spill')),
  }
}

type Share = (kind: keyof SharePolicy) => number

/** Its share of effective, and never more than a whole compaction aims at (a low auto-compact line sees to that). */
function shares(policy: SharePolicy, lines: Lines | null): Share {
  if (lines === null) return () => Number.POSITIVE_INFINITY
  return (kind) => Math.min(wholeTokens((lines.effective * policy[kind]) / 100), lines.target)
}

/** Clearing starts at the warning line and must end well below it, or it would start again at once. */
function lowWater(lines: Lines | null): number {
  return lines === null ? Number.POSITIVE_INFINITY : wholeTokens(lines.warning / 2)
}

function capped(
  { eachTokens, totalTokens }: { readonly eachTokens: number; readonly totalTokens: number },
  share: number,
): { readonly each: number; readonly total: number } {
  const total = Math.min(totalTokens, share)
  return { each: Math.min(eachTokens, total), total }
}

/** A section shrinks as the whole does: ten sections that may each fill the file would be ten times too much. */
function notes({ notes: policy }: Policy, share: Share): Budgets['notes'] {
  const total = Math.min(policy.totalTokens, share('notes'))
  return {
    section: wholeTokens((policy.sectionTokens * total) / policy.totalTokens),
    total,
    start: Math.min(policy.startTokens, share('keptMessages')),
    growth: Math.min(policy.growthTokens, share('keptMessages')),
  }
}

function kept({ notes: { kept: policy } }: Policy, share: number): Budgets['keptMessages'] {
  return { minimum: Math.min(policy.minimumTokens, share), maximum: Math.min(policy.maximumTokens, share) }
}

/** What is shown shrinks as the threshold does. */
function spill({ spill: policy }: Policy, share: number): SpillBudgets {
  const threshold = Math.min(policy.thresholdTokens, share)
  const shown = (tokens: number): number => wholeTokens((tokens * threshold) / policy.thresholdTokens)
  return { threshold, head: shown(policy.headTokens), tail: shown(policy.tailTokens) }
}

function clear({ clear: { idle, budget, native, largeInputTokens } }: Policy, share: number): ClearBudgets {
  return {
    idleMinimumFreed: Math.min(idle.minimumFreedTokens, share),
    target: Math.min(budget.targetTokens, share),
    minimumFreed: Math.min(budget.minimumFreedTokens, share),
    nativeKeep: Math.min(native.keepTokens, share),
    nativeClearAtLeast: Math.min(native.clearAtLeastTokens, share),
    largeInput: Math.min(largeInputTokens, share),
  }
}

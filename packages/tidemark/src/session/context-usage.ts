/**
 * Measures what fills the context window and how many tokens are left. Parts are estimated; the total may be the
 * provider's count. If the parts add up to less than the total, the rest is a part of its own; if to more, they are
 * scaled down. So the parts always add up to the total, and none is negative.
 */
import {
  type ContextEntry,
  isVisibleToModel,
  withProviderClearings,
} from '@tidemark/core/context/context-entry'
import { findCompactionSavings, measureContext } from '@tidemark/core/engine/measure-context'
import type { CompactionSavings } from '@tidemark/core/planner/context-plan'
import {
  findReachedThresholds,
  type ReachedThresholds,
  type Thresholds,
} from '@tidemark/core/policy/scale-policy'
import {
  createBreakdownBuilder,
  type DuplicateRead,
  findDuplicateReads,
  sumToolTallies,
  type TokenBreakdown,
  type TokenTally,
  toShownRecord,
} from '@tidemark/core/tokens/breakdown'
import type { OpenSession } from './open-session.ts'
import { createTurnHost } from './turn-host.ts'

export interface ContextBreakdown {
  readonly total: { readonly tokens: number; readonly source: 'measured' | 'estimated' | 'both' }
  /** Tokens of the context by kind of content, such as tool results or thinking. They add up to the total. */
  readonly classes: readonly ContextShare[]
  /** Tokens of tool calls and results by tool, largest first. They are also included in `classes`. */
  readonly tools: readonly ContextShare[]
  /** Tokens of files that tools read, largest first. They are also included in `classes`. */
  readonly files: readonly ContextShare[]
  /** Tokens of attachments by type, such as files, todos and output of hooks. They are also included in `classes`. */
  readonly carriers: readonly ContextShare[]
  /** Tokens of each message and attachment in the context, in order. They are also included in `classes`. */
  readonly messages: readonly MessageShare[]
  /** Files that were read more than once, and the tokens that a single read would have saved. */
  readonly duplicateReads: readonly DuplicateRead[]
}

interface ContextShare {
  readonly name: string
  readonly tokens: number
  /** Number of items, such as tool calls or files, that have these tokens together; absent if they are not counted. */
  readonly count?: number
  readonly source: 'measured' | 'estimated'
}

interface MessageShare {
  readonly uuid: string
  readonly kind: string
  readonly tokens: number
}

/** Implements `session.breakdown`. Counts the whole context, which takes a moment if it is long. */
export function measureContextBreakdown(session: OpenSession): ContextBreakdown {
  const host = createTurnHost(session)
  const { expected, source } = measureContext(session.state, host)
  const entries = listHeldEntries(session)
  const { account, attachments } = countContext(session, entries)
  const estimated = [...prefixShares(session), ...classShares(account, attachments)]
  const sum = sumTokens(estimated)
  const scale = Math.min(1, expected / Math.max(1, sum))
  const classes = toTotal(scaleTokens(estimated, scale), Math.min(sum, expected))
  const difference: ContextShare = {
    name: source === 'estimated' ? 'estimate correction' : 'counted by the provider only',
    tokens: expected - sumTokens(classes),
    source: source === 'estimated' ? 'estimated' : 'measured',
  }
  return {
    total: { tokens: expected, source },
    classes: [...classes, difference].filter(({ tokens }) => tokens > 0),
    tools: scaleTokens(toShares(sumToolTallies(account)), scale),
    files: scaleTokens(toShares(account.reads), scale),
    carriers: scaleTokens(toShares(attachments), scale),
    messages: scaleTokens(messageShares(session, entries), scale),
    duplicateReads: scaleTokens(findDuplicateReads(account), scale),
  }
}

type Counted = { readonly tokens: number }

function sumTokens(shares: readonly Counted[]): number {
  return shares.reduce((sum, { tokens }) => sum + tokens, 0)
}

function scaleTokens<Share extends Counted>(shares: readonly Share[], scale: number): readonly Share[] {
  return scale === 1
    ? shares
    : shares.map((share) => ({ ...share, tokens: Math.round(share.tokens * scale) }))
}

/** Adds what rounding left over to the largest share, so that the shares add up to `total`. */
function toTotal<Share extends Counted>(shares: readonly Share[], total: number): readonly Share[] {
  const rest = total - sumTokens(shares)
  const most = Math.max(...shares.map(({ tokens }) => tokens))
  const place = shares.findIndex(({ tokens }) => tokens === most)
  return shares.map((share, index) => (index === place ? { ...share, tokens: share.tokens + rest } : share))
}

/** Returns the entries of the context as the provider has them: what the provider cleared itself counts as cleared. */
function listHeldEntries({ state, settings }: OpenSession): readonly ContextEntry[] {
  return withProviderClearings(state.view.entries, settings.policy.clear).toArray()
}

/** Estimates the tokens of the context as the model sees it: a cleared tool result counts as its placeholder. */
function countContext(
  { model, settings }: OpenSession,
  entries: readonly ContextEntry[],
): {
  readonly account: TokenBreakdown
  readonly attachments: ReadonlyMap<string, TokenTally>
} {
  const { estimator } = model
  const account = createBreakdownBuilder({
    estimate: (block) => Math.round(estimator.block(block)),
    readTools: settings.policy.clear.tools.filter((tool) => /read/i.test(tool)),
  })
  const attachments = new Map<string, TokenTally>()
  for (const entry of entries) {
    if (!isVisibleToModel(entry)) continue
    const { record } = entry
    if (record.type === 'attachment') {
      const name = record.attachment.type ?? 'unknown'
      const { count, tokens } = attachments.get(name) ?? { count: 0, tokens: 0 }
      attachments.set(name, { count: count + 1, tokens: tokens + Math.round(estimator.entry(entry)) })
    } else account.add(toShownRecord(entry))
  }
  return { account: account.breakdown, attachments }
}

function prefixShares({ state, model, tools }: OpenSession): readonly ContextShare[] {
  const epoch = state.prefix.current?.epoch
  const system = (epoch?.sections ?? []).map(({ text }) => ({ type: 'text', text }))
  const declared = epoch?.tools ?? tools.definitions
  const tokens = (prefix: object): number => Math.round(model.estimator.prefix(prefix))
  return [
    toEstimatedShare('system prompt', tokens({ system })),
    toEstimatedShare('tool definitions', tokens({ tools: declared })),
  ]
}

function classShares(
  account: TokenBreakdown,
  attachments: ReadonlyMap<string, TokenTally>,
): readonly ContextShare[] {
  const sum = (tallies: ReadonlyMap<string, TokenTally>): number =>
    [...tallies.values()].reduce((total, { tokens }) => total + tokens, 0)
  return [
    toEstimatedShare('user messages', account.human),
    toEstimatedShare('answers', account.assistantText),
    toEstimatedShare('thinking', account.thinking),
    toEstimatedShare('tool calls', sum(account.toolRequests)),
    toEstimatedShare('tool results', sum(account.toolResults)),
    toEstimatedShare('attachments', sum(attachments)),
    toEstimatedShare('summaries', account.summaries),
    toEstimatedShare('images and documents', account.media.tokens),
    toEstimatedShare('local command output', account.localCommandOutput),
    toEstimatedShare('other', account.other),
  ]
}

function messageShares({ model }: OpenSession, entries: readonly ContextEntry[]): readonly MessageShare[] {
  const toShare = (entry: ContextEntry): MessageShare => ({
    uuid: entry.record.uuid,
    kind: entry.record.isCompactSummary === true ? 'summary' : entry.record.type,
    tokens: Math.round(model.estimator.entry(entry)),
  })
  return entries.map(toShare).filter(({ tokens }) => tokens > 0)
}

function toShares(tallies: ReadonlyMap<string, TokenTally>): readonly ContextShare[] {
  return [...tallies]
    .map(([name, { count, tokens }]): ContextShare => ({ name, count, tokens, source: 'estimated' }))
    .toSorted((one, other) => other.tokens - one.tokens)
}

function toEstimatedShare(name: string, tokens: number): ContextShare {
  return { name, tokens, source: 'estimated' }
}

export interface ContextRemaining {
  /** Tokens of the current context, including system prompt and tools. */
  readonly tokens: number
  /** Upper bound of the context's tokens. The engine compares it with the size at which requests are blocked. */
  readonly high: number
  /** How the tokens were counted. `both`: the provider's count plus an estimate for content appended since. */
  readonly source: 'measured' | 'estimated' | 'both'
  /**
   * Tokens left until automatic compaction begins or, if it is off, until the context window is full; null if the
   * window is unknown.
   */
  readonly left: number | null
  /**
   * Tokens left as a whole percentage of the size at which automatic compaction begins or, if it is off, of the context
   * window. Null if the window is unknown.
   */
  readonly percentLeft: number | null
  readonly lines: Thresholds | null
  /**
   * Which thresholds (warning, automatic compaction, blocking) the context has reached by its upper bound `high`, as the
   * engine decides it; null if the context window is unknown.
   */
  readonly ladder: ReachedThresholds | null
  /** What compacting now would save in money and drop from the context; null if it would not pay. */
  readonly advice: CompactionSavings | null
}

/** Implements `session.contextRemaining`. Stores the counted sizes in the session's state. */
export function measureContextRemaining(session: OpenSession): ContextRemaining {
  const host = createTurnHost(session)
  const { advice, state } = findCompactionSavings(session.state, host)
  // What was counted is kept, so that the next measurement counts only what is appended after it.
  session.state = state
  const { expected, high, source } = measureContext(state, host)
  const { scaled } = session.model
  const lines = scaled.known ? scaled.lines : null
  const percentLeft = lines === null ? null : findReachedThresholds(lines, expected).percentLeft
  const reached = lines === null ? null : findReachedThresholds(lines, high)
  return {
    tokens: expected,
    high,
    source,
    left: lines === null ? null : Math.max(0, lines.limit - expected),
    percentLeft,
    lines,
    ladder: reached === null || percentLeft === null ? null : { ...reached, percentLeft },
    advice,
  }
}

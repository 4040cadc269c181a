/**
 * Measures what fills the context window and how much is left. Parts are estimated, while the total may be reported by
 * the provider; the difference is listed as a separate part, so that the parts add up to the total.
 */
import {
  type ContextEntry,
  computeThresholdState,
  createBreakdown,
  type DuplicateRead,
  findDuplicateReads,
  isVisibleToModel,
  type KnownRecord,
  measureContext,
  type ThresholdState,
  type Thresholds,
  type TokenBreakdown,
  type TokenTally,
  toMessageParts,
} from '@tidemark/core'
import { createTurnHost, type OpenSession } from './open-session.ts'

export interface ContextBreakdown {
  readonly total: { readonly tokens: number; readonly source: 'measured' | 'estimated' | 'both' }
  /** The context by token class; the shares add up to the total. */
  readonly classes: readonly ContextShare[]
  /** Tool calls and results by tool, largest first. These tokens are also part of `classes`. */
  readonly tools: readonly ContextShare[]
  /** Files that tools read, largest first. These tokens are also part of `classes`. */
  readonly files: readonly ContextShare[]
  /** Attachments of context sources and hooks, by type. These tokens are also part of `classes`. */
  readonly carriers: readonly ContextShare[]
  /** Every entry of the context in order. These tokens are also part of `classes`. */
  readonly messages: readonly MessageShare[]
  /** Files that were read more than once, and the tokens that a single read would have saved. */
  readonly duplicateReads: readonly DuplicateRead[]
}

export interface ContextShare {
  readonly name: string
  readonly tokens: number
  /** Number of items in the share; absent if they are not counted. */
  readonly count?: number
  readonly source: 'measured' | 'estimated'
}

export interface MessageShare {
  readonly uuid: string
  readonly kind: string
  readonly tokens: number
}

export function measureBreakdown(session: OpenSession): ContextBreakdown {
  const host = createTurnHost(session)
  const { expected, source } = measureContext(session.state, host, host.compaction)
  const { account, attachments } = countContext(session)
  const classes = [...prefixShares(session), ...classShares(account, attachments)].filter(
    ({ tokens }) => tokens > 0,
  )
  const difference: ContextShare = {
    name: source === 'estimated' ? 'estimate correction' : 'counted by the provider only',
    tokens: expected - classes.reduce((sum, { tokens }) => sum + tokens, 0),
    source: source === 'estimated' ? 'estimated' : 'measured',
  }
  return {
    total: { tokens: expected, source },
    classes: difference.tokens === 0 ? classes : [...classes, difference],
    tools: toShares(addTallies(account.toolRequests, account.toolResults)),
    files: toShares(account.reads),
    carriers: toShares(attachments),
    messages: messageShares(session),
    duplicateReads: findDuplicateReads(account),
  }
}

/** Counts the tokens of the entries as the model sees them: a cleared tool result counts as its placeholder. */
function countContext({ state, model, settings }: OpenSession): {
  readonly account: TokenBreakdown
  readonly attachments: ReadonlyMap<string, TokenTally>
} {
  const { estimator } = model
  const account = createBreakdown({
    estimate: (block) => Math.round(estimator.block(block)),
    readTools: settings.policy.clear.tools.filter((tool) => /read/i.test(tool)),
  })
  const attachments = new Map<string, TokenTally>()
  for (const entry of state.view.entries) {
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

function toShownRecord(entry: ContextEntry): KnownRecord {
  const { record } = entry
  if (entry.cleared === undefined) return record
  const content = toMessageParts(entry).map(({ block }) => block)
  if (record.type === 'user') return { ...record, message: { ...record.message, content } }
  return record.type === 'assistant' ? { ...record, message: { ...record.message, content } } : record
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

function messageShares({ state, model }: OpenSession): readonly MessageShare[] {
  const toShare = (entry: ContextEntry): MessageShare => ({
    uuid: entry.record.uuid,
    kind: entry.record.isCompactSummary === true ? 'summary' : entry.record.type,
    tokens: Math.round(model.estimator.entry(entry)),
  })
  return [...state.view.entries].map(toShare).filter(({ tokens }) => tokens > 0)
}

/** Adds the tokens of two tallies by name. A tool call and its result count as one item. */
function addTallies(
  one: ReadonlyMap<string, TokenTally>,
  other: ReadonlyMap<string, TokenTally>,
): ReadonlyMap<string, TokenTally> {
  const all = new Map(one)
  for (const [name, { count, tokens }] of other) {
    const known = all.get(name)
    all.set(name, { count: Math.max(count, known?.count ?? 0), tokens: tokens + (known?.tokens ?? 0) })
  }
  return all
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
  /** Upper bound of the context's tokens. The engine compares it with the blocking threshold. */
  readonly high: number
  /** How the tokens were counted. `both`: the provider's count plus an estimate for content appended since. */
  readonly source: 'measured' | 'estimated' | 'both'
  /** Tokens left until automatic compaction (or until the window is full, if that is off); null if the window is unknown. */
  readonly left: number | null
  /** Tokens left as a whole percentage of the threshold; null if the window is unknown. */
  readonly percentLeft: number | null
  readonly lines: Thresholds | null
  /** The thresholds that the context has reached; null if the window is unknown. */
  readonly ladder: ThresholdState | null
}

export function measureContextRemaining(session: OpenSession): ContextRemaining {
  const host = createTurnHost(session)
  const { expected, high, source } = measureContext(session.state, host, host.compaction)
  const { scaled } = session.model
  const lines = scaled.known ? scaled.lines : null
  const ladder = lines === null ? null : computeThresholdState(lines, expected)
  return {
    tokens: expected,
    high,
    source,
    left: lines === null ? null : Math.max(0, lines.limit - expected),
    percentLeft: ladder?.percentLeft ?? null,
    lines,
    ladder,
  }
}

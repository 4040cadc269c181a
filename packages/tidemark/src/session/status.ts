/**
 * What fills the context window, and how much is left. The parts are estimated, the total may be measured; the difference
 * is a part of its own, so that the parts always add up to the total.
 */
import {
  type Accounting,
  type DuplicateRead,
  duplicateReads,
  type Entry,
  isShown,
  type KnownRecord,
  type LadderState,
  type Lines,
  measureNow,
  openAccount,
  partsOf,
  standOn,
  type Tally,
} from '@tidemark/core'
import { type OpenSession, turnHost } from './open-session.ts'

export interface Breakdown {
  readonly total: { readonly tokens: number; readonly source: 'measured' | 'estimated' | 'both' }
  /** The token classes; they add up to the total. */
  readonly classes: readonly Share[]
  /** Calls and results by tool, largest first. This and the lists below are parts of the classes. */
  readonly tools: readonly Share[]
  /** Files that tools read. */
  readonly files: readonly Share[]
  /** Attachments by type: from context sources and hooks. */
  readonly carriers: readonly Share[]
  /** Every entry of the context, in order. */
  readonly messages: readonly MessageShare[]
  /** Files that were read more than once, and the tokens that a single read would have saved. */
  readonly duplicateReads: readonly DuplicateRead[]
}

export interface Share {
  readonly name: string
  readonly tokens: number
  /** How many items; absent if they are not counted. */
  readonly count?: number
  readonly source: 'measured' | 'estimated'
}

export interface MessageShare {
  readonly uuid: string
  readonly kind: string
  readonly tokens: number
}

export function measureBreakdown(session: OpenSession): Breakdown {
  const host = turnHost(session)
  const { expected, source } = measureNow(session.state, host, host.room)
  const { account, attachments } = countContext(session)
  const classes = [...prefixShares(session), ...classShares(account, attachments)].filter(
    ({ tokens }) => tokens > 0,
  )
  const difference: Share = {
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
    duplicateReads: duplicateReads(account),
  }
}

/** Counts the entries as the model sees them: a cleared result counts as its placeholder. */
function countContext({ state, model, settings }: OpenSession): {
  readonly account: Accounting
  readonly attachments: ReadonlyMap<string, Tally>
} {
  const { estimator } = model
  const account = openAccount({
    estimate: (block) => Math.round(estimator.block(block)),
    readTools: settings.policy.clear.tools.filter((tool) => /read/i.test(tool)),
  })
  const attachments = new Map<string, Tally>()
  for (const entry of state.view.entries) {
    if (!isShown(entry)) continue
    const { record } = entry
    if (record.type === 'attachment') {
      const name = record.attachment.type ?? 'unknown'
      const { count, tokens } = attachments.get(name) ?? { count: 0, tokens: 0 }
      attachments.set(name, { count: count + 1, tokens: tokens + Math.round(estimator.entry(entry)) })
    } else account.add(toShownRecord(entry))
  }
  return { account: account.standing, attachments }
}

function toShownRecord(entry: Entry): KnownRecord {
  const { record } = entry
  if (entry.cleared === undefined) return record
  const content = partsOf(entry).map(({ block }) => block)
  if (record.type === 'user') return { ...record, message: { ...record.message, content } }
  return record.type === 'assistant' ? { ...record, message: { ...record.message, content } } : record
}

function prefixShares({ state, model, tools }: OpenSession): readonly Share[] {
  const epoch = state.told.standing?.epoch
  const system = (epoch?.sections ?? []).map(({ text }) => ({ type: 'text', text }))
  const declared = epoch?.tools ?? tools.definitions
  const tokens = (prefix: object): number => Math.round(model.estimator.prefix(prefix))
  return [
    toEstimatedShare('system prompt', tokens({ system })),
    toEstimatedShare('tool definitions', tokens({ tools: declared })),
  ]
}

function classShares(account: Accounting, attachments: ReadonlyMap<string, Tally>): readonly Share[] {
  const sum = (tallies: ReadonlyMap<string, Tally>): number =>
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
  const toShare = (entry: Entry): MessageShare => ({
    uuid: entry.record.uuid,
    kind: entry.record.isCompactSummary === true ? 'summary' : entry.record.type,
    tokens: Math.round(model.estimator.entry(entry)),
  })
  return [...state.view.entries].map(toShare).filter(({ tokens }) => tokens > 0)
}

/** A call and its result count once. */
function addTallies(
  one: ReadonlyMap<string, Tally>,
  other: ReadonlyMap<string, Tally>,
): ReadonlyMap<string, Tally> {
  const all = new Map(one)
  for (const [name, { count, tokens }] of other) {
    const known = all.get(name)
    all.set(name, { count: Math.max(count, known?.count ?? 0), tokens: tokens + (known?.tokens ?? 0) })
  }
  return all
}

function toShares(tallies: ReadonlyMap<string, Tally>): readonly Share[] {
  return [...tallies]
    .map(([name, { count, tokens }]): Share => ({ name, count, tokens, source: 'estimated' }))
    .toSorted((one, other) => other.tokens - one.tokens)
}

function toEstimatedShare(name: string, tokens: number): Share {
  return { name, tokens, source: 'estimated' }
}

export interface ContextLeft {
  /** Tokens of the current context, with system prompt and tools. */
  readonly tokens: number
  /** Upper bound of the tokens; decisions use it. */
  readonly high: number
  /** `both`: the provider's count plus an estimate of what was appended since. */
  readonly source: 'measured' | 'estimated' | 'both'
  /** Tokens left until the threshold of automatic action; null if the window is unknown. */
  readonly left: number | null
  /** The same in whole per cent of the threshold; null if the window is unknown. */
  readonly percentLeft: number | null
  readonly lines: Lines | null
  /** Which thresholds are reached; null if the window is unknown. */
  readonly ladder: LadderState | null
}

export function measureContextRemaining(session: OpenSession): ContextLeft {
  const host = turnHost(session)
  const { expected, high, source } = measureNow(session.state, host, host.room)
  const { scaled } = session.model
  const lines = scaled.known ? scaled.lines : null
  const ladder = lines === null ? null : standOn(lines, expected)
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

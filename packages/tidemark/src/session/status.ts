/**
 * What fills the window: by class, by tool, by file, by carrier, by message. The parts are estimates, the whole may
 * have been measured; what lies between them is a part of its own, so that the parts always add up.
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
import { type Desk, hostOf } from './open-session.ts'

export interface Breakdown {
  readonly total: { readonly tokens: number; readonly source: 'measured' | 'estimated' | 'both' }
  /** Add up to the total. */
  readonly classes: readonly Share[]
  /** Calls and results of each tool, dearest first; a part of the classes, and so are those below. */
  readonly tools: readonly Share[]
  /** Files that tools read. */
  readonly files: readonly Share[]
  /** Attachments by type: what carriers and hooks brought. */
  readonly carriers: readonly Share[]
  /** Every line of the view, in order. */
  readonly messages: readonly MessageShare[]
  /** Files read more than once, and what one reading would have saved. */
  readonly duplicateReads: readonly DuplicateRead[]
}

export interface Share {
  readonly name: string
  readonly tokens: number
  /** Pieces of it; absent where they are not counted. */
  readonly count?: number
  readonly source: 'measured' | 'estimated'
}

export interface MessageShare {
  readonly uuid: string
  readonly kind: string
  readonly tokens: number
}

export function breakdownOf(desk: Desk): Breakdown {
  const { state } = desk.shared
  const host = hostOf(desk)
  const { expected, source } = measureNow(state, host, host.room)
  const messages = messageShares(desk)
  const { account, attachments } = countedIn(desk)
  const classes = [...prefixShares(desk), ...classShares(account, attachments)].filter(
    ({ tokens }) => tokens > 0,
  )
  const estimated = classes.reduce((sum, { tokens }) => sum + tokens, 0)
  const beside: Share = {
    name: source === 'estimated' ? 'correction of the estimate' : 'counted by the provider beside these',
    tokens: expected - estimated,
    source: source === 'estimated' ? 'estimated' : 'measured',
  }
  return {
    total: { tokens: expected, source },
    classes: beside.tokens === 0 ? classes : [...classes, beside],
    tools: byTokens(merged(account.toolRequests, account.toolResults)),
    files: byTokens(account.reads),
    carriers: byTokens(attachments),
    messages,
    duplicateReads: duplicateReads(account),
  }
}

interface Counted {
  readonly account: Accounting
  readonly attachments: ReadonlyMap<string, Tally>
}

/** Everything as the view shows it: what was cleared counts as its stub. */
function countedIn({ shared, fitted, settings }: Desk): Counted {
  const { estimator } = fitted
  const account = openAccount({
    estimate: (block) => Math.round(estimator.block(block)),
    readTools: settings.policy.clear.tools.filter((tool) => /read/i.test(tool)),
  })
  const attachments = new Map<string, Tally>()
  for (const entry of shared.state.view.entries) {
    if (!isShown(entry)) continue
    const { record } = entry
    if (record.type === 'attachment') {
      const name = record.attachment.type ?? 'unknown'
      const { count, tokens } = attachments.get(name) ?? { count: 0, tokens: 0 }
      attachments.set(name, { count: count + 1, tokens: tokens + Math.round(estimator.entry(entry)) })
    } else account.add(shownRecord(entry))
  }
  return { account: account.standing, attachments }
}

function shownRecord(entry: Entry): KnownRecord {
  const { record } = entry
  if (entry.cleared === undefined) return record
  const content = partsOf(entry).map(({ block }) => block)
  if (record.type === 'user') return { ...record, message: { ...record.message, content } }
  return record.type === 'assistant' ? { ...record, message: { ...record.message, content } } : record
}

function prefixShares({ shared, fitted, tools }: Desk): readonly Share[] {
  const epoch = shared.state.told.standing?.epoch
  const system = (epoch?.sections ?? []).map(({ text }) => ({ type: 'text', text }))
  const declared = epoch?.tools ?? tools.definitions
  const tokens = (prefix: object): number => Math.round(fitted.estimator.prefix(prefix))
  return [
    estimated('system prompt', tokens({ system })),
    estimated('tool definitions', tokens({ tools: declared })),
  ]
}

function classShares(account: Accounting, attachments: ReadonlyMap<string, Tally>): readonly Share[] {
  const sum = (tallies: ReadonlyMap<string, Tally>): number =>
    [...tallies.values()].reduce((total, { tokens }) => total + tokens, 0)
  return [
    estimated('messages of the person', account.human),
    estimated('answers', account.assistantText),
    estimated('thinking', account.thinking),
    estimated('tool calls', sum(account.toolRequests)),
    estimated('tool results', sum(account.toolResults)),
    estimated('attachments', sum(attachments)),
    estimated('summaries', account.summaries),
    estimated('pictures and documents', account.media.tokens),
    estimated('output of local commands', account.localCommandOutput),
    estimated('other', account.other),
  ]
}

function messageShares({ shared, fitted }: Desk): readonly MessageShare[] {
  const of = (entry: Entry): MessageShare => ({
    uuid: entry.record.uuid,
    kind: entry.record.isCompactSummary === true ? 'summary' : entry.record.type,
    tokens: Math.round(fitted.estimator.entry(entry)),
  })
  return [...shared.state.view.entries].map(of).filter(({ tokens }) => tokens > 0)
}

function merged(
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

function byTokens(tallies: ReadonlyMap<string, Tally>): readonly Share[] {
  return [...tallies]
    .map(([name, { count, tokens }]): Share => ({ name, count, tokens, source: 'estimated' }))
    .toSorted((one, other) => other.tokens - one.tokens)
}

function estimated(name: string, tokens: number): Share {
  return { name, tokens, source: 'estimated' }
}

// How much room is left in the window, and where its lines lie.

export interface ContextLeft {
  /** Tokens of the conversation as it stands, system prompt and tools included. */
  readonly tokens: number
  /** The same on the safe side: what decisions are made by. */
  readonly high: number
  /** `both`: the provider's count, and an estimate of what has come since. */
  readonly source: 'measured' | 'estimated' | 'both'
  /** Tokens up to the line where something is done by itself; null where the window is not known. */
  readonly left: number | null
  /** Whole per cent of that line; null where the window is not known. */
  readonly percentLeft: number | null
  readonly lines: Lines | null
  /** Which lines are reached; null where there are none. */
  readonly ladder: LadderState | null
}

export function contextLeft(desk: Desk): ContextLeft {
  const host = hostOf(desk)
  const { expected, high, source } = measureNow(desk.shared.state, host, host.room)
  const { scaled } = desk.fitted
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

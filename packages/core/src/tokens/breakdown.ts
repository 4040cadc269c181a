/**
 * Counts the tokens of a conversation by kind of content, and finds files that were read more than once. The counts are
 * updated record by record, so an update costs time only for new records.
 */
import { type ContextEntry, isVisibleToModel, toTracedBlocks } from '../context/context-entry.ts'
import { describeToolCall, readToolName } from '../facts/tool-calls.ts'
import {
  type Block,
  isMediaBlock,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  toBlocks,
} from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'

export interface TokenTally {
  readonly count: number
  readonly tokens: number
}

/** Estimated tokens by kind of content. `other`: unknown blocks, and texts that a program wrote as the user. */
export interface TokenBreakdown {
  readonly human: number
  readonly assistantText: number
  readonly thinking: number
  readonly summaries: number
  readonly localCommandOutput: number
  readonly other: number
  readonly total: number
  readonly media: TokenTally
  /** Number of tool calls and their tokens, by tool name. */
  readonly toolRequests: ReadonlyMap<string, TokenTally>
  readonly toolResults: ReadonlyMap<string, TokenTally>
  /** Number of attachments and their tokens, by attachment type. */
  readonly attachments: ReadonlyMap<string, TokenTally>
  /** Number of times that each file was read, and the tokens of those tool results, by file path. */
  readonly reads: ReadonlyMap<string, TokenTally>
}

/** Returns the tokens of tool calls and their results together, by tool name. A call and its result count as one. */
export function sumToolTallies({
  toolRequests,
  toolResults,
}: Pick<TokenBreakdown, 'toolRequests' | 'toolResults'>): ReadonlyMap<string, TokenTally> {
  const all = new Map(toolRequests)
  for (const [name, { count, tokens }] of toolResults) {
    const known = all.get(name)
    all.set(name, { count: Math.max(count, known?.count ?? 0), tokens: tokens + (known?.tokens ?? 0) })
  }
  return all
}

export interface BreakdownOptions {
  readonly estimate: (block: Block) => number
  /** Names of the tools whose calls count as reading a file. */
  readonly readTools: readonly string[]
}

/** A file that was read more than once. */
export interface DuplicateRead {
  readonly path: string
  readonly count: number
  /** Estimated tokens of the repeated reads: what reading the file only once would have saved. */
  readonly tokens: number
}

/** Counts records one by one. `breakdown` is a mutable object that is updated with every added record. */
interface BreakdownBuilder {
  readonly breakdown: TokenBreakdown
  add(record: KnownRecord): void
}

type BreakdownClass =
  | 'human'
  | 'assistantText'
  | 'thinking'
  | 'summaries'
  | 'localCommandOutput'
  | 'other'
  | 'total'

interface MutableBreakdown extends Record<BreakdownClass, number> {
  media: TokenTally
  readonly toolRequests: Map<string, TokenTally>
  readonly toolResults: Map<string, TokenTally>
  readonly attachments: Map<string, TokenTally>
  readonly reads: Map<string, TokenTally>
}

interface CountedCall {
  readonly tool: string
  readonly path: string | null
}

export function createBreakdownBuilder(rules: BreakdownOptions): BreakdownBuilder {
  const ledger = createEmptyBreakdown()
  const calls = new Map<string, CountedCall>()
  return {
    breakdown: ledger,
    add: (record) => {
      for (const block of listCountedBlocks(record)) {
        const tokens = rules.estimate(block)
        ledger.total += tokens
        if (isToolUse(block)) addCall(ledger, calls, block, tokens, rules)
        else if (isToolResult(block)) addResult(ledger, calls.get(block.tool_use_id), tokens)
        else if (record.type === 'attachment')
          addToTally(ledger.attachments, record.attachment.type ?? 'unknown', tokens)
        else if (isMediaBlock(block)) ledger.media = withTokens(ledger.media, tokens)
        else ledger[chooseClass(block, record)] += tokens
      }
    },
  }
}

/** Counts the context as the model sees it: a cleared tool result counts as its placeholder. */
export function breakDownContext(entries: Iterable<ContextEntry>, rules: BreakdownOptions): TokenBreakdown {
  const account = createBreakdownBuilder(rules)
  for (const entry of entries) if (isVisibleToModel(entry)) account.add(toShownRecord(entry))
  return account.breakdown
}

/** Returns the record of an entry with the content that the model is shown, which differs if parts were cleared. */
export function toShownRecord(entry: ContextEntry): KnownRecord {
  const { record } = entry
  if (entry.cleared === undefined) return record
  const content = toTracedBlocks(entry).map(({ block }) => block)
  if (record.type === 'user') return { ...record, message: { ...record.message, content } }
  return record.type === 'assistant' ? { ...record, message: { ...record.message, content } } : record
}

/** Returns the files that were read more than once, most wasted tokens first. */
export function findDuplicateReads(accounting: TokenBreakdown): readonly DuplicateRead[] {
  const repeated = [...accounting.reads].filter(([, read]) => read.count > 1)
  const wasted = repeated.map(([path, { count, tokens }]) => ({
    path,
    count,
    tokens: Math.floor(tokens / count) * (count - 1),
  }))
  return wasted.sort((one, other) => other.tokens - one.tokens || (one.path < other.path ? -1 : 1))
}

function createEmptyBreakdown(): MutableBreakdown {
  return {
    human: 0,
    assistantText: 0,
    thinking: 0,
    summaries: 0,
    localCommandOutput: 0,
    other: 0,
    total: 0,
    media: { count: 0, tokens: 0 },
    toolRequests: new Map(),
    toolResults: new Map(),
    attachments: new Map(),
    reads: new Map(),
  }
}

/** Returns the blocks of a record whose tokens are counted. Returns none for a record that the model never sees. */
function listCountedBlocks(record: KnownRecord): readonly Block[] {
  // An attachment counts as the text that the model reads, not as the JSON of its record.
  if (record.type === 'attachment')
    return record.isScreenOnly === true ? [] : toTracedBlocks({ record, index: 0 }).map(({ block }) => block)
  if ((record.type !== 'user' && record.type !== 'assistant') || isSyntheticError(record)) return []
  return toBlocks(record.message.content)
}

function chooseClass(block: Block, record: KnownRecord): BreakdownClass {
  if (isThinkingBlock(block)) return 'thinking'
  if (!isTextBlock(block)) return 'other'
  if (record.type === 'assistant') return 'assistantText'
  if (record.isCompactSummary === true) return 'summaries'
  if (block.text.includes('local-command-stdout')) return 'localCommandOutput'
  return record.isMeta === true ? 'other' : 'human'
}

function addCall(
  ledger: MutableBreakdown,
  calls: Map<string, CountedCall>,
  block: Block & { readonly id: string },
  tokens: number,
  rules: BreakdownOptions,
): void {
  const tool = readToolName(block)
  const isRead = rules.readTools.includes(tool)
  calls.set(block.id, { tool, path: isRead ? describeToolCall(tool, block.input, rules).path : null })
  addToTally(ledger.toolRequests, tool, tokens)
}

function addResult(ledger: MutableBreakdown, call: CountedCall | undefined, tokens: number): void {
  addToTally(ledger.toolResults, call?.tool ?? 'unknown', tokens)
  if (call?.path != null) addToTally(ledger.reads, call.path, tokens)
}

function addToTally(tallies: Map<string, TokenTally>, name: string, tokens: number): void {
  tallies.set(name, withTokens(tallies.get(name) ?? { count: 0, tokens: 0 }, tokens))
}

function withTokens(tally: TokenTally, tokens: number): TokenTally {
  return { count: tally.count + 1, tokens: tally.tokens + tokens }
}

/** Returns the breakdown as flat numbers for telemetry. The metric names are a public contract and must not change. */
export function toBreakdownMetrics(accounting: TokenBreakdown): Readonly<Record<string, number>> {
  const duplicates = findDuplicateReads(accounting)
  const wasted = duplicates.reduce((sum, read) => sum + read.tokens, 0)
  return {
    total_tokens: accounting.total,
    human_message_tokens: accounting.human,
    assistant_message_tokens: accounting.assistantText,
    local_command_output_tokens: accounting.localCommandOutput,
    thinking_tokens: accounting.thinking,
    summary_tokens: accounting.summaries,
    attachment_tokens: sumTallies(accounting.attachments),
    media_tokens: accounting.media.tokens,
    other_tokens: accounting.other,
    ...toNamedMetrics(accounting.attachments, 'attachment', 'count'),
    ...toNamedMetrics(accounting.toolRequests, 'tool_request', 'tokens'),
    ...toNamedMetrics(accounting.toolResults, 'tool_result', 'tokens'),
    duplicate_read_tokens: wasted,
    duplicate_read_file_count: duplicates.length,
    ...toPercentMetrics(accounting, wasted),
  }
}

function toNamedMetrics(
  tallies: ReadonlyMap<string, TokenTally>,
  group: string,
  figure: keyof TokenTally,
): Readonly<Record<string, number>> {
  return Object.fromEntries([...tallies].map(([key, tally]) => [`${group}_${key}_${figure}`, tally[figure]]))
}

/**
 * Returns each class as a whole percentage of the total; together they are 100. The percentage of duplicate reads is
 * given in addition: they are part of the tool results. Returns no metrics if the total is 0.
 */
function toPercentMetrics(accounting: TokenBreakdown, wasted: number): Readonly<Record<string, number>> {
  const { total } = accounting
  if (total <= 0) return {}
  const classes = {
    human_message_percent: accounting.human,
    assistant_message_percent: accounting.assistantText,
    local_command_output_percent: accounting.localCommandOutput,
    thinking_percent: accounting.thinking,
    summary_percent: accounting.summaries,
    attachment_percent: sumTallies(accounting.attachments),
    media_percent: accounting.media.tokens,
    tool_request_percent: sumTallies(accounting.toolRequests),
    tool_result_percent: sumTallies(accounting.toolResults),
    other_percent: accounting.other,
  }
  return { ...toWholePercents(classes, total), duplicate_read_percent: Math.round((wasted / total) * 100) }
}

/** Rounds shares so that they add up to 100: all are rounded down, then those that lost most are rounded up. */
function toWholePercents(
  classes: Readonly<Record<string, number>>,
  total: number,
): Readonly<Record<string, number>> {
  const shares = Object.entries(classes).map(([name, tokens]) => ({ name, share: (tokens / total) * 100 }))
  const missing = 100 - shares.reduce((sum, { share }) => sum + Math.floor(share), 0)
  const byLoss = shares.toSorted((one, other) => (other.share % 1) - (one.share % 1))
  const raised = new Set(byLoss.slice(0, missing).map(({ name }) => name))
  return Object.fromEntries(
    shares.map(({ name, share }) => [name, Math.floor(share) + (raised.has(name) ? 1 : 0)]),
  )
}

function sumTallies(tallies: ReadonlyMap<string, TokenTally>): number {
  return [...tallies.values()].reduce((sum, tally) => sum + tally.tokens, 0)
}

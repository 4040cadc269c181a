/**
 * What fills a conversation: tokens by class, and files read more than once. Updated record by record, so a turn costs
 * what it added.
 */
import { type Block, blocksOf, isMedia, isText, isThinking, isToolResult, isToolUse } from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import { describeToolCall, toolName } from '../log/tool-calls.ts'

export interface Tally {
  readonly count: number
  readonly tokens: number
}

export interface Accounting {
  readonly human: number
  readonly assistantText: number
  readonly thinking: number
  readonly summaries: number
  readonly localCommandOutput: number
  readonly other: number
  readonly total: number
  readonly media: Tally
  /** By tool. */
  readonly toolRequests: ReadonlyMap<string, Tally>
  readonly toolResults: ReadonlyMap<string, Tally>
  /** By type. */
  readonly attachments: ReadonlyMap<string, Tally>
  /** By path: how often a file was read, and the tokens of the results. */
  readonly reads: ReadonlyMap<string, Tally>
}

export interface AccountingRules {
  readonly estimate: (block: Block) => number
  /** Tools whose reads are counted by path. */
  readonly readTools: readonly string[]
}

export interface DuplicateRead {
  readonly path: string
  readonly count: number
  /** Tokens that reading it once would have saved. */
  readonly tokens: number
}

/** `standing` is live: it changes with every record added. */
interface Account {
  readonly standing: Accounting
  add(record: KnownRecord): void
}

type Sum = 'human' | 'assistantText' | 'thinking' | 'summaries' | 'localCommandOutput' | 'other' | 'total'

interface Ledger extends Record<Sum, number> {
  media: Tally
  readonly toolRequests: Map<string, Tally>
  readonly toolResults: Map<string, Tally>
  readonly attachments: Map<string, Tally>
  readonly reads: Map<string, Tally>
}

interface Call {
  readonly tool: string
  readonly path: string | null
}

export function openAccount(rules: AccountingRules): Account {
  const ledger = emptyLedger()
  const calls = new Map<string, Call>()
  return {
    standing: ledger,
    add: (record) => {
      for (const block of countedBlocks(record)) {
        const tokens = rules.estimate(block)
        ledger.total += tokens
        if (isToolUse(block)) enterCall(ledger, calls, block, tokens, rules)
        else if (isToolResult(block)) enterResult(ledger, calls.get(block.tool_use_id), tokens)
        else if (record.type === 'attachment')
          tally(ledger.attachments, record.attachment.type ?? 'unknown', tokens)
        else if (isMedia(block)) ledger.media = grown(ledger.media, tokens)
        else ledger[sumFor(block, record)] += tokens
      }
    },
  }
}

/** Files read more than once, most wasted tokens first. */
export function duplicateReads(accounting: Accounting): readonly DuplicateRead[] {
  const repeated = [...accounting.reads].filter(([, read]) => read.count > 1)
  const wasted = repeated.map(([path, { count, tokens }]) => ({
    path,
    count,
    tokens: Math.floor(tokens / count) * (count - 1),
  }))
  return wasted.sort((one, other) => other.tokens - one.tokens || (one.path < other.path ? -1 : 1))
}

function emptyLedger(): Ledger {
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

/** Empty for records that never reach the model. */
function countedBlocks(record: KnownRecord): readonly Block[] {
  if (record.type === 'attachment') {
    return record.isScreenOnly === true
      ? []
      : [{ ...record.attachment, type: record.attachment.type ?? 'unknown' }]
  }
  if ((record.type !== 'user' && record.type !== 'assistant') || isSyntheticError(record)) return []
  return blocksOf(record.message.content)
}

function sumFor(block: Block, record: KnownRecord): Sum {
  if (isThinking(block)) return 'thinking'
  if (!isText(block)) return 'other'
  if (record.type === 'assistant') return 'assistantText'
  if (record.isCompactSummary === true) return 'summaries'
  if (block.text.includes('local-command-stdout')) return 'localCommandOutput'
  return record.isMeta === true ? 'other' : 'human'
}

function enterCall(
  ledger: Ledger,
  calls: Map<string, Call>,
  block: Block & { readonly id: string },
  tokens: number,
  rules: AccountingRules,
): void {
  const tool = toolName(block)
  const isRead = rules.readTools.includes(tool)
  calls.set(block.id, { tool, path: isRead ? describeToolCall(tool, block.input, rules).path : null })
  tally(ledger.toolRequests, tool, tokens)
}

function enterResult(ledger: Ledger, call: Call | undefined, tokens: number): void {
  tally(ledger.toolResults, call?.tool ?? 'unknown', tokens)
  if (call?.path != null) tally(ledger.reads, call.path, tokens)
}

function tally(tallies: Map<string, Tally>, name: string, tokens: number): void {
  tallies.set(name, grown(tallies.get(name) ?? { count: 0, tokens: 0 }, tokens))
}

function grown(tally: Tally, tokens: number): Tally {
  return { count: tally.count + 1, tokens: tally.tokens + tokens }
}

/** The breakdown as flat figures for telemetry. The names are part of the contract. */
export function accountingMetrics(accounting: Accounting): Readonly<Record<string, number>> {
  const duplicates = duplicateReads(accounting)
  const wasted = duplicates.reduce((sum, read) => sum + read.tokens, 0)
  return {
    total_tokens: accounting.total,
    human_message_tokens: accounting.human,
    assistant_message_tokens: accounting.assistantText,
    local_command_output_tokens: accounting.localCommandOutput,
    other_tokens: accounting.other,
    ...named(accounting.attachments, 'attachment', 'count'),
    ...named(accounting.toolRequests, 'tool_request', 'tokens'),
    ...named(accounting.toolResults, 'tool_result', 'tokens'),
    duplicate_read_tokens: wasted,
    duplicate_read_file_count: duplicates.length,
    ...percents(accounting, wasted),
  }
}

function named(
  tallies: ReadonlyMap<string, Tally>,
  group: string,
  figure: keyof Tally,
): Readonly<Record<string, number>> {
  return Object.fromEntries([...tallies].map(([key, tally]) => [`${group}_${key}_${figure}`, tally[figure]]))
}

/** Whole percentages; none if the total is 0. */
function percents(accounting: Accounting, wasted: number): Readonly<Record<string, number>> {
  if (accounting.total <= 0) return {}
  const share = (tokens: number): number => Math.round((tokens / accounting.total) * 100)
  return {
    human_message_percent: share(accounting.human),
    assistant_message_percent: share(accounting.assistantText),
    local_command_output_percent: share(accounting.localCommandOutput),
    duplicate_read_percent: share(wasted),
    tool_request_percent: share(sumOf(accounting.toolRequests)),
    tool_result_percent: share(sumOf(accounting.toolResults)),
  }
}

function sumOf(tallies: ReadonlyMap<string, Tally>): number {
  return [...tallies.values()].reduce((sum, tally) => sum + tally.tokens, 0)
}

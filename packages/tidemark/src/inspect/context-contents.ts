/**
 * Measures what filled the context of the main conversation: tokens by kind of content and by tool, repeated reads, and
 * the largest blocks. Each block counts once, however often it was sent.
 */
import { toTracedBlocks } from '@tidemark/core/context/context-entry'
import {
  type Block,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  type ToolUseBlock,
  toBlocks,
} from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import { isKnownRecord, type KnownRecord, SYNTHETIC_MODEL } from '@tidemark/core/log/record'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { toRedactedPreview } from '@tidemark/core/text/redact'
import {
  createBreakdownBuilder,
  findDuplicateReads,
  type TokenBreakdown,
  type TokenTally,
} from '@tidemark/core/tokens/breakdown'
import { createEstimator, type Estimator } from '@tidemark/core/tokens/estimator'
import { type Catalogue, lookUpModel } from '@tidemark/wire/catalogue/catalogue'
import { createEstimatorWeights } from '@tidemark/wire/catalogue/estimator-weights'
import type { TokenizerFamily } from '@tidemark/wire/catalogue/model-entry'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import { createDuplicateFilter } from '../logs/read-log.ts'
import type { LoggedCall } from './logged-calls.ts'
import type { ContentTokens, LargeBlock, SessionReport, ToolTokens } from './report.ts'

/** Names of the file-reading tools in the supported hosts. */
export const READ_TOOL_NAMES: readonly string[] = ['Read', 'read', 'read_file', 'view_file', 'NotebookRead']

/**
 * Returns the content fields of a report. `read`: the records of the main conversation. `estimate`: returns the
 * estimated tokens of a block.
 */
export function measureContents(
  read: readonly RecordWithLine[],
  estimate: (block: Block) => number,
): Pick<SessionReport, 'tokensByClass' | 'byTool' | 'duplicateReads' | 'largest'> {
  const lines = createDuplicateFilter()
  const known = read.flatMap(({ record, line }) =>
    isKnownRecord(record) && !lines.isDuplicate(record) ? [{ record, line }] : [],
  )
  const account = createBreakdownBuilder({ estimate, readTools: READ_TOOL_NAMES })
  for (const { record } of known) account.add(record)
  const { breakdown } = account
  const repeated = findDuplicateReads(breakdown)
  return {
    tokensByClass: toTokensByClass(breakdown),
    byTool: toToolShares(breakdown),
    duplicateReads: repeated,
    largest: findLargestBlocks(known, estimate),
  }
}

/** Sums the tokens of all tools, and of all types of attachments, to one figure for each kind of content. */
export function toTokensByClass(accounting: TokenBreakdown): ContentTokens {
  const { human, assistantText, thinking, localCommandOutput, summaries, other, total, media } = accounting
  const sumTokens = (tallies: ReadonlyMap<string, TokenTally>): number =>
    [...tallies.values()].reduce((all, { tokens }) => all + tokens, 0)
  return {
    human,
    assistantText,
    thinking,
    toolRequests: sumTokens(accounting.toolRequests),
    toolResults: sumTokens(accounting.toolResults),
    localCommandOutput,
    attachments: sumTokens(accounting.attachments),
    media: media.tokens,
    summaries,
    other,
    total,
  }
}

/** Returns the tokens of each tool's calls and results, the tool with the most tokens first. */
function toToolShares({ toolRequests, toolResults }: TokenBreakdown): readonly ToolTokens[] {
  const names = [...new Set([...toolRequests.keys(), ...toolResults.keys()])]
  const shares = names.map((tool) => ({
    tool,
    calls: toolRequests.get(tool)?.count ?? 0,
    requestTokens: toolRequests.get(tool)?.tokens ?? 0,
    resultTokens: toolResults.get(tool)?.tokens ?? 0,
  }))
  const countTokens = ({ requestTokens, resultTokens }: ToolTokens): number => requestTokens + resultTokens
  return shares.sort(
    (one, other) => countTokens(other) - countTokens(one) || (one.tool < other.tool ? -1 : 1),
  )
}

const LARGEST_COUNT = 10

/** Tool calls keyed by id. They are used to describe the tool results that follow. */
export type ToolCallsById = Map<string, ToolUseBlock>

/** A content block that may be one of the largest, before it is described. */
interface MeasuredBlock extends Pick<LargeBlock, 'tokens' | 'line'> {
  readonly block: Block
  readonly record: KnownRecord
}

/**
 * Returns the content blocks with the most tokens, largest first. Only these are described, because removing the
 * secrets of a long text takes time.
 */
function findLargestBlocks(
  read: readonly { readonly record: KnownRecord; readonly line: number }[],
  estimate: (block: Block) => number,
): readonly LargeBlock[] {
  const takeLargest = (items: readonly MeasuredBlock[]): MeasuredBlock[] =>
    items.toSorted((one, other) => other.tokens - one.tokens || one.line - other.line).slice(0, LARGEST_COUNT)
  const calls: ToolCallsById = new Map()
  let items: MeasuredBlock[] = []
  let least = 0
  for (const { record, line } of read) {
    for (const block of listBlocks(record)) {
      if (isToolUse(block)) calls.set(block.id, block)
      const tokens = estimate(block)
      if (tokens > least) items.push({ block, record, tokens, line })
    }
    if (items.length <= 10 * LARGEST_COUNT) continue
    items = takeLargest(items)
    least = items.at(-1)?.tokens ?? 0
  }
  return takeLargest(items).map(({ block, record, tokens, line }) => ({
    ...describeBlock(block, record, calls),
    tokens,
    line,
  }))
}

/**
 * Lists the content blocks of a record. An attachment counts as one block with the text that the model reads. A message
 * that the host wrote in place of a model response has none.
 */
function listBlocks(record: KnownRecord): readonly Block[] {
  if (record.type === 'attachment')
    return record.isScreenOnly === true ? [] : toTracedBlocks({ record, index: 0 }).map(({ block }) => block)
  if (record.type !== 'user' && record.type !== 'assistant') return []
  const isSynthetic = record.type === 'assistant' && record.message.model === SYNTHETIC_MODEL
  return isSynthetic ? [] : toBlocks(record.message.content)
}

/** Describes a block in one line, with secrets removed. `calls`: the calls before it, which say what a result is of. */
export function describeBlock(
  block: Block,
  record: KnownRecord,
  calls: ToolCallsById,
): Pick<LargeBlock, 'kind' | 'tool' | 'what'> {
  if (isToolUse(block)) return { kind: 'request', tool: block.name, what: previewInput(block.input) }
  if (isToolResult(block)) {
    const call = calls.get(block.tool_use_id)
    return {
      kind: 'result',
      tool: call?.name ?? 'unknown',
      what: call === undefined ? '' : previewInput(call.input),
    }
  }
  if (isThinkingBlock(block)) return { kind: 'thinking', tool: null, what: '' }
  if (record.type === 'attachment')
    return { kind: 'attachment', tool: null, what: preview(record.attachment.type ?? 'unknown') }
  if (!isTextBlock(block)) return { kind: 'other', tool: null, what: preview(block.type) }
  return { kind: classifyText(record), tool: null, what: preview(block.text) }
}

function classifyText(record: KnownRecord): LargeBlock['kind'] {
  if (record.type === 'assistant') return 'text'
  if (record.isCompactSummary === true) return 'summary'
  return record.isMeta === true ? 'other' : 'prompt'
}

/** Input fields that best identify a tool call, in order of preference. The first one that a call has is shown. */
const IDENTIFYING_FIELDS = [
  'file_path',
  'path',
  'notebook_path',
  'command',
  'cmd',
  'url',
  'pattern',
  'query',
  'description',
  'prompt',
]

function previewInput(input: unknown): string {
  if (typeof input === 'string') return preview(input)
  if (!isObject(input)) return ''
  const fields = IDENTIFYING_FIELDS.map((field) => input[field])
  const shown = fields.find((value) => typeof value === 'string' || Array.isArray(value))
  return preview(Array.isArray(shown) ? shown.map(String).join(' ') : String(shown ?? JSON.stringify(input)))
}

/**
 * Returns the beginning of the text as one line of at most 300 characters. Secrets are removed before the text is cut
 * to this length.
 */
function preview(text: string): string {
  return toRedactedPreview(text, 300)
}

interface ModelEstimators {
  forModel(model: string): Estimator
  /** Returns the estimated tokens of the content blocks of a call's response. */
  countResponse(call: Pick<LoggedCall, 'model' | 'blocks'>): number
}

/**
 * Creates a token estimator for each model id. Models with the same tokenizer share an estimator. Models that the
 * catalogue does not have share a default estimator.
 */
export function createModelEstimators(catalogue: Catalogue): ModelEstimators {
  const families = new Map<TokenizerFamily | null, Estimator>()
  const models = new Map<string, Estimator>()
  function forModel(model: string): Estimator {
    const known = models.get(model)
    if (known !== undefined) return known
    const found = lookUpModel(catalogue, model)
    const family = found.found ? found.model.tokenizer : null
    const estimator =
      families.get(family) ??
      withBlockCache(createEstimator(createEstimatorWeights(family, DEFAULT_POLICY.estimate)))
    families.set(family, estimator)
    models.set(model, estimator)
    return estimator
  }
  return {
    forModel,
    countResponse: ({ model, blocks }) =>
      blocks.reduce((sum, block) => sum + forModel(model).block(block), 0),
  }
}

/**
 * Makes an estimator count each block object once. A report needs the size of every block several times. The estimator
 * lives no longer than the report, so a map holds the blocks: weak references would slow down garbage collection.
 */
function withBlockCache(estimator: Estimator): Estimator {
  const known = new Map<Block, number>()
  return {
    ...estimator,
    block(block) {
      const found = known.get(block)
      if (found !== undefined) return found
      const tokens = estimator.block(block)
      known.set(block, tokens)
      return tokens
    },
  }
}

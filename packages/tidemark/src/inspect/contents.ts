/** What filled the main conversation: classes, tools, files read again. Every block counts once, however often it was sent. */
import {
  type Accounting,
  type Block,
  blocksOf,
  createEstimator,
  DEFAULT_POLICY,
  duplicateReads,
  type Estimator,
  isKnown,
  isObject,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
  type KnownRecord,
  openAccount,
  redact,
  type SessionRecord,
  SYNTHETIC_MODEL,
  type Tally,
} from '@tidemark/core'
import {
  type Catalogue,
  estimatorWeights,
  lookUpModel,
  type ReadRecord,
  type TokenizerFamily,
} from '@tidemark/wire'
import { createRepeatedLines } from '../logs/read-session.ts'
import type { ModelEstimator } from './estimator-error.ts'
import type { LargeItem, RepeatedRead, TokensByKind, ToolShare } from './report.ts'

export interface Contents {
  readonly tokensByClass: TokensByKind
  readonly byTool: readonly ToolShare[]
  readonly duplicateReads: readonly RepeatedRead[]
}

/** Tools that read a file, by the names the known hosts give them. */
const READ_TOOLS: readonly string[] = ['Read', 'read', 'read_file', 'view_file', 'NotebookRead']

export function contentsOf(records: Iterable<SessionRecord>, estimate: EstimateBlock): Contents {
  const account = openAccount({ estimate, readTools: READ_TOOLS })
  const lines = createRepeatedLines()
  for (const record of records) if (isKnown(record) && !lines.isRepeated(record)) account.add(record)
  const { standing } = account
  return {
    tokensByClass: byClass(standing),
    byTool: byTool(standing),
    duplicateReads: duplicateReads(standing),
  }
}

function byClass(standing: Accounting): TokensByKind {
  const { human, assistantText, thinking, localCommandOutput, summaries, other, total, media } = standing
  return {
    human,
    assistantText,
    thinking,
    toolRequests: sum(standing.toolRequests),
    toolResults: sum(standing.toolResults),
    localCommandOutput,
    attachments: sum(standing.attachments),
    media: media.tokens,
    summaries,
    other,
    total,
  }
}

/** Largest first. */
function byTool({ toolRequests, toolResults }: Accounting): readonly ToolShare[] {
  const names = [...new Set([...toolRequests.keys(), ...toolResults.keys()])]
  const shares = names.map((tool) => ({
    tool,
    calls: toolRequests.get(tool)?.count ?? 0,
    requestTokens: toolRequests.get(tool)?.tokens ?? 0,
    resultTokens: toolResults.get(tool)?.tokens ?? 0,
  }))
  return shares.sort((one, other) => totalOf(other) - totalOf(one) || (one.tool < other.tool ? -1 : 1))
}

function totalOf({ requestTokens, resultTokens }: ToolShare): number {
  return requestTokens + resultTokens
}

function sum(tallies: ReadonlyMap<string, Tally>): number {
  return [...tallies.values()].reduce((total, { tokens }) => total + tokens, 0)
}

// The blocks that took most room, and what they were.

const MOST = 10

interface Source {
  readonly tool: string
  readonly what: string
}

/** Largest first. */
export function largestItems(
  read: Iterable<ReadRecord>,
  estimate: EstimateBlock,
  most: number = MOST,
): readonly LargeItem[] {
  const calls = new Map<string, Source>()
  const lines = createRepeatedLines()
  let items: LargeItem[] = []
  for (const { record, line } of read) {
    if (!isKnown(record) || lines.isRepeated(record)) continue
    for (const block of blocksIn(record)) {
      if (isToolUse(block)) calls.set(block.id, { tool: block.name, what: inputWords(block.input) })
      items.push({ ...itemOf(block, record, calls), tokens: estimate(block), line })
    }
    if (items.length > 50 * most) items = largest(items, most)
  }
  return largest(items, most)
}

function largest(items: readonly LargeItem[], most: number): LargeItem[] {
  return items.toSorted((one, other) => other.tokens - one.tokens || one.line - other.line).slice(0, most)
}

function blocksIn(record: KnownRecord): readonly Block[] {
  if (record.type === 'attachment')
    return [{ ...record.attachment, type: record.attachment.type ?? 'unknown' }]
  if (record.type !== 'user' && record.type !== 'assistant') return []
  const isSynthetic = record.type === 'assistant' && record.message.model === SYNTHETIC_MODEL
  return isSynthetic ? [] : blocksOf(record.message.content)
}

type Named = Pick<LargeItem, 'kind' | 'tool' | 'what'>

function itemOf(block: Block, record: KnownRecord, calls: ReadonlyMap<string, Source>): Named {
  if (isToolUse(block)) return { kind: 'request', tool: block.name, what: inputWords(block.input) }
  if (isToolResult(block)) {
    const call = calls.get(block.tool_use_id)
    return { kind: 'result', tool: call?.tool ?? 'unknown', what: call?.what ?? '' }
  }
  if (isThinking(block)) return { kind: 'thinking', tool: null, what: '' }
  if (record.type === 'attachment') return { kind: 'attachment', tool: null, what: words(block.type) }
  if (!isText(block)) return { kind: 'other', tool: null, what: words(block.type) }
  return { kind: textKind(record), tool: null, what: words(block.text) }
}

function textKind(record: KnownRecord): LargeItem['kind'] {
  if (record.type === 'assistant') return 'text'
  if (record.isCompactSummary === true) return 'summary'
  return record.isMeta === true ? 'other' : 'prompt'
}

/** The field that tells a call from others of its tool, by the names tools usually give it. */
const TELLING = [
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

function inputWords(input: unknown): string {
  if (typeof input === 'string') return words(input)
  if (!isObject(input)) return ''
  const fields = TELLING.map((field) => input[field])
  const told = fields.find((value) => typeof value === 'string' || Array.isArray(value))
  return words(Array.isArray(told) ? told.map(String).join(' ') : String(told ?? JSON.stringify(input)))
}

/** Enough for any screen. Secrets go before anything is cut off, so that no half of one is left. */
function words(text: string): string {
  return redact(text.slice(0, 2_000)).replace(/\s+/g, ' ').trim().slice(0, 300)
}

// How large a block is, by the model of whose conversation it is part.

export type EstimateBlock = (block: Block) => number

export interface Estimates {
  forModel(model: string): ModelEstimator
}

/** Models of one family of tokenizer share an estimator; those nobody knows share the fixed rule. */
export function createEstimates(catalogue: Catalogue): Estimates {
  const families = new Map<TokenizerFamily | null, Estimator>()
  const models = new Map<string, ModelEstimator>()
  function estimatorOf(family: TokenizerFamily | null): Estimator {
    const known = families.get(family) ?? createEstimator(estimatorWeights(family, DEFAULT_POLICY.estimate))
    families.set(family, known)
    return known
  }
  return {
    forModel(model) {
      const known = models.get(model)
      if (known !== undefined) return known
      const found = lookUpModel(catalogue, model)
      const made = {
        estimator: estimatorOf(found.found ? found.model.tokenizer : null),
        stripsThinking: found.found && found.model.thinking.keepsPrior === false,
      }
      models.set(model, made)
      return made
    },
  }
}

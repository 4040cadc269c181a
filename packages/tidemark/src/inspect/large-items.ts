/** The blocks that took most room, and what they were. */
import {
  type Block,
  blocksOf,
  isKnown,
  isObject,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
  type KnownRecord,
  redact,
  SYNTHETIC_MODEL,
} from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'
import type { EstimateBlock } from './estimates.ts'
import { createRepeatedLines } from './repeated-lines.ts'
import type { LargeItem } from './report.ts'

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

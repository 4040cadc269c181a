/**
 * Large results put aside on arrival: the text goes to the blobs, the record shows its head and tail and says how
 * to read the rest. Done before the record is written, so that no byte ever sent changes; never where the model
 * has no way to read the rest, and then nothing is cut either.
 */

import { howToGet, type RetrievalPaths } from '../clearing/placeholder.ts'
import {
  type Block,
  blocksOf,
  isBlock,
  isMedia,
  isText,
  isToolResult,
  type ToolResultBlock,
} from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { Spilled, UserRecord } from '../log/record.ts'
import type { SpillBudgets } from '../policy/limits.ts'
import type { SpillPolicy } from '../policy/policy.ts'
import { headWithin, type Measure, tailWithin } from '../summary/truncate-text.ts'

/** The half of a blob store that writes. */
interface BlobWriter {
  put(bytes: Uint8Array): Promise<string>
}

export interface SpillQuestion {
  readonly result: ToolResultBlock
  /** The tool that gave it. */
  readonly tool: string
  readonly policy: SpillPolicy
  readonly budgets: SpillBudgets
  readonly measure: Measure
  readonly blobs: BlobWriter
  readonly paths: RetrievalPaths
}

interface SpillOutcome {
  /** The result as the record is to hold it: the very one that was given where nothing was put aside. */
  readonly result: ToolResultBlock
  /** For the record's field of this name. */
  readonly spilled: readonly Spilled[]
  /** Why a part stayed whole that would have been put aside. */
  readonly failed: readonly string[]
}

export async function spill(question: SpillQuestion): Promise<SpillOutcome> {
  const { result } = question
  const { content } = result
  if (!maySpill(question) || content === undefined) return { result, spilled: [], failed: [] }
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const done: readonly PartOutcome[] = await Promise.all(
    parts.map((block, index) => spillPart(question, block, typeof content === 'string' ? null : index)),
  )
  const spilled = done.flatMap((part) => part.spilled ?? [])
  const failed = done.flatMap((part) => part.failed ?? [])
  if (spilled.length === 0) return { result, spilled, failed }
  const blocks = done.map(({ block }) => block)
  return { result: { ...result, content: contentLike(content, blocks) }, spilled, failed }
}

function maySpill({ policy, paths, tool }: SpillQuestion): boolean {
  if (!policy.enabled || paths.historyTool === null) return false
  return tool !== paths.historyTool && !policy.exceptTools.includes(tool)
}

function contentLike(
  content: string | readonly Block[],
  blocks: readonly Block[],
): string | readonly Block[] {
  const [first] = blocks
  return typeof content === 'string' && first !== undefined && isText(first) ? first.text : blocks
}

interface PartOutcome {
  readonly block: Block
  readonly spilled?: Spilled
  readonly failed?: string
}

async function spillPart(question: SpillQuestion, block: Block, part: number | null): Promise<PartOutcome> {
  const aside = isText(block) ? largeText(question, block.text) : largeMedia(question, block)
  if (aside === null) return { block }
  if (!aside.text.isWellFormed()) {
    return { block, failed: 'the text holds half a character, which no blob can keep' }
  }
  const bytes = encoder.encode(aside.text)
  try {
    const blob = await question.blobs.put(bytes)
    const shown = aside.shown(howToGet(blob, question.paths) ?? '')
    if (isText(block) && question.measure(shown) >= question.measure(block.text)) return { block }
    const { tool_use_id: toolUseId } = question.result
    const spilled = { toolUseId, part, blob, holds: aside.holds, bytes: bytes.length }
    return { block: isText(block) ? { ...block, text: shown } : { type: 'text', text: shown }, spilled }
  } catch (thrown) {
    return { block, failed: thrown instanceof Error ? thrown.message : String(thrown) }
  }
}

interface Aside {
  /** What the blob is to hold. */
  readonly text: string
  readonly holds: Spilled['holds']
  readonly shown: (how: string) => string
}

function largeText({ budgets, measure }: SpillQuestion, text: string): Aside | null {
  if (measure(text) <= budgets.threshold) return null
  const head = headWithin(text, budgets.head, measure)
  const tail = tailWithin(text.slice(head.length), budgets.tail, measure)
  const left = text.length - head.length - tail.length
  const shown = (how: string): string =>
    `${ended(head)}[${left} of ${text.length} characters are not shown here. ${how} Add "lines" or "text" to find a part.]\n${tail}`
  return { text, holds: 'text', shown }
}

function ended(head: string): string {
  return head === '' || head.endsWith('\n') ? head : `${head}\n`
}

function largeMedia({ policy }: SpillQuestion, block: Block): Aside | null {
  const { source } = block
  if (!isMedia(block) || !isObject(source) || typeof source.data !== 'string') return null
  if (source.data.length <= policy.imageBytes) return null
  const kind = typeof source.media_type === 'string' ? `, ${source.media_type}` : ''
  const shown = (how: string): string =>
    `[A large ${block.type} (${source.data?.toString().length} bytes${kind}) was put aside. ${how}]`
  return { text: JSON.stringify(block), holds: 'block', shown }
}

// What was put aside, put back: a record as it was before.

/** The half of a blob store that reads. */
export interface BlobReader {
  get(id: string): Promise<Uint8Array | null>
}

/** The record with its tool results whole. Where a blob is gone, head and tail stay: nothing is made up. */
export async function restoreRecord(record: UserRecord, blobs: BlobReader | null): Promise<UserRecord> {
  const spilled = spilledOf(record)
  if (spilled.length === 0 || blobs === null) return record
  const content = await Promise.all(
    blocksOf(record.message.content).map((block) =>
      isToolResult(block) ? restoreResult(block, spilled, blobs) : block,
    ),
  )
  const { spilled: _, ...whole } = record
  return { ...whole, message: { ...record.message, content } }
}

/** A log may hold anything in the field. */
export function spilledOf(record: { readonly spilled?: unknown }): readonly Spilled[] {
  const { spilled } = record
  return Array.isArray(spilled) ? spilled.filter((item) => typeof item?.blob === 'string') : []
}

export async function restoreResult(
  result: ToolResultBlock,
  spilled: readonly Spilled[],
  blobs: BlobReader,
): Promise<ToolResultBlock> {
  let { content } = result
  for (const item of spilled.filter(({ toolUseId }) => toolUseId === result.tool_use_id)) {
    const text = await textOfBlob(item.blob, blobs)
    if (text === null) continue
    if (item.part === null) content = text
    else if (Array.isArray(content)) content = content.with(item.part, partOf(content[item.part], item, text))
  }
  return content === undefined ? result : { ...result, content }
}

function partOf(shown: Block | undefined, { holds }: Spilled, text: string): Block {
  return holds === 'text'
    ? { ...(shown ?? { type: 'text' }), text }
    : (blockIn(text) ?? { type: 'text', text })
}

/** The block that a blob holds as JSON; null for anything else. */
export function blockIn(text: string): Block | null {
  try {
    const value: unknown = JSON.parse(text)
    return isBlock(value) ? value : null
  } catch {
    return null
  }
}

export async function textOfBlob(id: string, blobs: BlobReader): Promise<string | null> {
  const bytes = await blobs.get(id)
  return bytes === null ? null : decodeText(bytes)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Null for bytes that are not UTF-8. */
function decodeText(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes)
  } catch {
    return null
  }
}

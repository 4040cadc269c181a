/**
 * Stores a large tool result as a blob when it arrives. The record keeps the beginning and end of the text and says how
 * to read the rest. This happens before the record is written, so that nothing already sent changes, and only if the
 * model has the history tool. Also restores stored results, for readers of the log.
 */
import { formatRetrievalHint, type RetrievalMethods } from '../clearing/clear-candidates.ts'
import { describeThrown } from '../errors.ts'
import {
  type Block,
  isBlock,
  isMediaBlock,
  isTextBlock,
  isToolResult,
  type ToolResultBlock,
  toBlocks,
} from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { SpilledContent, UserRecord } from '../log/record.ts'
import type { SpillBudgets } from '../policy/scale-policy.ts'
import type { SpillPolicy } from '../policy/turn-policy.ts'
import { type TokenCounter, takeHeadWithinTokens, takeTailWithinTokens } from '../text/truncate-text.ts'

/** The part of a blob store that writes. */
interface BlobWriter {
  put(bytes: Uint8Array): Promise<string>
}

/** A tool result that has just arrived, and where and when its large parts are stored. */
export interface SpillInput {
  readonly result: ToolResultBlock
  /** Name of the tool that returned `result`. */
  readonly tool: string
  readonly policy: SpillPolicy
  readonly budgets: SpillBudgets
  readonly measure: TokenCounter
  readonly blobs: BlobWriter
  /** How the model can read the blob, which the shortened result tells it. */
  readonly paths: RetrievalMethods
}

interface SpillOutcome {
  /** The tool result to append; the given object itself if nothing was moved to a blob. */
  readonly result: ToolResultBlock
  /** Value of the record's field `spilled`: one item for each part that was moved to a blob. */
  readonly spilled: readonly SpilledContent[]
  /** Error messages for large parts that could not be stored as blobs. */
  readonly failed: readonly string[]
}

/**
 * Stores the large parts of a tool result as blobs, and returns the result with their beginning and end only. Parts that
 * cannot be stored stay whole. Never throws for a storage that fails.
 */
export async function spillLargeResult(question: SpillInput): Promise<SpillOutcome> {
  const { result } = question
  const { content } = result
  if (!canSpill(question) || content === undefined) return { result, spilled: [], failed: [] }
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const done: readonly PartOutcome[] = await Promise.all(
    parts.map((block, index) => spillPart(question, block, typeof content === 'string' ? null : index)),
  )
  const spilled = done.flatMap((part) => part.spilled ?? [])
  const failed = done.flatMap((part) => part.failed ?? [])
  if (spilled.length === 0) return { result, spilled, failed }
  const blocks = done.map(({ block }) => block)
  return { result: { ...result, content: toContent(content, blocks) }, spilled, failed }
}

/** Returns false if the policy excludes the tool, or if the model has no history tool with which to read the blobs. */
function canSpill({ policy, paths, tool }: SpillInput): boolean {
  if (!policy.enabled || paths.historyTool === null) return false
  return tool !== paths.historyTool && !policy.exceptTools.includes(tool)
}

function toContent(content: string | readonly Block[], blocks: readonly Block[]): string | readonly Block[] {
  const [first] = blocks
  return typeof content === 'string' && first !== undefined && isTextBlock(first) ? first.text : blocks
}

interface PartOutcome {
  readonly block: Block
  readonly spilled?: SpilledContent
  readonly failed?: string
}

async function spillPart(question: SpillInput, block: Block, part: number | null): Promise<PartOutcome> {
  const large = isTextBlock(block) ? findLargeText(question, block.text) : findLargeMedia(question, block)
  if (large === null) return { block }
  if (!large.text.isWellFormed()) {
    return { block, failed: 'the text contains half a surrogate pair, which a blob cannot store' }
  }
  const toShown = (blob: string): string =>
    large.replacementText(formatRetrievalHint(blob, question.paths) ?? '')
  if (isTextBlock(block) && question.measure(toShown(SAMPLE_BLOB)) >= question.measure(block.text))
    return { block }
  const bytes = encoder.encode(large.text)
  try {
    const blob = await question.blobs.put(bytes)
    const shown = toShown(blob)
    const { tool_use_id: toolUseId } = question.result
    const spilled = { toolUseId, part, blob, holds: large.holds, bytes: bytes.length }
    return { block: isTextBlock(block) ? { ...block, text: shown } : { type: 'text', text: shown }, spilled }
  } catch (thrown) {
    return { block, failed: describeThrown(thrown) }
  }
}

/** A blob id of the usual length, to measure the replacement text before the blob is stored. */
const SAMPLE_BLOB = '0123456789abcdef'.repeat(4)

interface LargePart {
  /** The text to store as a blob. */
  readonly text: string
  readonly holds: SpilledContent['holds']
  /** Returns the text that replaces the part. `how`: a sentence that tells the model how to read the rest. */
  readonly replacementText: (how: string) => string
}

function findLargeText({ budgets, measure }: SpillInput, text: string): LargePart | null {
  if (measure(text) <= budgets.threshold) return null
  const head = takeHeadWithinTokens(text, budgets.head, measure)
  const tail = takeTailWithinTokens(text.slice(head.length), budgets.tail, measure)
  const left = text.length - head.length - tail.length
  const replace = (how: string): string =>
    `${endLine(head)}[${left} of ${text.length} characters are not shown here. ${how} Add "lines" or "text" to find a part.]\n${tail}`
  return { text, holds: 'text', replacementText: replace }
}

function endLine(head: string): string {
  return head === '' || head.endsWith('\n') ? head : `${head}\n`
}

function findLargeMedia({ policy }: SpillInput, block: Block): LargePart | null {
  const { source } = block
  if (!isMediaBlock(block) || !isObject(source) || typeof source.data !== 'string') return null
  if (source.data.length <= policy.imageBytes) return null
  const kind = typeof source.media_type === 'string' ? `, ${source.media_type}` : ''
  const replace = (how: string): string =>
    `[A large ${block.type} (${source.data?.toString().length} bytes${kind}) was moved out of the context. ${how}]`
  return { text: JSON.stringify(block), holds: 'block', replacementText: replace }
}

// Restores tool results that were stored as blobs.

/** The part of a blob store that reads. `get` returns null if no blob has the id. */
export interface BlobReader {
  get(id: string): Promise<Uint8Array | null>
}

/**
 * Returns a record with the full text of its tool results, read from blobs. If a blob is missing, only the beginning
 * and end of that result remain, and the record's field `spilled` still lists it.
 */
export async function restoreSpilledResults(
  record: UserRecord,
  blobs: BlobReader | null,
): Promise<UserRecord> {
  const spilled = readSpilledParts(record)
  if (spilled.length === 0 || blobs === null) return record
  const missing = new Set<string>()
  const reader: BlobReader = {
    async get(id) {
      const bytes = await blobs.get(id)
      if (bytes === null) missing.add(id)
      return bytes
    },
  }
  const content = await Promise.all(
    toBlocks(record.message.content).map((block) =>
      isToolResult(block) ? restoreSpilledResult(block, spilled, reader) : block,
    ),
  )
  const { spilled: _, ...whole } = record
  const unread = spilled.filter(({ blob }) => missing.has(blob))
  const message = { ...record.message, content }
  return unread.length === 0 ? { ...whole, message } : { ...whole, message, spilled: unread }
}

/** Reads a record's field `spilled`, which lists the blobs of its results. Ignores invalid items: a log may contain any JSON. */
export function readSpilledParts(record: { readonly spilled?: unknown }): readonly SpilledContent[] {
  const { spilled } = record
  return Array.isArray(spilled) ? spilled.filter((item) => typeof item?.blob === 'string') : []
}

/** Returns a tool result with the full text of its parts, read from blobs. Parts whose blob is missing stay as they are. */
export async function restoreSpilledResult(
  result: ToolResultBlock,
  spilled: readonly SpilledContent[],
  blobs: BlobReader,
): Promise<ToolResultBlock> {
  let { content } = result
  for (const item of spilled.filter(({ toolUseId }) => toolUseId === result.tool_use_id)) {
    const text = await readBlobText(item.blob, blobs)
    if (text === null) continue
    const { part } = item // A log may contain any JSON here: a part that the content does not have is ignored.
    if (part === null && !Array.isArray(content)) content = text
    else if (typeof part === 'number' && Array.isArray(content) && content[part] !== undefined)
      content = content.with(part, restorePart(content[part], item, text))
  }
  return content === undefined ? result : { ...result, content }
}

function restorePart(shown: Block, { holds }: SpilledContent, text: string): Block {
  return holds === 'text' ? { ...shown, text } : (parseBlobBlock(text) ?? { type: 'text', text })
}

/** Parses a content block from the JSON text of a blob; returns null if the text is not a block. */
export function parseBlobBlock(text: string): Block | null {
  try {
    const value: unknown = JSON.parse(text)
    return isBlock(value) ? value : null
  } catch {
    return null
  }
}

/** Reads a blob as text; null if it is missing or is not UTF-8. */
export async function readBlobText(id: string, blobs: BlobReader): Promise<string | null> {
  const bytes = await blobs.get(id)
  return bytes === null ? null : decodeText(bytes)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes UTF-8 bytes; returns null if they are invalid. */
function decodeText(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes)
  } catch {
    return null
  }
}

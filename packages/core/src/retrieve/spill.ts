/**
 * Large results put aside on arrival: the text goes to the blobs, the record shows its head and tail and says how
 * to read the rest. Done before the record is written, so that no byte ever sent changes; never where the model
 * has no way to read the rest, and then nothing is cut either.
 */
import { type Block, isMedia, isText, type ToolResultBlock } from '../conversation/block.ts'
import { isObject } from '../conversation/json.ts'
import type { Spilled } from '../conversation/record.ts'
import type { SpillBudgets } from '../policy/budgets.ts'
import type { SpillPolicy } from '../policy/groups/history-policy.ts'
import { headWithin, type Measure, tailWithin } from './fit-text.ts'
import { howToGet, type RetrievalPaths } from './how-to-get.ts'
import { encodeUtf8 } from './utf8-text.ts'

/** The half of a blob store that writes. */
export interface BlobWriter {
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

export interface SpillOutcome {
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
  const bytes = encodeUtf8(aside.text)
  if (bytes === null) return { block, failed: 'the text holds half a character, which no blob can keep' }
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

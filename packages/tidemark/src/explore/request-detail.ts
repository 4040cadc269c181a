/**
 * Rebuilds one request of a log: every block that the model was shown, in order, and its response. Texts are complete,
 * with secrets removed. Takes about as long as an inspection of the log up to that request.
 */
import { listTracedMessages } from '@tidemark/core/context/flatten-context'
import { formatBlock } from '@tidemark/core/history/history-items'
import type { Block } from '@tidemark/core/log/block'
import { isTextBlock, isThinkingBlock, isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isKnownRecord, type KnownRecord } from '@tidemark/core/log/record'
import { redact } from '@tidemark/core/text/redact'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createModelEstimators, describeBlock, type ToolCallsById } from '../inspect/context-contents.ts'
import { findMainModel, listLogCalls } from '../inspect/logged-calls.ts'
import { type ReplayedRequest, replayRequests } from '../inspect/logged-requests.ts'
import type { LogContents } from '../logs/read-log.ts'
import type { RequestBlock, RequestContents, ShownBlock } from './page-data.ts'

/** Returns the request with this index in `requests` of the report; null if there is none. */
export function readRequestDetail(log: LogContents, index: number): RequestContents | null {
  const calls = listLogCalls(log, new Set()).filter(({ agent }) => agent === null)
  let before: ReplayedRequest | null = null
  let count = -1
  for (const request of replayRequests(log.records, calls)) {
    if (readReportedContextTokens(request.call.usage) === 0) continue
    count += 1
    if (count === index) return describeRequest(log, { request, before, index }, findMainModel(calls))
    before = request
  }
  return null
}

interface FoundRequest {
  readonly request: ReplayedRequest
  readonly before: ReplayedRequest | null
  readonly index: number
}

function describeRequest(
  log: LogContents,
  { request, before, index }: FoundRequest,
  model: string,
): RequestContents {
  const describe = createBlockDescriber(log, model)
  const known = new Set(before?.flat.entries.toArray().map(({ record }) => record.uuid))
  const blocks = listTracedMessages(request.flat).flatMap(({ message, origins }) =>
    toBlocks(message.content).map((block, place): RequestBlock => {
      const uuid = origins[place] ?? ''
      return {
        ...describe(block, message.role, uuid),
        text: readRedactedBlockText(block),
        isNew: !known.has(uuid),
      }
    }),
  )
  const clean = ({ name, text }: { readonly name: string; readonly text: string }) => ({
    name,
    text: redact(text),
  })
  return {
    index,
    at: request.call.at,
    model: request.call.model,
    line: request.line,
    system: request.prefix.system.map(clean),
    tools: request.prefix.tools.map(clean),
    blocks,
    response: request.call.blocks.map((block) => ({
      ...describe(block, 'assistant', request.record.uuid ?? ''),
      text: readRedactedBlockText(block),
    })),
  }
}

/** Creates a function that describes a block of the record with the given uuid, without its text. */
export function createBlockDescriber(
  { records }: Pick<LogContents, 'records'>,
  model: string,
): (block: Block, role: string, uuid: string) => Omit<ShownBlock, 'text'> {
  const { block: estimate } = createModelEstimators(modelCatalogue).forModel(model)
  const known = new Map<string, { readonly record: KnownRecord; readonly line: number }>()
  const calls: ToolCallsById = new Map()
  for (const { record, line } of records) {
    if (!isKnownRecord(record)) continue
    known.set(record.uuid, { record, line })
    if (record.type !== 'assistant') continue
    for (const block of toBlocks(record.message.content)) if (isToolUse(block)) calls.set(block.id, block)
  }
  return (block, role, uuid) => {
    const origin = known.get(uuid)
    const about =
      origin === undefined
        ? { kind: 'other' as const, tool: null, what: '' }
        : describeBlock(block, origin.record, calls)
    return { ...about, role, tokens: estimate(block), line: origin?.line ?? null }
  }
}

/** Returns the text of a block with secrets removed, without its role, which the page shows beside it. */
export function readRedactedBlockText(block: Block): string {
  return redact(formatShownText(block))
}

function formatShownText(block: Block): string {
  if (isTextBlock(block)) return block.text
  if (isThinkingBlock(block)) return typeof block.thinking === 'string' ? block.thinking : ''
  if (isToolUse(block)) return JSON.stringify(block.input, null, 2) ?? ''
  if (!isToolResult(block)) return formatBlock(block)
  const { content } = block
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map(formatBlock).join('\n') : ''
}

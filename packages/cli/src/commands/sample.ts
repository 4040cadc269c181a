/**
 * `tidemark sample`: prints the sample session in three forms: its log, the context that the model gets, and the API
 * request.
 */

import type { ContextEntry } from '@tidemark/core/context/context-entry'
import { buildContextView } from '@tidemark/core/context/context-view'
import type { Payload } from '@tidemark/core/context/payload'
import {
  type Block,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  toBlocks,
} from '@tidemark/core/log/block'
import {
  CLEARED_RESULT_TEXT,
  isCompactBoundary,
  isMicrocompactBoundary,
  type KnownRecord,
} from '@tidemark/core/log/record'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import type { Finding } from '@tidemark/core/validate/findings'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { chooseSymbols, type ScreenSymbols } from '@tidemark/terminal/render/screen'
import { toOneLinePreview, wrapText } from '@tidemark/terminal/render/text'
import { createColors, type Terminal } from '@tidemark/terminal/terminal'
import { strictProfile } from '@tidemark/wire/profiles/provider-profile'
import type { Colors } from 'picocolors/types.js'
import { buildSampleRequest, readSampleSession, type SampleLog } from '../sample-session.ts'

export function runSampleCommand(options: { readonly json?: boolean }, terminal: Terminal): void {
  const report = createSampleReport(readSampleSession())
  if (options.json === true) terminal.write(`${formatJson(report, 2)}\n`)
  else
    terminal.write(
      renderSample(report, {
        colors: createColors(terminal),
        columns: terminal.columns,
        symbols: chooseSymbols(terminal.env),
      }),
    )
}

/** The value that `tidemark sample --json` prints. */
interface SampleReport {
  readonly session: { readonly id: string; readonly records: number; readonly damage: number }
  readonly view: readonly (EntryLine & { readonly uuid: string })[]
  readonly request: Payload
  /** Rules of the strictest provider that the request violates; empty if it is valid. */
  readonly findings: readonly Finding[]
}

interface SamplePage {
  readonly colors: Colors
  readonly columns: number
  readonly symbols: ScreenSymbols
}

export function createSampleReport({ records, damage }: SampleLog): SampleReport {
  const session = buildSessionLog(records)
  const view = buildContextView(session)
  const entries: readonly ContextEntry[] = [...view.entries]
  const compactedAt = entries.findLast(({ record }) => isCompactBoundary(record))?.index ?? 0
  const request = buildSampleRequest(session, view)
  return {
    session: { id: records[0]?.sessionId ?? '', records: records.length, damage: damage.length },
    view: entries.map((entry) => ({ uuid: entry.record.uuid, ...toEntryLine(entry, compactedAt) })),
    request,
    findings: validateRequest(request, strictProfile),
  }
}

function renderSample(report: SampleReport, page: SamplePage): string {
  const { bold, dim } = page.colors
  const { messages } = report.request
  return [
    bold('A sample session, three ways'),
    '',
    ...renderFact(
      'The log',
      `${report.session.records} records, append-only: a record is never changed or removed`,
      page,
    ),
    ...renderFact('The context', `${report.view.length} records that the model sees next`, page),
    ...renderFact(
      'The request',
      `${messages.length} messages: the context as sent to the API; ${describeFindings(report)}`,
      page,
    ),
    '',
    bold('The context'),
    ...report.view.map((line, index) => renderEntry(line, index, page)),
    '',
    `${bold('The request')} ${dim(`to ${report.request.model}, ${report.request.tools?.length ?? 0} tools`)}`,
    ...messages.flatMap((message, index) =>
      toBlocks(message.content).map((block, position) => {
        const who =
          position === 0 ? `${String(index + 1).padStart(3)}  ${message.role.padEnd(9)}` : ' '.repeat(14)
        const what = block.type.padEnd(11)
        return `${who}  ${dim(what)}  ${toOneLinePreview(blockText(block), page.columns - 29, page.symbols.more)}`
      }),
    ),
    '',
    dim('tidemark sample --json prints the complete request.'),
    '',
  ].join('\n')
}

const FACT_WIDTH = 13

function renderFact(name: string, text: string, { colors, columns }: SamplePage): readonly string[] {
  const lines = wrapText(text, columns, name.padEnd(FACT_WIDTH))
  return lines.map((line, index) => (index === 0 ? line.replace(name, colors.bold(name)) : line))
}

function describeFindings({ findings }: SampleReport): string {
  const [first] = findings
  return first === undefined
    ? 'valid for the strictest provider'
    : `a provider might reject it: ${first.message}`
}

function renderEntry(
  { who, form, words }: EntryLine,
  index: number,
  { colors, columns, symbols }: SamplePage,
): string {
  const mark =
    form === 'verbatim' ? ' '.repeat(7) : colors[form === 'kept' ? 'cyan' : 'yellow'](form.padEnd(7))
  return `${String(index + 1).padStart(3)}  ${who.padEnd(9)}  ${mark}  ${toOneLinePreview(words, columns - 25, symbols.more)}`
}

/** A context entry as one line of output. */
interface EntryLine {
  readonly who: string
  /**
   * `verbatim`: the entry is newer than the last compaction. `kept`: the entry is older, and the compaction kept it.
   * `cleared`: the text of the entry was replaced by a placeholder.
   */
  readonly form: 'verbatim' | 'kept' | 'cleared'
  readonly words: string
}

/**
 * Converts a context entry to a line of output. `compactedAt` is the index of the last compaction; an entry before this
 * index was kept by that compaction.
 */
function toEntryLine(entry: ContextEntry, compactedAt: number): EntryLine {
  const { record, index, cleared } = entry
  const form = cleared !== undefined ? 'cleared' : index < compactedAt ? 'kept' : 'verbatim'
  const words = cleared !== undefined && cleared.results.length > 0 ? CLEARED_RESULT_TEXT : entryText(record)
  return { who: entryAuthor(record), form, words }
}

function entryAuthor(record: KnownRecord): string {
  if (isCompactBoundary(record) || isMicrocompactBoundary(record)) return 'boundary'
  if (record.isCompactSummary === true) return 'summary'
  if (record.type === 'attachment') return record.attachment.type ?? 'unknown'
  if (record.type !== 'user' && record.type !== 'assistant') return record.type
  const [first] = toBlocks(record.message.content)
  if (first === undefined) return record.type
  if (isToolUse(first)) return 'call'
  if (isToolResult(first)) return 'result'
  return isThinkingBlock(first) ? 'thinking' : record.type
}

function entryText(record: KnownRecord): string {
  if (isCompactBoundary(record)) {
    const { trigger, messagesSummarized = 0, preservedMessages } = record.compactMetadata
    const kept = preservedMessages?.uuids.length ?? 0
    return `compacted (${trigger}): ${messagesSummarized} messages summarized, ${kept} records kept`
  }
  if (isMicrocompactBoundary(record)) {
    const { trigger, compactedToolIds, tokensSaved } = record.microcompactMetadata
    return `cleared (${trigger}): tool results ${compactedToolIds.length}, tokens saved ${tokensSaved}`
  }
  if (record.type === 'attachment') {
    const { content } = record.attachment
    return typeof content === 'string' ? content : JSON.stringify(record.attachment)
  }
  if (record.type === 'user' || record.type === 'assistant') {
    return toBlocks(record.message.content).map(blockText).join(' ')
  }
  return record.type === 'system' ? (record.content ?? record.subtype ?? '') : ''
}

function blockText(block: Block): string {
  if (isTextBlock(block)) return block.text
  if (isToolUse(block)) return `${block.name} ${JSON.stringify(block.input)}`
  if (isToolResult(block)) {
    const { content = '' } = block
    return typeof content === 'string' ? content : content.map(blockText).join(' ')
  }
  if (isThinkingBlock(block)) return typeof block.thinking === 'string' ? block.thinking : '(not readable)'
  return JSON.stringify(block)
}

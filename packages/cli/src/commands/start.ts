/** `tidemark start`: the sample session three ways: its log, the context that the model sees, and the request. */
import {
  type Block,
  blocksOf,
  CLEARED_TEXT,
  type Entry,
  type Finding,
  isCompactBoundary,
  isMicrocompactBoundary,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
  type KnownRecord,
  type Payload,
  sessionOf,
  strictProfile,
  validate,
  viewOf,
} from '@tidemark/core'
import type { Colors } from 'picocolors/types.js'
import { firstWords, wrap } from '../render/text.ts'
import { readSample, requestOf, type Sample } from '../sample-session.ts'
import { colorsFor, type Terminal } from '../terminal.ts'

export function start(options: { readonly json?: boolean }, terminal: Terminal): void {
  const report = reportSample(readSample())
  if (options.json === true) terminal.write(`${JSON.stringify(report, null, 2)}\n`)
  else terminal.write(renderSample(report, { colors: colorsFor(terminal), columns: terminal.columns }))
}

/** The JSON value of `tidemark start --json`. */
interface SampleReport {
  readonly session: { readonly id: string; readonly records: number; readonly damage: number }
  readonly view: readonly (EntryLine & { readonly uuid: string })[]
  readonly request: Payload
  /** What the strictest provider would reject in the request. */
  readonly findings: readonly Finding[]
}

interface Page {
  readonly colors: Colors
  readonly columns: number
}

export function reportSample({ records, damage }: Sample): SampleReport {
  const session = sessionOf(records)
  const view = viewOf(session)
  const entries: readonly Entry[] = [...view.entries]
  const compactedAt = entries.findLast(({ record }) => isCompactBoundary(record))?.index ?? 0
  const request = requestOf(session, view)
  return {
    session: { id: records[0]?.sessionId ?? '', records: records.length, damage: damage.length },
    view: entries.map((entry) => ({ uuid: entry.record.uuid, ...entryLine(entry, compactedAt) })),
    request,
    findings: validate(request, strictProfile),
  }
}

function renderSample(report: SampleReport, page: Page): string {
  const { bold, dim } = page.colors
  const { messages } = report.request
  return [
    bold('A sample session, three ways'),
    '',
    ...fact(
      'The log',
      `${report.session.records} records, append-only: a record is never changed or removed`,
      page,
    ),
    ...fact('The context', `${report.view.length} records that the model sees next`, page),
    ...fact(
      'The request',
      `${messages.length} messages: the context as sent to the API; ${verdictOf(report)}`,
      page,
    ),
    '',
    bold('The context'),
    ...report.view.map((line, index) => viewLine(line, index, page)),
    '',
    `${bold('The request')} ${dim(`to ${report.request.model}, ${report.request.tools?.length ?? 0} tools`)}`,
    ...messages.flatMap((message, index) =>
      blocksOf(message.content).map((block, position) => {
        const who =
          position === 0 ? `${String(index + 1).padStart(3)}  ${message.role.padEnd(9)}` : ' '.repeat(14)
        const what = block.type.padEnd(11)
        return `${who}  ${dim(what)}  ${firstWords(blockWords(block), page.columns - 29)}`
      }),
    ),
    '',
    dim('tidemark start --json prints the complete request.'),
    '',
  ].join('\n')
}

const FACT = 13

function fact(name: string, text: string, { colors, columns }: Page): readonly string[] {
  const lines = wrap(text, columns, name.padEnd(FACT))
  return lines.map((line, index) => (index === 0 ? line.replace(name, colors.bold(name)) : line))
}

function verdictOf({ findings }: SampleReport): string {
  const [first] = findings
  return first === undefined
    ? 'valid for the strictest provider'
    : `a provider might reject it: ${first.message}`
}

function viewLine({ who, form, words }: EntryLine, index: number, { colors, columns }: Page): string {
  const mark =
    form === 'verbatim' ? ' '.repeat(7) : colors[form === 'kept' ? 'cyan' : 'yellow'](form.padEnd(7))
  return `${String(index + 1).padStart(3)}  ${who.padEnd(9)}  ${mark}  ${firstWords(words, columns - 25)}`
}

/** One entry of the context, in one line. */
interface EntryLine {
  readonly who: string
  /** `kept`: from before the last compaction. `cleared`: its text was replaced by a placeholder. */
  readonly form: 'verbatim' | 'kept' | 'cleared'
  readonly words: string
}

/** `compactedAt`: the index of the last compaction; older entries were kept by it. */
function entryLine(entry: Entry, compactedAt: number): EntryLine {
  const { record, index, cleared } = entry
  const form = cleared !== undefined ? 'cleared' : index < compactedAt ? 'kept' : 'verbatim'
  const words = cleared !== undefined && cleared.results.length > 0 ? CLEARED_TEXT : wordsOf(record)
  return { who: whoOf(record), form, words }
}

function whoOf(record: KnownRecord): string {
  if (isCompactBoundary(record) || isMicrocompactBoundary(record)) return 'boundary'
  if (record.isCompactSummary === true) return 'summary'
  if (record.type === 'attachment') return record.attachment.type ?? 'unknown'
  if (record.type !== 'user' && record.type !== 'assistant') return record.type
  const [first] = blocksOf(record.message.content)
  if (first === undefined) return record.type
  if (isToolUse(first)) return 'call'
  if (isToolResult(first)) return 'result'
  return isThinking(first) ? 'thinking' : record.type
}

function wordsOf(record: KnownRecord): string {
  if (isCompactBoundary(record)) {
    const { trigger, messagesSummarized = 0, preservedMessages } = record.compactMetadata
    const kept = preservedMessages?.uuids.length ?? 0
    return `compacted (${trigger}): ${messagesSummarized} messages summarised, ${kept} records kept`
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
    return blocksOf(record.message.content).map(blockWords).join(' ')
  }
  return record.type === 'system' ? (record.content ?? record.subtype ?? '') : ''
}

function blockWords(block: Block): string {
  if (isText(block)) return block.text
  if (isToolUse(block)) return `${block.name} ${JSON.stringify(block.input)}`
  if (isToolResult(block)) {
    const { content = '' } = block
    return typeof content === 'string' ? content : content.map(blockWords).join(' ')
  }
  if (isThinking(block)) return typeof block.thinking === 'string' ? block.thinking : '(not readable)'
  return JSON.stringify(block)
}

/**
 * One line for each event in which the context changed or something went wrong, such as clearings, compactions, prepared
 * summaries that were committed, cache breaks, undos, and for model switches. A line can be opened to its receipt,
 * its figures or the explanation of a cache break.
 */

import {
  describeEvent,
  formatClearing,
  formatCompaction,
  formatModelSwitch,
  formatUndo,
} from '@tidemark/terminal/render/describe-event'
import { formatCount, formatDollars, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { removeControlCharacters, toSafeLine } from '@tidemark/terminal/render/text'
import type { EventOf, SessionEvent } from 'tidemark'
import {
  describeCause,
  isBranchSwitch,
  isCompactBoundary,
  isMicrocompactBoundary,
  type KnownRecord,
} from 'tidemark/records'
import type { SubagentEvent, SubagentRecord } from '../agent/subagent-records.ts'
import {
  describeSummaryAttempts,
  describeSummaryCalls,
  formatCompactionFigures,
  formatListSection,
  formatReceipt,
} from './compaction-text.ts'
import type { Tone } from './theme.ts'

/** A line of the transcript about an event or a record. */
export interface EventLine {
  readonly tone: Tone
  readonly mark: string
  readonly text: string
  /** Details for the opened line; null if the line shows everything. */
  readonly detail: EventLineDetail | null
}

/** What is shown when a line is opened. */
export interface EventLineDetail {
  readonly title: string
  readonly text: string
  /** Time of a cache break. Its diff file in the session's folder has this time in its name, or one close to it. */
  readonly diffAt?: number
  /** A compaction by its record in the log, from which the other details are read when the line is opened. */
  readonly compaction?: { readonly id: string; readonly hasReceipt: boolean }
}

/** Returns the line of an event; null for an event without a line. */
export function createEventLine(event: SessionEvent): EventLine | null {
  if (event.type === 'compact') return describeCompaction(event)
  const told = describeEvent(event)
  if (told === null) return null
  const mark = told.tone === 'warning' ? '!' : (EVENT_MARKS[event.type] ?? '△')
  return { ...told, mark, detail: describeDetail(event, told.text) }
}

type SystemRecord = Extract<KnownRecord, { readonly type: 'system' }>

/** Marks of events that are no warning. Events without a mark of their own, such as clearings, have △. */
const EVENT_MARKS: Readonly<Partial<Record<SessionEvent['type'], string>>> = {
  'act-paid': '$',
  undone: '↶',
  'model-switched': '→',
  'answer-continued': '…',
}

function describeDetail(event: SessionEvent, title: string): EventLineDetail | null {
  if (event.type === 'microcompact') return { title, text: formatClearingFigures(event) }
  return event.type === 'cache-break' ? describeBreak(event) : null
}

const WENT_BACK = 'Went back. What followed stays in the log: /undo returns to it.'
export const NEW_CONVERSATION_TEXT = 'A new conversation begins. /undo returns to the old one.'

/** Returns the line of a record in an existing log; null for a record without a line. */
export function createRecordLine(record: KnownRecord): EventLine | null {
  if (record.type !== 'system') return null
  if (isCompactBoundary(record)) return describeLoggedCompaction(record.uuid, record.compactMetadata)
  if (isMicrocompactBoundary(record)) return describeLoggedClearing(record.microcompactMetadata)
  if (record.cacheLoss !== undefined) return describeLoss(record, record.cacheLoss)
  if (record.subtype === 'compact_undone') return quietLine('↶', formatUndo('compact'))
  if (record.subtype === 'clear_undone') return quietLine('↶', formatUndo('clear'))
  // After an undo or redo, the restored branch shows the result, so no line is needed.
  if (!isBranchSwitch(record) || record.of !== undefined) return null
  return quietLine('↶', record.parentUuid === null ? NEW_CONVERSATION_TEXT : WENT_BACK)
}

function describeLoggedCompaction(
  uuid: string,
  metadata: NonNullable<SystemRecord['compactMetadata']>,
): EventLine {
  const { preTokens, postTokens, summarizer = 'model', cause, trigger, durationMs, fallbackReason } = metadata
  const text = formatCompaction({ tokensBefore: preTokens, tokensAfter: postTokens, summarizer, cause })
  const figures = { trigger, cause, summarizer, durationMs, fallbackReason: fallbackReason ?? null }
  const detail = formatCompactionFigures(figures).join('\n')
  return {
    ...quietLine('▲', text),
    detail: { title: text, text: detail, compaction: { id: uuid, hasReceipt: false } },
  }
}

function describeLoggedClearing(metadata: NonNullable<SystemRecord['microcompactMetadata']>): EventLine {
  const { tokensSaved, preTokens, trigger, way } = metadata
  const text = formatClearing(metadata, tokensSaved)
  const lines = [
    `Why: ${toSafeLine(trigger)}`,
    ...(way === undefined ? [] : [`How: ${CLEAR_WAYS[way]}`]),
    `Context: ${formatTokens(preTokens)} → ${formatTokens(Math.max(0, preTokens - tokensSaved))} tokens`,
    '',
    CLEARED_RESULTS_NOTE,
  ]
  return { ...quietLine('△', text), detail: { title: text, text: lines.join('\n') } }
}

/** Returns the line about lost cached tokens, from a cache break or a rewrite. */
function describeLoss(
  { timestamp }: SystemRecord,
  { kind, sentence, tokens, usd }: NonNullable<SystemRecord['cacheLoss']>,
): EventLine {
  if (kind === 'act') return quietLine('$', toSafeLine(sentence))
  const text = [
    toSafeLine(sentence),
    '',
    `Processed again: ${formatTokens(tokens)} tokens`,
    ...(usd === null ? [] : [`Cost: ${formatDollars(usd)} more than reading them from the cache`]),
  ].join('\n')
  const detail = { title: 'Cache break', text, diffAt: Date.parse(timestamp) }
  return { ...warningLine(sentence), detail }
}

export function createModelSwitchLine(model: string): EventLine {
  return quietLine('→', formatModelSwitch(model))
}

function quietLine(mark: string, text: string): EventLine {
  return { tone: 'quiet', mark, text, detail: null }
}

function warningLine(text: string): EventLine {
  return { tone: 'warning', mark: '!', text: toSafeLine(text), detail: null }
}

function describeCompaction({ compaction }: EventOf<'compact'>): EventLine {
  const { receipt, steps, notes } = compaction
  const { files, userMessages, errors } = receipt.lost
  const lost = files.length + userMessages.length + errors.length
  const missing = lost === 0 ? '' : `; ${formatCount(lost, 'fact')} no longer in view`
  const text = formatCompaction(compaction)
  const lines = [
    ...formatCompactionFigures(compaction),
    ...describeSummaryCalls(compaction.usage),
    ...notes.map(toSafeLine),
    ...describeSummaryAttempts(steps),
    '',
    formatReceipt(receipt),
  ]
  return {
    tone: 'good',
    mark: '▲',
    text: `${text}${missing}`,
    detail: { title: text, text: lines.join('\n'), compaction: { id: compaction.id, hasReceipt: true } },
  }
}

function formatClearingFigures({
  clearing,
  tokensBefore,
  tokensAfter,
  way,
}: EventOf<'microcompact'>): string {
  const { rewrittenTokens, cost, breakEvenCalls, why, released } = clearing
  return [
    `Why: ${toSafeLine(why)}`,
    `How: ${CLEAR_WAYS[way]}`,
    `Context: ${formatTokens(tokensBefore)} → ${formatTokens(tokensAfter)} tokens`,
    `Cached again: ${formatTokens(rewrittenTokens)} tokens${cost === null ? '' : `, ${formatDollars(cost)} more than reading them from the cache`}`,
    breakEvenCalls === null
      ? 'It does not pay for itself in money.'
      : `Pays for itself after ${formatCount(Math.ceil(breakEvenCalls), 'call')}.`,
    ...formatListSection('Files that are no longer in view', released.filePaths, (path) => path),
    '',
    CLEARED_RESULTS_NOTE,
  ].join('\n')
}

const CLEARED_RESULTS_NOTE =
  'Each cleared result has a placeholder that says how to read it again. /undo restores them.'

const CLEAR_WAYS: Readonly<Record<EventOf<'microcompact'>['way'] | 'size', string>> = {
  size: 'in the messages, because a request must not have more images and documents',
  idle: 'in the messages that are sent, after a pause in which the cache expired',
  budget: 'in the messages that are sent',
  cached: 'deleted from the cache of the provider',
  native: 'by the provider',
}

function describeBreak({ event, diffProblem }: EventOf<'cache-break'>): EventLineDetail {
  const { at, sentence, expected, read, moneyLost, also, provider, ours } = event
  return {
    title: 'Cache break',
    diffAt: at,
    text: [
      toSafeLine(sentence),
      '',
      `Read from the cache: ${formatTokens(read)} of ${formatTokens(expected)} tokens expected`,
      ...(moneyLost === null ? [] : [`Cost: ${formatDollars(moneyLost)} more than reading them`]),
      ...(ours === null ? [] : [`Intended change: ${toSafeLine(ours.act)}`]),
      ...(provider === null ? [] : [`The provider reports: ${describeReport(provider)}`]),
      ...(diffProblem === null ? [] : [`The diff could not be written: ${toSafeLine(diffProblem)}`]),
      ...formatListSection('Also changed', also, describeCause),
    ].join('\n'),
  }
}

function describeReport({
  said,
  missedTokens,
}: NonNullable<EventOf<'cache-break'>['event']['provider']>): string {
  const size = missedTokens === null ? '' : `, ${formatTokens(missedTokens)} tokens missed`
  return `${toSafeLine(said).replaceAll('_', ' ')}${size}`
}

/** Returns the line of a subagent that has started or ended; null for other events. */
export function createSubagentLine({ type, agent }: SubagentEvent): EventLine | null {
  const { id, status, isBackground, text, problem } = agent
  const name = toSafeLine(`${agent.type} ${id}`)
  if (type === 'subagent-progress') return null
  if (type === 'subagent-started') {
    const where = isBackground ? ' in the background' : ''
    return quietLine('◇', `The agent ${name} works${where}: ${toSafeLine(agent.description)}`)
  }
  const why = problem === null ? '' : ` (${toSafeLine(problem.message)})`
  const figures = formatSubagentFigures(agent)
  // The result alone starts no turn: the model gets it with the next request.
  const next = isBackground && !agent.isDelivered ? ' The model gets its result with the next request.' : ''
  const detail = text === null ? null : { title: `The agent ${name}`, text: removeControlCharacters(text) }
  const isDone = status === 'finished'
  return {
    tone: isDone ? 'quiet' : 'warning',
    mark: isDone ? '◆' : '!',
    text: `The agent ${name} ${isDone ? 'has finished' : `has not finished: ${status}${why}`}, ${figures}.${next}`,
    detail,
  }
}

/** Returns the calls and the cost of a subagent, as in `3 calls, $0.02`. */
export function formatSubagentFigures({ calls, costUsd }: SubagentRecord): string {
  return `${formatCount(calls, 'call')}, ${costUsd === null ? 'cost unknown' : formatDollars(costUsd)}`
}

/**
 * One line for each thing that was done to the context or went wrong: clearings, compactions, summaries that were swapped
 * in, cache breaks, undos. Each can be opened: its receipt, its figures or the explanation of a cache break.
 */
import { describeCause } from '@tidemark/core/cache/explain-break'
import { isBranchSwitch } from '@tidemark/core/log/branch-switch'
import {
  type CompactMetadata,
  isCompactBoundary,
  isMicrocompactBoundary,
  type KnownRecord,
  type MicrocompactBoundary,
  type SystemRecord,
} from '@tidemark/core/log/record'
import type { EventOf, SessionEvent } from 'tidemark'
import { describeWarning } from '../agent/chat-output.ts'
import type { SubagentEvent, SubagentRecord } from '../agent/subagent-records.ts'
import { formatCount, formatDollars, formatTokens } from '../render/format-numbers.ts'
import { formatClearing, formatCompaction } from '../render/rewrite-text.ts'
import { sanitizeLines, sanitizeText } from '../render/text.ts'
import {
  describeAttempts,
  describeUsage,
  formatReceipt,
  listFigures,
  listSection,
} from './compaction-text.ts'
import type { Tone } from './theme.ts'

export interface EventLine {
  readonly tone: Tone
  readonly mark: string
  readonly text: string
  /** What is shown when the line is opened; null if the line says it all. */
  readonly detail: LineDetail | null
}

export interface LineDetail {
  readonly title: string
  readonly text: string
  /** When a cache break happened: its diff file in the session's folder has this time in its name, or one just before. */
  readonly diffAt?: number
  /** A compaction, by its record in the log, from which the rest of the page is read when the line is opened. */
  readonly compaction?: { readonly id: string; readonly hasReceipt: boolean }
}

/** Returns the line of an event; null for an event that needs none. */
export function describeEventLine(event: SessionEvent): EventLine | null {
  switch (event.type) {
    case 'compact':
      return describeCompaction(event)
    case 'microcompact':
      return describeClearing(event)
    case 'cache-break':
      return describeBreak(event)
    case 'act-paid':
      return quietLine('$', sanitizeText(event.act.sentence))
    case 'undone':
      return describeUndo(event.kind)
    case 'compact-failed':
      return warningLine(`Not compacted: ${event.refused.message}`)
    case 'breaker-open':
      return warningLine(
        `Automatic compaction is paused after ${formatCount(event.failures, 'failure')}: ${event.reason}`,
      )
    case 'media-dropped':
      return quietLine(
        '△',
        `${formatCount(event.items, 'old image or document is', 'old images and documents are')} no longer sent. /undo restores them.`,
      )
    case 'thinking-dropped':
      return quietLine(
        '△',
        `The thinking of ${formatCount(event.responses, 'response')} is no longer sent: the provider refused it.`,
      )
    case 'summary-dropped':
      return quietLine('△', `The prepared summary is not used: ${sanitizeText(event.message)}`)
    case 'sm-compact-threshold-exceeded':
      return quietLine(
        '△',
        `The notes are not used: with them the context would have ${formatTokens(event.tokens)} tokens, and is compacted from ${formatTokens(event.threshold)} on. A summary is written.`,
      )
    case 'sm-compact-refused':
      // Other reasons say that there are no notes yet, or are told by the refusal itself.
      return event.reason === 'refused' || event.reason === 'error'
        ? quietLine('△', `The notes are not used: ${sanitizeText(event.message)}`)
        : null
    case 'model-switched':
      return describeModel(event.to)
    case 'answer-continued':
      return quietLine('…', 'The output limit ended the answer; the model was asked to continue it.')
    default: {
      const warning = describeWarning(event)
      return warning === null ? null : warningLine(warning)
    }
  }
}

const WENT_BACK = 'Went back. What followed stays in the log: /undo returns to it.'
export const NEW_CONVERSATION = 'A new conversation begins. /undo returns to the old one.'

const UNDONE_NAMES = { compact: 'compaction', clear: 'clearing' } as const

function describeUndo(kind: keyof typeof UNDONE_NAMES): EventLine {
  return quietLine('↶', `Undone: the context is as it was before the ${UNDONE_NAMES[kind]}.`)
}

/** Returns the line of a record of a log that was written before; null for a record that needs none. */
export function describeRecord(record: KnownRecord): EventLine | null {
  if (record.type !== 'system') return null
  if (isCompactBoundary(record)) return describeLoggedCompaction(record.uuid, record.compactMetadata)
  if (isMicrocompactBoundary(record)) return describeLoggedClearing(record)
  if (record.cacheLoss !== undefined) return describeLoss(record, record.cacheLoss)
  if (record.subtype === 'compact_undone') return describeUndo('compact')
  if (record.subtype === 'clear_undone') return describeUndo('clear')
  // After an undo or a redo, the branch that is shown says how things are.
  if (!isBranchSwitch(record) || record.of !== undefined) return null
  return quietLine('↶', record.parentUuid === null ? NEW_CONVERSATION : WENT_BACK)
}

function describeLoggedCompaction(uuid: string, metadata: CompactMetadata): EventLine {
  const { preTokens, postTokens, summarizer = 'model', cause, trigger, durationMs, fallbackReason } = metadata
  const text = formatCompaction({ tokensBefore: preTokens, tokensAfter: postTokens, summarizer, cause })
  const figures = { trigger, cause, summarizer, durationMs, fallbackReason: fallbackReason ?? null }
  const detail = listFigures(figures).join('\n')
  return {
    ...quietLine('▲', text),
    detail: { title: text, text: detail, compaction: { id: uuid, hasReceipt: false } },
  }
}

function describeLoggedClearing({ microcompactMetadata: metadata }: MicrocompactBoundary): EventLine {
  const { tokensSaved, preTokens, trigger, way } = metadata
  const text = formatClearing(metadata, tokensSaved)
  const lines = [
    `Why: ${sanitizeText(trigger)}`,
    ...(way === undefined ? [] : [`How: ${CLEAR_WAYS[way]}`]),
    `Context: ${formatTokens(preTokens)} → ${formatTokens(Math.max(0, preTokens - tokensSaved))} tokens`,
    '',
    CLEARED_RESULTS_NOTE,
  ]
  return { ...quietLine('△', text), detail: { title: text, text: lines.join('\n') } }
}

/** The line of cached tokens that were lost: by a cache break, or as the price of a rewrite. */
function describeLoss(
  { timestamp }: SystemRecord,
  { kind, sentence, tokens, usd }: NonNullable<SystemRecord['cacheLoss']>,
): EventLine {
  if (kind === 'act') return quietLine('$', sanitizeText(sentence))
  const text = [
    sanitizeText(sentence),
    '',
    `Processed again: ${formatTokens(tokens)} tokens`,
    ...(usd === null ? [] : [`Cost: ${formatDollars(usd)} more than reading them from the cache`]),
  ].join('\n')
  const detail = { title: 'Cache break', text, diffAt: Date.parse(timestamp) }
  return { ...warningLine(sentence), detail }
}

export function describeModel(model: string): EventLine {
  return quietLine('→', `The model is now ${sanitizeText(model)}.`)
}

function quietLine(mark: string, text: string): EventLine {
  return { tone: 'quiet', mark, text, detail: null }
}

function warningLine(text: string): EventLine {
  return { tone: 'warning', mark: '!', text: sanitizeText(text), detail: null }
}

function describeCompaction({ compaction }: EventOf<'compact'>): EventLine {
  const { receipt, steps, notes } = compaction
  const { files, userMessages, errors } = receipt.lost
  const lost = files.length + userMessages.length + errors.length
  const missing = lost === 0 ? '' : `; ${formatCount(lost, 'fact')} no longer in view`
  const text = formatCompaction(compaction)
  const lines = [
    ...listFigures(compaction),
    ...describeUsage(compaction.usage),
    ...notes.map(sanitizeText),
    ...describeAttempts(steps),
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

function describeClearing({ clearing, tokensBefore, tokensAfter, way }: EventOf<'microcompact'>): EventLine {
  const { metadata, freedTokens, rewrittenTokens, cost, breakEvenCalls, why, released } = clearing
  const what = formatClearing(metadata, freedTokens)
  return {
    tone: 'quiet',
    mark: '△',
    text: what,
    detail: {
      title: what,
      text: [
        `Why: ${sanitizeText(why)}`,
        `How: ${CLEAR_WAYS[way]}`,
        `Context: ${formatTokens(tokensBefore)} → ${formatTokens(tokensAfter)} tokens`,
        `Cached again: ${formatTokens(rewrittenTokens)} tokens${cost === null ? '' : `, ${formatDollars(cost)} more than reading them from the cache`}`,
        breakEvenCalls === null
          ? 'It does not pay for itself in money.'
          : `Pays for itself after ${formatCount(Math.ceil(breakEvenCalls), 'call')}.`,
        ...listSection('Files that are no longer in view', released.filePaths, (path) => path),
        '',
        CLEARED_RESULTS_NOTE,
      ].join('\n'),
    },
  }
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

function describeBreak({ event, diffProblem }: EventOf<'cache-break'>): EventLine {
  const { at, sentence, expected, read, moneyLost, also, provider, ours } = event
  return {
    tone: 'warning',
    mark: '!',
    text: sanitizeText(sentence),
    detail: {
      title: 'Cache break',
      diffAt: at,
      text: [
        sanitizeText(sentence),
        '',
        `Read from the cache: ${formatTokens(read)} of ${formatTokens(expected)} tokens expected`,
        ...(moneyLost === null ? [] : [`Cost: ${formatDollars(moneyLost)} more than reading them`]),
        ...(ours === null ? [] : [`Intended change: ${sanitizeText(ours.act)}`]),
        ...(provider === null ? [] : [`The provider reports: ${describeReport(provider)}`]),
        ...(diffProblem === null ? [] : [`The diff could not be written: ${sanitizeText(diffProblem)}`]),
        ...listSection('Also changed', also, describeCause),
      ].join('\n'),
    },
  }
}

function describeReport({
  said,
  missedTokens,
}: NonNullable<EventOf<'cache-break'>['event']['provider']>): string {
  const size = missedTokens === null ? '' : `, ${formatTokens(missedTokens)} tokens missed`
  return `${sanitizeText(said).replaceAll('_', ' ')}${size}`
}

/** Returns the line of a subagent that has begun or ended; null for what it does meanwhile. */
export function describeSubagent({ type, agent }: SubagentEvent): EventLine | null {
  const { id, status, isBackground, text, problem } = agent
  const name = sanitizeText(`${agent.type} ${id}`)
  if (type === 'subagent-progress') return null
  if (type === 'subagent-started') {
    const where = isBackground ? ' in the background' : ''
    return quietLine('◇', `The agent ${name} works${where}: ${sanitizeText(agent.description)}`)
  }
  const why = problem === null ? '' : ` (${sanitizeText(problem.message)})`
  const figures = formatSubagentFigures(agent)
  // Nothing wakes the model: it gets the result with the request that follows.
  const next = isBackground && !agent.isDelivered ? ' The model gets its result with the next request.' : ''
  const detail = text === null ? null : { title: `The agent ${name}`, text: sanitizeLines(text) }
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

/**
 * One line for each thing that was done to the context or went wrong: clearings, compactions, summaries that were swapped
 * in, cache breaks, undos. Each can be opened: its receipt, its figures or the explanation of a cache break.
 */
import { isBranchSwitch, isCompactBoundary, isMicrocompactBoundary, type KnownRecord } from '@tidemark/core'
import type { EventOf, SessionEvent } from 'tidemark'
import { describeWarning, SUMMARY_NAMES } from '../agent/chat-output.ts'
import type { SubagentEvent, SubagentRecord } from '../agent/subagent-records.ts'
import {
  formatCount,
  formatDollars,
  formatDuration,
  formatInteger,
  formatTokens,
} from '../render/format-numbers.ts'
import { sanitizeLines, sanitizeText } from '../render/text.ts'
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
  /** When a cache break happened: its diff file in the session's folder has this time in its name. */
  readonly diffAt?: number
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
      return quietLine('↶', `Undone: the context is as it was before the ${UNDONE_NAMES[event.kind]}.`)
    case 'branch-switched':
      // A new conversation and an undo are told by the command.
      return event.before === null ? null : quietLine('↶', WENT_BACK)
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
    case 'model-switched':
      return quietLine('→', `The model is now ${sanitizeText(event.to)}.`)
    case 'answer-continued':
      return quietLine('…', 'The output limit ended the answer; the model was asked to continue it.')
    default: {
      const warning = describeWarning(event)
      return warning === null ? null : warningLine(warning)
    }
  }
}

const WENT_BACK = 'Went back. What followed stays in the log: /undo returns to it.'

const UNDONE_NAMES = { compact: 'compaction', clear: 'clearing' } as const

/** Returns the line of a record of a log that was written before; null for a record that needs none. */
export function describeRecord(record: KnownRecord): EventLine | null {
  if (isCompactBoundary(record)) {
    const { preTokens, postTokens, summarizer = 'model', durationMs } = record.compactMetadata
    const sizes = `${formatTokens(preTokens)} → ${postTokens === undefined ? '?' : formatTokens(postTokens)} tokens`
    const detail = [
      `When: ${record.timestamp}`,
      `With: ${SUMMARY_NAMES[summarizer]}`,
      ...(durationMs === undefined ? [] : [`Took: ${formatDuration(durationMs)}`]),
    ]
    return {
      ...quietLine('▲', `Compacted: ${sizes}, with ${SUMMARY_NAMES[summarizer]}`),
      detail: { title: 'Compaction', text: detail.join('\n') },
    }
  }
  if (record.type === 'system' && record.subtype?.endsWith('_undone') === true)
    return quietLine('↶', 'Undone: the context was restored.')
  if (isBranchSwitch(record)) return quietLine('↶', 'The conversation went on from another place.')
  if (!isMicrocompactBoundary(record)) return null
  const { tokensSaved, compactedToolIds } = record.microcompactMetadata
  return quietLine(
    '△',
    `Cleared ${formatCount(compactedToolIds.length, 'old tool result')}: ${formatTokens(tokensSaved)} tokens freed`,
  )
}

function quietLine(mark: string, text: string): EventLine {
  return { tone: 'quiet', mark, text, detail: null }
}

function warningLine(text: string): EventLine {
  return { tone: 'warning', mark: '!', text: sanitizeText(text), detail: null }
}

function describeCompaction({ compaction }: EventOf<'compact'>): EventLine {
  const { tokensBefore, tokensAfter, summarizer, cause, receipt } = compaction
  const sizes = `${formatTokens(tokensBefore)} → ${formatTokens(tokensAfter)} tokens`
  const what = cause === 'prepared' ? 'Swapped in a prepared summary' : 'Compacted'
  const { files, userMessages, errors, identifiers, moreIdentifiers } = receipt.lost
  const lost = files.length + userMessages.length + errors.length
  const missing = lost === 0 ? '' : `; ${formatCount(lost, 'fact')} no longer in view`
  return {
    tone: 'good',
    mark: '▲',
    text: `${what}: ${sizes}, with ${SUMMARY_NAMES[summarizer]}${missing}`,
    detail: {
      title: `${what}: ${sizes}`,
      text: [
        ...listFigures(compaction),
        ...section('Attached again', receipt.carried, ({ key }) => key),
        ...section('Left out', receipt.leftOut ?? [], ({ source, why }) => `${source}: ${why}`),
        ...section('Files no longer mentioned', files, ({ text }) => text),
        ...section('User messages no longer complete', userMessages, ({ text }) => text),
        ...section('Errors no longer mentioned', errors, ({ text }) => text),
        ...section('Names no longer mentioned', identifiers, ({ text }) => text),
        ...(moreIdentifiers > 0 ? [`  and ${formatInteger(moreIdentifiers)} more names`] : []),
        '',
        'Everything is in the log: the model finds it with its history tool, you with /history TEXT. /undo restores it.',
      ].join('\n'),
    },
  }
}

type Compaction = EventOf<'compact'>['compaction']

function listFigures(compaction: Compaction): readonly string[] {
  const { trigger, cause, summarizer, fallbackReason, durationMs, receipt, notes, steps } = compaction
  return [
    `Why: ${trigger === 'manual' ? 'asked for' : 'automatic'} (${cause})`,
    `Summary: ${SUMMARY_NAMES[summarizer]}`,
    ...(fallbackReason === null ? [] : [`Why not another: ${sanitizeText(fallbackReason)}`]),
    `Took: ${formatDuration(durationMs)}`,
    `Replaced by the summary: ${formatCount(receipt.summarised.length, 'record')}`,
    `Kept word for word: ${formatCount(receipt.kept.length, 'record')}`,
    ...notes.map(sanitizeText),
    ...section('Attempts', steps, ({ kind, outcome, message }) => `${kind}: ${outcome}. ${message}`),
  ]
}

const MAX_LISTED = 100

function section<Item>(
  title: string,
  items: readonly Item[],
  format: (item: Item) => string,
): readonly string[] {
  if (items.length === 0) return []
  const more = items.length - MAX_LISTED
  return [
    '',
    `${title} (${formatInteger(items.length)})`,
    ...items.slice(0, MAX_LISTED).map((item) => `  ${sanitizeText(format(item))}`),
    ...(more > 0 ? [`  and ${formatInteger(more)} more`] : []),
  ]
}

function describeClearing({ clearing, tokensBefore, tokensAfter, way }: EventOf<'microcompact'>): EventLine {
  const { metadata, freedTokens, rewrittenTokens, cost, breakEvenCalls, why, released } = clearing
  const count = metadata.compactedToolIds.length
  const what = `Cleared ${formatCount(count, 'old tool result')}: ${formatTokens(freedTokens)} tokens freed`
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
        ...section('Files that are no longer in view', released.filePaths, (path) => path),
        '',
        'Each cleared result has a placeholder that says how to read it again. /undo restores them.',
      ].join('\n'),
    },
  }
}

const CLEAR_WAYS: Readonly<Record<EventOf<'microcompact'>['way'], string>> = {
  idle: 'in the messages, after a pause in which the cache expired',
  budget: 'in the messages, because the context was filling up',
  cached: 'deleted from the cache of the provider',
  native: 'by the provider',
}

function describeBreak({ event, diffProblem }: EventOf<'cache-break'>): EventLine {
  const { at, sentence, evidence, expected, read, tokensLost, moneyLost, also, provider, ours } = event
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
        `Expected from the cache: ${formatTokens(expected)} tokens; read: ${formatTokens(read)}; lost: ${formatTokens(tokensLost)}`,
        ...(moneyLost === null ? [] : [`Cost: ${formatDollars(moneyLost)}`]),
        `Cause: ${event.reason.kind}`,
        ...(also.length === 0 ? [] : [`Also changed: ${also.map(({ kind }) => kind).join(', ')}`]),
        ...(ours === null ? [] : [`Our own rewrite: ${sanitizeText(ours.act)}`]),
        ...(provider === null ? [] : [`The provider says: ${sanitizeText(JSON.stringify(provider))}`]),
        ...(diffProblem === null ? [] : [`The diff could not be written: ${sanitizeText(diffProblem)}`]),
        '',
        sanitizeLines(evidence),
      ].join('\n'),
    },
  }
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

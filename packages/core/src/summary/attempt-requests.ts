/** The request of each attempt at a summary, or the reason why the attempt is skipped. */

import { groupEntriesIntoRounds } from '../context/cut-points.ts'
import type { ContextEntry } from '../context/entry.ts'
import { toMessageParts } from '../context/entry.ts'
import type { Payload } from '../context/payload.ts'
import { isThinking, toBlocks } from '../log/block.ts'
import { readTypedText } from '../log/record.ts'
import { type AcceptanceRules, SUMMARY_HEADING } from './accept-summary.ts'
import type {
  Attempt,
  AttemptDeadlines,
  AttemptsEnd,
  BlockAttempt,
  DirectAttempt,
  ForkAttempt,
  LocalAttempt,
  SummaryAttempts,
} from './attempt.ts'
import { messageRole } from './select-span.ts'
import {
  buildDirectInput,
  countAnswerTokens,
  createMetaRecord,
  SUMMARIZER_SYSTEM_PROMPT,
  type SummaryModel,
  TRUNCATION_MARKER,
} from './summary-input.ts'
import { limitInstructions, type SummaryTask, writeSummaryPrompt } from './summary-prompt.ts'

export type AttemptOrSkip<A extends Attempt> = A | { readonly skip: string; readonly message: string }

/** The provider's compaction block, for kept messages whose thinking is bound to what precedes them. */
export function planBlockAttempt(chain: SummaryAttempts): AttemptOrSkip<BlockAttempt> {
  const { span, policy, conversationModel, instructions } = chain.context
  if (!policy.chain.block) return skipAttempt('off', 'The provider’s own summary is turned off by policy.')
  if (!needsBlock(chain))
    return skipAttempt('not-needed', 'No kept message carries thinking that is bound to what lies before it.')
  const { onDemand, maxInstructionCharacters, beta } = conversationModel.profile.compaction
  if (!onDemand) return skipAttempt('not-offered', 'The provider writes no summary on demand.')
  if (span.pinned.length > 0 || !hasRoleChangeAtCut(chain))
    return skipAttempt('no-place', 'The kept messages would not directly follow what is summarised.')
  const promptWith = (text: string | null): string =>
    writeSummaryPrompt({ ...createSummaryTask(chain), instructions: text, analysis: false })
  const characters = maxInstructionCharacters - [...promptWith('x')].length + 1
  const text = promptWith(limitInstructions(instructions ?? '', Math.max(0, characters)).text)
  const last = span.summarised.at(-1)
  if ([...text].length > maxInstructionCharacters || last === undefined)
    return skipAttempt('no-room', 'The provider takes no instructions of this length.')
  const tokens =
    chain.context.unclearedTokens + chain.context.countTextTokens(text) + countAnswerTokens(conversationModel)
  if (conversationModel.window !== null && tokens > conversationModel.window)
    return skipAttempt('window-too-small', 'The conversation without any clearing does not fit the window.')
  const through = last.record.uuid
  return { kind: 'block', rung: 0, instructions: text, beta, through, deadlines: toDeadlines(chain) }
}

/** Messages kept behind the summary contain thinking that any other change in front of them would invalidate. */
function needsBlock({ context: { span, conversationModel } }: SummaryAttempts): boolean {
  if (span.form !== 'up_to' || conversationModel.profile.thinking.binding !== 'prefix') return false
  return span.kept.some((entry) => toMessageParts(entry).some(({ block }) => isThinking(block)))
}

/** The first kept message has another role than the last summarised one, and is not a system message. */
function hasRoleChangeAtCut({ context: { span } }: SummaryAttempts): boolean {
  const before = span.summarised.findLast(hasRole)
  const behind = [...span.kept, ...span.unanswered].find(hasRole)
  if (before === undefined || behind === undefined) return false
  const role = messageRole(behind.record)
  return role !== 'system' && role !== messageRole(before.record)
}

function hasRole(entry: ContextEntry): boolean {
  return messageRole(entry.record) !== null
}

/** A fork of the parent's request, which reads its cache. */
export function planForkAttempt(chain: SummaryAttempts): AttemptOrSkip<ForkAttempt> {
  const { policy, parent, isWarm, conversationModel, span, instructions } = chain.context
  if (!policy.chain.fork) return skipAttempt('off', 'Forks are turned off by policy.')
  if (parent === null) return skipAttempt('no-parent', 'No request of this conversation is there to fork.')
  if (!isWarm) return skipAttempt('cold', 'The cache has gone cold: a call of its own is cheaper.')
  const prompt = writeSummaryPrompt({ ...createSummaryTask(chain), instructions })
  const tokens = parent.tokens + chain.context.countTextTokens(prompt) + conversationModel.outputTokens
  if (conversationModel.window !== null && tokens > conversationModel.window)
    return skipAttempt('window-too-small', 'The conversation and its summary do not fit the window together.')
  const through = span.form === 'up_to' ? (span.summarised.at(-1)?.record.uuid ?? null) : null
  const message = { role: 'user' as const, content: prompt }
  return { kind: 'fork', rung: 1, message, through, deadlines: toDeadlines(chain) }
}

export function planDirectAttempt(chain: SummaryAttempts): AttemptOrSkip<DirectAttempt> {
  const hasDropped = chain.drops > 0
  if (!hasDropped && !fitsWindow(chain))
    return skipAttempt('window-too-small', 'The conversation does not fit the summariser’s window.')
  return createDirectAttempt(chain, {
    entries: chain.input,
    task: { remark: chain.remark },
    marker: hasDropped ? TRUNCATION_MARKER : null,
    rung: hasDropped ? 3 : 2,
    part: null,
  })
}

const PART_MARKER = '[earlier parts of this conversation are summarised apart]'

export function planPartAttempt(chain: SummaryAttempts): AttemptOrSkip<DirectAttempt> {
  const { parts } = chain
  const entries = parts?.parts[parts.sent]
  if (parts === null || entries === undefined)
    return skipAttempt('no-part', 'No part is left to be summarised.')
  const part = { number: parts.sent + 1, of: parts.parts.length }
  const task = part.of > 1 ? { part } : {}
  const { outputTokens } = parts
  return createDirectAttempt(chain, { entries, task, marker: PART_MARKER, rung: 3, part, outputTokens })
}

/** The summaries of the parts, to be made into one. */
export function planJoinAttempt(chain: SummaryAttempts): AttemptOrSkip<DirectAttempt> {
  const summaries = chain.parts?.summaries ?? []
  if (summaries.length < 2) return skipAttempt('no-part', 'There are no two parts to put together.')
  const texts = summaries.map((summary, index) => `Part ${index + 1} of ${summaries.length}.\n${summary}`)
  const entries = [{ record: createMetaRecord('summaries-of-parts', texts.join('\n\n')), index: -1 }]
  return createDirectAttempt(chain, { entries, task: { joins: true }, marker: null, rung: 3, part: 'join' })
}

/** The summaries of the parts one after the other, for when they could not be joined. */
export function concatenateSummaries(summaries: readonly string[]): string {
  const bodies = summaries.map((text) => text.replace(SUMMARY_HEADING, '').trim())
  const parts = bodies.map((body, index) =>
    bodies.length === 1 ? body : `Part ${index + 1} of ${bodies.length}, oldest first:\n${body}`,
  )
  return `${SUMMARY_HEADING}\n${parts.join('\n\n')}`
}

function createDirectAttempt(
  chain: SummaryAttempts,
  {
    rung,
    part,
    task,
    ...input
  }: Pick<DirectAttempt, 'part'> & {
    readonly rung: 2 | 3
    readonly task: Partial<SummaryTask>
    readonly entries: readonly ContextEntry[]
    readonly marker: string | null
    readonly outputTokens?: number
  },
): DirectAttempt {
  const { tools, instructions } = chain.context
  const prompt = writeSummaryPrompt({ ...createSummaryTask(chain), instructions, ...task })
  const summariser = directCallModel(chain)
  const request = buildDirectInput({ ...input, prompt, summariser, tools, asText: chain.asText })
  const deadlines = toDeadlines(chain)
  return { kind: 'direct', rung, part, dropped: chain.coveredLocally.length, deadlines, ...request }
}

export function planLocalAttempt(chain: SummaryAttempts): AttemptOrSkip<LocalAttempt> {
  const { policy, span } = chain.context
  if (policy.chain.local === 'never')
    return skipAttempt('off', 'A summary without a model is forbidden by policy.')
  const share =
    Math.ceil((sumEntryTokens(chain, span.summarised) * policy.maximumPercentOfReplaced) / 100) - 1
  const maximumTokens = Math.max(0, Math.min(share, chain.context.maximumSummaryTokens ?? share))
  const deadlines = toDeadlines(chain)
  return { kind: 'local', rung: 4, entries: span.summarised, maximumTokens, deadlines }
}

function skipAttempt(reason: string, message: string): { readonly skip: string; readonly message: string } {
  return { skip: reason, message }
}

function toDeadlines({ context: { policy } }: SummaryAttempts): AttemptDeadlines {
  const { keepAliveSeconds, stallSeconds, attemptSeconds } = policy.waiting
  return {
    keepAliveMs: keepAliveSeconds * 1000,
    stallMs: stallSeconds * 1000,
    attemptMs: attemptSeconds * 1000,
  }
}

/** The task without custom instructions: also used to recognise an answer that only echoes it. */
export function createSummaryTask({ context: { span } }: SummaryAttempts): SummaryTask {
  const { form } = span
  return form === 'from' ? { form, beginsWith: readFirstWords(span.summarised) } : { form }
}

const FIRST_WORDS_CHARACTERS = 120

function readFirstWords(entries: readonly ContextEntry[]): string | null {
  const first = entries.find(hasRole)
  if (first === undefined) return null
  const texts = [readTypedText(first.record), ...toMessageParts(first).map(({ block }) => block.text)]
  const text = texts.find((value) => typeof value === 'string') ?? ''
  const line = [...text.replace(/\s+/g, ' ').trim()].slice(0, FIRST_WORDS_CHARACTERS).join('')
  return line === '' ? null : line
}

/** What the answer to an attempt is checked against. */
export function createAcceptanceRules(chain: SummaryAttempts, ask: Attempt): AcceptanceRules {
  const { policy, countTextTokens, span } = chain.context
  const part = findPartNumber(ask)
  const replaced = part === null ? span.summarised : (chain.parts?.parts[part.number - 1] ?? [])
  const joins = ask.kind === 'direct' && ask.part === 'join'
  const task = { ...createSummaryTask(chain), ...(part === null ? {} : { part }), joins }
  return {
    prompt: writeSummaryPrompt({ ...task, analysis: ask.kind !== 'block' }),
    replacedTokens: sumEntryTokens(chain, replaced),
    maximumPercent: policy.maximumPercentOfReplaced,
    countTokens: countTextTokens,
  }
}

/** Which part a direct call is about; null for the whole and for joining the parts. */
export function findPartNumber(ask: Attempt): Exclude<DirectAttempt['part'], 'join'> {
  return ask.kind === 'direct' && ask.part !== 'join' ? ask.part : null
}

/** The same key means the same request. */
export function createRequestKey(chain: SummaryAttempts, ask: Attempt): string {
  if (ask.kind !== 'direct') return ask.kind
  const { model } = directCallModel(chain)
  return JSON.stringify([ask.part, model, chain.asText, chain.remark, chain.input.length, chain.drops])
}

/** A retry after a drop would send the request that has just failed: the dropped rounds had no visible content. */
export function isSameRequest(before: Attempt | AttemptsEnd, ask: Attempt): boolean {
  if ('done' in before || before.kind !== 'direct' || ask.kind !== 'direct' || ask.part !== null) return false
  return toComparableText(before.payload) === toComparableText(ask.payload)
}

/** A string and one text block count as equal. */
function toComparableText({ model, messages }: Payload): string {
  return JSON.stringify([model, messages.map(({ role, content }) => [role, toBlocks(content)])])
}

// Sizes, and which entries and which model an attempt is about.

/** Tokens of the summarizer's window left for the conversation; null if the window is unknown. */
export function availableInputTokens(
  chain: SummaryAttempts,
  answer: number = countAnswerTokens(directCallModel(chain)),
): number | null {
  const { countTextTokens, instructions } = chain.context
  if (chain.window === null) return null
  const task = `${SUMMARIZER_SYSTEM_PROMPT}\n${writeSummaryPrompt({ ...createSummaryTask(chain), instructions })}`
  return chain.window - answer - countTextTokens(task)
}

/** Also true if the window is unknown. */
export function fitsWindow(chain: SummaryAttempts): boolean {
  const room = availableInputTokens(chain)
  return room === null || sumEntryTokens(chain, chain.input) <= room
}

export function sumEntryTokens({ context }: SummaryAttempts, entries: readonly ContextEntry[]): number {
  return entries.reduce((sum, entry) => sum + context.countEntryTokens(entry), 0)
}

export function directCallModel({ context, usesConversationModel }: SummaryAttempts): SummaryModel {
  return usesConversationModel ? context.conversationModel : context.directModel
}

/** The entries that the summary replaces; the others are sent for context only and stay in the conversation. */
export function filterSummarised(
  { context }: SummaryAttempts,
  entries: readonly ContextEntry[],
): readonly ContextEntry[] {
  const uuids = new Set(entries.map((entry) => entry.record.uuid))
  return context.span.summarised.filter((entry) => uuids.has(entry.record.uuid))
}

// Parts: a conversation too long for the summarizer's window is summarised part by part, then the summaries are joined.

/** Share of the window used by a part: estimates may be that much too low. */
const PART_MARGIN = 0.9

/** Splits only what is to be summarised; kept messages were sent for context. */
export function startParts(chain: SummaryAttempts): SummaryAttempts {
  const summariser = directCallModel(chain)
  const { outputTokens } = summariser
  // Thinking that cannot be turned off needs its tokens beside the answer.
  const room = availableInputTokens(chain, Math.max(0, countAnswerTokens(summariser) - outputTokens))
  const summarised = new Set(chain.context.span.summarised.map((entry) => entry.record.uuid))
  const entries = chain.input.filter((entry) => summarised.has(entry.record.uuid))
  const tokens = Math.floor((room ?? 0) * PART_MARGIN)
  const split = splitRounds(entries, { tokens, outputTokens, tokensOf: chain.context.countEntryTokens })
  if (split === null) return { ...chain, stage: 'local' }
  const covered = [...chain.coveredLocally, ...filterSummarised(chain, split.covered)]
  const parts = { parts: split.parts, sent: 0, summaries: [], outputTokens: split.outputTokens }
  return { ...chain, stage: 'parts', coveredLocally: covered, parts }
}

/** With more parts than this, the oldest ones get a local summary. */
export const MAX_PARTS = 8
interface SplitRounds {
  readonly parts: readonly (readonly ContextEntry[])[]
  readonly covered: readonly ContextEntry[]
  readonly outputTokens: number
}

/** A part's summary needs at least this many tokens to be useful. */
const MIN_OUTPUT_TOKENS = 400

/**
 * Splits entries into parts of whole rounds that fit the window. `tokens`: input and output together, without the
 * prompt. `covered`: rounds too large for any part, and the oldest ones beyond `MAX_PARTS`. `outputTokens`: limit
 * of one part's summary, so that all summaries fit together. Null if the window is too small for two parts.
 */
export function splitRounds(
  entries: readonly ContextEntry[],
  room: {
    readonly tokens: number
    readonly outputTokens: number
    readonly tokensOf: (entry: ContextEntry) => number
  },
): SplitRounds | null {
  const most = Math.min(MAX_PARTS, Math.floor(room.tokens / MIN_OUTPUT_TOKENS) - 2)
  if (most < 2) return null
  const outputTokens = Math.min(room.outputTokens, Math.floor(room.tokens / (most + 2)))
  const parts = groupRounds(entries, room.tokens - outputTokens, room.tokensOf).slice(-most)
  if (parts.length === 0) return null
  const inParts = new Set(parts.flat())
  return { parts, covered: entries.filter((entry) => !inParts.has(entry)), outputTokens }
}

/** As many whole rounds to a group as fit. A round too large for any group is left out and ends the group before it. */
function groupRounds(
  entries: readonly ContextEntry[],
  each: number,
  tokensOf: (entry: ContextEntry) => number,
): readonly (readonly ContextEntry[])[] {
  const groups: ContextEntry[][] = []
  let used = Number.POSITIVE_INFINITY
  for (const round of groupEntriesIntoRounds(entries)) {
    const tokens = round.reduce((sum, entry) => sum + tokensOf(entry), 0)
    if (tokens > each) {
      used = Number.POSITIVE_INFINITY
    } else if (used + tokens > each) {
      groups.push([...round])
      used = tokens
    } else {
      groups.at(-1)?.push(...round)
      used += tokens
    }
  }
  return groups
}

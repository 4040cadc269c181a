/** Plans each attempt at a summary: returns the request to send, or the reason why the attempt is skipped. */

import { type ContextEntry, toTracedBlocks } from '../context/context-entry.ts'
import type { Payload } from '../context/payload.ts'
import { readUserTypedText } from '../facts/user-input.ts'
import { isThinkingBlock, toBlocks } from '../log/block.ts'
import { readMessageRole } from '../log/record.ts'
import type { AcceptanceRules } from './accept-summary.ts'
import type {
  AttemptTimeLimits,
  CompactionBlockAttempt,
  DirectAttempt,
  ForkAttempt,
  LocalAttempt,
  SummaryAttempt,
  SummaryAttemptState,
  SummaryAttemptsOutcome,
} from './attempt-types.ts'
import {
  buildDirectSummaryRequest,
  countReservedOutputTokens,
  SUMMARIZER_SYSTEM_PROMPT,
  type SummaryModel,
  TRUNCATION_MARKER,
} from './direct-summary-request.ts'
import { computeLocalSummaryLimit } from './local-summary.ts'
import { limitInstructions, type SummaryTask, writeSummaryPrompt } from './summary-prompt.ts'

/** An attempt, or why it is skipped: `skip` as a code, `message` as a sentence. */
export type AttemptOrSkip<A extends SummaryAttempt> = A | { readonly skip: string; readonly message: string }

/** Plans a request for the provider's compaction block. Skipped unless kept messages have thinking that only it keeps valid. */
export function planCompactionBlockAttempt(
  chain: SummaryAttemptState,
): AttemptOrSkip<CompactionBlockAttempt> {
  const { span, policy, conversationModel, instructions } = chain.context
  if (!policy.chain.block) return skipAttempt('off', 'The provider’s own summary is turned off by policy.')
  if (!needsBlock(chain))
    return skipAttempt('not-needed', 'No kept message carries thinking that is bound to what lies before it.')
  const { onDemand, maxInstructionCharacters, beta } = conversationModel.profile.compaction
  if (!onDemand) return skipAttempt('not-offered', 'The provider writes no summary on demand.')
  if (span.pinned.length > 0 || !hasRoleChangeAtCut(chain))
    return skipAttempt('no-place', 'The kept messages would not directly follow what is summarized.')
  const promptWith = (text: string | null): string =>
    writeSummaryPrompt({
      ...createSummaryTask(chain),
      instructions: text,
      analysis: false,
      remark: chain.remark,
    })
  const characters = maxInstructionCharacters - [...promptWith('x')].length + 1
  const text = promptWith(limitInstructions(instructions ?? '', Math.max(0, characters)))
  const last = span.summarised.at(-1)
  if ([...text].length > maxInstructionCharacters || last === undefined)
    return skipAttempt('no-room', 'The provider takes no instructions of this length.')
  const tokens =
    chain.context.unclearedTokens +
    chain.context.countTextTokens(text) +
    countReservedOutputTokens(conversationModel)
  if (conversationModel.window !== null && tokens > conversationModel.window)
    return skipAttempt('window-too-small', 'The conversation without any clearing does not fit the window.')
  const through = last.record.uuid
  return { kind: 'block', rung: 0, instructions: text, beta, through, deadlines: toDeadlines(chain) }
}

/** Returns true if messages kept after the summary contain thinking that stays valid only if a compaction block precedes it. */
function needsBlock({ context: { span, conversationModel } }: SummaryAttemptState): boolean {
  if (span.form !== 'up_to' || conversationModel.profile.thinking.binding !== 'prefix') return false
  return span.kept.some((entry) => toTracedBlocks(entry).some(({ block }) => isThinkingBlock(block)))
}

/** Returns true if the first kept message has another role than the last summarised one and is not a system message. */
function hasRoleChangeAtCut({ context: { span } }: SummaryAttemptState): boolean {
  const before = span.summarised.findLast(hasRole)
  const behind = [...span.kept, ...span.unanswered].find(hasRole)
  if (before === undefined || behind === undefined) return false
  const role = readMessageRole(behind.record)
  return role !== 'system' && role !== readMessageRole(before.record)
}

function hasRole(entry: ContextEntry): boolean {
  return readMessageRole(entry.record) !== null
}

/**
 * Plans a fork call: extends the conversation's last API request, so that the cached prefix is read. For form `up_to`
 * the fork sends only the messages before the cut.
 */
export function planForkAttempt(chain: SummaryAttemptState): AttemptOrSkip<ForkAttempt> {
  const { policy, parent, isWarm, conversationModel, span, instructions } = chain.context
  if (!policy.chain.fork) return skipAttempt('off', 'Forks are turned off by policy.')
  if (parent === null) return skipAttempt('no-parent', 'No request of this conversation is there to fork.')
  if (!isWarm) return skipAttempt('cold', 'The cache has gone cold: a call of its own is cheaper.')
  const prompt = writeSummaryPrompt({ ...createSummaryTask(chain), instructions, remark: chain.remark })
  const isPart = span.form === 'up_to'
  const leftOut = isPart ? sumEntryTokens(chain, [...span.kept, ...span.unanswered]) : 0
  const tokens =
    parent.tokens - leftOut + chain.context.countTextTokens(prompt) + conversationModel.outputTokens
  if (conversationModel.window !== null && tokens > conversationModel.window)
    return skipAttempt('window-too-small', 'The conversation and its summary do not fit the window together.')
  const records = isPart ? new Set(span.input.map(({ record }) => record.uuid)) : null
  const message = { role: 'user' as const, content: prompt }
  return { kind: 'fork', rung: 1, message, records, deadlines: toDeadlines(chain) }
}

/** Plans a direct call with the whole input, or with what is left of it after rounds were dropped. */
export function planDirectAttempt(chain: SummaryAttemptState): AttemptOrSkip<DirectAttempt> {
  const hasDropped = chain.drops > 0
  if (!hasDropped && !canInputFitWindow(chain))
    return skipAttempt('window-too-small', 'The conversation does not fit the summariser’s window.')
  const { tools, instructions } = chain.context
  const request = buildDirectSummaryRequest({
    entries: chain.input,
    marker: hasDropped ? TRUNCATION_MARKER : null,
    prompt: writeSummaryPrompt({ ...createSummaryTask(chain), instructions, remark: chain.remark }),
    summariser: chooseDirectModel(chain),
    tools,
    asText: chain.asText,
  })
  return { kind: 'direct', rung: hasDropped ? 3 : 2, deadlines: toDeadlines(chain), ...request }
}

/** Plans a summary without a model. Skipped only if the policy forbids it. */
export function planLocalAttempt(chain: SummaryAttemptState): AttemptOrSkip<LocalAttempt> {
  const { policy, span } = chain.context
  if (policy.chain.local === 'never')
    return skipAttempt('off', 'A summary without a model is forbidden by policy.')
  const { maximumSummaryTokens = Number.POSITIVE_INFINITY, maximumRestTokens } = chain.context
  const maximumTokens = Math.max(0, maximumSummaryTokens)
  const restTokens = maximumRestTokens ?? computeLocalSummaryLimit(sumEntryTokens(chain, span.summarised))
  const deadlines = toDeadlines(chain)
  return { kind: 'local', rung: 4, entries: span.summarised, maximumTokens, restTokens, deadlines }
}

function skipAttempt(reason: string, message: string): { readonly skip: string; readonly message: string } {
  return { skip: reason, message }
}

function toDeadlines({ context: { policy } }: SummaryAttemptState): AttemptTimeLimits {
  const { keepAliveSeconds, stallSeconds, attemptSeconds } = policy.waiting
  return {
    keepAliveMs: keepAliveSeconds * 1000,
    stallMs: stallSeconds * 1000,
    attemptMs: attemptSeconds * 1000,
  }
}

/** Creates the summary task without custom instructions; also used to recognise a response that repeats the prompt. */
function createSummaryTask({ context: { span } }: SummaryAttemptState): SummaryTask {
  const { form } = span
  return form === 'from' ? { form, beginsWith: readFirstWords(span.summarised) } : { form }
}

const FIRST_WORDS_CHARACTERS = 120

function readFirstWords(entries: readonly ContextEntry[]): string | null {
  const first = entries.find(hasRole)
  if (first === undefined) return null
  const texts = [readUserTypedText(first.record), ...toTracedBlocks(first).map(({ block }) => block.text)]
  const text = texts.find((value) => typeof value === 'string') ?? ''
  const line = [...text.replace(/\s+/g, ' ').trim()].slice(0, FIRST_WORDS_CHARACTERS).join('')
  return line === '' ? null : line
}

/** Creates the rules by which the response to an attempt is accepted or refused. */
export function createAcceptanceRules(chain: SummaryAttemptState, ask: SummaryAttempt): AcceptanceRules {
  const { policy, countTextTokens, span } = chain.context
  return {
    prompt: writeSummaryPrompt({ ...createSummaryTask(chain), analysis: ask.kind !== 'block' }),
    replacedTokens: sumEntryTokens(chain, span.summarised),
    maximumPercent: policy.maximumPercentOfReplaced,
    countTokens: countTextTokens,
  }
}

/** Returns a key that is equal for two attempts if they would send the same summary request. */
export function createSummaryRequestKey(chain: SummaryAttemptState, ask: SummaryAttempt): string {
  if (ask.kind === 'local') return `local ${ask.maximumTokens} ${ask.restTokens}`
  if (ask.kind !== 'direct') return JSON.stringify([ask.kind, chain.remark])
  const { model } = chooseDirectModel(chain)
  return JSON.stringify([model, chain.asText, chain.remark, chain.input.length, chain.drops])
}

/** Returns true if a retry would repeat the failed summary request, because the dropped rounds had no visible content. */
export function isSameSummaryRequest(
  before: SummaryAttempt | SummaryAttemptsOutcome,
  ask: SummaryAttempt,
): boolean {
  if ('done' in before || before.kind !== 'direct' || ask.kind !== 'direct') return false
  return toComparableText(before.payload) === toComparableText(ask.payload)
}

/** Serializes model and messages for comparison; string content equals the same text in one text block. */
function toComparableText({ model, messages }: Payload): string {
  return JSON.stringify([model, messages.map(({ role, content }) => [role, toBlocks(content)])])
}

// Helpers for all attempts: token sizes, the entries to summarise, the model to call.

/** Returns the tokens of the summarizer's context window left for the conversation; null if the window is unknown. */
export function countAvailableInputTokens(chain: SummaryAttemptState): number | null {
  const { countTextTokens, instructions } = chain.context
  if (chain.window === null) return null
  const task = `${SUMMARIZER_SYSTEM_PROMPT}\n${writeSummaryPrompt({ ...createSummaryTask(chain), instructions })}`
  return chain.window - countReservedOutputTokens(chooseDirectModel(chain)) - countTextTokens(task)
}

/** Returns true if the conversation to summarise fits into the summarizer's context window, or if the window is unknown. */
export function canInputFitWindow(chain: SummaryAttemptState): boolean {
  const room = countAvailableInputTokens(chain)
  return room === null || sumEntryTokens(chain, chain.input) <= room
}

/** Sums the estimated tokens of entries, as corrected by reported usage. */
export function sumEntryTokens({ context }: SummaryAttemptState, entries: readonly ContextEntry[]): number {
  return entries.reduce((sum, entry) => sum + context.countEntryTokens(entry), 0)
}

function chooseDirectModel({ context, usesConversationModel }: SummaryAttemptState): SummaryModel {
  return usesConversationModel ? context.conversationModel : context.directModel
}

/** Returns those of `entries` that the summary replaces. All others are sent for context only and stay in the conversation. */
export function selectSummarizedEntries(
  { context }: SummaryAttemptState,
  entries: readonly ContextEntry[],
): readonly ContextEntry[] {
  const uuids = new Set(entries.map((entry) => entry.record.uuid))
  return context.span.summarised.filter((entry) => uuids.has(entry.record.uuid))
}

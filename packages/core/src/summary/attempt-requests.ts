/** The request of each attempt at a summary, or the reason why the attempt is skipped. */

import type { Entry } from '../context/entry.ts'
import { partsOf } from '../context/entry.ts'
import type { Payload } from '../context/payload.ts'
import { blocksOf, isThinking } from '../log/block.ts'
import { typedText } from '../log/record.ts'
import { type AcceptRules, SUMMARY_HEADING } from './accept-summary.ts'
import type { Ask, AskDeadlines, BlockAsk, Chain, DirectAsk, Done, ForkAsk, LocalAsk } from './attempt.ts'
import { roleOf } from './select-span.ts'
import {
  answerTokens,
  metaRecord,
  prepareInput,
  roundsOfEntries,
  SUMMARISER_SYSTEM_PROMPT,
  type Summariser,
  TRUNCATION_MARKER,
} from './summary-input.ts'
import { boundInstructions, type SummaryTask, summaryPrompt } from './summary-prompt.ts'

export type Made<A extends Ask> = A | { readonly skip: string; readonly message: string }

/** The provider's compaction block, for kept messages whose thinking is bound to what precedes them. */
export function blockAsk(chain: Chain): Made<BlockAsk> {
  const { span, policy, own, instructions } = chain.context
  if (!policy.chain.block) return skip('off', 'The provider’s own summary is turned off by policy.')
  if (!needsBlock(chain))
    return skip('not-needed', 'No kept message carries thinking that is bound to what lies before it.')
  const { onDemand, maxInstructionCharacters, beta } = own.profile.compaction
  if (!onDemand) return skip('not-offered', 'The provider writes no summary on demand.')
  if (span.pinned.length > 0 || !hasRoleChangeAtCut(chain))
    return skip('no-place', 'The kept messages would not directly follow what is summarised.')
  const promptWith = (text: string | null): string =>
    summaryPrompt({ ...taskOf(chain), instructions: text, analysis: false })
  const characters = maxInstructionCharacters - [...promptWith('x')].length + 1
  const text = promptWith(boundInstructions(instructions ?? '', Math.max(0, characters)).text)
  const last = span.summarised.at(-1)
  if ([...text].length > maxInstructionCharacters || last === undefined)
    return skip('no-room', 'The provider takes no instructions of this length.')
  const tokens = chain.context.unclearedTokens + chain.context.tokensOfText(text) + answerTokens(own)
  if (own.window !== null && tokens > own.window)
    return skip('window-too-small', 'The conversation without any clearing does not fit the window.')
  const through = last.record.uuid
  return { kind: 'block', rung: 0, instructions: text, beta, through, deadlines: attemptDeadlines(chain) }
}

/** Messages kept behind the summary contain thinking that any other change in front of them would invalidate. */
function needsBlock({ context: { span, own } }: Chain): boolean {
  if (span.form !== 'up_to' || own.profile.thinking.binding !== 'prefix') return false
  return span.kept.some((entry) => partsOf(entry).some(({ block }) => isThinking(block)))
}

/** The first kept message has another role than the last summarised one, and is not a system message. */
function hasRoleChangeAtCut({ context: { span } }: Chain): boolean {
  const before = span.summarised.findLast(hasRole)
  const behind = [...span.kept, ...span.unanswered].find(hasRole)
  if (before === undefined || behind === undefined) return false
  const role = roleOf(behind.record)
  return role !== 'system' && role !== roleOf(before.record)
}

function hasRole(entry: Entry): boolean {
  return roleOf(entry.record) !== null
}

/** A fork of the parent's request, which reads its cache. */
export function forkAsk(chain: Chain): Made<ForkAsk> {
  const { policy, parent, isWarm, own, span, instructions } = chain.context
  if (!policy.chain.fork) return skip('off', 'Forks are turned off by policy.')
  if (parent === null) return skip('no-parent', 'No request of this conversation is there to fork.')
  if (!isWarm) return skip('cold', 'The cache has gone cold: a call of its own is cheaper.')
  const prompt = summaryPrompt({ ...taskOf(chain), instructions })
  const tokens = parent.tokens + chain.context.tokensOfText(prompt) + own.outputTokens
  if (own.window !== null && tokens > own.window)
    return skip('window-too-small', 'The conversation and its summary do not fit the window together.')
  const through = span.form === 'up_to' ? (span.summarised.at(-1)?.record.uuid ?? null) : null
  const message = { role: 'user' as const, content: prompt }
  return { kind: 'fork', rung: 1, message, through, deadlines: attemptDeadlines(chain) }
}

export function directAsk(chain: Chain): Made<DirectAsk> {
  const hasDropped = chain.drops > 0
  if (!hasDropped && !fitsWindow(chain))
    return skip('window-too-small', 'The conversation does not fit the summariser’s window.')
  return directAttempt(chain, {
    entries: chain.material,
    task: { remark: chain.remark },
    marker: hasDropped ? TRUNCATION_MARKER : null,
    rung: hasDropped ? 3 : 2,
    part: null,
  })
}

const PART_MARKER = '[earlier parts of this conversation are summarised apart]'

export function partAsk(chain: Chain): Made<DirectAsk> {
  const { parts } = chain
  const entries = parts?.parts[parts.sent]
  if (parts === null || entries === undefined) return skip('no-part', 'No part is left to be summarised.')
  const part = { number: parts.sent + 1, of: parts.parts.length }
  const task = part.of > 1 ? { part } : {}
  const { outputTokens } = parts
  return directAttempt(chain, { entries, task, marker: PART_MARKER, rung: 3, part, outputTokens })
}

/** The summaries of the parts, to be made into one. */
export function joinAsk(chain: Chain): Made<DirectAsk> {
  const summaries = chain.parts?.summaries ?? []
  if (summaries.length < 2) return skip('no-part', 'There are no two parts to put together.')
  const texts = summaries.map((summary, index) => `Part ${index + 1} of ${summaries.length}.\n${summary}`)
  const entries = [{ record: metaRecord('summaries-of-parts', texts.join('\n\n')), index: -1 }]
  return directAttempt(chain, { entries, task: { joins: true }, marker: null, rung: 3, part: 'join' })
}

/** The summaries of the parts one after the other, for when they could not be joined. */
export function concatenateSummaries(summaries: readonly string[]): string {
  const bodies = summaries.map((text) => text.replace(SUMMARY_HEADING, '').trim())
  const parts = bodies.map((body, index) =>
    bodies.length === 1 ? body : `Part ${index + 1} of ${bodies.length}, oldest first:\n${body}`,
  )
  return `${SUMMARY_HEADING}\n${parts.join('\n\n')}`
}

function directAttempt(
  chain: Chain,
  {
    rung,
    part,
    task,
    ...input
  }: Pick<DirectAsk, 'part'> & {
    readonly rung: 2 | 3
    readonly task: Partial<SummaryTask>
    readonly entries: readonly Entry[]
    readonly marker: string | null
    readonly outputTokens?: number
  },
): DirectAsk {
  const { tools, instructions } = chain.context
  const prompt = summaryPrompt({ ...taskOf(chain), instructions, ...task })
  const summariser = summariserOf(chain)
  const request = prepareInput({ ...input, prompt, summariser, tools, asText: chain.asText })
  const deadlines = attemptDeadlines(chain)
  return { kind: 'direct', rung, part, dropped: chain.covered.length, deadlines, ...request }
}

export function localAsk(chain: Chain): Made<LocalAsk> {
  const { policy, span } = chain.context
  if (policy.chain.local === 'never') return skip('off', 'A summary without a model is forbidden by policy.')
  const share = Math.ceil((tokensIn(chain, span.summarised) * policy.maximumPercentOfReplaced) / 100) - 1
  const maximumTokens = Math.max(0, Math.min(share, chain.context.largestSummary ?? share))
  const deadlines = attemptDeadlines(chain)
  return { kind: 'local', rung: 4, entries: span.summarised, maximumTokens, deadlines }
}

function skip(reason: string, message: string): { readonly skip: string; readonly message: string } {
  return { skip: reason, message }
}

function attemptDeadlines({ context: { policy } }: Chain): AskDeadlines {
  const { keepAliveSeconds, stallSeconds, attemptSeconds } = policy.waiting
  return {
    keepAliveMs: keepAliveSeconds * 1000,
    stallMs: stallSeconds * 1000,
    attemptMs: attemptSeconds * 1000,
  }
}

/** The task without custom instructions: also used to recognise an answer that only echoes it. */
export function taskOf({ context: { span } }: Chain): SummaryTask {
  const { form } = span
  return form === 'from' ? { form, beginsWith: firstWords(span.summarised) } : { form }
}

const FIRST_WORDS_CHARACTERS = 120

function firstWords(entries: readonly Entry[]): string | null {
  const first = entries.find(hasRole)
  if (first === undefined) return null
  const texts = [typedText(first.record), ...partsOf(first).map(({ block }) => block.text)]
  const text = texts.find((value) => typeof value === 'string') ?? ''
  const line = [...text.replace(/\s+/g, ' ').trim()].slice(0, FIRST_WORDS_CHARACTERS).join('')
  return line === '' ? null : line
}

/** What the answer to an attempt is checked against. */
export function acceptRules(chain: Chain, ask: Ask): AcceptRules {
  const { policy, tokensOfText, span } = chain.context
  const part = numberedPart(ask)
  const replaced = part === null ? span.summarised : (chain.parts?.parts[part.number - 1] ?? [])
  const joins = ask.kind === 'direct' && ask.part === 'join'
  const task = { ...taskOf(chain), ...(part === null ? {} : { part }), joins }
  return {
    prompt: summaryPrompt({ ...task, analysis: ask.kind !== 'block' }),
    replacedTokens: tokensIn(chain, replaced),
    maximumPercent: policy.maximumPercentOfReplaced,
    tokensOf: tokensOfText,
  }
}

/** Which part a direct call is about; null for the whole and for joining the parts. */
export function numberedPart(ask: Ask): Exclude<DirectAsk['part'], 'join'> {
  return ask.kind === 'direct' && ask.part !== 'join' ? ask.part : null
}

/** The same key means the same request. */
export function requestKey(chain: Chain, ask: Ask): string {
  if (ask.kind !== 'direct') return ask.kind
  const { model } = summariserOf(chain)
  return JSON.stringify([ask.part, model, chain.asText, chain.remark, chain.material.length, chain.drops])
}

/** A retry after a drop would send the request that has just failed: the dropped rounds had no visible content. */
export function isSameRequest(before: Ask | Done, ask: Ask): boolean {
  if ('done' in before || before.kind !== 'direct' || ask.kind !== 'direct' || ask.part !== null) return false
  return comparableText(before.payload) === comparableText(ask.payload)
}

/** A string and one text block count as equal. */
function comparableText({ model, messages }: Payload): string {
  return JSON.stringify([model, messages.map(({ role, content }) => [role, blocksOf(content)])])
}

// Sizes, and which entries and which model an attempt is about.

/** Tokens of the summarizer's window left for the conversation; null if the window is unknown. */
export function roomFor(chain: Chain, answer: number = answerTokens(summariserOf(chain))): number | null {
  const { tokensOfText, instructions } = chain.context
  if (chain.window === null) return null
  const task = `${SUMMARISER_SYSTEM_PROMPT}\n${summaryPrompt({ ...taskOf(chain), instructions })}`
  return chain.window - answer - tokensOfText(task)
}

/** Also true if the window is unknown. */
export function fitsWindow(chain: Chain): boolean {
  const room = roomFor(chain)
  return room === null || tokensIn(chain, chain.material) <= room
}

export function tokensIn({ context }: Chain, entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + context.tokensOf(entry), 0)
}

export function summariserOf({ context, usesOwn }: Chain): Summariser {
  return usesOwn ? context.own : context.direct
}

/** The entries that the summary replaces; the others are sent for context only and stay in the conversation. */
export function summarisedOf({ context }: Chain, entries: readonly Entry[]): readonly Entry[] {
  const uuids = new Set(entries.map((entry) => entry.record.uuid))
  return context.span.summarised.filter((entry) => uuids.has(entry.record.uuid))
}

// Parts: a conversation too long for the summarizer's window is summarised part by part, then the summaries are joined.

/** Share of the window used by a part: estimates may be that much too low. */
const PART_MARGIN = 0.9

/** Splits only what is to be summarised; kept messages were sent for context. */
export function splitIntoParts(chain: Chain): Chain {
  const summariser = summariserOf(chain)
  const { outputTokens } = summariser
  // Thinking that cannot be turned off needs its tokens beside the answer.
  const room = roomFor(chain, Math.max(0, answerTokens(summariser) - outputTokens))
  const summarised = new Set(chain.context.span.summarised.map((entry) => entry.record.uuid))
  const entries = chain.material.filter((entry) => summarised.has(entry.record.uuid))
  const tokens = Math.floor((room ?? 0) * PART_MARGIN)
  const split = splitParts(entries, { tokens, outputTokens, tokensOf: chain.context.tokensOf })
  if (split === null) return { ...chain, stage: 'local' }
  const covered = [...chain.covered, ...summarisedOf(chain, split.covered)]
  const parts = { parts: split.parts, sent: 0, summaries: [], outputTokens: split.outputTokens }
  return { ...chain, stage: 'parts', covered, parts }
}

/** With more parts than this, the oldest ones get a local summary. */
export const MOST_PARTS = 8
/** A part's summary needs at least this many tokens to be useful. */
const MIN_OUTPUT_TOKENS = 400

/**
 * Splits entries into parts of whole rounds that fit the window. `tokens`: input and output together, without the
 * prompt. `covered`: rounds too large for any part, and the oldest ones beyond `MOST_PARTS`. `outputTokens`: limit
 * of one part's summary, so that all summaries fit together. Null if the window is too small for two parts.
 */
export function splitParts(
  entries: readonly Entry[],
  room: {
    readonly tokens: number
    readonly outputTokens: number
    readonly tokensOf: (entry: Entry) => number
  },
) {
  const most = Math.min(MOST_PARTS, Math.floor(room.tokens / MIN_OUTPUT_TOKENS) - 2)
  if (most < 2) return null
  const outputTokens = Math.min(room.outputTokens, Math.floor(room.tokens / (most + 2)))
  const parts = groupRounds(entries, room.tokens - outputTokens, room.tokensOf).slice(-most)
  if (parts.length === 0) return null
  const inParts = new Set(parts.flat())
  return { parts, covered: entries.filter((entry) => !inParts.has(entry)), outputTokens }
}

/** As many whole rounds to a group as fit. A round too large for any group is left out and ends the group before it. */
function groupRounds(
  entries: readonly Entry[],
  each: number,
  tokensOf: (entry: Entry) => number,
): readonly (readonly Entry[])[] {
  const groups: Entry[][] = []
  let used = Number.POSITIVE_INFINITY
  for (const round of roundsOfEntries(entries)) {
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

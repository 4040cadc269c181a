/**
 * Explains why too little was read from the cache: the most likely cause, the evidence, one sentence and advice. Causes
 * are tried in this order: a changed API request, if what it changed was still cached; an expired cache; a clearing that
 * the provider made for a fork; cache markers too far from the cached prefix; the provider. If several changes could be
 * the cause, the provider's own report decides.
 */

import { formatCount, formatDollars, formatDuration } from '../cost/prices.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import type { CacheMissZone, ProviderCacheMissReport } from '../policy/provider-spelling.ts'
import { sliceWholeCharacters } from '../text/truncate-text.ts'
import type {
  CacheBreakReason,
  ExternalCause,
  MessageDifference,
  OwnRewrite,
  RequestDifference,
} from './cache-break-types.ts'
import {
  canReachLastPrefix,
  countBlocksBeforeStrippedThinking,
  countReadableTokens,
  findLastCachedPrefix,
  isPrefixLive,
} from './cache-model.ts'
import {
  type CacheBreakRules,
  type ContextEditsChange,
  findForkParentKey,
  type PendingRequest,
} from './cache-monitor.ts'
import type { MessageChangeSource } from './sent-request.ts'

interface CacheMiss {
  /** The API request, and how the provider's clearing of it differs from that of the previous request. */
  readonly pending: PendingRequest & { readonly change: ContextEditsChange }
  readonly rules: CacheBreakRules
  readonly expectation: { readonly floor: number }
  /** Everything that changed since the previous API request, ordered by position in the cache key. */
  readonly differences: readonly RequestDifference[]
  readonly read: number
  readonly word: ProviderCacheMissReport | null
}

interface MissExplanation {
  readonly reason: CacheBreakReason
  /** Other changes that may have contributed to the cache miss. */
  readonly also: readonly RequestDifference[]
}

/** Returns the most likely cause of a cache miss, and all other differences. Values in them are redacted. */
export function explainCacheMiss(miss: CacheMiss): MissExplanation {
  const { differences, word, rules } = miss
  const able = differences.filter((difference) => canExplain(difference, miss))
  const named = able.find((difference) => findReasonZone(difference) === word?.zone)
  const reason = named ?? able[0] ?? findCircumstance(miss)
  const also = differences.filter((difference) => difference !== reason)
  const { redact } = rules
  if (redact === undefined) return { reason, also }
  return { reason: redactValues(reason, redact), also: also.map((each) => redactValues(each, redact)) }
}

/**
 * Checks whether a difference can have caused the cache miss. Ruled out are: any difference in what was no longer cached; a
 * changed message if even the prefix before it was not read; a removed marker on tools or system prompt if a message marker
 * can still find the cached prefix; and changed context edits, which are no part of the cache key, unless cleared content
 * came back.
 */
function canExplain(
  difference: RequestDifference,
  { pending, rules, expectation, read }: CacheMiss,
): boolean {
  if (findExpiredCause(pending, rules.profile.cache) !== null && !wasCached(difference, pending)) return false
  if (difference.kind.startsWith('message-')) return read >= expectation.floor - rules.policy.tokens
  if (isEditsDifference(difference, rules)) return pending.change === 'fewer'
  if (difference.kind !== 'markers-removed' || difference.zone !== 'prefix' || pending.chain === null)
    return true
  const isInMessages = findLastCachedPrefix(pending.chain)?.level === 'messages'
  return !isInMessages || !canReachLastPrefix(pending.chain, pending.forecast.basis.request, rules.profile)
}

/**
 * Checks whether a prefix with the changed part was still cached; for a change outside the messages, any cached prefix
 * counts.
 */
function wasCached(difference: RequestDifference, { sent, chain }: PendingRequest): boolean {
  const isInMessages = findReasonZone(difference) === 'messages'
  const prefixes = chain?.prefixes.filter(({ level }) => !isInMessages || level === 'messages')
  return prefixes?.some((prefix) => isPrefixLive(prefix, sent.at)) ?? false
}

function isEditsDifference(difference: RequestDifference, { profile }: CacheMiss['rules']): boolean {
  return difference.kind === 'parameter-changed' && difference.name === profile.spelling.editsParameter
}

function findCircumstance(miss: CacheMiss): CacheBreakReason {
  const { pending, rules, word, differences } = miss
  const { chain, forecast } = pending
  const lapse = findExpiredCause(pending, rules.profile.cache)
  if (lapse !== null) return lapse
  if (isThinkingDropped(miss)) return { kind: 'thinking-dropped' }
  const isFork = findForkParentKey(pending.sent.source, pending.sent.forkOf) !== null
  if (pending.change === 'more' && pending.previous !== null && isFork) return { kind: 'cleared-for-fork' }
  if (chain !== null && !canReachLastPrefix(chain, forecast.basis.request, rules.profile))
    return { kind: 'look-back-outrun', lookBack: rules.profile.cache.lookBack }
  if (word !== null && word.isVague !== true) return { kind: 'told-by-provider', zone: word.zone }
  // Providers list context edits among the parameters that affect the prompt, so without another cause they are named.
  return differences.find((each) => isEditsDifference(each, rules)) ?? { kind: 'evicted' }
}

/**
 * Checks whether a new prompt ended a turn with thinking that the model is then no longer shown, so that the prompt
 * differs from that thinking on. Ruled out if not even what stands before the thinking was read.
 */
function isThinkingDropped({ pending, rules: { profile, policy }, read }: CacheMiss): boolean {
  const { chain, forecast, sent } = pending
  if (chain === null || !profile.thinking.stripsFinishedTurns) return false
  const { request } = forecast.basis
  const within = countBlocksBeforeStrippedThinking(chain.blockIndex, request.blockIndex)
  if (within === null) return false
  return read >= countReadableTokens(chain, request, profile, { within, at: sent.at }) - policy.tokens
}

/** Returns expiry as the cause, with the length of the pause, if the last cached prefix had or may have expired. */
export function findExpiredCause(
  { sent, chain }: PendingRequest,
  { softSeconds }: CacheRules,
): ExternalCause | null {
  const left = chain === null ? null : findLastCachedPrefix(chain)
  if (left === null) return null
  const gapMs = sent.at - left.usedAt
  const seconds = Math.min(left.seconds, softSeconds ?? left.seconds)
  return gapMs < seconds * 1000 ? null : { kind: 'expired', ttl: left.ttl, gapMs }
}

/** Redacts the values that a reason quotes: values of thinking, tool_choice and other parameters are texts of the caller. */
function redactValues<R extends CacheBreakReason>(reason: R, redact: (text: string) => string): R {
  if (!('before' in reason)) return reason
  const redactValue = (value: string | null): string | null => (value === null ? null : redact(value))
  return { ...reason, before: redactValue(reason.before), after: redactValue(reason.after) }
}

/** Formats the evidence for the cause of a cache break: token counts first, then other changes and the provider's report. */
export function formatBreakEvidence(
  { reason, also }: MissExplanation,
  { expected, read, gapMs }: { readonly expected: number; readonly read: number; readonly gapMs: number },
  word: ProviderCacheMissReport | null,
): string {
  // The provider compares two requests and does not report expiry, so besides expiry its report names another cause.
  const causes = reason.kind === 'expired' ? [reason, ...also] : [reason]
  return [
    `${formatCount(read)} of ${formatCount(expected)} expected tokens were read, ${formatDuration(gapMs)} after the request before`,
    ...(also.length === 0 ? [] : [`also: ${also.map(describeCause).join('; ')}`]),
    ...(word === null
      ? []
      : [
          describeMissReport(
            word,
            causes.some((cause) => findReasonZone(cause) === word.zone),
          ),
        ]),
  ].join('. ')
}

function describeMissReport(
  { said, missedTokens, isVague }: ProviderCacheMissReport,
  agrees: boolean,
): string {
  const size = missedTokens === null ? '' : ` (${formatCount(missedTokens)} tokens)`
  if (isVague === true) return `the provider ${agrees ? 'may agree' : 'cannot tell'}: ${said}${size}`
  return `the provider ${agrees ? 'agrees' : 'says otherwise'}: ${said}${size}`
}

// Sentences that tell users about a cache break: what happened, what it cost, what to do.

interface LossCost {
  readonly tokens: number
  readonly dollars: number | null
}

/** Returns the sentence for users about a cache break: the cause, the cost, and advice or the payback. */
export function describeBreak(
  reason: CacheBreakReason,
  cost: LossCost,
  ours: OwnRewrite | null,
  cache: CacheRules,
): string {
  const fact = describeCause(reason)
  return ours === null
    ? `Cache broke: ${fact}; ${describeCost(cost)}. ${findAdvice(reason, cache)}`
    : `Cache broke by an intended change: ${fact}; ${describeCost(cost)}${describePayback(ours)}.`
}

/** Returns the sentence for users about the cost of a rewrite that the engine announced. */
export function describeOwnRewrite(ours: OwnRewrite, cost: LossCost): string {
  return `Price of an intended change: ${ours.act}; ${describeCost(cost)}${describePayback(ours)}.`
}

function describeCost({ tokens, dollars }: LossCost): string {
  const price = dollars === null ? 'price not known' : formatDollars(dollars)
  return `${formatCount(tokens)} tokens processed again (${price})`
}

function describePayback({ breakEvenTurns }: OwnRewrite): string {
  if (breakEvenTurns === null) return ''
  return `, pays back in ${breakEvenTurns} ${breakEvenTurns === 1 ? 'call' : 'calls'}`
}

// Clauses that describe each cause of a cache break.

/** Returns a clause about a cause, without its cost. */
export function describeCause(reason: CacheBreakReason): string {
  switch (reason.kind) {
    case 'expired':
      return `${formatDuration(reason.gapMs)} went by since the request before, and an entry lives ${reason.ttl}`
    case 'look-back-outrun':
      return `the turn added more than the ${reason.lookBack} positions a marker looks back`
    case 'thinking-dropped':
      return 'a new prompt ended the turn, and this model is not shown the thinking of finished turns'
    case 'cleared-for-fork':
      return 'the provider cleared more from this fork than from the request before it'
    case 'told-by-provider':
      return `the provider says that ${PROVIDER_ZONES[reason.zone]} changed, and nothing we sent did`
    case 'evicted':
      return 'nothing in the request changed and the entry should still live: it was lost on the side of the provider'
    default:
      return describeDifference(reason)
  }
}

const PROVIDER_ZONES: Readonly<Record<CacheMissZone, string>> = {
  model: 'the model or its speed',
  tools: 'the tools',
  system: 'the system prompt',
  messages: 'the messages',
  other: 'another parameter',
}

const PARAMETER_PHRASES = {
  'model-changed': 'the model',
  'speed-changed': 'the speed',
  'effort-changed': 'the effort',
  'thinking-changed': 'the thinking settings',
  'tool-choice-changed': 'tool_choice',
} as const

function describeDifference(difference: RequestDifference): string {
  switch (difference.kind) {
    case 'model-changed':
    case 'speed-changed':
    case 'effort-changed':
    case 'thinking-changed':
    case 'tool-choice-changed':
      return `${PARAMETER_PHRASES[difference.kind]} changed${formatChange(difference)}`
    case 'parameter-changed':
      return `parameter ${difference.name} changed${formatChange(difference)}`
    case 'betas-changed':
      return `the betas changed${formatBetaChanges(difference.added, difference.removed)}`
    case 'tools-added':
      return `tools were added (${formatNames(difference.names)})`
    case 'tools-removed':
      return `tools were removed (${formatNames(difference.names)})`
    case 'tools-reordered':
      return `the order of the tools changed (${formatNames(difference.names)})`
    case 'sections-added':
      return `sections were added to the system prompt (${formatNames(difference.names)})`
    case 'sections-removed':
      return `sections were taken out of the system prompt (${formatNames(difference.names)})`
    case 'sections-reordered':
      return `the order of the system prompt's sections changed (${formatNames(difference.names)})`
    case 'tool-changed':
      return `the definition of tool ${difference.name} changed (${formatCharacters(difference.characters)})`
    case 'section-changed':
      return `section ${difference.name} of the system prompt changed (${formatCharacters(difference.characters)})`
    case 'marker-ttl-changed':
      return `the lifetime asked for in ${difference.zone} changed${formatChange(difference)}`
    case 'marker-scope-changed':
      return `the scope of the marker in ${difference.zone} changed${formatChange(difference)}`
    case 'markers-removed':
      return difference.zone === 'messages'
        ? 'no message is marked for the cache any more'
        : 'neither tools nor system prompt are marked for the cache any more'
    case 'image-added':
      return `message ${difference.index} brought the first image`
    case 'image-removed':
      return `the last image, in message ${difference.index}, is gone`
    default:
      return describeMessageChange(difference)
  }
}

const MESSAGE_VERBS: Readonly<Record<MessageDifference['kind'], string>> = {
  'message-changed': 'was rewritten',
  'message-removed': 'was taken out',
  'message-inserted': 'was put between others',
}

const EDITOR_PHRASES: Readonly<Record<MessageChangeSource, string>> = {
  clearing: ' by a clearing',
  compaction: ' by a compaction',
  hook: ' by a hook',
  host: ' by the host',
  unknown: '',
}

function describeMessageChange({ kind, index, origin, by, characters }: MessageDifference): string {
  const record = origin === null || origin === '' ? '' : `, record ${origin},`
  return `message ${index}${record} ${MESSAGE_VERBS[kind]}${EDITOR_PHRASES[by]} (${formatCharacters(characters)})`
}

function formatChange({
  before,
  after,
}: {
  readonly before: string | null
  readonly after: string | null
}): string {
  return ` (${shortenText(before)} → ${shortenText(after)})`
}

function shortenText(text: string | null): string {
  if (text === null) return 'not set'
  return text.length > 60 ? `${sliceWholeCharacters(text, 0, 57)}…` : text
}

const MAX_NAMES = 5

function formatNames(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return names.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function formatBetaChanges(added: readonly string[], removed: readonly string[]): string {
  return ` (${[...added.map((name) => `+${name}`), ...removed.map((name) => `−${name}`)].join(', ')})`
}

function formatCharacters(count: number): string {
  if (count === 0) return 'same length'
  const many = Math.abs(count)
  return `${count > 0 ? '+' : '−'}${formatCount(many)} ${many === 1 ? 'character' : 'characters'}`
}

// The part of the API request to which each cause belongs, and advice that is certain to help.

/**
 * Returns the part of the API request (model, tools, system, messages) in which the cause of a cache break lies; null
 * for causes outside the request, such as expiry.
 */
export function findReasonZone(reason: CacheBreakReason): CacheMissZone | null {
  return reason.kind === 'told-by-provider' ? reason.zone : ZONE_AND_ADVICE[reason.kind][0]
}

/** Returns advice on how to avoid this cache break; a longer cache lifetime only if it would have survived the pause. */
function findAdvice(reason: CacheBreakReason, { kind, ttls }: CacheRules): string {
  const [longest] = ttls
  if (reason.kind !== 'expired' || kind === 'prefix' || longest === undefined || reason.ttl === longest.name)
    return ZONE_AND_ADVICE[reason.kind][1]
  if (reason.gapMs >= longest.seconds * 1000) return ZONE_AND_ADVICE.expired[1]
  return `A ${longest.seconds / 3_600}-hour cache lifetime would have survived the pause, but its writes cost more: cache.ttl "auto" decides by the pauses of the session.`
}

const PARAMETER_ADVICE = 'Keep it the same for the session, or change it right after a compaction.'
const TOOL_ADVICE =
  'Connect tools before the first prompt, or let late ones come with the next prefix snapshot.'
const SECTION_ADVICE =
  'Append what changes as a message; the system prompt takes it over with the next prefix snapshot.'
const MARKER_ADVICE = 'Ask for the same lifetime and scope throughout a session.'
const MESSAGE_ADVICE = 'Leave what was sent as it is: add to the end, or clear in batches.'

const ZONE_AND_ADVICE: Readonly<
  Record<CacheBreakReason['kind'], readonly [zone: CacheMissZone | null, advice: string]>
> = {
  'model-changed': ['model', 'Each model has a cache of its own: switch right after a compaction.'],
  'speed-changed': ['model', PARAMETER_ADVICE],
  'effort-changed': ['other', PARAMETER_ADVICE],
  'thinking-changed': ['other', PARAMETER_ADVICE],
  'tool-choice-changed': ['other', 'Deny tools locally; tool_choice alone misses the cache of all messages.'],
  'betas-changed': ['other', PARAMETER_ADVICE],
  'parameter-changed': ['other', PARAMETER_ADVICE],
  'tools-added': ['tools', TOOL_ADVICE],
  'tools-removed': ['tools', 'Deny a tool locally and leave its definition where it is.'],
  'tools-reordered': ['tools', 'Send the tools in a fixed order.'],
  'tool-changed': [
    'tools',
    'Keep tool definitions unchanged between prefix snapshots; a server that rewrites its schema breaks the cache each time.',
  ],
  'sections-added': ['system', SECTION_ADVICE],
  'sections-removed': ['system', SECTION_ADVICE],
  'sections-reordered': ['system', 'Send the sections in a fixed order.'],
  'section-changed': ['system', SECTION_ADVICE],
  'marker-ttl-changed': [null, MARKER_ADVICE],
  'marker-scope-changed': [null, MARKER_ADVICE],
  'markers-removed': [null, 'Mark the request again, or switch caching off for the whole session.'],
  'image-added': ['messages', 'Where images are to come, one at the start costs less than one late.'],
  'image-removed': ['messages', 'Leave one image in place until the next compaction.'],
  'message-changed': ['messages', MESSAGE_ADVICE],
  'message-removed': ['messages', MESSAGE_ADVICE],
  'message-inserted': ['messages', MESSAGE_ADVICE],
  expired: [null, 'After such a pause all is written again: clear or compact before the next prompt.'],
  'look-back-outrun': [null, 'A lagging marker keeps such turns within reach.'],
  'thinking-dropped': [
    'messages',
    'Nothing to do: it happens once a turn, and the context is smaller after it.',
  ],
  'cleared-for-fork': [
    'messages',
    'Context edits of a fork must keep what it adds as well: where parameters ask for context edits, raise their keep.',
  ],
  'told-by-provider': [
    null,
    'Check what is between this client and the provider: a gateway, a proxy, another client.',
  ],
  evicted: [null, 'Nothing to do here; where it happens often, ask the provider.'],
}

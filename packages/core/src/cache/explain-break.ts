/**
 * Explains a read that was too small: the most likely cause (what changed in the request, else time, else the reach of
 * the markers, else the provider), the evidence, one sentence and advice. The provider's own answer, where it gives
 * one, decides between changes.
 */

import {
  type Circumstance,
  countText,
  type Difference,
  dollarsText,
  durationText,
  type MessageDifference,
  type OwnAct,
  type ProviderWord,
  type ProviderZone,
  type Reason,
} from './cache-break.ts'
import { lastPrefix, reachesLast } from './cache-model.ts'
import type { BreakRules, PendingRequest } from './cache-monitor.ts'
import type { Hand } from './sent-request.ts'

export interface CacheMiss {
  readonly pending: PendingRequest
  readonly rules: BreakRules
  readonly expectation: { readonly floor: number }
  /** All that changed, the earliest in the cache key first. */
  readonly differences: readonly Difference[]
  readonly read: number
  readonly word: ProviderWord | null
}

interface Explanation {
  readonly reason: Reason
  /** What else changed, and may have contributed. */
  readonly also: readonly Difference[]
}

export function explainMiss(miss: CacheMiss): Explanation {
  const { differences, word, rules } = miss
  const able = differences.filter((difference) => canExplain(difference, miss))
  const named = able.find((difference) => findZone(difference) === word?.zone)
  const reason = named ?? able[0] ?? findCircumstance(miss)
  const also = differences.filter((difference) => difference !== reason)
  const { redact } = rules
  if (redact === undefined) return { reason, also }
  return { reason: redactValues(reason, redact), also: also.map((each) => redactValues(each, redact)) }
}

/**
 * A changed message leaves the cache before it intact: if that was not read either, the cause is another. And markers
 * on tools and system prompt are not missed while one on the messages finds everything.
 */
function canExplain(difference: Difference, { pending, rules, expectation, read }: CacheMiss): boolean {
  if (difference.kind.startsWith('message-')) return read >= expectation.floor - rules.policy.tokens
  if (difference.kind !== 'markers-removed' || difference.zone !== 'prefix' || pending.chain === null)
    return true
  const isInMessages = lastPrefix(pending.chain)?.level === 'messages'
  return !isInMessages || !reachesLast(pending.chain, pending.forecast.asked.request, rules.profile)
}

function findCircumstance({ pending, rules, word }: CacheMiss): Circumstance {
  const { chain, forecast } = pending
  const lapse = findLapse(pending)
  if (lapse !== null) return lapse
  if (chain !== null && !reachesLast(chain, forecast.asked.request, rules.profile))
    return { kind: 'look-back-outrun', lookBack: rules.profile.cache.lookBack }
  if (word !== null && word.isVague !== true) return { kind: 'told-by-provider', zone: word.zone }
  return { kind: 'evicted' }
}

/** The pause after which what the last request left had expired; null if it was still live. */
export function findLapse({ sent, chain }: PendingRequest): Circumstance | null {
  const left = chain === null ? null : lastPrefix(chain)
  if (left === null) return null
  const gapMs = sent.at - left.usedAt
  return gapMs < left.seconds * 1000 ? null : { kind: 'expired', ttl: left.ttl, gapMs }
}

function redactValues<R extends Reason>(reason: R, redact: (text: string) => string): R {
  if (!('before' in reason && 'name' in reason)) return reason
  const redactValue = (value: string | null): string | null => (value === null ? null : redact(value))
  return { ...reason, before: redactValue(reason.before), after: redactValue(reason.after) }
}

/** The facts behind a reason: figures first, then what backs or limits it. */
export function listEvidence(
  { reason, also }: Explanation,
  { expected, read, gapMs }: { readonly expected: number; readonly read: number; readonly gapMs: number },
  word: ProviderWord | null,
): string {
  return [
    `${countText(read)} of ${countText(expected)} expected tokens were read, ${durationText(gapMs)} after the request before`,
    ...(also.length === 0 ? [] : [`also: ${also.map(describeCause).join('; ')}`]),
    ...(word === null ? [] : [describeWord(word, word.zone === findZone(reason))]),
  ].join('. ')
}

function describeWord({ said, missedTokens, isVague }: ProviderWord, agrees: boolean): string {
  const size = missedTokens === null ? '' : ` (${countText(missedTokens)} tokens)`
  if (isVague === true) return `the provider ${agrees ? 'may agree' : 'cannot tell'}: ${said}${size}`
  return `the provider ${agrees ? 'agrees' : 'says otherwise'}: ${said}${size}`
}

// One line that a user can act on: what happened, what it cost, what to do.

interface Cost {
  readonly tokens: number
  readonly dollars: number | null
}

export function breakSentence(reason: Reason, cost: Cost, ours: OwnAct | null): string {
  const fact = describeCause(reason)
  return ours === null
    ? `Cache broke: ${fact}; ${describeCost(cost)}. ${adviceFor(reason)}`
    : `Cache broke, and this break was ours (${ours.act}): ${fact}; ${describeCost(cost)}${describePayback(ours)}.`
}

export function actSentence(ours: OwnAct, cost: Cost): string {
  return `This was ours: ${ours.act}; ${describeCost(cost)}${describePayback(ours)}.`
}

function describeCost({ tokens, dollars }: Cost): string {
  const price = dollars === null ? 'price not known' : dollarsText(dollars)
  return `${countText(tokens)} tokens processed again (${price})`
}

function describePayback({ breakEvenTurns }: OwnAct): string {
  if (breakEvenTurns === null) return ''
  return `, pays back in ${breakEvenTurns} ${breakEvenTurns === 1 ? 'call' : 'calls'}`
}

// What happened, in a clause, for each reason.

export function describeCause(reason: Reason): string {
  switch (reason.kind) {
    case 'expired':
      return `${durationText(reason.gapMs)} went by since the request before, and an entry lives ${reason.ttl}`
    case 'look-back-outrun':
      return `the turn added more than the ${reason.lookBack} positions a marker looks back`
    case 'told-by-provider':
      return `the provider says that ${PROVIDER_ZONES[reason.zone]} changed, and nothing we sent did`
    case 'evicted':
      return 'nothing in the request changed and the entry should still live: it was lost on the side of the provider'
    default:
      return describeDifference(reason)
  }
}

const PROVIDER_ZONES: Readonly<Record<ProviderZone, string>> = {
  model: 'the model or its speed',
  tools: 'the tools',
  system: 'the system prompt',
  messages: 'the messages',
  other: 'another parameter',
}

const PLAIN = {
  'model-changed': 'the model',
  'speed-changed': 'the speed',
  'effort-changed': 'the effort',
  'thinking-changed': 'the thinking settings',
  'tool-choice-changed': 'tool_choice',
} as const

function describeDifference(difference: Difference): string {
  switch (difference.kind) {
    case 'model-changed':
    case 'speed-changed':
    case 'effort-changed':
    case 'thinking-changed':
    case 'tool-choice-changed':
      return `${PLAIN[difference.kind]} changed${fromTo(difference)}`
    case 'parameter-changed':
      return `parameter ${difference.name} changed${fromTo(difference)}`
    case 'betas-changed':
      return `the betas changed${signed(difference.added, difference.removed)}`
    case 'tools-added':
      return `tools were added (${listed(difference.names)})`
    case 'tools-removed':
      return `tools were removed (${listed(difference.names)})`
    case 'tools-reordered':
      return `the order of the tools changed (${listed(difference.names)})`
    case 'sections-added':
      return `sections were added to the system prompt (${listed(difference.names)})`
    case 'sections-removed':
      return `sections were taken out of the system prompt (${listed(difference.names)})`
    case 'sections-reordered':
      return `the order of the system prompt's sections changed (${listed(difference.names)})`
    case 'tool-changed':
      return `the definition of tool ${difference.name} changed (${characters(difference.characters)})`
    case 'section-changed':
      return `section ${difference.name} of the system prompt changed (${characters(difference.characters)})`
    case 'marker-ttl-changed':
      return `the lifetime asked for in ${difference.zone} changed${fromTo(difference)}`
    case 'marker-scope-changed':
      return `the scope of the marker in ${difference.zone} changed${fromTo(difference)}`
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

const HANDS: Readonly<Record<Hand, string>> = {
  clearing: ' by a clearing',
  compaction: ' by a compaction',
  hook: ' by a hook',
  host: ' by the host',
  unknown: '',
}

function describeMessageChange({ kind, index, origin, by, characters: count }: MessageDifference): string {
  const record = origin === null || origin === '' ? '' : `, record ${origin},`
  return `message ${index}${record} ${MESSAGE_VERBS[kind]}${HANDS[by]} (${characters(count)})`
}

function fromTo({
  before,
  after,
}: {
  readonly before: string | null
  readonly after: string | null
}): string {
  return ` (${short(before)} → ${short(after)})`
}

function short(text: string | null): string {
  if (text === null) return 'not set'
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

const MOST_NAMES = 5

function listed(names: readonly string[]): string {
  const more = names.length - MOST_NAMES
  return names.slice(0, MOST_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function signed(added: readonly string[], removed: readonly string[]): string {
  return ` (${[...added.map((name) => `+${name}`), ...removed.map((name) => `−${name}`)].join(', ')})`
}

function characters(count: number): string {
  if (count === 0) return 'same length'
  const many = Math.abs(count)
  return `${count > 0 ? '+' : '−'}${countText(many)} ${many === 1 ? 'character' : 'characters'}`
}

// Where each reason lies, and what can be done about it: only what is certain to help.

/** The part of the cache key in which it lies, in the provider's terms; null if in none. */
export function findZone(reason: Reason): ProviderZone | null {
  return reason.kind === 'told-by-provider' ? reason.zone : CAUSES[reason.kind][0]
}

const HOUR_MS = 3_600_000

/** One hour is suggested only if it would have outlasted the pause. */
function adviceFor(reason: Reason): string {
  const isOutlasted = reason.kind === 'expired' && reason.ttl === '5m' && reason.gapMs < HOUR_MS
  return isOutlasted ? LONGER_LIFE : CAUSES[reason.kind][1]
}

const LONGER_LIFE =
  'An hour would have outlasted the pause, at dearer writes: cache.ttl "auto" weighs that by the gaps of the session.'
const KEEP_PARAMETERS = 'Keep it the same for the session, or change it right after a compaction.'
const KEEP_TOOLS = 'Connect tools before the first prompt, or let late ones come with the next epoch.'
const KEEP_SECTIONS = 'Append what changes as a delta; the system prompt takes it over with the next epoch.'
const KEEP_MARKERS = 'Ask for the same lifetime and scope throughout a session.'
const KEEP_MESSAGES = 'Leave what was sent as it is: add to the end, or clear in batches.'

const CAUSES: Readonly<Record<Reason['kind'], readonly [zone: ProviderZone | null, advice: string]>> = {
  'model-changed': ['model', 'Each model has a cache of its own: switch right after a compaction.'],
  'speed-changed': ['model', KEEP_PARAMETERS],
  'effort-changed': ['other', KEEP_PARAMETERS],
  'thinking-changed': ['other', KEEP_PARAMETERS],
  'tool-choice-changed': ['other', 'Deny tools locally; tool_choice alone misses the cache of all messages.'],
  'betas-changed': ['other', KEEP_PARAMETERS],
  'parameter-changed': ['other', KEEP_PARAMETERS],
  'tools-added': ['tools', KEEP_TOOLS],
  'tools-removed': ['tools', 'Deny a tool locally and leave its definition where it is.'],
  'tools-reordered': ['tools', 'Send the tools in a fixed order.'],
  'tool-changed': [
    'tools',
    'Hold definitions fixed for the epoch; a server that rewrites its schema breaks the cache each time.',
  ],
  'sections-added': ['system', KEEP_SECTIONS],
  'sections-removed': ['system', KEEP_SECTIONS],
  'sections-reordered': ['system', 'Send the sections in a fixed order.'],
  'section-changed': ['system', KEEP_SECTIONS],
  'marker-ttl-changed': [null, KEEP_MARKERS],
  'marker-scope-changed': [null, KEEP_MARKERS],
  'markers-removed': [null, 'Mark the request again, or switch caching off for the whole session.'],
  'image-added': ['messages', 'Where images are to come, one at the start costs less than one late.'],
  'image-removed': ['messages', 'Leave one image in place until the next compaction.'],
  'message-changed': ['messages', KEEP_MESSAGES],
  'message-removed': ['messages', KEEP_MESSAGES],
  'message-inserted': ['messages', KEEP_MESSAGES],
  expired: [null, 'After such a pause all is written again: clear or compact before the next prompt.'],
  'look-back-outrun': [null, 'A lagging marker keeps such turns within reach.'],
  'told-by-provider': [
    null,
    'Look at what stands between us and the provider: a gateway, a proxy, another client.',
  ],
  evicted: [null, 'Nothing to do here; where it happens often, ask the provider.'],
}

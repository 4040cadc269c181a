/** One answered request against the one before it. */
import type { Usage } from '../conversation/record.ts'
import type { Rates } from '../measure/prices.ts'
import type { Counted } from '../prompt/count.ts'
import type { PricedAnnouncement } from './announcement.ts'
import type { ActPaid, BreakEvent } from './break-event.ts'
import { diffText } from './diff-text.ts'
import { differencesOf } from './differences.ts'
import { evidenceOf } from './evidence.ts'
import { type Expectation, expectationOf, type ReadingRules, withoutDeleted } from './expected.ts'
import { type Explanation, explain, lapseOf, redacted } from './explain.ts'
import type { CacheFigures } from './figures.ts'
import { isBreak, moneyLost, type Reading, ratesOf, tokensLost } from './loss.ts'
import type { BreakRules, CacheAnswer, CacheOutcome } from './outcome.ts'
import { actBehind, ownAct, quietAct } from './own-act.ts'
import type { Place } from './parting.ts'
import type { Difference } from './reason.ts'
import { actSentence, breakSentence } from './sentence.ts'
import { parentKey } from './sources.ts'
import { traitDifferences } from './trait-differences.ts'
import type { Answered, Pending } from './watch.ts'

export interface Case {
  readonly pending: Pending
  readonly answer: CacheAnswer
  readonly usage: Usage
  readonly figures: CacheFigures
  /** The messages of what is pending. */
  readonly counted: Counted
  readonly rules: BreakRules
}

export interface Judged {
  readonly outcome: CacheOutcome
  readonly differences: readonly Difference[]
  readonly parting: Place | null
  /** The provider rewrote the request by itself, so that tokens no longer say where in it they end. */
  readonly isEdited: boolean
}

export function judge(given: Case): Judged {
  const { pending, answer, figures } = given
  const { against } = pending
  const isEdited = answer.isEdited === true || figures.isCompacted
  if (against === null) return { outcome: { kind: 'first' }, differences: [], parting: null, isEdited }
  const expectation = expectationOf({ ...given, against, rules: readingRules(given.rules) })
  const differences = allDifferences(given, against, expectation)
  const { parting } = expectation
  const isCleared = parting === null && pending.announced.some(({ kind }) => kind === 'clearing')
  const found = { differences, parting, isEdited: isEdited || isCleared }
  if (isEdited) return { outcome: { kind: 'not-judged', why: 'edited-by-provider' }, ...found }
  return { outcome: read({ ...given, against, expectation, differences }), ...found }
}

function readingRules({ profile }: BreakRules): ReadingRules {
  return {
    lookBack: profile.cache.lookBack,
    stripsFinishedTurns: profile.thinking.stripsFinishedTurns,
  }
}

/** How long a fork would have things kept is its own affair: no cache is kept under that, and it writes nothing. */
function allDifferences(
  { pending, counted }: Case,
  against: Answered,
  { change }: Expectation,
): readonly Difference[] {
  const { sent } = pending
  const isFork = parentKey(sent.source, sent.forkOf) !== null
  return [
    ...differencesOf(against.sent, sent).filter(({ kind }) => !isFork || kind !== 'marker-ttl-changed'),
    ...traitDifferences(against.counted, counted),
    ...(change === null ? [] : [change]),
  ]
}

interface Compared extends Case {
  readonly against: Answered
  readonly expectation: Expectation
  readonly differences: readonly Difference[]
}

function read(given: Compared): CacheOutcome {
  const { pending, figures, expectation, rules, usage } = given
  const expected = withoutDeleted(expectation.tokens, pending.announced, figures)
  if (expected === null) return { kind: 'not-judged', why: 'deletion-not-told' }
  const reading = { expected, tokens: figures.first }
  const rates = ratesOf(usage, figures.first, rules.prices)
  if (isBreak(reading, rules.policy)) return broke(given, reading, rates)
  const act = quietAct(pending.announced)
  const kept = act === null ? expected : keptBy(act, given, expected)
  if (act !== null && isLapsed(given)) return lapsed(given, { ...reading, expected: kept }, rates)
  const paid = act === null ? null : actPaid(given, { act, kept }, rates)
  if (paid !== null) return { kind: 'ours', act: paid }
  return { kind: 'read', expected, read: figures.first.cacheRead }
}

function isLapsed({ pending: { sent }, against }: Compared): boolean {
  return lapseOf({ sent, against }) !== null
}

/** The act came when all was lost already: what had to be processed again is no price of it. */
function lapsed(given: Compared, reading: Reading, rates: Rates | null): CacheOutcome {
  if (!isBreak(reading, given.rules.policy))
    return { kind: 'read', expected: reading.expected, read: reading.tokens.cacheRead }
  const differences = given.differences.filter(({ kind }) => !kind.startsWith('message-'))
  return broke({ ...given, differences }, reading, rates)
}

/** Of what was cached, as much as the act left in the request: only that can have been processed again. */
function keptBy(act: PricedAnnouncement, { against }: Compared, expected: number): number {
  return act.kind === 'cache-edits' ? expected : Math.max(0, against.cached - (act.freedTokens ?? 0))
}

/** An act, and the tokens that were cached and that it left. */
interface QuietAct {
  readonly act: PricedAnnouncement
  readonly kept: number
}

/** What an announced act made necessary to process again; null where that was nothing. */
function actPaid(
  { pending, figures }: Compared,
  { act, kept }: QuietAct,
  rates: Rates | null,
): ActPaid | null {
  const tokensRewritten = tokensLost({ expected: kept, tokens: figures.first })
  if (tokensRewritten === 0) return null
  const moneySpent = moneyLost(tokensRewritten, figures.first, rates)
  const own = ownAct(act, moneySpent, rates)
  const sentence = actSentence(own, { tokens: tokensRewritten, dollars: moneySpent })
  const { at, source } = pending.sent
  return { ...own, at, source, tokensRewritten, moneySpent, sentence }
}

function broke(given: Compared, reading: Reading, rates: Rates | null): CacheOutcome {
  const { pending, against, expectation, differences } = given
  const event = eventOf(given, reading, rates)
  const question = { before: against.sent, after: pending.sent, differences, parting: expectation.parting }
  return { kind: 'broke', event, diff: (redact) => diffText(question, redact) }
}

function explained(given: Compared, read: number): Explanation {
  const { pending, answer, rules } = given
  const explanation = explain({
    ...given,
    sent: pending.sent,
    read,
    word: answer.word ?? null,
    lookBack: rules.profile.cache.lookBack,
    toleranceTokens: rules.policy.tokens,
  })
  return rules.redact === undefined ? explanation : redacted(explanation, rules.redact)
}

function eventOf(given: Compared, reading: Reading, rates: Rates | null): BreakEvent {
  const { at, source, parameters } = given.pending.sent
  const { expected, tokens } = reading
  const read = tokens.cacheRead
  const word = given.answer.word ?? null
  const explanation = explained(given, read)
  const lost = tokensLost(reading)
  const dollars = moneyLost(lost, tokens, rates)
  const act = actBehind(given.pending.announced, explanation.reason)
  const ours = act === null ? null : ownAct(act, dollars, rates)
  return {
    at,
    source,
    model: parameters.model,
    ...explanation,
    expected,
    read,
    tokensLost: lost,
    moneyLost: dollars,
    evidence: evidenceOf({ expected, read, word, explanation, gapMs: at - given.against.usedAt }),
    provider: word,
    ours,
    sentence: breakSentence(explanation.reason, { tokens: lost, dollars }, ours),
  }
}

/** From a choice of results to a proposal: the record's metadata, the price, and what the host must forget. */

import type { CacheTemperature, FirstChange } from '../cache/cache-temperature.ts'
import type { Entry } from '../context/entry.ts'
import type { Rates } from '../cost/prices.ts'
import { blocksOf, isThinking } from '../log/block.ts'
import type { ClearWay, MicrocompactMetadata } from '../log/record.ts'
import type { ScaledPolicy } from '../policy/limits.ts'
import type { Policy } from '../policy/policy.ts'
import type { Profile, ThinkingMode } from '../policy/provider-profile.ts'
import { noteOn, type Retrieval } from './placeholder.ts'
import {
  type Candidate,
  type Chosen,
  type ClearProposal,
  chosenOf,
  firstChange,
  freedBy,
  releasedBy,
  staleMemories,
} from './select-results.ts'
import type { Memory, Register } from './tool-result-index.ts'

/** What a way chose. */
export interface Choice {
  readonly way: ClearWay
  readonly candidates: readonly Candidate[]
  /** Tokens that must be freed for it to be worth anything. */
  readonly minimum: number
  /** Need overrides price. */
  readonly isNeeded: boolean
  /** Why this way acts, as the beginning of a sentence. */
  readonly because: string
}

export function buildProposal(question: ClearQuestion, choice: Choice): ClearOutcome<ClearProposal> {
  const chosen = chosenOf(question.register, choice.candidates)
  const freed = Math.round(question.scale * freedBy(choice.candidates))
  if (chosen.results.length + chosen.inputs.length === 0 || freed < choice.minimum) {
    return no(
      `${choice.because}, but clearing would free ${counted(freed)} tokens of the ${counted(choice.minimum)} that a rewrite must be worth`,
    )
  }
  const first = firstChange(chosen)
  const along = takenAlong(question, first.response)
  if (!along.ok) return no(`${choice.because}, but ${along.why}`)
  const saved = freed + Math.round(question.scale * along.tokens)
  const price = priceOfChange(question, first.change, saved)
  const refusal = gate(question, choice, price)
  if (refusal !== null) return no(refusal)
  const told: Told = { chosen, saved, price, ...along }
  const why = whyText(choice, told)
  return { proposal: proposalOf(question, choice, { ...told, why, firstChange: first.change }), why }
}

function proposalOf(
  question: ClearQuestion,
  choice: Choice,
  told: Told & Pick<ClearProposal, 'why' | 'firstChange'>,
): ClearProposal {
  const { saved, price, why, firstChange: change } = told
  return {
    way: choice.way,
    metadata: metadataOf(question, choice, told),
    freedTokens: saved,
    rewrittenTokens: price.rewritten,
    cost: price.weighed.cost,
    breakEvenCalls: price.weighed.breakEvenCalls,
    why,
    firstChange: change,
    released: releasedBy(question.register, told.chosen, told.memories),
  }
}

type Along =
  | {
      readonly ok: true
      readonly memories: readonly Memory[]
      readonly thinking: readonly string[]
      readonly tokens: number
    }
  | { readonly ok: false; readonly why: string }

/** What goes with it: thinking that it would make invalid, and memory files that no longer say what is so. */
function takenAlong(
  { register, profile, thinkingMode, policy, pins }: ClearQuestion,
  changed: number,
): Along {
  const bound = boundBehind({ register, profile, mode: thinkingMode, changed })
  if (!bound.ok) return bound
  const removes = policy.clear.boundThinking === 'remove'
  const memories = staleMemories(register, pins)
  const tokens = memories.reduce((sum, memory) => sum + memory.tokens, removes ? bound.tokens : 0)
  return { ok: true, memories, thinking: removes ? bound.responses : [], tokens }
}

function no(why: string): ClearOutcome<ClearProposal> {
  return { proposal: null, why }
}

interface ChangePrice {
  readonly rewritten: number
  readonly weighed: Weighed
}

/** With a cold cache everything is written anyway, and less of it. */
function priceOfChange({ cache, prices }: ClearQuestion, change: FirstChange, freed: number): ChangePrice {
  if (!cache.isWarm) return { rewritten: 0, weighed: { breakEvenCalls: 0, cost: 0, isAssumed: false } }
  const rewritten = Math.max(0, Math.round(cache.tokensBehind(change)) - freed)
  return { rewritten, weighed: weighRewrite(freed, rewritten, prices) }
}

/** Why it would not pay; null where it may go on. */
function gate(question: ClearQuestion, choice: Choice, { rewritten, weighed }: ChangePrice): string | null {
  const { policy, cache } = question
  if (!policy.clear.priceGate || choice.isNeeded || !cache.isWarm) return null
  if (pays(weighed, cache.expectedCalls)) return null
  const calls =
    weighed.breakEvenCalls === null
      ? 'never'
      : `only after ${counted(Math.ceil(weighed.breakEvenCalls))} calls`
  const assumed = weighed.isAssumed
    ? ' (prices are not known; the usual proportion of write to read is taken)'
    : ''
  return `${choice.because}, but the ${counted(rewritten)} tokens behind would be written to the cache again, which pays ${calls} and some ${counted(cache.expectedCalls)} are expected${assumed}`
}

interface Told {
  readonly chosen: Chosen
  readonly memories: readonly Memory[]
  readonly thinking: readonly string[]
  readonly saved: number
  readonly price: ChangePrice
}

function metadataOf(question: ClearQuestion, choice: Choice, told: Told): MicrocompactMetadata {
  const { chosen, memories, thinking, saved } = told
  const notes = chosen.results.flatMap(({ call }) => {
    const note = noteOn(call.id, question.retrieval)
    return note === null ? [] : [[call.id, note] as const]
  })
  const inputs = chosen.inputs.map(({ toolUseId, field }) => ({ toolUseId, field }))
  return {
    trigger: question.target === undefined ? 'auto' : 'manual',
    way: choice.way,
    preTokens: question.context.expected,
    tokensSaved: saved,
    compactedToolIds: chosen.results.map(({ call }) => call.id),
    clearedAttachmentUUIDs: memories.map(({ uuid }) => uuid),
    ...(notes.length === 0 ? {} : { notes: Object.fromEntries(notes) }),
    ...(inputs.length === 0 ? {} : { clearedInputs: inputs }),
    ...(thinking.length === 0 ? {} : { clearedThinking: thinking }),
  }
}

function whyText({ because }: Choice, { chosen, saved, price, thinking }: Told): string {
  const parts = [
    chosen.results.length > 0 ? plural(chosen.results.length, 'old result') : '',
    chosen.inputs.length > 0 ? plural(chosen.inputs.length, 'large input') : '',
    thinking.length > 0 ? `the thinking of ${plural(thinking.length, 'response')}` : '',
  ].filter((part) => part !== '')
  const calls = price.weighed.breakEvenCalls
  const paid =
    price.rewritten === 0
      ? 'nothing is written again'
      : `${counted(price.rewritten)} tokens are written again${calls === null ? '' : `, paid back in ${plural(Math.ceil(calls), 'call')}`}`
  return `${because}: clearing ${parts.join(', ')} frees ${counted(saved)} tokens; ${paid}`
}

// What a clearing is proposed from: the register, the rules in force, and the state of the cache, all as data.

export interface ClearQuestion {
  readonly register: Register
  readonly policy: Policy
  /** The same policy seen through the model's window. */
  readonly scaled: ScaledPolicy
  readonly profile: Profile
  readonly pins: readonly string[]
  readonly cache: CacheTemperature
  readonly prices: Prices
  readonly retrieval: Retrieval
  /** Tokens of the next request: for reports, and for decisions. */
  readonly context: { readonly expected: number; readonly high: number }
  /** What the session's calibration makes of an estimate. */
  readonly scale: number
  /** Milliseconds since the newest answer; null where there is none. */
  readonly idleMs: number | null
  /** How the request asks for thinking; null for the model's own way. */
  readonly thinkingMode: ThinkingMode | null
  /** A person asked for it: clear until so many tokens of clearable results are left, whatever the lines say. */
  readonly target?: number
}

/** What came of looking: a proposal, or why there is none. */
export type ClearOutcome<P> =
  | { readonly proposal: P; readonly why: string }
  | { readonly proposal: null; readonly why: string }

// Figures in the sentences of proposals.

/** 12,345 */
export function counted(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',')
}

export function plural(count: number, noun: string): string {
  return `${counted(count)} ${noun}${count === 1 ? '' : 's'}`
}

export function minutes(ms: number): string {
  return plural(Math.floor(ms / 60_000), 'minute')
}

// Does a clearing pay? E tokens freed save their reading in every later call; the L tokens behind them are
// written again once. With read price r and write price w it has paid after (w/r − 1) · L / E calls.

export interface Prices {
  /** Dollars per million tokens; null where not known. */
  readonly rates: Rates | null
  /** Which write is paid for. */
  readonly write: 'write5m' | 'write1h'
}

/** What most providers ask for a 5-minute write, in reads: taken where prices are not known, and said. */
export const USUAL_WRITE_IN_READS = 12.5

export interface Weighed {
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
  /** Dollars that writing again costs above reading; null where prices are not known. */
  readonly cost: number | null
  /** No prices are known, and the usual proportion was taken. */
  readonly isAssumed: boolean
}

/** What a warm rewrite costs. A cold one costs nothing that would not be paid anyway. */
export function weighRewrite(freed: number, rewritten: number, prices: Prices): Weighed {
  const read = prices.rates?.cacheRead ?? null
  const write = prices.rates?.[prices.write] ?? null
  const isAssumed = read === null || write === null
  const inReads = isAssumed ? USUAL_WRITE_IN_READS : write / read
  const cost = isAssumed ? null : (Math.max(0, write - read) * rewritten) / 1_000_000
  return { breakEvenCalls: breakEven(freed, rewritten, inReads), cost, isAssumed }
}

function breakEven(freed: number, rewritten: number, inReads: number): number | null {
  if (rewritten <= 0 || inReads <= 1) return 0
  if (freed <= 0 || !Number.isFinite(inReads)) return null
  return ((inReads - 1) * rewritten) / freed
}

export function pays({ breakEvenCalls }: Weighed, expectedCalls: number): boolean {
  return breakEvenCalls !== null && expectedCalls > breakEvenCalls
}

// Thinking that is bound to every byte before it: a clearing makes the thinking behind it worthless. It goes
// with the clearing, oldest first, or is left for the provider to drop.

export interface BoundQuestion {
  readonly register: Register
  readonly profile: Profile
  /** The mode of the request; null for the model's own. */
  readonly mode: ThinkingMode | null
  /** The response whose call or result is the first to change. */
  readonly changed: number
}

export type BoundOutcome =
  | { readonly ok: true; readonly responses: readonly string[]; readonly tokens: number }
  | { readonly ok: false; readonly why: string }

const UNBOUND: BoundOutcome = { ok: true, responses: [], tokens: 0 }

/** The responses behind the first change that still show thinking, oldest first, and the tokens of it. */
export function boundBehind(question: BoundQuestion): BoundOutcome {
  const { register, profile, changed } = question
  if (profile.thinking.binding !== 'prefix') return UNBOUND
  const first = register.responses.at(changed + 1)
  if (first === undefined) return UNBOUND
  const tokens = new Map<string, number>()
  const behind = new Set(register.responses.toArray(changed + 1).map(({ id }) => id))
  for (const entry of register.entries.toArray(first.place)) {
    const id = thinkerOf(entry)
    if (id === null || !behind.has(id)) continue
    tokens.set(id, (tokens.get(id) ?? 0) + register.rules.estimator.thinking(entry))
  }
  if (tokens.size > 0 && mustStay(question, tokens)) return { ok: false, why: MUST_STAY }
  return { ok: true, responses: [...tokens.keys()], tokens: [...tokens.values()].reduce((a, b) => a + b, 0) }
}

const MUST_STAY =
  'the turn under way must begin with its thinking, which a clearing before it would make invalid; wait for the end of the turn'

/** The response that shows thinking here. */
function thinkerOf({ record, cleared }: Entry): string | null {
  if (record.type !== 'assistant' || cleared?.thinking === true) return null
  return blocksOf(record.message.content).some(isThinking) ? record.message.id : null
}

/** Some modes want the model's unfinished turn to begin with thinking: then it cannot be taken from it. */
function mustStay({ register, profile, mode }: BoundQuestion, lost: ReadonlyMap<string, number>): boolean {
  const { firstInModes, whenAbsent } = profile.thinking
  if (!firstInModes.includes(mode ?? whenAbsent)) return false
  const opening = openingOf(register)
  return opening !== null && lost.has(opening)
}

/** The first response of the turn under way. */
function openingOf({ responses, promptAt }: Register): string | null {
  for (let index = responses.length - 1; index >= 0; index -= 1) {
    const response = responses.at(index)
    if (response === undefined || response.place < promptAt) return responses.at(index + 1)?.id ?? null
  }
  return responses.at(0)?.id ?? null
}

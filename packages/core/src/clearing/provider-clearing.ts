/**
 * Native: the provider clears by itself, as each request tells it to. The messages stay as they are and thinking
 * stays valid. A provider works its edits out anew each time, so what is kept is held at the same first result:
 * a bare number would let the cut slide, and rewrite the prefix, with every call.
 */

import { isObject, type Json } from '../log/json.ts'
import type { ContextEditRules } from '../policy/provider-profile.ts'
import { countOf } from '../tokens/usage.ts'
import { type ClearQuestion, counted, pays, plural, type Weighed, weighRewrite } from './clear-plan.ts'
import { isNeeded } from './clear-triggers.ts'
import { type ClearProposal, releasedBy } from './select-results.ts'
import { type Register, resultOf, type ToolCall } from './tool-result-index.ts'

export interface NativeQuestion extends ClearQuestion {
  /** Names of the tools that the request declares. */
  readonly tools: readonly string[]
  /** Thinking is on in the request. */
  readonly thinks: boolean
}

export interface NativeEdits {
  /** Thinking first, as providers want it. */
  readonly edits: readonly ProviderEdit[]
  /** The first call whose result stays; null where there is none. */
  readonly firstKept: string | null
  /** How many thinking turns stay from now on; null where all do. */
  readonly keptTurns: number | null
  /** What the clearing that this begins is expected to free and to cost; null where it begins none. */
  readonly price: NativePrice | null
}

export function nativeEdits(question: NativeQuestion): NativeEdits {
  const { register, profile, thinks } = question
  const { clearThinking, clearToolUses } = profile.contextEdits
  const keptTurns = thinks && clearThinking !== null ? turnsToKeep(question) : null
  const thinking: readonly ProviderEdit[] =
    thinks && clearThinking !== null ? [{ act: 'clear-thinking', keepTurns: keptTurns ?? 'all' }] : []
  const { place, price } = nativeCut(question)
  const edits = clearToolUses === null ? thinking : [...thinking, resultsEdit(question, place)]
  return { edits, firstKept: register.calls.at(place)?.id ?? null, keptTurns, price }
}

function resultsEdit({ register, policy, scaled, tools }: NativeQuestion, cut: number): ClearResultsEdit {
  const { native, inputs, writeTools } = policy.clear
  const { isClearable } = register.rules
  return {
    act: 'clear-results',
    triggerTokens: scaled.known ? scaled.nativeTrigger : native.triggerTokens,
    keep: Math.max(native.keepAtLeast, register.calls.length - cut),
    clearAtLeastTokens: Math.max(1, scaled.budgets.clear.nativeClearAtLeast),
    excludedTools: tools.filter((tool) => !isClearable(tool)).toSorted(),
    clearedInputs: inputs ? writeTools.filter((tool) => tools.includes(tool) && isClearable(tool)) : [],
  }
}

/** After a long pause only the newest turn's thinking; then those that follow as well, so that the cut stays. */
function turnsToKeep({ policy, idleMs, register }: NativeQuestion): number | null {
  const { thinkingAfterMinutes, thinkingTurns } = policy.clear.native
  const isIdle = idleMs !== null && idleMs > thinkingAfterMinutes * 60_000
  if (isIdle) return thinkingTurns
  const { thinkers, thoughtless } = register
  return thoughtless === null ? null : Math.max(thinkingTurns, thinkers.length - thoughtless)
}

// Where the provider's clearing is to end: held at one call until moving it is worth a rewrite.

export interface NativeCut {
  /** Index among the calls of the first whose result stays. */
  readonly place: number
  /** What moving it there is expected to cost; null where it stays, or nothing is cleared yet. */
  readonly price: NativePrice | null
}

/** Of a clearing that the provider makes, as foreseen. */
export interface NativePrice extends Weighed {
  readonly freedTokens: number
  readonly rewrittenTokens: number
}

export function nativeCut(question: ClearQuestion): NativeCut {
  const { register } = question
  const held = register.native?.cut ?? null
  const wanted = undangling(register, Math.min(fittingCut(question), protectedCut(question)))
  if (held === null && !isTriggered(question)) return { place: wanted, price: null }
  const from = held ?? 0
  const price = wanted > from ? priceOf(question, from, wanted) : null
  return price !== null && isWorth(question, price) ? { place: wanted, price } : { place: from, price: null }
}

function isTriggered({ scaled, policy, context }: ClearQuestion): boolean {
  return context.high >= (scaled.known ? scaled.nativeTrigger : policy.clear.native.triggerTokens)
}

/** Enough must be freed, and pay for what is written again; from the auto-compact line on need overrides price. */
function isWorth(question: ClearQuestion, price: NativePrice): boolean {
  const { register, scaled, scale, cache, policy } = question
  const least = scaled.budgets.clear.nativeClearAtLeast
  if (!isTriggered(question) || price.freedTokens < least) return false
  if (isNeeded(question)) return true
  // What was kept grows by as much as a clearing must free before the next one.
  if (register.native !== null && register.fresh.tokens * scale < least) return false
  if (!policy.clear.priceGate || !cache.isWarm) return true
  return pays(price, cache.expectedCalls)
}

/** With a cold cache everything is written anyway. */
function priceOf({ register, scale, cache, prices }: ClearQuestion, from: number, to: number): NativePrice {
  const freedTokens = Math.round(scale * tokensBetween(register, from, to))
  const change = { toolUseId: firstCleared(register, from), part: 'result' } as const
  const rewrittenTokens = cache.isWarm ? Math.max(0, Math.round(cache.tokensBehind(change)) - freedTokens) : 0
  return { freedTokens, rewrittenTokens, ...weighRewrite(freedTokens, rewrittenTokens, prices) }
}

function firstCleared({ calls }: Register, from: number): string {
  return calls.toArray(from).find(({ isClearable }) => isClearable)?.id ?? ''
}

/** So many of the newest calls stay as have results that fit, and never fewer than the policy says. */
function fittingCut({ register, policy, scaled, scale }: ClearQuestion): number {
  const { calls } = register
  const room = scaled.budgets.clear.nativeKeep / scale
  let [cut, used] = [calls.length, 0]
  while (cut > 0) {
    used += resultTokens(register, calls.at(cut - 1))
    if (used > room && calls.length - cut >= policy.clear.native.keepAtLeast) break
    cut -= 1
  }
  return cut
}

/** Nothing pinned is cleared, and nothing that the model has not seen: a provider can only keep all from there on. */
function protectedCut({ register, pins }: ClearQuestion): number {
  if (pins.length === 0) return register.askedFrom
  const pinned = new Set(pins)
  const isPinned = ({ id, uuid }: ToolCall): boolean =>
    pinned.has(uuid) || pinned.has(resultOf(register, id)?.uuid ?? '')
  const first = register.calls
    .toArray(0, register.askedFrom)
    .findIndex((call) => call.isClearable && isPinned(call))
  return first === -1 ? register.askedFrom : first
}

/** A kept result that says "as you have it already" needs the one it speaks of. */
function undangling(register: Register, cut: number): number {
  let [first, place] = [cut, register.calls.length - 1]
  while (place >= first) {
    const base = resultOf(register, register.calls.at(place)?.id ?? '')?.pointsAt
    first = Math.min(first, base == null ? first : (register.callPlaces.get(base) ?? first))
    place -= 1
  }
  return first
}

function resultTokens(register: Register, call: ToolCall | undefined): number {
  return call === undefined ? 0 : (resultOf(register, call.id)?.tokens ?? 0)
}

function tokensBetween(register: Register, from: number, to: number): number {
  return register.calls
    .toArray(from, to)
    .filter(({ isClearable }) => isClearable)
    .reduce((sum, call) => sum + resultTokens(register, call), 0)
}

// What a provider says that it cleared by itself, and the record of it: for the accounts and for resuming.

/** Totals of one response: the edits are worked out anew for each. */
export interface AppliedEdits {
  readonly results: number
  readonly thinkingTurns: number
  readonly tokens: number
}

const NOTHING: AppliedEdits = { results: 0, thinkingTurns: 0, tokens: 0 }

/** `management`: the field `context_management` of a response, whatever it holds. */
export function readApplied(management: unknown, names: ContextEditRules): AppliedEdits {
  const listed: unknown = isObject(management) ? management.applied_edits : null
  const edits = Array.isArray(listed) ? listed.filter(isObject) : []
  const known = edits.filter(({ type }) => type === names.clearToolUses || type === names.clearThinking)
  return known.reduce<AppliedEdits>(
    (sum, edit) => ({
      results: sum.results + countOf(edit.cleared_tool_uses),
      thinkingTurns: sum.thinkingTurns + countOf(edit.cleared_thinking_turns),
      tokens: sum.tokens + countOf(edit.cleared_input_tokens),
    }),
    NOTHING,
  )
}

/** What the answered request cleared that no record tells of yet; null where that is nothing. It has been done. */
export function nativeClearing(
  question: Pick<ClearQuestion, 'register' | 'context'>,
  sent: NativeEdits,
  applied: AppliedEdits,
): ClearProposal | null {
  const { register, context } = question
  const ids = applied.results > 0 ? newlyCleared(register, sent) : []
  const thinking = applied.thinkingTurns > 0 ? newlyThoughtless(register, sent, applied) : []
  if (ids.length + thinking.length === 0) return null
  const freed = Math.max(0, applied.tokens - (register.native?.tokens ?? 0))
  const results = ids.flatMap((id) => resultOf(register, id) ?? [])
  return {
    way: 'native',
    metadata: {
      trigger: 'auto',
      way: 'native',
      preTokens: context.expected + freed,
      tokensSaved: freed,
      compactedToolIds: ids,
      clearedAttachmentUUIDs: [],
      ...(thinking.length === 0 ? {} : { clearedThinking: thinking }),
    },
    freedTokens: freed,
    rewrittenTokens: sent.price?.rewrittenTokens ?? 0,
    cost: sent.price?.cost ?? null,
    breakEvenCalls: sent.price?.breakEvenCalls ?? null,
    why: `the provider cleared ${plural(ids.length, 'old result')} by itself, ${counted(freed)} tokens more than before${foreseen(sent)}`,
    firstChange: { toolUseId: ids[0] ?? '', part: 'result' },
    released: releasedBy(register, { results, inputs: [] }, []),
  }
}

function foreseen({ price }: NativeEdits): string {
  if (price === null) return ''
  return `, with ${counted(price.freedTokens)} foreseen and ${counted(price.rewrittenTokens)} to be written again`
}

function newlyCleared(
  { calls, callPlaces, native, rules }: Register,
  { firstKept }: NativeEdits,
): readonly string[] {
  const end = firstKept === null ? calls.length : (callPlaces.get(firstKept) ?? calls.length)
  return calls
    .toArray(native?.cut ?? 0, end)
    .filter(({ tool }) => rules.isClearable(tool))
    .map(({ id }) => id)
}

function newlyThoughtless(
  { thinkers, thoughtless }: Register,
  { keptTurns }: NativeEdits,
  applied: AppliedEdits,
): readonly string[] {
  if (keptTurns === null) return []
  return thinkers.toArray(thoughtless ?? 0, applied.thinkingTurns)
}

// Edits that a provider makes by itself: what is asked of it in our words, and the same in its own.

/** What the provider is asked to do, in our words; the profile has its names for it. */
export type ProviderEdit = ClearThinkingEdit | ClearResultsEdit

export interface ClearThinkingEdit {
  readonly act: 'clear-thinking'
  readonly keepTurns: number | 'all'
}

export interface ClearResultsEdit {
  readonly act: 'clear-results'
  /** Input tokens at which it begins. */
  readonly triggerTokens: number
  /** Newest calls whose results stay. */
  readonly keep: number
  readonly clearAtLeastTokens: number
  readonly excludedTools: readonly string[]
  readonly clearedInputs: readonly string[]
}

/** The edits as the field of a request, by the names of the profile. */
export function spellEdits(edits: readonly ProviderEdit[], names: ContextEditRules): readonly SpelledEdit[] {
  return edits.flatMap((edit) => {
    if (edit.act === 'clear-thinking')
      return names.clearThinking === null ? [] : [spelledThinking(edit, names.clearThinking)]
    return names.clearToolUses === null ? [] : [spelledResults(edit, names.clearToolUses)]
  })
}

export type SpelledEdit = { readonly type: string; readonly [parameter: string]: Json }

function spelledThinking({ keepTurns }: ClearThinkingEdit, type: string): SpelledEdit {
  return { type, keep: keepTurns === 'all' ? 'all' : { type: 'thinking_turns', value: keepTurns } }
}

function spelledResults(edit: ClearResultsEdit, type: string): SpelledEdit {
  const tokens = (value: number): Json => ({ type: 'input_tokens', value })
  return {
    type,
    trigger: tokens(edit.triggerTokens),
    keep: { type: 'tool_uses', value: edit.keep },
    clear_at_least: tokens(edit.clearAtLeastTokens),
    ...(edit.excludedTools.length === 0 ? {} : { exclude_tools: edit.excludedTools }),
    ...(edit.clearedInputs.length === 0 ? {} : { clear_tool_inputs: edit.clearedInputs }),
  }
}

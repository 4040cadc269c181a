/**
 * Mode `native`: the provider clears, as each request asks it to. The messages stay as they are and thinking stays valid.
 * The provider applies the edits anew to each request, so the first kept result is held fixed: a constant number of kept
 * results would move the cut, and rewrite the prefix, with every call.
 */

import { formatCount } from '../cache/cache-break.ts'
import { isObject, type Json, type JsonObject } from '../log/json.ts'
import type { ContextEditRules } from '../policy/provider-profile.ts'
import { toCount } from '../tokens/usage.ts'
import {
  type ClearInput,
  canPayOff,
  mustClear,
  pluralize,
  priceRewrite,
  type RewritePrice,
} from './clear-plan.ts'
import { type ClearProposal, findReleased } from './select-results.ts'
import { findResult, type ToolCall, type ToolResultIndex } from './tool-result-index.ts'

export interface ProviderEditsInput extends ClearInput {
  /** Names of the tools that the request declares. */
  readonly tools: readonly string[]
  /** Thinking is on in the request. */
  readonly thinks: boolean
}

export interface ProviderEditPlan {
  /** Thinking first, as providers require. */
  readonly edits: readonly ProviderEdit[]
  /** Id of the first call whose result stays; null if there is none. */
  readonly firstKeptCall: string | null
  /** Number of thinking turns that stay; null if all do. */
  readonly keptThinkingTurns: number | null
  /** What a clearing that begins with this request should free and cost; null if none begins. */
  readonly price: ProviderEditPrice | null
}

export function planProviderEdits(question: ProviderEditsInput): ProviderEditPlan {
  const { register, profile, thinks } = question
  const { clearThinking, clearToolUses } = profile.contextEdits
  const edits: ProviderEdit[] = []
  let keptThinkingTurns: number | null = null
  if (thinks && clearThinking !== null) {
    keptThinkingTurns = countKeptTurns(question)
    edits.push({ act: 'clear-thinking', keepTurns: keptThinkingTurns ?? 'all' })
  }
  const { place, price } = findCut(question)
  if (clearToolUses !== null) edits.push(createResultsEdit(question, place))
  return { edits, firstKeptCall: register.calls.at(place)?.id ?? null, keptThinkingTurns, price }
}

function createResultsEdit(question: ProviderEditsInput, cut: number): ClearResultsEdit {
  const { register, policy, scaled, tools } = question
  const { native, inputs, writeTools } = policy.clear
  const { isClearable } = register.rules
  return {
    act: 'clear-results',
    triggerTokens: readTrigger(question),
    keep: Math.max(native.keepAtLeast, register.calls.length - cut),
    clearAtLeastTokens: Math.max(1, scaled.budgets.clear.nativeClearAtLeast),
    excludedTools: tools.filter((tool) => !isClearable(tool)).toSorted(),
    clearedInputs: inputs ? writeTools.filter((tool) => tools.includes(tool) && isClearable(tool)) : [],
  }
}

function readTrigger({ scaled, policy }: ClearInput): number {
  return scaled.known ? scaled.nativeTrigger : policy.clear.native.triggerTokens
}

/** After a long pause the thinking of the newest turns alone; later turns are added to them, so that the cut stays. */
function countKeptTurns({ policy, idleMs, register }: ProviderEditsInput): number | null {
  const { thinkingAfterMinutes, thinkingTurns } = policy.clear.native
  if (idleMs !== null && idleMs > thinkingAfterMinutes * 60_000) return thinkingTurns
  const { thinkingResponses, clearedThinkingCount } = register
  return clearedThinkingCount === null
    ? null
    : Math.max(thinkingTurns, thinkingResponses.length - clearedThinkingCount)
}

// Where the provider's clearing ends: at the same call until moving on is worth a rewrite.

interface ProviderCut {
  /** Index in `calls` of the first whose result stays. */
  readonly place: number
  /** Expected price of moving the cut there; null if it stays, or nothing is cleared yet. */
  readonly price: ProviderEditPrice | null
}

/** Expected price of a clearing by the provider. */
export interface ProviderEditPrice extends RewritePrice {
  readonly freedTokens: number
  readonly rewrittenTokens: number
}

function findCut(question: ClearInput): ProviderCut {
  const { register, context } = question
  const isTriggered = context.high >= readTrigger(question)
  const wanted = keepReferred(register, Math.min(findBudgetCut(question), findProtectedCut(question)))
  if (register.native === null && !isTriggered) return { place: wanted, price: null }
  const from = register.native?.cut ?? 0
  const price = wanted > from && isTriggered ? priceCut(question, from, wanted) : null
  return price !== null && isWorth(question, price) ? { place: wanted, price } : { place: from, price: null }
}

/** Enough must be freed, and pay for what is written again. Above the auto-compact line the price does not matter. */
function isWorth(question: ClearInput, price: ProviderEditPrice): boolean {
  const { register, scaled, scale, cache, policy } = question
  const least = scaled.budgets.clear.nativeClearAtLeast
  if (price.freedTokens < least) return false
  if (mustClear(question)) return true
  // Between two clearings as much is added as a clearing must free.
  if (register.native !== null && register.clearableSinceLast.tokens * scale < least) return false
  if (!policy.clear.priceGate || !cache.isWarm) return true
  return canPayOff(price, cache.expectedCalls)
}

/** With a cold cache everything is written anyway. */
function priceCut(
  { register, scale, cache, prices }: ClearInput,
  from: number,
  to: number,
): ProviderEditPrice {
  const cleared = register.calls.toArray(from, to).filter(({ isClearable }) => isClearable)
  const freedTokens = Math.round(scale * cleared.reduce((sum, call) => sum + countTokens(register, call), 0))
  const change = { toolUseId: cleared[0]?.id ?? '', part: 'result' } as const
  const rewrittenTokens = cache.isWarm ? Math.max(0, Math.round(cache.tokensBehind(change)) - freedTokens) : 0
  return { freedTokens, rewrittenTokens, ...priceRewrite(freedTokens, rewrittenTokens, prices) }
}

/** As many of the newest calls stay as have results within the budget, and never fewer than the policy's minimum. */
function findBudgetCut({ register, policy, scaled, scale }: ClearInput): number {
  const { calls } = register
  const room = scaled.budgets.clear.nativeKeep / scale
  let [cut, used] = [calls.length, 0]
  while (cut > 0) {
    used += countTokens(register, calls.at(cut - 1))
    if (used > room && calls.length - cut >= policy.clear.native.keepAtLeast) break
    cut -= 1
  }
  return cut
}

/** Nothing pinned is cleared, and nothing the model has not seen: the provider can only keep everything from there on. */
function findProtectedCut({ register, pins }: ClearInput): number {
  if (pins.length === 0) return register.firstOpenCall
  const pinned = new Set(pins)
  const isPinned = ({ id, uuid }: ToolCall): boolean =>
    pinned.has(uuid) || pinned.has(findResult(register, id)?.uuid ?? '')
  const first = register.calls
    .toArray(0, register.firstOpenCall)
    .findIndex((call) => call.isClearable && isPinned(call))
  return first === -1 ? register.firstOpenCall : first
}

/** Moves the cut back so that a kept result that says "unchanged" keeps the result it refers to. */
function keepReferred(register: ToolResultIndex, cut: number): number {
  let [first, place] = [cut, register.calls.length - 1]
  while (place >= first) {
    const base = findResult(register, register.calls.at(place)?.id ?? '')?.refersTo
    first = Math.min(first, base == null ? first : (register.callPlaces.get(base) ?? first))
    place -= 1
  }
  return first
}

function countTokens(register: ToolResultIndex, call: ToolCall | undefined): number {
  return call === undefined ? 0 : (findResult(register, call.id)?.tokens ?? 0)
}

// What a provider reports as cleared, and the record of it: for accounting and for resuming.

/** Totals of one response: the edits are applied anew to each request. */
export interface AppliedEdits {
  readonly results: number
  readonly thinkingTurns: number
  readonly tokens: number
}

const NO_APPLIED_EDITS: AppliedEdits = { results: 0, thinkingTurns: 0, tokens: 0 }

/** `management`: the field `context_management` of a response; it may hold anything. */
export function readAppliedEdits(management: unknown, names: ContextEditRules): AppliedEdits {
  const listed: unknown = isObject(management) ? management.applied_edits : null
  const edits = Array.isArray(listed) ? listed.filter(isObject) : []
  const known = edits.filter(({ type }) => type === names.clearToolUses || type === names.clearThinking)
  return known.reduce<AppliedEdits>(
    (sum, edit) => ({
      results: sum.results + toCount(edit.cleared_tool_uses),
      thinkingTurns: sum.thinkingTurns + toCount(edit.cleared_thinking_turns),
      tokens: sum.tokens + toCount(edit.cleared_input_tokens),
    }),
    NO_APPLIED_EDITS,
  )
}

/** The clearing that the provider made with the last request and that no record shows yet; null if there is none. */
export function findAppliedClearing(
  question: Pick<ClearInput, 'register' | 'context'>,
  sent: ProviderEditPlan,
  applied: AppliedEdits,
): ClearProposal | null {
  const { register, context } = question
  const { calls, callPlaces, thinkingResponses, clearedThinkingCount } = register
  const end = callPlaces.get(sent.firstKeptCall ?? '') ?? calls.length
  const newlyCleared = applied.results > 0 ? calls.toArray(register.native?.cut ?? 0, end) : []
  const ids = newlyCleared.filter(({ tool }) => register.rules.isClearable(tool)).map(({ id }) => id)
  const hasLost = applied.thinkingTurns > 0 && sent.keptThinkingTurns !== null
  const thinking = hasLost ? thinkingResponses.toArray(clearedThinkingCount ?? 0, applied.thinkingTurns) : []
  if (ids.length + thinking.length === 0) return null
  const { price } = sent
  const foreseen =
    price === null
      ? ''
      : `, with ${formatCount(price.freedTokens)} expected and ${formatCount(price.rewrittenTokens)} to be written again`
  const freed = Math.max(0, applied.tokens - (register.native?.tokens ?? 0))
  const results = ids.flatMap((id) => findResult(register, id) ?? [])
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
    rewrittenTokens: price?.rewrittenTokens ?? 0,
    cost: price?.cost ?? null,
    breakEvenCalls: price?.breakEvenCalls ?? null,
    why: `the provider cleared ${pluralize(ids.length, 'old result')} by itself, ${formatCount(freed)} tokens more than before${foreseen}`,
    firstChange: { toolUseId: ids[0] ?? '', part: 'result' },
    released: findReleased(register, { results, inputs: [] }, []),
  }
}

// Edits asked of a provider, and the same in the provider's own format.

/** What the provider is asked to do; the profile has its names for it. */
export type ProviderEdit = ClearThinkingEdit | ClearResultsEdit

interface ClearThinkingEdit {
  readonly act: 'clear-thinking'
  readonly keepTurns: number | 'all'
}

interface ClearResultsEdit {
  readonly act: 'clear-results'
  /** Input tokens from which on it clears. */
  readonly triggerTokens: number
  /** Number of newest calls whose results stay. */
  readonly keep: number
  readonly clearAtLeastTokens: number
  readonly excludedTools: readonly string[]
  readonly clearedInputs: readonly string[]
}

/** The edits in the provider's format, with the names of the profile; edits the provider does not have are left out. */
export function toContextEdits(
  edits: readonly ProviderEdit[],
  names: ContextEditRules,
): readonly ContextEdit[] {
  return edits.flatMap((edit) => {
    const type = edit.act === 'clear-thinking' ? names.clearThinking : names.clearToolUses
    if (type === null) return []
    return [{ type, ...(edit.act === 'clear-thinking' ? toThinkingFields(edit) : toResultFields(edit)) }]
  })
}

export type ContextEdit = { readonly type: string; readonly [parameter: string]: Json }

function toThinkingFields({ keepTurns }: ClearThinkingEdit): JsonObject {
  return { keep: keepTurns === 'all' ? 'all' : { type: 'thinking_turns', value: keepTurns } }
}

function toResultFields(edit: ClearResultsEdit): JsonObject {
  const tokens = (value: number): Json => ({ type: 'input_tokens', value })
  return {
    trigger: tokens(edit.triggerTokens),
    keep: { type: 'tool_uses', value: edit.keep },
    clear_at_least: tokens(edit.clearAtLeastTokens),
    ...(edit.excludedTools.length === 0 ? {} : { exclude_tools: edit.excludedTools }),
    ...(edit.clearedInputs.length === 0 ? {} : { clear_tool_inputs: edit.clearedInputs }),
  }
}

/**
 * Clearing mode `native`: above a size of the context, each API request asks the provider to clear old tool results (its
 * "context edits"); messages and thinking stay valid. The provider keeps no state and applies the edits to every request
 * again. Until its first clearing, the number of kept results is held fixed. From then on, the first kept result is held
 * fixed: with a fixed number, each tool call would clear one more result and rewrite the cached prefix.
 */

import type { FirstToolChange } from '../cache/cache-model.ts'
import type { ReportedContextEdits, RequestedClearing } from '../cache/cache-monitor.ts'
import { formatCount } from '../cost/prices.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type {
  AppliedContextEdits,
  ClearResultsEdit,
  ProviderContextEdit,
} from '../policy/provider-spelling.ts'
import { type ClearProposal, findClearedContent } from './clear-candidates.ts'
import {
  type ClearProposalInput,
  canPayOff,
  estimateBenefitingCalls,
  formatCountedNoun,
  mustClearAtAnyCost,
  priceRewrite,
  type RewritePrice,
} from './clear-proposal.ts'
import { findToolResult, type IndexedToolCall, type ToolResultIndex } from './tool-result-index.ts'

/** What the context edits of an API request depend on. */
export interface ProviderEditsInput extends ClearProposalInput {
  /** Names of the tools that the API request declares. */
  readonly tools: readonly string[]
  /** True if thinking is enabled in the API request. */
  readonly thinks: boolean
  /** The edits of the last API request; null or absent before the first. */
  readonly lastEdits?: ProviderEditPlan | null
  /** False if no new clearing may start, as after an undo; default true. */
  readonly canStart?: boolean
}

/** What an API request asks the provider to clear, and what that is expected to save and cost. */
export interface ProviderEditPlan {
  /** Context edits in the order that providers require: thinking first. */
  readonly edits: readonly ProviderContextEdit[]
  /** Id of the first tool call whose result is not cleared; null if there is none. */
  readonly firstKeptCall: string | null
  /** Number of newest turns whose thinking is not cleared; null if no thinking is cleared. */
  readonly keptThinkingTurns: number | null
  /** Expected savings and cost, if this API request clears more than the one before; otherwise null. */
  readonly price: ProviderEditPrice | null
}

/** Plans the context edits of the next API request. Asks for no more than the last one unless more clearing is worth it. */
export function planProviderEdits(question: ProviderEditsInput): ProviderEditPlan {
  const { register, profile, thinks } = question
  const { clearThinking, clearToolUses } = profile.contextEdits
  const edits: ProviderContextEdit[] = []
  let keptThinkingTurns: number | null = null
  if (thinks && clearThinking !== null) {
    keptThinkingTurns = countKeptTurns(question)
    edits.push({ act: 'clear-thinking', keepTurns: keptThinkingTurns ?? 'all' })
  }
  const { place, price } = findCut(question)
  // While nothing is to be cleared, the edit is left out, so that the request stays the same.
  if (clearToolUses !== null && place > 0) edits.push(createResultsEdit(question, place))
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

/** Returns the tokens of context from which the provider clears. */
function readTrigger({ scaled, policy }: ClearProposalInput): number {
  return scaled.known ? scaled.nativeTrigger : policy.clear.native.triggerTokens
}

/**
 * Returns how many of the newest turns keep their thinking; null if all do. After a long pause only a few turns keep
 * it. Afterwards the number grows with each new turn, so that no further thinking is cleared.
 */
function countKeptTurns({ policy, idleMs, register }: ProviderEditsInput): number | null {
  const { thinkingAfterMinutes, thinkingTurns } = policy.clear.native
  if (idleMs !== null && idleMs > thinkingAfterMinutes * 60_000) return thinkingTurns
  const { thinkingResponses, clearedThinkingCount } = register
  if (clearedThinkingCount === null) return null
  const kept = new Set(thinkingResponses.toArray(clearedThinkingCount).map(({ turn }) => turn))
  return Math.max(thinkingTurns, kept.size)
}

// The cut is the first tool call whose result is not cleared. It moves only if freeing more results is worth
// rewriting the cached prefix.

interface ProviderCut {
  /** Index in `calls` of the first tool call whose result is not cleared. */
  readonly place: number
  /** Expected cost of clearing further results; null if no further results are cleared. */
  readonly price: ProviderEditPrice | null
}

/** Expected cost of a clearing by the provider: the tokens freed, and the tokens that must be written to the cache again. */
interface ProviderEditPrice extends RewritePrice {
  readonly freedTokens: number
  readonly rewrittenTokens: number
}

/** Returns the cut to ask for: that of the last clearing, or a later one if the context is large enough and it is worth it. */
function findCut(question: ProviderEditsInput): ProviderCut {
  const { register, context, canStart = true } = question
  const from = register.native?.cut ?? 0
  if (!canStart || context.high < readTrigger(question)) return { place: from, price: null }
  const wanted = findHeldCut(question) ?? findBudgetCut(question)
  const place = keepReferred(register, Math.min(wanted, findProtectedCut(question)))
  const price = place > from ? priceCut(question, from, place) : null
  return price !== null && isWorth(question, price) ? { place, price } : { place: from, price: null }
}

/** Returns the cut that keeps as many results as the last API request asked for; null once the provider has cleared. */
function findHeldCut({ register, lastEdits }: ProviderEditsInput): number | null {
  const asked = lastEdits?.edits.find((edit) => edit.act === 'clear-results')
  return register.native !== null || asked === undefined ? null : register.calls.length - asked.keep
}

/**
 * Checks whether clearing further results frees enough tokens and pays for itself. Above the auto-compact threshold
 * only the freed tokens matter.
 */
function isWorth(question: ClearProposalInput, price: ProviderEditPrice): boolean {
  const { register, scaled, scale, cache, policy } = question
  const least = scaled.budgets.clear.nativeClearAtLeast
  if (price.freedTokens < least) return false
  if (mustClearAtAnyCost(question)) return true
  // After a clearing, wait until as many new tokens can be cleared as policy requires of one clearing.
  if (register.native !== null && register.clearableSinceLast.tokens * scale < least) return false
  if (!policy.clear.priceGate || !cache.isWarm) return true
  return canPayOff(price, estimateBenefitingCalls(question, price.freedTokens))
}

/**
 * Computes the cost of clearing the results of the tool calls `from` to `to`. If the cache has expired, no tokens count
 * as rewritten, because the whole request must be written in any case.
 */
function priceCut(
  { register, scale, cache, prices, policy: { clear } }: ClearProposalInput,
  from: number,
  to: number,
): ProviderEditPrice {
  const cleared = register.calls.toArray(from, to).filter(({ isClearable }) => isClearable)
  // The calls of a response come before all of its results.
  const input = cleared.find(({ response, tool }) => {
    return response === cleared[0]?.response && clear.inputs && clear.writeTools.includes(tool)
  })
  const freedTokens = Math.round(scale * cleared.reduce((sum, call) => sum + countTokens(register, call), 0))
  const change: FirstToolChange =
    input === undefined
      ? { toolUseId: cleared[0]?.id ?? '', part: 'result' }
      : { toolUseId: input.id, part: 'call' }
  const rewrittenTokens = cache.isWarm
    ? Math.max(0, Math.round(cache.countTokensToRewrite(change)) - freedTokens)
    : 0
  return { freedTokens, rewrittenTokens, ...priceRewrite(freedTokens, rewrittenTokens, prices) }
}

/**
 * Returns the index of the first tool call to keep, so that the newest results fit the token budget. At least the
 * policy's minimum number of calls is kept.
 */
function findBudgetCut({ register, policy, scaled, scale }: ClearProposalInput): number {
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

/**
 * Returns the index of the first tool call that must be kept: its result is pinned or the model has not seen it yet.
 * The provider can clear only results before that call.
 */
function findProtectedCut({ register, pins }: ClearProposalInput): number {
  if (pins.length === 0) return register.firstOpenCall
  const pinned = new Set(pins)
  const isPinned = ({ id, uuid }: IndexedToolCall): boolean =>
    pinned.has(uuid) || pinned.has(findToolResult(register, id)?.uuid ?? '')
  const first = register.calls
    .toArray(0, register.firstOpenCall)
    .findIndex((call) => call.isClearable && isPinned(call))
  return first === -1 ? register.firstOpenCall : first
}

/**
 * Moves the first kept tool call back, until every kept result that only says "unchanged" also has the older result
 * with the text.
 */
function keepReferred(register: ToolResultIndex, cut: number): number {
  let [first, place] = [cut, register.calls.length - 1]
  while (place >= first) {
    const base = findToolResult(register, register.calls.at(place)?.id ?? '')?.refersTo
    first = Math.min(first, base == null ? first : (register.callPlaces.get(base) ?? first))
    place -= 1
  }
  return first
}

function countTokens(register: ToolResultIndex, call: IndexedToolCall | undefined): number {
  return call === undefined ? 0 : (findToolResult(register, call.id)?.tokens ?? 0)
}

// The following functions read from a response what the provider cleared, and create the proposal that records it in
// the log.

/**
 * Returns the report of a response about context edits, as break detection compares it; null if it reports none.
 * `register`: the tool results as they were when the API request was planned.
 */
export function readReportedEdits(
  response: Parameters<ProviderProfile['spelling']['readEdits']>[0],
  profile: ProviderProfile,
  register?: ToolResultIndex,
): ReportedContextEdits | null {
  const applied = profile.spelling.readEdits(response, profile)
  return applied === null ? null : { ...applied, ...findNextCleared(register) }
}

function findNextCleared(register: ToolResultIndex | undefined): Pick<ReportedContextEdits, 'firstCleared'> {
  const next = register?.calls.toArray(register.native?.cut ?? 0).find(({ isClearable }) => isClearable)
  return next === undefined ? {} : { firstCleared: next.id }
}

/**
 * Returns what an API request asked the provider to clear in addition to the request before. Break detection assumes that
 * it was done if the response broke off, because the provider reports its edits only at the end.
 */
export function findRequestedClearing(
  sent: ProviderEditPlan | null,
  register: ToolResultIndex | undefined,
): RequestedClearing {
  if (sent?.price == null || register === undefined) return { results: 0, tokens: 0 }
  const end = register.callPlaces.get(sent.firstKeptCall ?? '') ?? register.calls.length
  const cleared = register.calls.toArray(register.native?.cut ?? 0, end)
  return {
    results: cleared.filter(({ isClearable }) => isClearable).length,
    tokens: sent.price.freedTokens,
    ...findNextCleared(register),
  }
}

/**
 * Returns a proposal that records what the provider newly cleared for the last API request (it is done already, nothing
 * is left to decide); null if there is nothing new. `applied`: the edits that the response reports.
 */
export function findAppliedClearing(
  question: Pick<ClearProposalInput, 'register' | 'context'>,
  sent: ProviderEditPlan,
  applied: Omit<AppliedContextEdits, 'text'> | null,
): ClearProposal | null {
  if (applied === null) return null
  const { register, context } = question
  const { calls, callPlaces } = register
  const end = callPlaces.get(sent.firstKeptCall ?? '') ?? calls.length
  const newlyCleared = applied.results > 0 ? calls.toArray(register.native?.cut ?? 0, end) : []
  const ids = newlyCleared.filter(({ tool }) => register.rules.isClearable(tool)).map(({ id }) => id)
  const hasLost = applied.thinkingTurns > 0 && sent.keptThinkingTurns !== null
  const thinking = hasLost ? findClearedThinking(register, applied.thinkingTurns) : []
  if (ids.length + thinking.length === 0) return null
  const { price } = sent
  const foreseen =
    price === null
      ? ''
      : `, with ${formatCount(price.freedTokens)} expected and ${formatCount(price.rewrittenTokens)} to be written again`
  const freed = Math.max(0, applied.tokens - (register.native?.tokens ?? 0))
  const results = ids.flatMap((id) => findToolResult(register, id) ?? [])
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
    why: `the provider cleared ${formatCountedNoun(ids.length, 'old result')} by itself, ${formatCount(freed)} tokens more than before${foreseen}`,
    firstChange: { toolUseId: ids[0] ?? '', part: 'result' },
    released: findClearedContent(register, { results, inputs: [] }, []),
  }
}

/** Returns ids of the responses in the first `turns` turns with thinking, except those that had lost it before. */
function findClearedThinking(register: ToolResultIndex, turns: number): readonly string[] {
  const { thinkingResponses, clearedThinkingCount } = register
  const responses = thinkingResponses.toArray()
  const cleared = new Set([...new Set(responses.map(({ turn }) => turn))].slice(0, turns))
  return responses.slice(clearedThinkingCount ?? 0).flatMap(({ id, turn }) => (cleared.has(turn) ? [id] : []))
}

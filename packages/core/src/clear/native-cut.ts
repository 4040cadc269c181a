/** Where the provider's clearing is to end: held at one call until moving it is worth a rewrite. */
import { isNeeded } from './budget.ts'
import { pays, type Weighed, weighRewrite } from './price-gate.ts'
import type { ClearQuestion } from './question.ts'
import { type Register, resultOf } from './register-state.ts'
import type { ToolCall } from './registered.ts'

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

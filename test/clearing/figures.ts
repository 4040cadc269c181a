/** Figures of a session: how often it was rewritten, its cache hit rate, the errors of forecasts. */
import { cataloguePrices } from '../support/simulated-host.ts'
import {
  type ClearEvent,
  contextTokens,
  type ObservedCall,
  type SimulatedSession,
  tokensRead,
} from '../support/simulated-session.ts'

export interface Figures {
  readonly calls: number
  readonly compactions: number
  /** Per hundred calls. */
  readonly rewrites: number
  /** Share of all prompt tokens that was read from the cache. */
  readonly hitRate: number
  readonly dollars: number
  /** The largest forecast errors, as shares of the context before. */
  readonly freedError: number
  readonly rewrittenError: number
}

export function figuresOf({ calls }: SimulatedSession): Figures {
  const sum = (pick: (call: ObservedCall) => number): number =>
    calls.reduce((all, call) => all + pick(call), 0)
  const checked = pricedClearings(calls)
  return {
    calls: calls.length,
    compactions: calls.filter(({ compacted }) => compacted).length,
    rewrites: (100 * rewrittenCalls(calls).length) / calls.length,
    hitRate: sum(tokensRead) / sum(contextTokens),
    dollars: sum(({ record }) => record.cost?.total ?? Number.NaN),
    freedError: Math.max(
      0,
      ...checked.map(({ foreseen, billed, context }) => Math.abs(foreseen.freed - billed.freed) / context),
    ),
    rewrittenError: Math.max(
      0,
      ...checked.map(
        ({ foreseen, billed, context }) => Math.abs(foreseen.rewritten - billed.rewritten) / context,
      ),
    ),
  }
}

/** Indexes of the calls whose earlier messages were changed, by the engine or by the provider. */
export function rewrittenCalls(calls: readonly ObservedCall[]): readonly number[] {
  return calls.flatMap(({ isExtended, noted }, at) => (isExtended && noted.length === 0 ? [] : [at]))
}

interface Amounts {
  readonly freed: number
  readonly rewritten: number
  readonly dollars: number
}

export interface PricedClearing {
  readonly at: number
  readonly cleared: ClearEvent
  /** Tokens of the request before it. */
  readonly context: number
  readonly foreseen: Amounts
  readonly billed: Amounts
}

/** Each clearing with its forecast price and with the simulator's bill for the call after it. */
export function pricedClearings(calls: readonly ObservedCall[]): readonly PricedClearing[] {
  return calls.flatMap((call, at) => {
    const before = calls[at - 1]
    if (before === undefined) return []
    return [...call.cleared, ...call.noted].map((cleared) => {
      const { clearing } = cleared
      const foreseen = {
        freed: foreseenFreed(cleared),
        rewritten: clearing.rewrittenTokens,
        dollars: clearing.cost ?? Number.NaN,
      }
      return {
        at,
        cleared,
        context: contextTokens(before),
        foreseen,
        billed: billedFor(call, before, cleared),
      }
    })
  })
}

/** The provider reports what it freed; the forecast of it is only in the event's text. */
function foreseenFreed({ way, clearing }: ClearEvent): number {
  const told = way === 'native' ? /with ([\d,]+) foreseen/.exec(clearing.why)?.[1] : undefined
  return told === undefined ? clearing.freedTokens : Number(told.replaceAll(',', ''))
}

function billedFor(call: ObservedCall, before: ObservedCall, { way }: ClearEvent): Amounts {
  const freed = freedIn(call, before, way)
  const kept = contextTokens(before) - freed
  const wasWarm = call.at - before.at < LIFE_MS
  const rewritten = wasWarm && way !== 'cached' ? Math.max(0, kept - tokensRead(call)) : 0
  return { freed, rewritten, dollars: (rewritten * premium(call)) / 1_000_000 }
}

const LIFE_MS = 300_000

function freedIn(call: ObservedCall, before: ObservedCall, way: ClearEvent['way']): number {
  if (way === 'native') return appliedIn(call) - appliedIn(before)
  if (way === 'cached') return deletedIn(call) - deletedIn(before)
  return contextTokens(before) - (call.resent ?? Number.NaN)
}

function appliedIn({ record }: ObservedCall): number {
  return record.appliedEdits.reduce((all, edit) => all + edit.cleared_input_tokens, 0)
}

export function deletedIn({ usage }: ObservedCall): number {
  return Number(usage.removed ?? 0)
}

/** Dollars per million tokens by which a cache write costs more than a read. */
function premium({ record }: ObservedCall): number {
  const prices = cataloguePrices(record.model ?? '', record.at)
  return (prices?.writeShort ?? Number.NaN) - (prices?.cacheRead ?? Number.NaN)
}

/** What is told of a break, and of an act of the engine that had to be paid for: plain data, for people and programs. */
import type { ProviderWord } from './provider-word.ts'
import type { Difference, Reason } from './reason.ts'

export interface BreakEvent {
  /** When the request was sent, in milliseconds. A report on a log has the time of the answer, which logs tell. */
  readonly at: number
  readonly source: string
  readonly model: string
  readonly reason: Reason
  /** What else had changed. */
  readonly also: readonly Difference[]
  /** Tokens that should have been read, and those that were. */
  readonly expected: number
  readonly read: number
  readonly tokensLost: number
  /** Dollars above the price of a read; null where a price is not known. */
  readonly moneyLost: number | null
  /** The facts the reason rests on, in words. */
  readonly evidence: string
  /** What the provider itself says; null where it says nothing. */
  readonly provider: ProviderWord | null
  /** The act of the engine's that did it; null where it was none. */
  readonly ours: OwnAct | null
  /** One line, with what to do about it. */
  readonly sentence: string
}

export interface OwnAct {
  /** In words: "cleared 12 results". */
  readonly act: string
  /** Calls until what it frees has paid for what it cost; null where that is not known or never. */
  readonly breakEvenTurns: number | null
}

/** An act that was announced and cost what such an act costs: no break. */
export interface ActPaid extends OwnAct {
  readonly at: number
  readonly source: string
  readonly tokensRewritten: number
  /** Dollars above the price of a read; null where a price is not known. */
  readonly moneySpent: number | null
  readonly sentence: string
}

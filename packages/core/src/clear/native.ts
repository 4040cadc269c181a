/**
 * Native: the provider clears by itself, as each request tells it to. The messages stay as they are and thinking
 * stays valid. A provider works its edits out anew each time, so what is kept is held at the same first result:
 * a bare number would let the cut slide, and rewrite the prefix, with every call.
 */
import { type NativePrice, nativeCut } from './native-cut.ts'
import type { ClearResultsEdit, ProviderEdit } from './provider-edit.ts'
import type { ClearQuestion } from './question.ts'

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
  return {
    act: 'clear-results',
    triggerTokens: scaled.known ? scaled.nativeTrigger : native.triggerTokens,
    keep: Math.max(native.keepAtLeast, register.calls.length - cut),
    clearAtLeastTokens: Math.max(1, scaled.budgets.clear.nativeClearAtLeast),
    excludedTools: tools.filter((tool) => !register.rules.isClearable(tool)).toSorted(),
    clearedInputs: inputs ? writeTools.filter((tool) => tools.includes(tool)) : [],
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

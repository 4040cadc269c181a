/**
 * Thinking that is bound to every byte before it: a clearing makes the thinking behind it worthless. It goes
 * with the clearing, oldest first, or is left for the provider to drop.
 */
import { blocksOf, isThinking } from '../conversation/block.ts'
import type { Profile, ThinkingMode } from '../policy/profile.ts'
import type { Entry } from '../view/entry.ts'
import type { Register } from './register-state.ts'

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

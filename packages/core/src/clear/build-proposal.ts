/** From a choice of results to a proposal: the record's metadata, the price, and what the host must forget. */
import type { ClearWay, MicrocompactMetadata } from '../conversation/metadata.ts'
import { boundBehind } from './bound-thinking.ts'
import type { Candidate } from './candidates.ts'
import { type Chosen, chosenOf, firstChange, freedBy, releasedBy } from './chosen.ts'
import { pays, type Weighed, weighRewrite } from './price-gate.ts'
import type { ClearProposal } from './proposal.ts'
import type { ClearOutcome, ClearQuestion } from './question.ts'
import type { Memory } from './registered.ts'
import { staleMemories } from './stale-memories.ts'
import { noteOn } from './stub.ts'
import type { FirstChange } from './temperature.ts'
import { counted, plural } from './words.ts'

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

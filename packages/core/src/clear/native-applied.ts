/** What a provider says that it cleared by itself, and the record of it: for the accounts and for resuming. */
import { isObject } from '../conversation/json.ts'
import { countOf } from '../measure/figure.ts'
import type { ContextEditRules } from '../policy/profile.ts'
import { releasedBy } from './chosen.ts'
import type { NativeEdits } from './native.ts'
import type { ClearProposal } from './proposal.ts'
import type { ClearQuestion } from './question.ts'
import { type Register, resultOf } from './register-state.ts'
import { counted, plural } from './words.ts'

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

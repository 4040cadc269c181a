/** Edits that a provider makes by itself: what is asked of it in our words, and the same in its own. */
import type { Json } from '../conversation/json.ts'
import type { ContextEditRules } from '../policy/profile.ts'

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

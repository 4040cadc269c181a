/** Settings of clearing old tool results: types, defaults and checks. */
import { WRITE_TOOLS } from '../facts/tool-calls.ts'
import type { ClearMode } from '../log/record.ts'
import {
  booleanCheck,
  choiceCheck,
  eitherCheck,
  type FieldSpecs,
  fieldSpec,
  nonBlankCheck,
  uniqueListCheck,
  wholeNumberCheck,
} from './policy-fields.ts'

/**
 * Idle clearing: clears tool results after a pause. The cache has expired by then, so changing the context breaks no
 * cache.
 */
interface IdlePolicy {
  /** Minutes since the last response after which idle clearing may run; `ttl` means the current cache lifetime. */
  readonly afterMinutes: number | 'ttl'
  /** Number of newest tool results that idle clearing keeps. */
  readonly keep: number
  /** Minimum number of tokens that idle clearing must free; otherwise it does not run. */
  readonly minimumFreedTokens: number
}

/** Budget clearing: clears tool results while the context is above the warning threshold. */
interface BudgetPolicy {
  /** Number of newest tool results that budget clearing always keeps, whatever their size. */
  readonly keep: number
  /** Maximum tokens of clearable tool results that remain after budget clearing. */
  readonly targetTokens: number
  /** Minimum number of tokens that budget clearing must free; otherwise it does not run. */
  readonly minimumFreedTokens: number
}

/** Cached clearing: the provider deletes tool results from its cached prefix, while the messages sent stay unchanged. */
interface CachedPolicy {
  /** Cached clearing runs when this many tool results have not been deleted yet. */
  readonly fireAt: number
  /** Number of newest tool results that cached clearing keeps. */
  readonly keep: number
}

/** Native clearing: the provider clears tool results by itself, as the API request asks for. */
interface NativePolicy {
  /** Number of input tokens at which the provider clears. The warning threshold is used instead if it is lower. */
  readonly triggerTokens: number
  /**
   * Maximum tokens of the newest tool results that native clearing keeps. At least `keepAtLeast` results are kept even
   * if they are larger.
   */
  readonly keepTokens: number
  /** Minimum number of newest tool results that native clearing keeps, whatever their size. */
  readonly keepAtLeast: number
  /** Minimum number of tokens that native clearing must free; otherwise the provider does not clear. */
  readonly clearAtLeastTokens: number
  /** Minutes of idle time after which native clearing keeps only the thinking of the newest turns. */
  readonly thinkingAfterMinutes: number
  /** Number of newest turns whose thinking is kept after `thinkingAfterMinutes` of idle time. */
  readonly thinkingTurns: number
}

export interface ClearPolicy {
  /** Tools whose results may be cleared. Results of other tools are cleared only if `mcp` or the host allows it. */
  readonly tools: readonly string[]
  /**
   * Names of tools that write a file, unless their input has a command. Their large inputs may be cleared if `tools` names
   * them too.
   */
  readonly writeTools: readonly string[]
  /** Whether results of MCP tools may be cleared: only if the tool is annotated as read-only, or never. */
  readonly mcp: 'read-only' | 'never'
  /** Enabled kinds of clearing. The one that runs depends on the provider's features and on whether the cache is warm. */
  readonly ways: readonly ClearMode[]
  /** Clear only if the tokens saved cost more than writing the cache again, unless the context is running out of space. */
  readonly priceGate: boolean
  /**
   * Number of model calls to expect before a 5-minute cache expires. Used until the session has shown its own rate of
   * calls.
   */
  readonly expectedCallsFiveMinutes: number
  /**
   * Number of model calls to expect before a 1-hour cache expires. Used until the session has shown its own rate of
   * calls.
   */
  readonly expectedCallsOneHour: number
  /**
   * Clear first the tool results that a later tool call made outdated (such as an earlier read of the same file), then
   * old ones.
   */
  readonly supersededFirst: boolean
  /** Number of files used last whose newest read and newest change are not cleared, since edits need their lines. */
  readonly keptFiles: number
  /** Also clear large inputs of tool calls that write files. */
  readonly inputs: boolean
  /** Number of tokens from which a tool input counts as large. */
  readonly largeInputTokens: number
  /**
   * What to do with thinking whose signature becomes invalid because the context before it is rewritten: remove it,
   * oldest first, or let the provider drop it.
   */
  readonly boundThinking: 'remove' | 'provider'
  readonly idle: IdlePolicy
  readonly budget: BudgetPolicy
  readonly cached: CachedPolicy
  readonly native: NativePolicy
}

const clearableTools = ['Read', 'Bash', 'Grep', 'Glob', 'WebFetch', 'WebSearch', 'Edit', 'Write']
const clearModes: readonly ClearMode[] = ['idle', 'budget', 'cached', 'native']

export const clearFields: FieldSpecs<ClearPolicy> = {
  tools: fieldSpec<readonly string[]>(clearableTools, uniqueListCheck(nonBlankCheck())),
  writeTools: fieldSpec(WRITE_TOOLS, uniqueListCheck(nonBlankCheck())),
  mcp: fieldSpec('read-only', choiceCheck('read-only', 'never')),
  ways: fieldSpec(clearModes, uniqueListCheck(choiceCheck('idle', 'budget', 'cached', 'native'))),
  priceGate: fieldSpec(true, booleanCheck()),
  expectedCallsFiveMinutes: fieldSpec(27, wholeNumberCheck(1)),
  expectedCallsOneHour: fieldSpec(200, wholeNumberCheck(1)),
  supersededFirst: fieldSpec(true, booleanCheck()),
  keptFiles: fieldSpec(10, wholeNumberCheck()),
  inputs: fieldSpec(true, booleanCheck()),
  largeInputTokens: fieldSpec(1_000, wholeNumberCheck(1)),
  boundThinking: fieldSpec('remove', choiceCheck('remove', 'provider')),
  idle: {
    afterMinutes: fieldSpec<number | 'ttl'>('ttl', eitherCheck(wholeNumberCheck(5), choiceCheck('ttl'))),
    keep: fieldSpec(5, wholeNumberCheck()),
    minimumFreedTokens: fieldSpec(5_000, wholeNumberCheck()),
  },
  budget: {
    keep: fieldSpec(3, wholeNumberCheck()),
    targetTokens: fieldSpec(40_000, wholeNumberCheck()),
    minimumFreedTokens: fieldSpec(20_000, wholeNumberCheck(1)),
  },
  cached: { fireAt: fieldSpec(12, wholeNumberCheck(1)), keep: fieldSpec(5, wholeNumberCheck()) },
  native: {
    triggerTokens: fieldSpec(180_000, wholeNumberCheck(1)),
    keepTokens: fieldSpec(40_000, wholeNumberCheck()),
    keepAtLeast: fieldSpec(3, wholeNumberCheck()),
    clearAtLeastTokens: fieldSpec(20_000, wholeNumberCheck()),
    thinkingAfterMinutes: fieldSpec(60, wholeNumberCheck(1)),
    thinkingTurns: fieldSpec(1, wholeNumberCheck(1)),
  },
}

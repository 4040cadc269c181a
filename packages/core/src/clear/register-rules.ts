/** What calls and results are registered by. Made once and handed on: another object means another register. */
import { type Block, blocksOf, isText, type ToolResultBlock } from '../conversation/block.ts'
import type { Estimator } from '../measure/estimate.ts'
import type { ClearPolicy } from '../policy/groups/clear-policy.ts'
import { clearableTools, type HostTools } from './clearable.ts'

export interface RegisterRules {
  readonly estimator: Estimator
  readonly isClearable: (tool: string) => boolean
  readonly isWrite: (tool: string) => boolean
  /** Tokens from which an input is large; infinite where inputs are not cleared. */
  readonly largeInput: number
  /** A result that says "as you have it already" and gives no text. */
  readonly isUnchanged: (block: ToolResultBlock) => boolean
  /** A result that is there in full: nothing of it was cut or moved elsewhere. */
  readonly isWhole: (block: ToolResultBlock) => boolean
}

export interface RulesQuestion {
  readonly estimator: Estimator
  readonly policy: ClearPolicy
  /** Of the scaled policy: tokens from which an input is large. */
  readonly largeInput: number
  readonly host?: HostTools
  readonly isUnchanged?: (block: ToolResultBlock) => boolean
  readonly isWhole?: (block: ToolResultBlock) => boolean
}

export function registerRules(question: RulesQuestion): RegisterRules {
  const { estimator, policy, host, largeInput, isUnchanged = saysUnchanged, isWhole = always } = question
  const writes = new Set(policy.writeTools)
  return {
    estimator,
    isClearable: clearableTools(policy, host),
    isWrite: (tool) => writes.has(tool),
    largeInput: policy.inputs ? largeInput : Number.POSITIVE_INFINITY,
    isUnchanged,
    isWhole,
  }
}

/** How file tools say that a file is as it was read before. */
const UNCHANGED = /^\s*(?:<[a-z_-]+>\s*)?(?:file_unchanged|file unchanged since|\[file unchanged)/i

function saysUnchanged({ content }: ToolResultBlock): boolean {
  const [first, ...rest]: readonly Block[] = content === undefined ? [] : blocksOf(content)
  return rest.length === 0 && first !== undefined && isText(first) && UNCHANGED.test(first.text)
}

function always(): boolean {
  return true
}

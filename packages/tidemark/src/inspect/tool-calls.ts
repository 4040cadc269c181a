import { isToolUse } from '@tidemark/core'
import type { Call } from './calls.ts'

/** How many tools were called: a call whose line stands twice in the log is one. */
export function toolCallsIn(calls: readonly Call[]): number {
  const ids = calls.flatMap(({ blocks }) => blocks.flatMap((block) => (isToolUse(block) ? [block.id] : [])))
  return new Set(ids).size
}
